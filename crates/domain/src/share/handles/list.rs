//! The names in a directory, step by step through its handle.

use super::Answer;
use super::command::{ListFrom, Listed, Listing, NodeInformation};
use super::refusal::HandleRefusal;
use super::transfer::{check_open, state};
use super::wildcard::Pattern;
use crate::domain::Domain;
use crate::failure::Failure;
use crate::names::PathComponent;
use crate::share::opens::handle::Enumeration;
use crate::share::opens::{AccessMask, Handle, NodeKey};
use crate::share::{ListDirectory, Node};

/// Names that are read at a time while few of them match.
const PAGE_NAMES: usize = 256;

impl Domain {
    pub async fn list_handle(&self, handle: &Handle, from: &ListFrom) -> Answer<Listing> {
        check_open(handle)?;
        if !handle.is_directory {
            return Err(Failure::Refused(HandleRefusal::InvalidParameter));
        }
        if !handle.access.contains(AccessMask::READ_DATA) {
            return Err(Failure::Refused(HandleRefusal::AccessDenied));
        }
        let mut at = begin(handle.state.lock().enumeration.clone(), from);
        let begun = at.clone();
        let invalid = Failure::Refused(HandleRefusal::InvalidPattern);
        let pattern = Pattern::new(&at.pattern).ok_or(invalid)?;
        let mut entries = Vec::new();
        if at.dots < 2 {
            let directory = self.query_handle(handle).await?;
            for (index, name) in [".", ".."].iter().enumerate().skip(at.dots.into()) {
                if entries.len() < from.limit {
                    at.dots = index as u8 + 1;
                    if pattern.matches(name) {
                        let information = directory.clone();
                        entries.push(Listed { name: (*name).to_owned(), information });
                    }
                }
            }
        }
        self.list_nodes(handle, &mut at, &pattern, from.limit, &mut entries).await?;
        let told_before = std::mem::replace(&mut at.told_any, true);
        if entries.is_empty() && !told_before {
            at.told_any = false;
        }
        handle.state.lock().enumeration = Some(at);
        match (entries.is_empty(), told_before) {
            (false, _) => Ok(Listing { entries, from: begun }),
            (true, true) => Err(Failure::Refused(HandleRefusal::NoMoreFiles)),
            (true, false) => Err(Failure::Refused(HandleRefusal::NoSuchFile)),
        }
    }

    async fn list_nodes(
        &self,
        handle: &Handle,
        at: &mut Enumeration,
        pattern: &Pattern,
        limit: usize,
        entries: &mut Vec<Listed>,
    ) -> Answer<()> {
        while entries.len() < limit {
            let wanted = (limit - entries.len()).min(PAGE_NAMES);
            let after = at.after.clone();
            let page = self
                .at_place(handle, async |address| {
                    self.list_directory(&ListDirectory {
                        address,
                        state: state(handle),
                        prefix: pattern.prefix(),
                        after: after.clone(),
                        limit: wanted,
                    })
                    .await
                })
                .await?;
            for node in &page.entries {
                at.after = node.name.as_ref().map(PathComponent::key);
                if let Some(listed) = self.listed(handle.key, node)
                    && pattern.matches(&listed.name)
                {
                    entries.push(listed);
                }
            }
            if page.next.is_none() {
                break;
            }
            // If few names match, a listing takes as long as the directory is: so it yields between
            // pages, and notices when the client has given up.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    fn listed(&self, directory: NodeKey, node: &Node) -> Option<Listed> {
        let key = NodeKey { share: directory.share, node: node.id };
        let seen = self.opens.seen(key, node.times.written);
        let information = NodeInformation::of(node, directory.node, seen);
        Some(Listed { name: node.name.as_ref()?.to_string(), information })
    }
}

fn begin(so_far: Option<Enumeration>, from: &ListFrom) -> Enumeration {
    match so_far {
        Some(enumeration) if !from.restart => enumeration,
        before => {
            let kept = before.map(|before| before.pattern).filter(|_| from.pattern.is_empty());
            let pattern = kept.unwrap_or_else(|| from.pattern.clone());
            Enumeration { pattern, dots: 0, after: None, told_any: false }
        }
    }
}
