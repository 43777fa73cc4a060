//! Trees: what a session is connected to.

use crate::shares::Share;

pub struct Tree {
    pub id: u32,
    pub kind: TreeKind,
}

pub enum TreeKind {
    /// `IPC$`: named pipes.
    Pipes,
    Share(Share),
}

impl Tree {
    pub fn share(&self) -> Option<&Share> {
        match &self.kind {
            TreeKind::Share(share) => Some(share),
            TreeKind::Pipes => None,
        }
    }
}
