//! Where data is moved to: each object is looked for, decided on by [`crate::plan`] and written.

mod blobs;
mod content;
mod files;
mod queues;
mod tables;

use std::fmt::Display;
use std::sync::Arc;

use holdfast_verify::account::Service;

use crate::endpoint::{Endpoint, Failure};
use crate::model::{Container, Metadata};
use crate::plan::{Decision, Rules, decide_container, sendable};
use crate::report::{Kind, Report};
use crate::source::{Source, Unreadable};
pub use tables::batches;

/// An object that changes more often while it is read is left out.
const READS_MAX: u32 = 4;

/// Why one object was not moved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Left {
    #[error("another one is there: {0} (--overwrite replaces it)")]
    Conflict(&'static str),
    #[error("reading: {0}")]
    Source(#[from] Unreadable),
    #[error("writing: {0}")]
    Destination(#[from] Failure),
}

#[derive(Clone)]
pub struct Destination {
    pub source: Arc<dyn Source>,
    pub endpoint: Arc<Endpoint>,
    pub report: Arc<Report>,
    pub rules: Rules,
    /// Nothing is written.
    pub is_dry: bool,
}

fn kind_of(service: Service) -> (Kind, &'static str) {
    match service {
        Service::Blob => (Kind::Container, "container"),
        Service::Queue => (Kind::Queue, "queue"),
        Service::Table => (Kind::Table, "table"),
        Service::File => (Kind::Share, "share"),
    }
}

impl Destination {
    /// Sees to it that the container is there. Whether it is new; none if there is none to write to.
    pub async fn container(&self, service: Service, container: &Container) -> Option<bool> {
        let (kind, noun) = kind_of(service);
        let what = format!("{noun} {}", container.name);
        let there = match self.endpoint.container(service, &container.name).await {
            Ok(there) => there,
            // A signature of one container does not let it be looked at; it may be written to.
            Err(failure) if failure.is(403) => return Some(false),
            Err(failure) => {
                self.report.left(what, Left::from(failure));
                return None;
            }
        };
        let Some((mut there, _)) = there else {
            return match self.create(service, container).await {
                Ok(()) => {
                    self.report.sent(kind);
                    Some(true)
                }
                Err(left) => {
                    self.report.left(what, left);
                    None
                }
            };
        };
        match self.endpoint.policies(service, &container.name).await {
            Ok(policies) => there.policies = policies,
            Err(_) => there.policies.clone_from(&container.policies),
        }
        match self.settle(service, container, &there).await {
            Ok(()) => self.report.there(kind),
            // What it contains can be moved nevertheless.
            Err(left) => self.report.left(what, left),
        }
        Some(false)
    }

    async fn create(&self, service: Service, container: &Container) -> Result<(), Left> {
        let (_, noun) = kind_of(service);
        let what = format!("{noun} {}", container.name);
        self.tell_unsendable(&what, &container.metadata);
        if self.is_dry {
            return Ok(());
        }
        let mut created = self.endpoint.create(service, container, false).await;
        let mut container = container.clone();
        if !container.public_access.is_empty()
            && let Err(failure) = &created
            && failure.has_code("PublicAccessNotPermitted")
        {
            self.report.left(format!("public access of {what}"), failure);
            container.public_access.clear();
            created = self.endpoint.create(service, &container, false).await;
        }
        created?;
        if !container.policies.is_empty()
            && let Err(failure) = self.endpoint.set_policies(service, &container).await
        {
            self.report.left(format!("stored access policies of {what}"), Left::from(failure));
        }
        Ok(())
    }

    /// Makes a container that was there before what it is at the source, if that is allowed.
    async fn settle(
        &self,
        service: Service,
        container: &Container,
        there: &Container,
    ) -> Result<(), Left> {
        match decide_container(container, there, self.rules) {
            Decision::Same => Ok(()),
            Decision::Conflict(what) => Err(Left::Conflict(what)),
            Decision::Send
            | Decision::CompareContents
            | Decision::Replace
            | Decision::ReplaceIfBegun(_)
                if self.is_dry =>
            {
                Ok(())
            }
            Decision::Send
            | Decision::CompareContents
            | Decision::Replace
            | Decision::ReplaceIfBegun(_) => {
                if service != Service::Table {
                    self.endpoint.set_metadata(service, container).await?;
                }
                self.endpoint.set_policies(service, container).await?;
                Ok(())
            }
        }
    }

    /// Metadata that headers cannot carry is left out; the object itself is moved.
    fn tell_unsendable(&self, what: impl Display, metadata: &Metadata) {
        let (_, unsendable) = sendable(metadata);
        for name in unsendable {
            self.report.left(
                format!("metadata {name:?} of {what}"),
                "its name or value cannot be sent in a header",
            );
        }
    }
}
