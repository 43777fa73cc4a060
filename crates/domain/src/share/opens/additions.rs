//! Adding to a directory and deleting it exclude each other.
//!
//! An addition to a directory is counted from its decision to its commit. Before a directory is
//! marked for deletion it is sealed: that waits until all counted additions are done, and no other
//! begins until it is known whether the directory is empty.

use std::sync::Arc;

use super::handle::NodeKey;
use super::node::NodeOpens;
use super::registry::Opens;
use super::rest_entry::EnterRefusal;

/// An addition to a directory, which ends when this is dropped.
#[must_use]
pub(crate) struct Addition<'a> {
    opens: &'a Opens,
    directory: NodeKey,
}

impl Drop for Addition<'_> {
    fn drop(&mut self) {
        self.opens.with(self.directory, |node| {
            node.additions -= 1;
            node.changed.notify_waiters();
        });
    }
}

/// Nothing is added to a directory until this is dropped.
#[must_use]
pub(crate) struct Sealed<'a> {
    opens: &'a Opens,
    directory: NodeKey,
}

impl Drop for Sealed<'_> {
    fn drop(&mut self) {
        self.opens.with(self.directory, |node| {
            node.is_sealed = false;
            node.changed.notify_waiters();
        });
    }
}

impl Opens {
    /// Begins an addition to a directory, unless that is about to be deleted.
    pub(crate) async fn add_to(&self, directory: NodeKey) -> Result<Addition<'_>, EnterRefusal> {
        loop {
            let is_counted = self.with(directory, |node| {
                if node.is_marked_for_deletion() {
                    return Err(EnterRefusal::DeletePending);
                }
                if !node.is_sealed {
                    node.additions += 1;
                }
                Ok(!node.is_sealed)
            })?;
            if is_counted {
                return Ok(Addition { opens: self, directory });
            }
            self.wait_while(directory, |node| node.is_sealed).await;
        }
    }

    /// Waits until nothing is being added to a directory and it is not sealed otherwise, and seals
    /// it.
    pub(crate) async fn seal(&self, directory: NodeKey) -> Sealed<'_> {
        while !self.with(directory, |node| !std::mem::replace(&mut node.is_sealed, true)) {
            self.wait_while(directory, |node| node.is_sealed).await;
        }
        let sealed = Sealed { opens: self, directory };
        self.wait_while(directory, |node| node.additions > 0).await;
        sealed
    }

    /// Waits while a condition holds for a node. Returns whether it did.
    pub(super) async fn wait_while(
        &self,
        key: NodeKey,
        is_so: impl Fn(&NodeOpens) -> bool,
    ) -> bool {
        let mut waited = false;
        loop {
            let look = |node: &NodeOpens| is_so(node).then(|| Arc::clone(&node.changed));
            let Some(changed) = self.peek(key, look).flatten() else { return waited };
            waited = true;
            let mut notified = std::pin::pin!(changed.notified());
            notified.as_mut().enable();
            // It may have changed between the check and the wait.
            if self.peek(key, &is_so) == Some(true) {
                notified.await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use super::*;

    const DIRECTORY: NodeKey = NodeKey { share: 1, node: 2 };

    async fn is_ready(future: &mut std::pin::Pin<&mut impl Future>) -> bool {
        poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await
    }

    #[tokio::test]
    async fn a_seal_waits_for_those_who_add_and_keeps_others_waiting() {
        let opens = Opens::default();
        let first = opens.add_to(DIRECTORY).await.expect("nobody deletes it");
        let second = opens.add_to(DIRECTORY).await.expect("nobody deletes it");
        let mut sealing = pin!(opens.seal(DIRECTORY));
        assert!(!is_ready(&mut sealing).await);
        drop(first);
        assert!(!is_ready(&mut sealing).await, "one of two is done");
        let mut late = pin!(opens.add_to(DIRECTORY));
        assert!(!is_ready(&mut late).await, "it comes behind the seal");
        drop(second);
        let sealed = sealing.await;
        assert!(!is_ready(&mut late).await);
        drop(sealed);
        drop(late.await.expect("it was not marked"));
        assert!(opens.peek(DIRECTORY, |_| ()).is_none(), "nothing is left of it");
    }

    #[tokio::test]
    async fn who_waits_behind_a_seal_is_refused_if_the_directory_is_marked() {
        let opens = Opens::default();
        let sealed = opens.seal(DIRECTORY).await;
        let mut adding = pin!(opens.add_to(DIRECTORY));
        assert!(!is_ready(&mut adding).await);
        opens.with(DIRECTORY, |node| node.removing = true);
        drop(sealed);
        assert_eq!(adding.await.err(), Some(EnterRefusal::DeletePending));
    }

    #[tokio::test]
    async fn a_seal_that_is_given_up_while_it_waits_is_gone() {
        let opens = Opens::default();
        let adding = opens.add_to(DIRECTORY).await.expect("nobody deletes it");
        {
            let mut sealing = pin!(opens.seal(DIRECTORY));
            assert!(!is_ready(&mut sealing).await);
        }
        let second = opens.add_to(DIRECTORY).await;
        assert!(second.is_ok());
        drop(adding);
    }
}
