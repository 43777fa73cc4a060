//! Change notifications: changes in a directory are kept for the handles that watch it.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use crate::names::{FilePath, PathComponent};

/// Which changes a client wants to be told: the bits of [MS-SMB2] 2.2.35.
pub mod filter {
    pub const FILE_NAME: u32 = 0x1;
    pub const DIRECTORY_NAME: u32 = 0x2;
    pub const ATTRIBUTES: u32 = 0x4;
    pub const SIZE: u32 = 0x8;
    pub const LAST_WRITE: u32 = 0x10;
    pub const LAST_ACCESS: u32 = 0x20;
    pub const CREATION: u32 = 0x40;
    pub const EXTENDED_ATTRIBUTES: u32 = 0x80;
    pub const SECURITY: u32 = 0x100;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeAction {
    Added,
    Removed,
    Modified,
    RenamedFrom,
    RenamedTo,
}

/// A change of a node of a share.
#[derive(Clone, Debug)]
pub struct ChangeEvent {
    pub path: FilePath,
    pub action: ChangeAction,
    /// Watchers with any of these bits are notified.
    pub filter: u32,
}

/// A change as told to a client, with the path from the watched directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub action: ChangeAction,
    /// With slashes.
    pub name: String,
}

impl Change {
    /// As FILE_NOTIFY_INFORMATION, with the padding before the next.
    fn size(&self) -> usize {
        (12 + 2 * self.name.encode_utf16().count()).next_multiple_of(4)
    }
}

/// How a request to watch ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    Changes(Vec<Change>),
    /// There were more changes than fit: the client lists the directory instead.
    Overflow,
    /// The handle was closed.
    Closed,
    /// The directory is about to be deleted.
    DeletePending,
}

/// Begins with the first request on a handle, and keeps what happens between requests.
#[derive(Debug)]
pub struct Watch {
    filter: u32,
    recursive: bool,
    capacity: usize,
    changes: Vec<Change>,
    size: usize,
    overflow: bool,
    waiting: VecDeque<(usize, oneshot::Sender<Watched>)>,
}

impl Watch {
    pub fn new(filter: u32, recursive: bool, capacity: usize) -> Self {
        let (changes, waiting) = (Vec::new(), VecDeque::new());
        Self { filter, recursive, capacity, changes, size: 0, overflow: false, waiting }
    }

    /// The changes since the last request, or a receiver for the next.
    pub fn ask(&mut self, capacity: usize) -> Result<Watched, oneshot::Receiver<Watched>> {
        if self.overflow || !self.changes.is_empty() {
            return Ok(self.take(capacity));
        }
        let (sender, receiver) = oneshot::channel();
        self.waiting.push_back((capacity, sender));
        Err(receiver)
    }

    fn take(&mut self, capacity: usize) -> Watched {
        let changes = std::mem::take(&mut self.changes);
        let overflow = std::mem::take(&mut self.overflow);
        let size = std::mem::take(&mut self.size);
        let fits = !overflow && size <= capacity;
        if fits { Watched::Changes(changes) } else { Watched::Overflow }
    }

    /// Keeps the changes below the directory at `watched`, and sends them if a request waits.
    pub fn notice(&mut self, watched: &[PathComponent], change_events: &[ChangeEvent]) {
        for event in change_events {
            if let Some(name) = self.concerns(watched, event) {
                let change = Change { action: event.action, name };
                self.size += change.size();
                self.overflow |= self.size > self.capacity;
                if self.overflow {
                    self.changes.clear();
                } else {
                    self.changes.push(change);
                }
            }
        }
        while (self.overflow || !self.changes.is_empty())
            && let Some((capacity, sender)) = self.waiting.pop_front()
        {
            // If that request was cancelled, the changes are kept for the next.
            if !sender.is_closed() {
                let _ = sender.send(self.take(capacity));
            }
        }
    }

    /// The path from the watched directory, if the change is watched.
    fn concerns(&self, watched: &[PathComponent], event: &ChangeEvent) -> Option<String> {
        let below = event.path.components().strip_prefix(watched)?;
        let seen = match below.len() {
            0 => false,
            1 => true,
            _ => self.recursive,
        };
        let names: Vec<&str> = below.iter().map(PathComponent::as_str).collect();
        (seen && event.filter & self.filter != 0).then(|| names.join("/"))
    }

    pub fn end(&mut self, how: &Watched) {
        for (_, sender) in self.waiting.drain(..) {
            let _ = sender.send(how.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::TrailingDots;

    fn path(text: &str) -> FilePath {
        FilePath::directory(text, TrailingDots::Kept).expect("a path")
    }

    fn added(text: &str) -> ChangeEvent {
        let action = ChangeAction::Added;
        ChangeEvent { path: path(text), action, filter: filter::FILE_NAME }
    }

    fn told(names: &[&str]) -> Watched {
        let change = |name: &&str| Change { action: ChangeAction::Added, name: (*name).to_owned() };
        Watched::Changes(names.iter().map(change).collect())
    }

    #[test]
    fn a_watch_tells_what_happens_in_its_directory_and_below_if_asked() {
        for (watched, recursive, happened, name) in [
            ("a", false, "a/x", Some("x")),
            ("A", false, "a/x", Some("x")),
            ("a", false, "a/b/x", None),
            ("a", true, "a/b/x", Some("b/x")),
            ("a", true, "b/x", None),
            ("a", true, "a", None),
            ("", true, "a/x", Some("a/x")),
            ("", false, "x", Some("x")),
        ] {
            let mut watch = Watch::new(filter::FILE_NAME, recursive, 1000);
            watch.notice(path(watched).components(), &[added(happened)]);
            let outcome = watch.ask(1000).ok();
            assert_eq!(outcome, name.map(|name| told(&[name])), "{watched} {recursive} {happened}");
        }
    }

    #[test]
    fn what_was_not_asked_for_is_not_told() {
        let mut watch = Watch::new(filter::DIRECTORY_NAME | filter::SIZE, true, 1000);
        watch.notice(&[], &[added("x")]);
        assert!(watch.ask(1000).is_err());
    }

    #[test]
    fn whoever_asked_first_is_told_first_and_the_next_waits() {
        let mut watch = Watch::new(filter::FILE_NAME, false, 1000);
        let (first, second) = (watch.ask(1000), watch.ask(1000));
        let (Err(mut first), Err(mut second)) = (first, second) else { panic!("nothing to tell") };
        watch.notice(&[], &[added("x"), added("y")]);
        assert_eq!(first.try_recv(), Ok(told(&["x", "y"])));
        assert!(second.try_recv().is_err());
        watch.end(&Watched::Closed);
        assert_eq!(second.try_recv(), Ok(Watched::Closed));
    }

    #[test]
    fn whoever_has_given_up_leaves_it_to_the_next() {
        let mut watch = Watch::new(filter::FILE_NAME, false, 1000);
        drop(watch.ask(1000));
        watch.notice(&[], &[added("x")]);
        assert_eq!(watch.ask(1000).ok(), Some(told(&["x"])));
    }

    #[test]
    fn more_than_fits_is_told_as_an_overflow_and_then_forgotten() {
        let mut watch = Watch::new(filter::FILE_NAME, false, 40);
        watch.notice(&[], &[added("first"), added("second"), added("third")]);
        assert_eq!(watch.ask(40).ok(), Some(Watched::Overflow));
        watch.notice(&[], &[added("first")]);
        assert_eq!(watch.ask(10).ok(), Some(Watched::Overflow), "this client has less room");
        watch.notice(&[], &[added("first")]);
        assert_eq!(watch.ask(24).ok(), Some(told(&["first"])));
    }
}
