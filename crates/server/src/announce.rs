//! The lines on standard output that tell scripts and test containers what is served where.

use std::io::Write;
use std::net::SocketAddr;

use holdfast_rest::service::{Endpoint, Service};

use crate::azurite::AzuriteName;
use crate::settings::Announcement;

/// One listener that accepts.
#[derive(Clone, Debug)]
pub struct Served {
    pub endpoint: Endpoint,
    /// As written by the user.
    pub host: String,
    pub requested_port: u16,
    pub bound: SocketAddr,
    pub tls: bool,
}

impl Served {
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme(), self.bound)
    }

    fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }
}

pub fn started(
    announcement: Announcement,
    served: &[Served],
    smb: Option<SocketAddr>,
    admin: Option<SocketAddr>,
) {
    match announcement {
        Announcement::Ready => print(&[ready_line(served, smb, admin)]),
        Announcement::Azurite { name, ready_too } => {
            let mut lines: Vec<String> =
                served.iter().flat_map(|served| azurite_started(name, served)).collect();
            lines.extend(ready_too.then(|| ready_line(served, smb, admin)));
            print(&lines);
        }
    }
}

pub fn closing(announcement: Announcement, served: &[Served]) {
    azurite_only(announcement, served, "service is closing...");
}

pub fn closed(announcement: Announcement, served: &[Served]) {
    azurite_only(announcement, served, "service successfully closed");
}

fn azurite_only(announcement: Announcement, served: &[Served], text: &str) {
    match announcement {
        Announcement::Ready => {}
        Announcement::Azurite { .. } => {
            let lines = served
                .iter()
                .map(|served| format!("Azurite {} {text}", title(served.endpoint.service())));
            print(&lines.collect::<Vec<_>>());
        }
    }
}

fn ready_line(served: &[Served], smb: Option<SocketAddr>, admin: Option<SocketAddr>) -> String {
    let mut line = "ready".to_owned();
    for served in served {
        line.push_str(&format!(" {}={}", served.endpoint.name(), served.url()));
    }
    if let Some(smb) = smb {
        line.push_str(&format!(" smb=smb://{smb}"));
    }
    if let Some(admin) = admin {
        line.push_str(&format!(" admin=http://{admin}"));
    }
    line
}

fn title(service: Service) -> &'static str {
    match service {
        Service::Blob => "Blob",
        Service::Queue => "Queue",
        Service::Table => "Table",
        Service::File => "File",
    }
}

/// Azurite's commands for single services have other lines than the one for all.
fn azurite_started(name: AzuriteName, served: &Served) -> [String; 2] {
    let (service, url) = (title(served.endpoint.service()), served.url());
    let requested = format!("{}:{}", served.host, served.requested_port);
    match name {
        AzuriteName::Azurite => [
            format!("Azurite {service} service is starting at {}://{requested}", served.scheme()),
            format!("Azurite {service} service is successfully listening at {url}"),
        ],
        AzuriteName::Blob | AzuriteName::Queue => [
            format!("Azurite {service} service is starting on {requested}"),
            format!("Azurite {service} service successfully listens on {url}"),
        ],
        AzuriteName::Table => [
            format!("Azurite {service} service is starting on {requested}"),
            format!("Azurite {service} service successfully started on {requested}"),
        ],
    }
}

/// A closed pipe is no reason to stop serving.
fn print(lines: &[String]) {
    let mut output = std::io::stdout().lock();
    let written = lines.iter().try_for_each(|line| writeln!(output, "{line}"));
    if let Err(error) = written.and_then(|()| output.flush()) {
        tracing::warn!(%error, "standard output cannot be written to");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(service: Service, bound: &str) -> Served {
        let bound: SocketAddr = bound.parse().expect("an address");
        let host = bound.ip().to_string();
        Served {
            endpoint: Endpoint::Service(service),
            host,
            requested_port: bound.port(),
            bound,
            tls: false,
        }
    }

    #[test]
    fn the_ready_line_names_what_is_served_in_order() {
        let all = [
            served(Service::Blob, "127.0.0.1:1"),
            Served { tls: true, ..served(Service::File, "[::1]:4") },
            Served { endpoint: Endpoint::Website, ..served(Service::Blob, "127.0.0.1:5") },
        ];
        let (smb, admin) = ("127.0.0.1:6".parse().ok(), "127.0.0.1:9".parse().ok());
        assert_eq!(
            ready_line(&all, smb, admin),
            "ready blob=http://127.0.0.1:1 file=https://[::1]:4 web=http://127.0.0.1:5 \
             smb=smb://127.0.0.1:6 admin=http://127.0.0.1:9"
        );
        assert_eq!(ready_line(&[], None, None), "ready");
    }

    #[test]
    fn each_name_of_azurite_has_its_own_words() {
        let blob = served(Service::Blob, "127.0.0.1:10000");
        let table = Served { requested_port: 0, ..served(Service::Table, "127.0.0.1:7") };
        for (name, served, lines) in [
            (
                AzuriteName::Azurite,
                &blob,
                [
                    "Azurite Blob service is starting at http://127.0.0.1:10000",
                    "Azurite Blob service is successfully listening at http://127.0.0.1:10000",
                ],
            ),
            (
                AzuriteName::Blob,
                &blob,
                [
                    "Azurite Blob service is starting on 127.0.0.1:10000",
                    "Azurite Blob service successfully listens on http://127.0.0.1:10000",
                ],
            ),
            (
                AzuriteName::Table,
                &table,
                [
                    "Azurite Table service is starting on 127.0.0.1:0",
                    "Azurite Table service successfully started on 127.0.0.1:0",
                ],
            ),
        ] {
            assert_eq!(azurite_started(name, served), lines.map(str::to_owned));
        }
    }
}
