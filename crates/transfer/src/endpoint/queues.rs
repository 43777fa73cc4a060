//! Messages of queues on a server.

use holdfast_domain::time::Timestamp;
use holdfast_verify::account::Service;
use hyper::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::{Endpoint, Failure, Request, path, xml};
use crate::model::Message;
use crate::plan::Remaining;

/// As many as the protocol hands out at once.
const MESSAGES_MAX: &str = "32";
/// How long a message that is being moved is hidden from others. One that is not deleted by then is
/// seen again: it may have been moved, and is not lost.
const HIDDEN_SECONDS: &str = "300";

fn messages(queue: &str) -> String {
    path(queue, "messages")
}

impl Endpoint {
    pub async fn put_message(
        &self,
        queue: &str,
        text: &str,
        remaining: Remaining,
    ) -> Result<(), Failure> {
        let text = xml::escape(text);
        let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
        let request = Request::new(Service::Queue, Method::POST, messages(queue))
            .query("messagettl", remaining.time_to_live.to_string())
            .query("visibilitytimeout", remaining.invisible.to_string())
            .content_type("application/xml")
            .body(body)
            .once();
        self.send(request).await?;
        Ok(())
    }

    /// Hides the messages that it returns for a while.
    pub async fn get_messages(&self, queue: &str) -> Result<Vec<Message>, Failure> {
        let request = Request::get(Service::Queue, messages(queue))
            .query("numofmessages", MESSAGES_MAX)
            .query("visibilitytimeout", HIDDEN_SECONDS);
        let list = self.xml(request).await?;
        let message = |element: &xml::Element| {
            let text = |name| element.text_of(name).to_owned();
            let expires = Timestamp::parse_rfc1123(element.text_of("ExpirationTime"))?;
            Some(Message {
                id: text("MessageId"),
                receipt: text("PopReceipt"),
                text: text("MessageText"),
                expires: expires.unix_seconds(),
                visible: 0,
            })
        };
        let found = list.children.iter().map(message).collect::<Option<_>>();
        found.ok_or_else(|| Failure::unexpected("list of messages"))
    }

    pub async fn delete_message(&self, queue: &str, message: &Message) -> Result<(), Failure> {
        let id = utf8_percent_encode(&message.id, NON_ALPHANUMERIC);
        let address = format!("{}/{id}", messages(queue));
        let request = Request::new(Service::Queue, Method::DELETE, address)
            .query("popreceipt", &*message.receipt);
        self.send(request).await?;
        Ok(())
    }

    pub async fn clear_messages(&self, queue: &str) -> Result<(), Failure> {
        self.send(Request::new(Service::Queue, Method::DELETE, messages(queue))).await?;
        Ok(())
    }
}
