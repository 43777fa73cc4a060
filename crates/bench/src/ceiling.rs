//! A bare hyper server that only answers, from memory: shows the limits of the generator, and of
//! any server of this kind.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;

use crate::account::Account;

/// Starts the server on its own thread, which ends with the process. Every answer is a success, and
/// every GET has a body of `payload_bytes`.
pub fn start(payload_bytes: usize) -> std::io::Result<Account> {
    let (listener, address) = listen()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    std::thread::spawn(move || runtime.block_on(serve(listener, payload_bytes)));
    let account = Account::development(|_| Some(format!("http://{address}/devstoreaccount1")));
    Ok(account.expect("the address is valid"))
}

/// The same as a separate process, until it is ended, for comparisons. Prints its addresses as
/// Holdfast does.
pub fn run(payload_bytes: usize) -> std::io::Result<()> {
    let (listener, address) = listen()?;
    println!("ready blob=http://{address}");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(listener, payload_bytes));
    Ok(())
}

fn listen() -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

async fn serve(listener: TcpListener, payload_bytes: usize) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("it is not blocking");
    let payload = Bytes::from(vec![0; payload_bytes]);
    while let Ok((stream, _)) = listener.accept().await {
        let payload = payload.clone();
        tokio::spawn(async move {
            drop(stream.set_nodelay(true));
            let service = service_fn(|request| answer(request, payload.clone()));
            drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    payload: Bytes,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let method = request.method().clone();
    let mut body = request.into_body();
    while let Some(Ok(_)) = body.frame().await {}
    let (status, body) = match method {
        Method::PUT => (201, Bytes::new()),
        Method::DELETE => (202, Bytes::new()),
        Method::GET => (200, payload),
        _ => (200, Bytes::new()),
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = hyper::StatusCode::from_u16(status).expect("a status");
    Ok(response)
}
