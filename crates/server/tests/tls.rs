//! HTTPS: the real binary with a certificate of its own.

mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use holdfast_testkit::process::ChildProcess;
use support::{FREE_PORTS, binary};

/// The answer to a request without credentials, from its status line on.
fn get_over_tls(address: &str, client: &Arc<ClientConfig>) -> std::io::Result<String> {
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = ClientConnection::new(Arc::clone(client), name).expect("a client");
    let mut stream = StreamOwned::new(connection, TcpStream::connect(address)?);
    stream.write_all(
        b"GET /devstoreaccount1?comp=list HTTP/1.1\r\nHost: localhost\r\n\
          x-ms-version: 2021-08-06\r\nConnection: close\r\n\r\n",
    )?;
    let mut answer = String::new();
    match stream.read_to_string(&mut answer) {
        // Many servers close without close_notify; what was read counts.
        Ok(_) => Ok(answer),
        Err(_) if !answer.is_empty() => Ok(answer),
        Err(error) => Err(error),
    }
}

fn trusting(roots: RootCertStore) -> Arc<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has them");
    Arc::new(versions.with_root_certificates(roots).with_no_client_auth())
}

#[test]
fn services_are_served_over_tls_with_the_certificate_that_is_given() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    std::fs::write(folder.path().join("cert.pem"), made.cert.pem()).expect("written");
    std::fs::write(folder.path().join("key.pem"), made.signing_key.serialize_pem())
        .expect("written");
    let arguments: Vec<&str> = FREE_PORTS
        .iter()
        .copied()
        .chain(["--memory", "--tls-cert", "cert.pem", "--tls-key", "key.pem"])
        .collect();
    let server = ChildProcess::start(binary(), folder.path(), &arguments);
    let ready = server.line();
    let blob = ready.split(' ').find_map(|field| field.strip_prefix("blob=https://"));
    let blob = blob.unwrap_or_else(|| panic!("an https address in: {ready}"));

    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a root");
    let answer = get_over_tls(blob, &trusting(roots)).expect("an answer over TLS");
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    assert!(answer.contains("NoAuthenticationInformation"), "{answer}");

    let stranger = get_over_tls(blob, &trusting(RootCertStore::empty()));
    assert!(stranger.is_err(), "a client that does not trust the certificate: {stranger:?}");
}
