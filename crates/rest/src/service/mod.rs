//! The four services of an account, with their names in the protocol.

pub(crate) mod properties_document;
pub(crate) mod protocol_settings;
pub(crate) mod service_operations;
pub(crate) mod signed_identifiers;

use std::fmt;

use holdfast_domain::account::ServiceKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    Blob,
    Queue,
    Table,
    File,
}

impl Service {
    pub const ALL: [Self; 4] = [Self::Blob, Self::Queue, Self::Table, Self::File];

    /// The label in host names (`account.blob.…`), in signed resources (`/blob/account/…`) and in
    /// metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::Queue => "queue",
            Self::Table => "table",
            Self::File => "file",
        }
    }

    /// The service as the domain stores it.
    pub const fn kind(self) -> ServiceKind {
        match self {
            Self::Blob => ServiceKind::Blob,
            Self::Queue => ServiceKind::Queue,
            Self::Table => ServiceKind::Table,
            Self::File => ServiceKind::File,
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|service| service.name().eq_ignore_ascii_case(name))
    }

    /// The letter of this service in the `ss` field of an account SAS.
    pub const fn sas_letter(self) -> char {
        match self {
            Self::Blob => 'b',
            Self::Queue => 'q',
            Self::Table => 't',
            Self::File => 'f',
        }
    }

    /// The value of the `Server` response header; some clients identify services by it.
    pub const fn server_header(self) -> &'static str {
        match self {
            Self::Blob => "Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0",
            Self::Queue => "Windows-Azure-Queue/1.0 Microsoft-HTTPAPI/2.0",
            Self::Table => "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0",
            Self::File => "Windows-Azure-File/1.0 Microsoft-HTTPAPI/2.0",
        }
    }
}

/// What answers on a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    Service(Service),
    /// The websites of the accounts, served from their blobs.
    Website,
}

impl Endpoint {
    pub const fn service(self) -> Service {
        match self {
            Self::Service(service) => service,
            Self::Website => Service::Blob,
        }
    }

    /// The name in the line that lists all endpoints.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Service(service) => service.name(),
            Self::Website => "web",
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
