//! A network between the engine and the server that fails at a chosen point of a commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// What ends the connection that shows it, while the proxy is armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The statement that writes is lost on its way to the server.
    BeforeWriting,
    /// `COMMIT` is lost on its way to the server.
    BeforeCommit,
    /// `COMMIT` reaches the server, its answer is lost on the way back.
    AfterCommit,
}

pub struct Proxy {
    pub port: u16,
    armed: Arc<AtomicBool>,
}

impl Proxy {
    pub async fn start(server_port: u16, cut: Cut) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let port = listener.local_addr().expect("it has an address").port();
        let armed = Arc::new(AtomicBool::new(false));
        let proxy = Self { port, armed: Arc::clone(&armed) };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", server_port)).await;
                let (from_server, to_server) = server.expect("the server is up").into_split();
                let (from_client, to_client) = client.into_split();
                let link = Link { cut, armed: Arc::clone(&armed) };
                tokio::spawn(link.carry((from_client, to_client), (from_server, to_server)));
            }
        });
        proxy
    }

    /// From now on the proxy cuts; before, it only forwards, so that the sessions can be set up.
    pub fn arm(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }
}

struct Link {
    cut: Cut,
    armed: Arc<AtomicBool>,
}

type Halves = (OwnedReadHalf, OwnedWriteHalf);

impl Link {
    /// Ends, and with it both connections, at the cut or when either side closes.
    async fn carry(self, client: Halves, server: Halves) {
        let (mut from_client, mut to_client) = client;
        let (mut from_server, mut to_server) = server;
        let (mut sent, mut answered) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
        let mut answer_is_lost = false;
        loop {
            tokio::select! {
                read = from_client.read(&mut sent) => {
                    let Ok(length @ 1..) = read else { return };
                    let message = &sent[..length];
                    if self.armed.load(Ordering::SeqCst) {
                        match self.cut {
                            Cut::BeforeWriting if contains(message, b"SERIALIZABLE") => return,
                            Cut::BeforeCommit if contains(message, b"COMMIT\0") => return,
                            Cut::AfterCommit => answer_is_lost |= contains(message, b"COMMIT\0"),
                            Cut::BeforeWriting | Cut::BeforeCommit => {}
                        }
                    }
                    if to_server.write_all(message).await.is_err() { return }
                }
                read = from_server.read(&mut answered) => {
                    let Ok(length @ 1..) = read else { return };
                    if answer_is_lost || to_client.write_all(&answered[..length]).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}

fn contains(message: &[u8], needle: &[u8]) -> bool {
    message.windows(needle.len()).any(|window| window == needle)
}
