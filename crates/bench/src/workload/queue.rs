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
    /// Only the population.
    Keep,
}

pub struct Messages {
    operation: Operation,
    /// `/queue`
    queue: String,
    body: Bytes,
    objects: u64,
}

impl Messages {
    pub fn new(operation: Operation, settings: Settings) -> Self {
        let text = STANDARD.encode(payload(settings.payload_bytes));
        let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
        let queue = format!("/{}", unique_name());
        Self { operation, queue, body: body.into(), objects: settings.objects }
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

    fn population(&self) -> u64 {
        match self.operation {
            Operation::Put | Operation::Cycle => 0,
            Operation::Keep => self.objects,
        }
    }

    async fn populate(&self, client: &mut Client, _index: u64) -> Result<(), Failure> {
        put(client, &format!("{}/messages", self.queue), &self.body).await.map(drop)
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
        let put_bytes = put(client, &self.messages, &self.body).await?;
        match self.operation {
            Operation::Put | Operation::Keep => Ok(put_bytes),
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

async fn put(client: &mut Client, messages: &str, body: &Bytes) -> Result<u64, Failure> {
    let call = Call {
        content_type: "application/xml",
        body: body.clone(),
        ..Call::new(Method::POST, messages)
    };
    client.call(call, 201).await?;
    Ok(body.len() as u64)
}

/// The content of the first element of this name. Ids and receipts contain nothing that is escaped.
fn element<'text>(text: &'text str, name: &str) -> Option<&'text str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once("</")?.0)
}
