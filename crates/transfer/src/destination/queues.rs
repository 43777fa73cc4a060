//! Queues and their messages. Messages have no names: a queue that gets messages bears a mark until
//! it has all of them, and the messages of a queue that was there before are not sent again.

use std::time::{SystemTime, UNIX_EPOCH};

use holdfast_verify::account::Service;

use super::{Destination, Left};
use crate::model::{Container, Message, Metadata};
use crate::plan::{Decision, MARK, QueueThere, Remaining, decide_messages, is_marked, remaining};
use crate::report::Kind;
use crate::source::Messages;

fn now() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_secs()).unwrap_or(i64::MAX)
}

impl Destination {
    pub async fn queue(&self, queue: Container) {
        let what = format!("queue {}", queue.name);
        if let Err(left) = self.try_queue(&queue).await {
            self.report.left(what, left);
        }
    }

    async fn try_queue(&self, queue: &Container) -> Result<(), Left> {
        match self.source.messages(&queue.name).await? {
            Messages::All(messages) => self.copy_messages(queue, &messages).await,
            first @ (Messages::Taken(_) | Messages::Left(_)) => {
                if self.container(Service::Queue, queue).await.is_some() {
                    self.move_messages(queue, first).await?;
                }
                Ok(())
            }
        }
    }

    async fn copy_messages(&self, queue: &Container, messages: &[Message]) -> Result<(), Left> {
        let alive: Vec<&Message> =
            messages.iter().filter(|message| remaining(message, now()).is_some()).collect();
        if alive.len() < messages.len() {
            let expired = messages.len() - alive.len();
            self.report.note(format!("queue {}: {expired} messages have expired", queue.name));
        }
        let count = alive.len() as u64;
        let there = self.endpoint.container(Service::Queue, &queue.name).await?;
        if let Some((there, messages)) = &there {
            let there = QueueThere { queue: there, messages: *messages };
            if !is_marked(&there.queue.metadata) {
                self.container(Service::Queue, queue).await;
            }
            match decide_messages(count, &there, self.rules) {
                Decision::Same => {
                    self.report.there_many(Kind::Message, count);
                    return Ok(());
                }
                Decision::Conflict(what) => return Err(Left::Conflict(what)),
                Decision::Send
                | Decision::CompareContents
                | Decision::Replace
                | Decision::ReplaceIfBegun(_) => {}
            }
        }
        if self.is_dry {
            if there.is_none() {
                self.report.sent(Kind::Queue);
            }
            self.report.sent_many(Kind::Message, count);
            return Ok(());
        }
        self.send_all(queue, &alive, there.is_some()).await?;
        // One that was there without a mark has been counted when it was looked at.
        if there.is_none_or(|(there, _)| is_marked(&there.metadata)) {
            self.report.sent(Kind::Queue);
        }
        Ok(())
    }

    async fn send_all(
        &self,
        queue: &Container,
        messages: &[&Message],
        is_there: bool,
    ) -> Result<(), Left> {
        self.tell_unsendable(format!("queue {}", queue.name), &queue.metadata);
        let mark = Metadata::from([(MARK.to_owned(), "1".to_owned())]);
        if is_there {
            let marked = Container { metadata: mark, ..queue.clone() };
            self.endpoint.set_metadata(Service::Queue, &marked).await?;
            self.endpoint.clear_messages(&queue.name).await?;
        } else {
            self.endpoint.create(Service::Queue, queue, true).await?;
        }
        for message in messages {
            let Some(remaining) = remaining(message, now()) else { continue };
            self.endpoint.put_message(&queue.name, &message.text, remaining).await?;
            self.report.sent(Kind::Message);
        }
        self.endpoint.set_policies(Service::Queue, queue).await?;
        Ok(self.endpoint.set_metadata(Service::Queue, queue).await?)
    }

    /// A message is deleted at the source when it is at the destination: it may be in both for a
    /// moment, and is never in neither.
    async fn move_messages(&self, queue: &Container, first: Messages) -> Result<(), Left> {
        let mut next = first;
        loop {
            match next {
                Messages::Taken(messages) => {
                    if messages.is_empty() || self.is_dry {
                        return Ok(());
                    }
                    for message in messages {
                        let remaining = remaining(&message, now())
                            .unwrap_or(Remaining { time_to_live: 1, invisible: 0 });
                        self.endpoint.put_message(&queue.name, &message.text, remaining).await?;
                        self.source.delete_message(&queue.name, &message).await?;
                        self.report.sent(Kind::Message);
                    }
                }
                Messages::Left(0) | Messages::All(_) => return Ok(()),
                Messages::Left(count) => {
                    self.report.left(
                        format!("about {count} messages of queue {}", queue.name),
                        "they cannot be copied; --move-messages moves those that are visible",
                    );
                    return Ok(());
                }
            }
            next = self.source.messages(&queue.name).await?;
        }
    }
}
