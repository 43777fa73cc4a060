//! Messages of one queue: put alone, or put, get and delete.

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::Method;

use super::{Settings, Worker, Workload, payload, unique_name};
use crate::account::Service;
use crate::client::{Call, Client, Failure};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Put,
    /// Put a message, get one, delete the one that was got. As every connection puts before it
    /// gets, there is always one to get.
    Cycle,
}

pub struct Messages {
    operation: Operation,
    /// `/queue`
    queue: String,
    body: Bytes,
}

impl Messages {
    pub fn new(operation: Operation, settings: Settings) -> Self {
        let text = STANDARD.encode(payload(settings.payload_bytes));
        let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
        Self { operation, queue: format!("/{}", unique_name()), body: body.into() }
    }
}

#[async_trait]
impl Workload for Messages {
    fn service(&self) -> Service {
        Service::Queue
    }

    async fn prepare(&self, client: &mut Client) -> Result<(), Failure> {
        client.call(Call::new(Method::PUT, &self.queue), 201).await.map(drop)
    }

    fn worker(&self) -> Box<dyn Worker> {
        Box::new(MessageWorker {
            operation: self.operation,
            messages: format!("{}/messages", self.queue),
            body: self.body.clone(),
        })
    }

    async fn clean_up(&self, client: &mut Client) -> Result<(), Failure> {
        client.call(Call::new(Method::DELETE, &self.queue), 204).await.map(drop)
    }
}

struct MessageWorker {
    operation: Operation,
    messages: String,
    body: Bytes,
}

#[async_trait]
impl Worker for MessageWorker {
    async fn operation(&mut self, client: &mut Client) -> Result<u64, Failure> {
        let put = Call {
            content_type: "application/xml",
            body: self.body.clone(),
            ..Call::new(Method::POST, &self.messages)
        };
        client.call(put, 201).await?;
        let put_bytes = self.body.len() as u64;
        match self.operation {
            Operation::Put => Ok(put_bytes),
            Operation::Cycle => Ok(put_bytes + self.get_and_delete(client).await?),
        }
    }
}

impl MessageWorker {
    async fn get_and_delete(&self, client: &mut Client) -> Result<u64, Failure> {
        let got = client.call_for_body(Call::new(Method::GET, &self.messages), 200).await?;
        let text = std::str::from_utf8(&got).map_err(|_| Failure::Wrong("not UTF-8"))?;
        let id = element(text, "MessageId").ok_or(Failure::Wrong("no message to get"))?;
        let receipt = element(text, "PopReceipt").ok_or(Failure::Wrong("no pop receipt"))?;
        let path = format!("{}/{id}", self.messages);
        let query = &[("popreceipt", receipt)];
        client.call(Call { query, ..Call::new(Method::DELETE, &path) }, 204).await?;
        Ok(got.len() as u64)
    }
}

/// The content of the first element of this name. Ids and receipts hold nothing that is escaped.
fn element<'text>(text: &'text str, name: &str) -> Option<&'text str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once("</")?.0)
}
