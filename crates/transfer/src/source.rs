//! What data is moved from. Everything that is read names what it is of, so that a failure concerns
//! one object and the rest goes on.

use async_trait::async_trait;
use bytes::Bytes;

use crate::model::{Blob, Container, Entity, Message, Node, Page, Version};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Reading it again from its beginning may succeed.
    #[error("it was changed while it was read")]
    Changed,
    #[error("{0}")]
    Broken(String),
}

impl Unreadable {
    pub fn because(reason: impl ToString) -> Self {
        Self::Broken(reason.to_string())
    }
}

/// Something of a list that cannot be moved, among others that can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    pub what: String,
    pub why: String,
}

/// A list, of which some elements may be unusable.
pub type Listed<T> = Result<Page<Result<T, Unusable>>, Unreadable>;

/// The messages of a queue, as far as they can be had.
pub enum Messages {
    /// All of them. They stay where they are.
    All(Vec<Message>),
    /// Some of them, which are to be deleted when they have been moved; none at the end.
    Taken(Vec<Message>),
    /// About so many, which cannot be read without changing them.
    Left(u64),
}

/// `after` is none for the beginning of a list, and then the `next` of its last page.
#[async_trait]
pub trait Source: Send + Sync {
    async fn containers(&self, after: Option<&str>) -> Listed<Container>;

    async fn blobs(&self, container: &str, after: Option<&str>) -> Listed<Blob>;

    /// The blob as it is now, after it was changed; none if it is gone.
    async fn look_again(&self, blob: &Blob) -> Result<Option<Blob>, Unreadable>;

    /// Exactly `length` bytes, which lie within the content.
    async fn read(&self, blob: &Version, offset: u64, length: u64) -> Result<Bytes, Unreadable>;

    /// First byte and length of each range of a page blob that is not zeros.
    async fn page_ranges(&self, blob: &Version) -> Result<Vec<(u64, u64)>, Unreadable>;

    async fn queues(&self, after: Option<&str>) -> Listed<Container>;

    async fn messages(&self, queue: &str) -> Result<Messages, Unreadable>;

    /// Takes a message away that has been moved.
    async fn delete_message(&self, queue: &str, message: &Message) -> Result<(), Unreadable>;

    async fn tables(&self, after: Option<&str>) -> Listed<Container>;

    /// Sorted by their keys.
    async fn entities(&self, table: &str, after: Option<&str>) -> Listed<Entity>;

    async fn shares(&self, after: Option<&str>) -> Listed<Container>;

    /// What a directory has in it, with nothing but path, kind and length.
    async fn directory(&self, share: &str, path: &str, after: Option<&str>) -> Listed<Node>;

    /// All properties of a directory or file.
    async fn node(&self, share: &str, node: &Node) -> Result<Node, Unreadable>;

    async fn file_ranges(&self, share: &str, file: &Node) -> Result<Vec<(u64, u64)>, Unreadable>;

    async fn read_file(
        &self,
        share: &str,
        file: &Node,
        offset: u64,
        length: u64,
    ) -> Result<Bytes, Unreadable>;
}
