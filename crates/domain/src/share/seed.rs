//! What a seed puts into a share at the start of a server. It only adds missing nodes, which nobody can
//! have open, so it needs no entry among the opens of SMB clients.

use super::tree::{Answer, Located};
use super::{CreateDirectory, CreateFile};
use crate::domain::Domain;

impl Domain {
    /// Refused with `AlreadyExists` if there is one.
    pub async fn seed_directory(&self, command: &CreateDirectory) -> Answer<Located> {
        self.create_directory(command).await
    }

    /// Refused with `AlreadyExists` if there is a node, whatever the command says.
    pub async fn seed_file(&self, command: CreateFile) -> Answer<Located> {
        self.create_file(CreateFile { overwrite: false, ..command }).await
    }
}
