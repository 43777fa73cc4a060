//! An account on a server as the source.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_verify::account::Service;

use super::{Endpoint, Failure};
use crate::model::{Blob, Container, Entity, Message, Node, Page, Version};
use crate::source::{Listed, Messages, Source, Unreadable, Unusable};

impl From<Failure> for Unreadable {
    fn from(failure: Failure) -> Self {
        if failure.is(412) { Self::Changed } else { Self::Broken(failure.to_string()) }
    }
}

pub struct EndpointSource {
    endpoint: Arc<Endpoint>,
    /// The only one that a signature opens.
    only: Option<String>,
    moves_messages: bool,
    with_tags: AtomicBool,
    /// Versions of the last name of a page, of which the next one may have more. By container.
    carried: Mutex<HashMap<String, Vec<Version>>>,
}

impl EndpointSource {
    pub fn new(endpoint: Arc<Endpoint>, only: Option<String>, moves_messages: bool) -> Self {
        let (with_tags, carried) = (AtomicBool::new(true), Mutex::default());
        Self { endpoint, only, moves_messages, with_tags, carried }
    }

    async fn list(&self, service: Service, after: Option<&str>) -> Listed<Container> {
        let page = match &self.only {
            None => self.endpoint.list(service, after).await?,
            Some(name) => {
                let container = Container { name: name.clone(), ..Container::default() };
                // A signature of one container does not open its properties everywhere.
                match self.endpoint.container(service, name).await {
                    Ok(found) => Page::only(found.map(|(it, _)| it).into_iter().collect()),
                    Err(failure) if failure.is(403) => Page::only(vec![container]),
                    Err(failure) => return Err(failure.into()),
                }
            }
        };
        let mut items = Vec::new();
        for mut container in page.items {
            match self.endpoint.policies(service, &container.name).await {
                Ok(policies) => container.policies = policies,
                Err(failure) => items.push(Err(Unusable {
                    what: format!(
                        "stored access policies of {} {}",
                        service.name(),
                        container.name
                    ),
                    why: failure.to_string(),
                })),
            }
            items.push(Ok(container));
        }
        Ok(Page { items, next: page.next })
    }

    /// The blobs of a page, and what of them may have more versions in the next one.
    fn gather(&self, container: &str, page: Page<Version>) -> Page<Result<Blob, Unusable>> {
        let mut carried = self.carried.lock().unwrap_or_else(PoisonError::into_inner);
        let mut versions = carried.remove(container).unwrap_or_default();
        versions.extend(page.items);
        if page.next.is_some() {
            let last = versions.last().map(|version| Arc::clone(&version.name));
            let first = versions.iter().position(|version| Some(&version.name) == last.as_ref());
            let carry = versions.split_off(first.unwrap_or(versions.len()));
            carried.insert(container.to_owned(), carry);
        }
        let blobs = versions.chunk_by(|one, two| one.name == two.name).map(|versions| {
            let mut versions = versions.to_vec();
            versions.sort_by_key(|it| (it.snapshot.is_empty(), it.snapshot.clone()));
            match versions.last() {
                Some(base) if base.snapshot.is_empty() => Ok(Blob { versions }),
                other => Err(Unusable {
                    what: format!("blob {container}/{}", other.map_or("", |it| &it.name)),
                    why: "there are only snapshots of it".to_owned(),
                }),
            }
        });
        Page { items: blobs.collect(), next: page.next }
    }
}

#[async_trait]
impl Source for EndpointSource {
    async fn containers(&self, after: Option<&str>) -> Listed<Container> {
        self.list(Service::Blob, after).await
    }

    async fn blobs(&self, container: &str, after: Option<&str>) -> Listed<Blob> {
        let with_tags = self.with_tags.load(Ordering::Relaxed);
        let listed = self.endpoint.list_blobs(container, "", after, with_tags).await;
        let page = match listed {
            // A signature may open blobs without their tags.
            Err(failure) if with_tags && failure.is(403) => {
                let page = self.endpoint.list_blobs(container, "", after, false).await?;
                self.with_tags.store(false, Ordering::Relaxed);
                let mut page = self.gather(container, page);
                let what = "the tags of all blobs".to_owned();
                page.items.push(Err(Unusable { what, why: failure.to_string() }));
                return Ok(page);
            }
            other => other?,
        };
        Ok(self.gather(container, page))
    }

    async fn look_again(&self, blob: &Blob) -> Result<Option<Blob>, Unreadable> {
        let Some(Version { container, name, .. }) = blob.versions.last() else { return Ok(None) };
        let versions = self.endpoint.versions(container, name).await?;
        let is_there = versions.last().is_some_and(|version| version.snapshot.is_empty());
        Ok(is_there.then_some(Blob { versions }))
    }

    async fn read(&self, blob: &Version, offset: u64, length: u64) -> Result<Bytes, Unreadable> {
        Ok(self.endpoint.read_blob(blob, offset, length).await?)
    }

    async fn page_ranges(&self, blob: &Version) -> Result<Vec<(u64, u64)>, Unreadable> {
        Ok(self.endpoint.page_ranges(blob).await?)
    }

    async fn queues(&self, after: Option<&str>) -> Listed<Container> {
        self.list(Service::Queue, after).await
    }

    async fn messages(&self, queue: &str) -> Result<Messages, Unreadable> {
        if self.moves_messages {
            let taken = self.endpoint.get_messages(queue).await?;
            if !taken.is_empty() {
                return Ok(Messages::Taken(taken));
            }
        }
        let found = self.endpoint.container(Service::Queue, queue).await?;
        Ok(Messages::Left(found.map_or(0, |(_, messages)| messages)))
    }

    async fn delete_message(&self, queue: &str, message: &Message) -> Result<(), Unreadable> {
        Ok(self.endpoint.delete_message(queue, message).await?)
    }

    async fn tables(&self, after: Option<&str>) -> Listed<Container> {
        self.list(Service::Table, after).await
    }

    async fn entities(&self, table: &str, after: Option<&str>) -> Listed<Entity> {
        Ok(self.endpoint.entities(table, None, after).await?)
    }

    async fn shares(&self, after: Option<&str>) -> Listed<Container> {
        self.list(Service::File, after).await
    }

    async fn directory(&self, share: &str, path: &str, after: Option<&str>) -> Listed<Node> {
        let page = self.endpoint.list_directory(share, path, after).await?;
        Ok(Page { items: page.items.into_iter().map(Ok).collect(), next: page.next })
    }

    async fn node(&self, share: &str, node: &Node) -> Result<Node, Unreadable> {
        let found = self.endpoint.node(share, node).await?;
        found.ok_or(Unreadable::Changed)
    }

    async fn file_ranges(&self, share: &str, file: &Node) -> Result<Vec<(u64, u64)>, Unreadable> {
        Ok(self.endpoint.file_ranges(share, file).await?)
    }

    async fn read_file(
        &self,
        share: &str,
        file: &Node,
        offset: u64,
        length: u64,
    ) -> Result<Bytes, Unreadable> {
        Ok(self.endpoint.read_file(share, file, offset, length).await?)
    }
}
