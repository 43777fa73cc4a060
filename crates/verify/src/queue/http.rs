//! HTTP requests for a queue.

use hyper::Method;

use super::{Answer, Delivery, Held, QueueWorkload, Request, Word};
use crate::client::{Answer as HttpAnswer, Call};
use crate::connection::Connection;
use crate::record::Target;

/// One client's access to one queue.
pub struct QueueTarget {
    pub connection: Connection,
    /// `/queue/messages`
    pub path: String,
}

impl Target<QueueWorkload> for QueueTarget {
    async fn call(&mut self, request: &Request) -> Option<Answer> {
        let path = match request {
            Request::Put { .. } | Request::Get { .. } => self.path.clone(),
            Request::Delete(held) | Request::Update { held, .. } => {
                format!("{}/{}", self.path, held.message.0)
            }
        };
        let answer = match request {
            Request::Put { value, delay_seconds } => {
                let text = format!("{value:x}");
                let body =
                    format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
                let delay = delay_seconds.to_string();
                let call = Call {
                    query: &[("visibilitytimeout", &delay)],
                    content_type: "application/xml",
                    body: body.into(),
                    ..Call::new(Method::POST, &path)
                };
                self.connection.call(call).await?
            }
            Request::Get { count, visibility_seconds } => {
                let (count, seconds) = (count.to_string(), visibility_seconds.to_string());
                let query =
                    &[("numofmessages", count.as_str()), ("visibilitytimeout", seconds.as_str())];
                self.connection.call(Call { query, ..Call::new(Method::GET, &path) }).await?
            }
            Request::Delete(held) => {
                let query = &[("popreceipt", &*held.receipt.0)];
                self.connection.call(Call { query, ..Call::new(Method::DELETE, &path) }).await?
            }
            Request::Update { held, visibility_seconds } => {
                let seconds = visibility_seconds.to_string();
                let query =
                    &[("popreceipt", &*held.receipt.0), ("visibilitytimeout", seconds.as_str())];
                self.connection.call(Call { query, ..Call::new(Method::PUT, &path) }).await?
            }
        };
        Some(read(request, &answer))
    }
}

fn read(request: &Request, answer: &HttpAnswer) -> Answer {
    let HttpAnswer { status, code, headers, body } = answer;
    if *status >= 400 {
        return Answer::Refused { status: *status, code: code.clone() };
    }
    let text = String::from_utf8_lossy(body);
    let read = match (request, *status) {
        (Request::Put { .. }, 201) => held(&text).map(Answer::Put),
        (Request::Get { .. }, 200) => {
            let messages = text.split("<QueueMessage>").skip(1);
            messages.map(delivery).collect::<Option<_>>().map(Answer::Got)
        }
        (Request::Delete(_), 204) => Some(Answer::Deleted),
        (Request::Update { .. }, 204) => {
            headers.get("x-ms-popreceipt").map(|it| Answer::Updated { receipt: Word::new(it) })
        }
        _ => None,
    };
    read.unwrap_or_else(|| Answer::Nonsense(format!("status {status}: {text}")))
}

fn held(text: &str) -> Option<Held> {
    let (message, receipt) = (element(text, "MessageId")?, element(text, "PopReceipt")?);
    Some(Held { message: Word::new(message), receipt: Word::new(receipt) })
}

fn delivery(text: &str) -> Option<Delivery> {
    let value = u64::from_str_radix(element(text, "MessageText")?, 16).ok()?;
    let count = element(text, "DequeueCount")?.parse().ok()?;
    Some(Delivery { held: held(text)?, value, count })
}

/// The content of the first element of this name. Ids and receipts contain nothing that is escaped.
fn element<'text>(text: &'text str, name: &str) -> Option<&'text str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once("</")?.0)
}
