//! One client's connection to a service: opened when needed, and again after it broke.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::account::{Account, Endpoint, Service};
use crate::client::{Answer, Call, Client};

/// How long to wait for a restarting server before a call counts as unanswered.
const CONNECT_WAIT_MAX: Duration = Duration::from_secs(30);
const CONNECT_PAUSE: Duration = Duration::from_millis(20);
/// A longer wait counts as no answer.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(20);

pub struct Connection {
    account: Arc<Account>,
    service: Service,
    client: Option<Client>,
}

impl Connection {
    pub fn new(account: Arc<Account>, service: Service) -> Self {
        Self { account, service, client: None }
    }

    /// The address of the service, without a slash at its end.
    pub fn url(&self) -> String {
        let endpoint = self.account.endpoint(self.service);
        endpoint.map(Endpoint::url).unwrap_or_default()
    }

    /// Why the service is unreachable, if it is. Tries once, without waiting for the server to start.
    pub async fn unreachable(&self) -> Option<String> {
        let failure = Client::connect(Arc::clone(&self.account), self.service).await.err()?;
        Some(format!("{} cannot be reached: {failure}", self.url()))
    }

    /// The answer, or `None` if the outcome is unknown: no answer, or a fault of the server.
    pub async fn call(&mut self, call: Call<'_>) -> Option<Answer> {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => self.connect().await?,
        };
        match tokio::time::timeout(ANSWER_WAIT_MAX, client.exchange(call)).await {
            Ok(Ok(answer)) => {
                self.client = Some(client);
                (answer.status < 500).then_some(answer)
            }
            Ok(Err(_)) | Err(_) => None,
        }
    }

    async fn connect(&self) -> Option<Client> {
        let begun = Instant::now();
        loop {
            match Client::connect(Arc::clone(&self.account), self.service).await {
                Ok(client) => return Some(client),
                Err(_) if begun.elapsed() < CONNECT_WAIT_MAX => {
                    tokio::time::sleep(CONNECT_PAUSE).await;
                }
                Err(_) => return None,
            }
        }
    }
}
