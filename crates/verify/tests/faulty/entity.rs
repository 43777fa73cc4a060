//! An entity in memory, optionally with a bug.

use std::time::Duration;

use holdfast_verify::entity::{Answer, EntityWorkload, Properties, Request, Write};
use holdfast_verify::etag::{Condition, ETag};
use holdfast_verify::record::Target;
use tokio::time::sleep;

use super::{Faulty, travel};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    None,
    /// A merge writes back what it read before a concurrent write.
    MergeLosesUpdate,
    /// A merge removes properties that were not sent.
    MergeReplaces,
    /// A deletion accepts any ETag.
    DeletedByStaleEtag,
    /// The ETag stays when the content is replaced without a condition.
    EtagKept,
    /// An insert replaces an existing entity.
    InsertReplaces,
}

type Entity = Option<(Properties, u64)>;

#[derive(Default)]
pub struct Server {
    entity: Entity,
    etags: u64,
}

pub type FaultyEntity = Faulty<Server, Bug>;

impl Target<EntityWorkload> for FaultyEntity {
    async fn call(&mut self, request: &Request) -> Option<Answer> {
        travel(&mut self.random).await;
        let before = self.lock().entity;
        let is_late = self.bug == Bug::MergeLosesUpdate
            && matches!(request, Request::Update { write: Write::Merge, .. });
        if is_late {
            sleep(Duration::from_millis(2)).await;
        }
        let answer = {
            let mut server = self.lock();
            let before = if is_late { before } else { server.entity };
            server.serve(before, request, self.bug)
        };
        travel(&mut self.random).await;
        Some(answer)
    }
}

fn etag(number: u64) -> ETag {
    ETag::new(&format!("W/\"{number}\""))
}

impl Server {
    fn serve(&mut self, before: Entity, request: &Request, bug: Bug) -> Answer {
        let refused = |status, code: &str| Answer::Refused { status, code: code.to_owned() };
        let is_met = |condition: &Condition| match (condition, before) {
            (Condition::Is(wanted), Some((_, number))) => *wanted == etag(number),
            _ => true,
        };
        match (request, before) {
            (Request::Insert(_), Some(_)) if bug != Bug::InsertReplaces => {
                refused(409, "EntityAlreadyExists")
            }
            (Request::Insert(properties), _) => self.write(*properties),
            (Request::Update { properties, condition: Condition::None, .. }, None) => {
                self.write(*properties)
            }
            (_, None) => refused(404, "ResourceNotFound"),
            (Request::Get, Some((properties, number))) => {
                Answer::Read { properties, etag: etag(number) }
            }
            (Request::Update { write, properties, condition }, Some((old, number))) => {
                if !is_met(condition) {
                    return refused(412, "UpdateConditionNotSatisfied");
                }
                let either = |old, new| if new == 0 { old } else { new };
                let merged = Properties {
                    left: either(old.left, properties.left),
                    right: either(old.right, properties.right),
                };
                let is_replaced = *write == Write::Replace || bug == Bug::MergeReplaces;
                let written = if is_replaced { *properties } else { merged };
                if bug == Bug::EtagKept && *condition == Condition::None {
                    self.entity = Some((written, number));
                    return Answer::Written { etag: etag(number) };
                }
                self.write(written)
            }
            (Request::Delete { condition }, Some(_)) => {
                if !is_met(condition) && bug != Bug::DeletedByStaleEtag {
                    return refused(412, "UpdateConditionNotSatisfied");
                }
                self.entity = None;
                Answer::Deleted
            }
        }
    }

    fn write(&mut self, properties: Properties) -> Answer {
        self.etags += 1;
        self.entity = Some((properties, self.etags));
        Answer::Written { etag: etag(self.etags) }
    }
}
