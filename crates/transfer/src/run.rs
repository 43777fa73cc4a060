//! One run: goes through everything that the source has, and moves so many objects at once.

use std::collections::VecDeque;
use std::sync::Arc;

use holdfast_verify::account::Service;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::destination::{Destination, batches};
use crate::model::{Container, Node, Page};
use crate::source::{Listed, Source, Unusable};

/// What one run does.
pub struct Run {
    destination: Destination,
    places: Arc<Semaphore>,
    tasks: JoinSet<()>,
}

impl Run {
    /// `parallel` objects are moved at once.
    pub fn new(destination: Destination, parallel: usize) -> Self {
        Self { destination, places: Arc::new(Semaphore::new(parallel)), tasks: JoinSet::new() }
    }

    pub async fn services(mut self, services: &[Service]) {
        for service in services {
            match service {
                Service::Blob => self.blobs().await,
                Service::Queue => self.queues().await,
                Service::Table => self.tables().await,
                Service::File => self.shares().await,
            }
            self.wait().await;
        }
    }

    fn source(&self) -> Arc<dyn Source> {
        Arc::clone(&self.destination.source)
    }

    /// Waits for a place; so there are never more tasks than places.
    async fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        let place = Arc::clone(&self.places).acquire_owned().await;
        self.tasks.spawn(async move {
            task.await;
            drop(place);
        });
        while let Some(ended) = self.tasks.try_join_next() {
            self.note_panic(ended);
        }
    }

    async fn wait(&mut self) {
        while let Some(ended) = self.tasks.join_next().await {
            self.note_panic(ended);
        }
    }

    fn note_panic(&self, ended: Result<(), tokio::task::JoinError>) {
        if let Err(error) = ended {
            self.destination.report.left("an object", error);
        }
    }

    /// The usable elements of a page and what follows it; what is unusable is reported.
    fn page<T>(&self, what: &str, listed: Listed<T>) -> Option<Page<T>> {
        let report = &self.destination.report;
        match listed {
            Ok(page) => {
                let usable = page.items.into_iter().filter_map(|item| match item {
                    Ok(item) => Some(item),
                    Err(Unusable { what, why }) => {
                        report.left(what, why);
                        None
                    }
                });
                Some(Page { items: usable.collect(), next: page.next })
            }
            Err(why) => {
                report.left(what, why);
                None
            }
        }
    }

    async fn blobs(&mut self) {
        let mut after = None;
        loop {
            let listed = self.source().containers(after.as_deref()).await;
            let Some(page) = self.page("the list of containers", listed) else { return };
            for container in page.items {
                self.container(container).await;
            }
            after = page.next;
            if after.is_none() {
                return;
            }
        }
    }

    async fn container(&mut self, container: Container) {
        let made = self.destination.container(Service::Blob, &container).await;
        let Some(is_fresh) = made else { return };
        let what = format!("the list of blobs in container {}", container.name);
        let mut after = None;
        loop {
            let listed = self.source().blobs(&container.name, after.as_deref()).await;
            let Some(page) = self.page(&what, listed) else { return };
            for blob in page.items {
                let destination = self.destination.clone();
                self.spawn(async move { destination.blob(blob, is_fresh).await }).await;
            }
            after = page.next;
            if after.is_none() {
                return;
            }
        }
    }

    async fn queues(&mut self) {
        let mut after = None;
        loop {
            let listed = self.source().queues(after.as_deref()).await;
            let Some(page) = self.page("the list of queues", listed) else { return };
            for queue in page.items {
                let destination = self.destination.clone();
                self.spawn(async move { destination.queue(queue).await }).await;
            }
            after = page.next;
            if after.is_none() {
                return;
            }
        }
    }

    async fn tables(&mut self) {
        let mut after = None;
        loop {
            let listed = self.source().tables(after.as_deref()).await;
            let Some(page) = self.page("the list of tables", listed) else { return };
            for table in page.items {
                self.table(table).await;
            }
            after = page.next;
            if after.is_none() {
                return;
            }
        }
    }

    async fn table(&mut self, table: Container) {
        let made = self.destination.container(Service::Table, &table).await;
        let Some(is_fresh) = made else { return };
        let what = format!("the list of entities in table {}", table.name);
        let mut after = None;
        loop {
            let listed = self.source().entities(&table.name, after.as_deref()).await;
            let Some(page) = self.page(&what, listed) else { return };
            for batch in batches(page.items) {
                let (destination, table) = (self.destination.clone(), table.name.clone());
                self.spawn(async move { destination.entities(&table, batch, is_fresh).await })
                    .await;
            }
            after = page.next;
            if after.is_none() {
                return;
            }
        }
    }

    async fn shares(&mut self) {
        let mut after = None;
        loop {
            let listed = self.source().shares(after.as_deref()).await;
            let Some(page) = self.page("the list of shares", listed) else { return };
            for share in page.items {
                let made = self.destination.container(Service::File, &share).await;
                if let Some(is_fresh) = made {
                    self.share(&share.name, is_fresh).await;
                }
            }
            after = page.next;
            if after.is_none() {
                return;
            }
        }
    }

    /// A directory is there before what is in it.
    async fn share(&mut self, share: &str, is_fresh: bool) {
        let mut directories = VecDeque::from([String::new()]);
        while let Some(directory) = directories.pop_front() {
            let mut after = None;
            loop {
                let listed = self.source().directory(share, &directory, after.as_deref()).await;
                let what = format!("the list of directory {share}/{directory}");
                let Some(page) = self.page(&what, listed) else { break };
                for node in page.items {
                    if node.is_directory {
                        if self.destination.node(share, &node, is_fresh).await {
                            directories.push_back(node.path);
                        }
                    } else {
                        self.file(share, node, is_fresh).await;
                    }
                }
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
    }

    async fn file(&mut self, share: &str, file: Node, is_fresh: bool) {
        let (destination, share) = (self.destination.clone(), share.to_owned());
        self.spawn(async move {
            destination.node(&share, &file, is_fresh).await;
        })
        .await;
    }
}
