//! Containers, queues, tables and shares that a run creates and removes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use hyper::Method;

use crate::account::Service;
use crate::client::{Answer, Call};
use crate::connection::Connection;

const CREATE_TRIES_MAX: u32 = 5;
const ACCEPT: (&str, &str) = ("accept", "application/json;odata=nometadata");

/// A unique name, valid in every service.
pub fn unique_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("verify{:x}p{:x}n{count:x}", since_epoch.as_micros(), std::process::id())
}

/// Creates a new one and returns its name, or the error.
pub async fn create(connection: &mut Connection, service: Service) -> Result<String, String> {
    let mut reason = String::new();
    for _ in 0..CREATE_TRIES_MAX {
        let name = unique_name();
        match call(connection, service, &name, true).await {
            Some(answer) if matches!(answer.status, 201 | 204) => return Ok(name),
            Some(Answer { status, code, .. }) => reason = format!("{status} {code}"),
            None => reason = "no answer".to_owned(),
        }
    }
    Err(format!("the {} service does not let itself be written: {reason}", service.name()))
}

/// Failures are ignored: the run does not report them.
pub async fn remove(connection: &mut Connection, service: Service, name: &str) {
    for _ in 0..CREATE_TRIES_MAX {
        if call(connection, service, name, false).await.is_some() {
            return;
        }
    }
}

async fn call(
    connection: &mut Connection,
    service: Service,
    name: &str,
    creates: bool,
) -> Option<Answer> {
    let method = if creates { Method::PUT } else { Method::DELETE };
    let path = format!("/{name}");
    match service {
        Service::Blob => {
            let query = &[("restype", "container")];
            connection.call(Call { query, ..Call::new(method, &path) }).await
        }
        Service::Queue => connection.call(Call::new(method, &path)).await,
        Service::File => {
            let query = &[("restype", "share")];
            connection.call(Call { query, ..Call::new(method, &path) }).await
        }
        Service::Table if creates => {
            let call = Call {
                headers: &[ACCEPT, ("prefer", "return-no-content")],
                content_type: "application/json",
                body: format!(r#"{{"TableName":"{name}"}}"#).into(),
                ..Call::new(Method::POST, "/Tables")
            };
            connection.call(call).await
        }
        Service::Table => {
            let path = format!("/Tables('{name}')");
            connection.call(Call { headers: &[ACCEPT], ..Call::new(method, &path) }).await
        }
    }
}
