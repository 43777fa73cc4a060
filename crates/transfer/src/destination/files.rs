//! Directories and files of shares. A file bears a mark in its metadata until it is whole.

use super::content::ContentHash;
use super::{Destination, Left, READS_MAX};
use crate::model::Node;
use crate::plan::{Decision, PIECE_BYTES, decide_node, differs, pieces};
use crate::report::Kind;
use crate::source::Unreadable;

impl Destination {
    /// A directory or a file of a list. Whether it is at the destination now.
    pub async fn node(&self, share: &str, listed: &Node, is_fresh: bool) -> bool {
        let what = format!("{share}/{}", listed.path);
        for read in 1..=READS_MAX {
            match self.try_node(share, listed, is_fresh).await {
                Ok(()) => return true,
                Err(Left::Source(Unreadable::Changed)) if read < READS_MAX => {}
                Err(left) => {
                    let noun = if listed.is_directory { "directory" } else { "file" };
                    self.report.left(format!("{noun} {what}"), left);
                    return false;
                }
            }
        }
        false
    }

    async fn try_node(&self, share: &str, listed: &Node, is_fresh: bool) -> Result<(), Left> {
        let node = self.source.node(share, listed).await?;
        let kind = if node.is_directory { Kind::Directory } else { Kind::File };
        let there = if is_fresh { None } else { self.endpoint.node(share, &node).await? };
        let mut decision = decide_node(&node, there.as_ref(), self.rules);
        if decision == Decision::CompareContents
            && let Some(there) = &there
        {
            decision = match self.same_files(share, &node, there).await? {
                true => Decision::Same,
                false => differs(self.rules, "its content differs"),
            };
        }
        match decision {
            Decision::Same | Decision::CompareContents => {
                self.report.there(kind);
                return Ok(());
            }
            Decision::Conflict(what) => return Err(Left::Conflict(what)),
            Decision::Send | Decision::Replace | Decision::ReplaceIfBegun(_) if self.is_dry => {
                self.report.bytes(node.length)
            }
            Decision::Send | Decision::Replace | Decision::ReplaceIfBegun(_) => {
                self.write_node(share, &node, there.as_ref()).await?;
            }
        }
        self.report.sent(kind);
        Ok(())
    }

    async fn same_files(&self, share: &str, node: &Node, there: &Node) -> Result<bool, Left> {
        let (mut here, mut other) = (ContentHash::default(), ContentHash::default());
        for (offset, length) in pieces(0, node.length, PIECE_BYTES) {
            here.take(&self.source.read_file(share, node, offset, length).await?);
            other.take(&self.endpoint.read_file(share, there, offset, length).await?);
        }
        Ok(here.finish() == other.finish())
    }

    async fn write_node(&self, share: &str, node: &Node, there: Option<&Node>) -> Result<(), Left> {
        self.tell_unsendable(format!("{share}/{}", node.path), &node.metadata);
        if let Some(there) = there {
            self.endpoint.make_writable(share, there).await?;
            if node.is_directory {
                return Ok(self.endpoint.finish_node(share, node).await?);
            }
        }
        self.endpoint.create_node(share, node).await?;
        if node.is_directory {
            return Ok(());
        }
        for (first, length) in self.source.file_ranges(share, node).await? {
            for (offset, length) in pieces(first, length, PIECE_BYTES) {
                let bytes = self.source.read_file(share, node, offset, length).await?;
                self.report.bytes(length);
                self.endpoint.write_file(share, node, offset, bytes).await?;
            }
        }
        Ok(self.endpoint.finish_node(share, node).await?)
    }
}
