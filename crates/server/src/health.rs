//! `holdfast health`: asks the server of this machine whether it is ready, for health checks of
//! containers, which may have no other program. Exit code 0: it is; 1: it is not, or does not answer;
//! 2: the command cannot be followed.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use crate::FAULT;

const TIMEOUT: Duration = Duration::from_secs(5);
/// More than an answer of the admin port takes.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// Ask a running server whether it is ready (/readyz of its admin port).
#[derive(Parser)]
#[command(name = "health", bin_name = "holdfast health", version)]
struct Arguments {
    /// The address that the server listens on; of 0.0.0.0 and :: the loopback address is asked.
    #[arg(long, value_name = "ADDRESS", env = "HOLDFAST_HOST", default_value = "127.0.0.1")]
    host: IpAddr,
    /// Its admin port.
    #[arg(long, value_name = "PORT", env = "HOLDFAST_ADMIN_PORT", default_value_t = 10099)]
    admin_port: u16,
}

impl Arguments {
    fn address(&self) -> SocketAddr {
        let host = match self.host {
            IpAddr::V4(host) if host.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
            IpAddr::V6(host) if host.is_unspecified() => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
            host @ (IpAddr::V4(_) | IpAddr::V6(_)) => host,
        };
        SocketAddr::new(host, self.admin_port)
    }
}

pub fn command() -> clap::Command {
    <Arguments as clap::CommandFactory>::command()
}

pub fn run(arguments: &[OsString]) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(usage) => return crate::usage(&usage),
    };
    let address = arguments.address();
    match readiness(address) {
        Ok(Readiness::Ready) => {
            println!("ready");
            ExitCode::SUCCESS
        }
        Ok(Readiness::NotReady(why)) => {
            eprintln!("holdfast health: the server at {address} is not ready: {why}");
            ExitCode::from(FAULT)
        }
        Err(error) => {
            eprintln!("holdfast health: no answer from http://{address}/readyz: {error}");
            ExitCode::from(FAULT)
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Readiness {
    Ready,
    /// With the body of the answer.
    NotReady(String),
}

fn readiness(address: SocketAddr) -> io::Result<Readiness> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    parse(&String::from_utf8_lossy(&answer))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "that is no answer of HTTP"))
}

fn parse(answer: &str) -> Option<Readiness> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status: u16 = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    Some(match status {
        200 => Readiness::Ready,
        _ => Readiness::NotReady(body.trim().to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_of_200_is_ready() {
        let not_ready = Readiness::NotReady("starting".to_owned());
        for (answer, expected) in [
            ("HTTP/1.1 200 OK\r\n\r\nready\n", Some(Readiness::Ready)),
            ("HTTP/1.1 503 Service Unavailable\r\na: b\r\n\r\nstarting\n", Some(not_ready)),
            ("HTTP/1.1 200 OK\r\n", None),
            ("SSH-2.0\r\n\r\n", None),
            ("", None),
        ] {
            assert_eq!(parse(answer), expected, "{answer}");
        }
    }

    #[test]
    fn a_server_on_all_addresses_is_asked_on_loopback() {
        for (host, expected) in [
            ("127.0.0.1", "127.0.0.1:7"),
            ("0.0.0.0", "127.0.0.1:7"),
            ("::", "[::1]:7"),
            ("192.0.2.1", "192.0.2.1:7"),
        ] {
            let arguments = ["health", "--host", host, "--admin-port", "7"];
            let arguments = Arguments::try_parse_from(arguments).expect("it is allowed");
            assert_eq!(arguments.address().to_string(), expected);
        }
    }
}
