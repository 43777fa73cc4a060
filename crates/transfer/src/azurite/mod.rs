//! The folder of a stopped Azurite, read whole but for the contents: each account in it is a source.

mod extents;
mod loki;
mod rows;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::model::{Blob, Container, Entity, Message, Node, Page, Place, Version};
use crate::source::{Listed, Messages, Source, Unreadable, Unusable};
use extents::Extents;
use loki::{Database, InvalidDatabase};

const BLOBS: &str = "__azurite_db_blob__.json";
const QUEUES: &str = "__azurite_db_queue__.json";
const TABLES: &str = "__azurite_db_table__.json";
const BLOB_EXTENTS: &str = "__blobstorage__";
const QUEUE_EXTENTS: &str = "__queuestorage__";
/// What is handed over in one page of a list.
const PAGE_ITEMS: usize = 1000;

#[derive(Debug, thiserror::Error)]
pub enum InvalidFolder {
    #[error("{0} is no folder of Azurite: it has none of {BLOBS}, {QUEUES} and {TABLES}")]
    Empty(String),
    #[error(transparent)]
    Database(#[from] InvalidDatabase),
}

/// What an account has in the folder. Lists are in order of their names.
#[derive(Default)]
struct Holdings {
    containers: Vec<Result<Container, Unusable>>,
    blobs: BTreeMap<String, Vec<Result<Blob, Unusable>>>,
    queues: Vec<Result<Container, Unusable>>,
    messages: BTreeMap<String, Vec<Message>>,
    tables: Vec<Result<Container, Unusable>>,
    entities: BTreeMap<String, Vec<Result<Entity, Unusable>>>,
}

pub struct Folder {
    accounts: BTreeMap<String, Arc<Holdings>>,
    extents: Arc<Extents>,
    /// Rows that do not say of which account they are.
    pub unusable: Vec<Unusable>,
    /// What the user should know and what is not left out of the import.
    pub notes: Vec<String>,
}

impl Folder {
    pub fn open(folder: &Path) -> Result<Self, InvalidFolder> {
        let [blobs, queues, tables] =
            [BLOBS, QUEUES, TABLES].map(|name| Database::open(&folder.join(name)));
        let (blobs, queues, tables) = (blobs?, queues?, tables?);
        if blobs.is_none() && queues.is_none() && tables.is_none() {
            return Err(InvalidFolder::Empty(folder.display().to_string()));
        }
        let mut reading = rows::Reading::new(Extents::new(folder.join(QUEUE_EXTENTS)));
        if let Some(database) = blobs {
            database.rows(|collection, row| reading.blob_row(collection, row))?;
        }
        if let Some(database) = queues {
            database.rows(|collection, row| reading.queue_row(collection, row))?;
        }
        if let Some(database) = tables {
            database.rows(|collection, row| reading.table_row(collection, row))?;
        }
        let (accounts, unusable, mut notes) = reading.finish();
        for name in [BLOBS, QUEUES, TABLES].map(|name| format!("{name}~")) {
            if folder.join(&name).exists() {
                notes.push(format!(
                    "{name}: Azurite was ended while it saved; what it saved before is read"
                ));
            }
        }
        Ok(Self {
            accounts: accounts.into_iter().map(|(name, it)| (name, Arc::new(it))).collect(),
            extents: Arc::new(Extents::new(folder.join(BLOB_EXTENTS))),
            unusable,
            notes,
        })
    }

    pub fn account_names(&self) -> impl Iterator<Item = &str> {
        self.accounts.keys().map(String::as_str)
    }

    pub fn account(&self, name: &str) -> Option<AzuriteAccount> {
        let holdings = Arc::clone(self.accounts.get(name)?);
        Some(AzuriteAccount { holdings, extents: Arc::clone(&self.extents) })
    }
}

pub struct AzuriteAccount {
    holdings: Arc<Holdings>,
    extents: Arc<Extents>,
}

/// The page that begins at the index `after`.
fn page<T: Clone>(all: &[Result<T, Unusable>], after: Option<&str>) -> Page<Result<T, Unusable>> {
    let first = after.and_then(|after| after.parse().ok()).unwrap_or(0).min(all.len());
    let last = (first + PAGE_ITEMS).min(all.len());
    let next = (last < all.len()).then(|| last.to_string());
    Page { items: all[first..last].to_vec(), next }
}

#[async_trait]
impl Source for AzuriteAccount {
    async fn containers(&self, after: Option<&str>) -> Listed<Container> {
        Ok(page(&self.holdings.containers, after))
    }

    async fn blobs(&self, container: &str, after: Option<&str>) -> Listed<Blob> {
        let all = self.holdings.blobs.get(container);
        let mut page = page(all.map_or(&[], Vec::as_slice), after);
        for item in &mut page.items {
            let damage = item.as_ref().ok().and_then(|blob| {
                let damage = blob.versions.iter().find_map(|version| {
                    let Place::Extents(chunks) = &version.place else { return None };
                    self.extents.check(chunks).err()
                });
                Some((blob.versions.last()?, damage?))
            });
            if let Some((version, why)) = damage {
                let what = format!("blob {}/{}", version.container, version.name);
                *item = Err(Unusable { what, why });
            }
        }
        Ok(page)
    }

    async fn look_again(&self, blob: &Blob) -> Result<Option<Blob>, Unreadable> {
        Ok(Some(blob.clone()))
    }

    async fn read(&self, blob: &Version, offset: u64, length: u64) -> Result<Bytes, Unreadable> {
        let Place::Extents(chunks) = &blob.place else {
            return Err(Unreadable::because("it is not in this folder"));
        };
        let (extents, chunks) = (Arc::clone(&self.extents), Arc::clone(chunks));
        let length = usize::try_from(length).map_err(Unreadable::because)?;
        let read = tokio::task::spawn_blocking(move || extents.read(&chunks, offset, length));
        let read = read.await.map_err(Unreadable::because)?;
        Ok(read.map_err(Unreadable::Broken)?.into())
    }

    async fn page_ranges(&self, blob: &Version) -> Result<Vec<(u64, u64)>, Unreadable> {
        let Place::Extents(chunks) = &blob.place else {
            return Err(Unreadable::because("it is not in this folder"));
        };
        Ok(chunks.iter().map(|chunk| (chunk.position, chunk.length)).collect())
    }

    async fn queues(&self, after: Option<&str>) -> Listed<Container> {
        Ok(page(&self.holdings.queues, after))
    }

    async fn messages(&self, queue: &str) -> Result<Messages, Unreadable> {
        Ok(Messages::All(self.holdings.messages.get(queue).cloned().unwrap_or_default()))
    }

    async fn delete_message(&self, _queue: &str, _message: &Message) -> Result<(), Unreadable> {
        Ok(())
    }

    async fn tables(&self, after: Option<&str>) -> Listed<Container> {
        Ok(page(&self.holdings.tables, after))
    }

    async fn entities(&self, table: &str, after: Option<&str>) -> Listed<Entity> {
        let all = self.holdings.entities.get(table);
        Ok(page(all.map_or(&[], Vec::as_slice), after))
    }

    async fn shares(&self, _after: Option<&str>) -> Listed<Container> {
        Ok(Page::only(Vec::new()))
    }

    async fn directory(&self, _share: &str, _path: &str, _after: Option<&str>) -> Listed<Node> {
        Ok(Page::only(Vec::new()))
    }

    async fn node(&self, _share: &str, node: &Node) -> Result<Node, Unreadable> {
        Ok(node.clone())
    }

    async fn file_ranges(&self, _share: &str, _file: &Node) -> Result<Vec<(u64, u64)>, Unreadable> {
        Ok(Vec::new())
    }

    async fn read_file(
        &self,
        _share: &str,
        _file: &Node,
        _offset: u64,
        _length: u64,
    ) -> Result<Bytes, Unreadable> {
        Err(Unreadable::because("Azurite has no shares"))
    }
}

#[cfg(test)]
mod tests;
