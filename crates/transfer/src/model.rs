//! What is moved, in the words of the services and without those of a format or a protocol.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::edm::Property;

/// Names in the case that they were given; two that differ in nothing else are one.
pub type Metadata = BTreeMap<String, String>;

/// One part of a longer list.
pub struct Page<T> {
    pub items: Vec<T>,
    /// Where the next part begins; none at the end.
    pub next: Option<String>,
}

impl<T> Page<T> {
    pub fn only(items: Vec<T>) -> Self {
        Self { items, next: None }
    }
}

/// A stored access policy: dates and permissions as they were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    pub id: String,
    pub start: String,
    pub expiry: String,
    pub permission: String,
}

/// A container, a queue, a table or a share: what all four have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Container {
    pub name: String,
    pub metadata: Metadata,
    pub policies: Vec<Policy>,
    /// Of a container of blobs: `blob`, `container` or nothing.
    pub public_access: String,
    /// Of a share, in GiB.
    pub quota: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobKind {
    Block,
    Append,
    Page,
}

impl BlobKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Block => "BlockBlob",
            Self::Append => "AppendBlob",
            Self::Page => "PageBlob",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        [Self::Block, Self::Append, Self::Page].into_iter().find(|kind| kind.name() == name)
    }
}

/// The headers that a content is answered with. Nothing is the same as an empty text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentHeaders {
    pub content_type: String,
    pub encoding: String,
    pub language: String,
    pub disposition: String,
    pub cache_control: String,
    /// In Base64.
    pub md5: String,
}

/// Where a piece of a content lies in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// In the content.
    pub position: u64,
    pub length: u64,
    pub extent: Arc<str>,
    /// In the extent.
    pub offset: u64,
}

/// Where the bytes of a blob are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In order of their positions. What lies between them is zeros.
    Extents(Arc<[Chunk]>),
    /// Under this ETag, on the server.
    Endpoint { etag: String },
}

/// A blob, or a snapshot of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub container: Arc<str>,
    pub name: Arc<str>,
    /// Empty for the blob itself.
    pub snapshot: String,
    pub kind: BlobKind,
    pub length: u64,
    pub headers: ContentHeaders,
    pub metadata: Metadata,
    pub tags: BTreeMap<String, String>,
    /// Empty if it is the one of the account.
    pub tier: String,
    pub sequence_number: u64,
    pub is_sealed: bool,
    /// Seconds since 1970.
    pub last_modified: i64,
    pub place: Place,
}

/// The versions of one name, the oldest snapshot first and the blob itself at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    pub versions: Vec<Version>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub id: String,
    /// Shows who may delete it; empty where it was not got.
    pub receipt: String,
    pub text: String,
    /// Seconds since 1970.
    pub expires: i64,
    /// Seconds since 1970.
    pub visible: i64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Entity {
    pub partition_key: String,
    pub row_key: String,
    /// Without the keys and the time.
    pub properties: BTreeMap<String, Property>,
}

/// A directory or a file of a share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// From the root of the share, without a slash at its beginning; empty for the root.
    pub path: String,
    pub is_directory: bool,
    pub length: u64,
    pub headers: ContentHeaders,
    pub metadata: Metadata,
    /// As the protocol writes them: `ReadOnly | Archive`.
    pub attributes: String,
    pub created: String,
    pub written: String,
    pub etag: String,
}
