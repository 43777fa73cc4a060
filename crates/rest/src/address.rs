//! Which account and which resource a request names, from its host and path. Nothing here knows
//! whether they exist or whether their names are allowed.

use std::borrow::Cow;

use holdfast_domain::names::with_slashes;
use memchr::memchr;

use crate::auth::NamedResource;
use crate::headers::byte_scan::split_at_byte;
use crate::operation::Scope;
use crate::service::Service;
use crate::url_query::{Plus, UrlQuery, decode};

const SECONDARY_SUFFIX: &str = "-secondary";
const ROOT_CONTAINER: &str = "$root";

/// Whether a host such as `account.blob.localhost` can name the account, or only the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostStyle {
    Recognized,
    Ignored,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address<'a> {
    /// Without the suffix of the secondary endpoint.
    pub account: &'a str,
    pub secondary: bool,
    /// The account is the first segment of the path, so a signed resource has it twice.
    pub path_style: bool,
    /// The path after the account as it was sent, still encoded: empty or with its leading slash.
    pub raw_path: &'a str,
    pub resource: Resource<'a>,
}

/// What the path names, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource<'a> {
    Service,
    Container {
        container: Cow<'a, str>,
    },
    Blob {
        container: Cow<'a, str>,
        blob: Cow<'a, str>,
    },
    Queue {
        queue: Cow<'a, str>,
    },
    Messages {
        queue: Cow<'a, str>,
    },
    Message {
        queue: Cow<'a, str>,
        message: Cow<'a, str>,
    },
    /// `/Tables`: the table of tables.
    Tables,
    /// `/Tables('T')`: one row of it.
    TableEntry {
        table: Cow<'a, str>,
    },
    /// `/T` or `/T()`: the entities of a table.
    Table {
        table: Cow<'a, str>,
    },
    /// `/T/…`: nothing is there, but the service still takes it for the table where entities are
    /// inserted (azure-sdk-for-python, test_client_with_url_ends_with_table_name).
    BelowTable {
        table: Cow<'a, str>,
    },
    Entity {
        table: Cow<'a, str>,
        partition_key: Cow<'a, str>,
        row_key: Cow<'a, str>,
    },
    /// `/$batch`
    TableBatch,
    /// `/$metadata`
    TableMetadata,
    Share {
        share: Cow<'a, str>,
    },
    /// A file or a directory; the path is empty for the root directory of the share and has no
    /// slash at its end.
    Path {
        share: Cow<'a, str>,
        path: Cow<'a, str>,
        trailing_slash: bool,
    },
}

impl Resource<'_> {
    /// The container, queue, table or share, if the path names one.
    pub fn container(&self) -> Option<&str> {
        match self {
            Self::Container { container } | Self::Blob { container, .. } => Some(container),
            Self::Queue { queue } | Self::Messages { queue } | Self::Message { queue, .. } => {
                Some(queue)
            }
            Self::Table { table }
            | Self::BelowTable { table }
            | Self::TableEntry { table }
            | Self::Entity { table, .. } => Some(table),
            Self::Share { share } | Self::Path { share, .. } => Some(share),
            Self::Service | Self::Tables | Self::TableBatch | Self::TableMetadata => None,
        }
    }

    /// The blob, or the path of a directory or file in its share, if the path names one.
    pub fn object(&self) -> Option<&str> {
        match self {
            Self::Blob { blob, .. } => Some(blob),
            Self::Path { path, .. } => Some(path),
            Self::Service
            | Self::Container { .. }
            | Self::Queue { .. }
            | Self::Messages { .. }
            | Self::Message { .. }
            | Self::Tables
            | Self::TableEntry { .. }
            | Self::Table { .. }
            | Self::BelowTable { .. }
            | Self::Entity { .. }
            | Self::TableBatch
            | Self::TableMetadata
            | Self::Share { .. } => None,
        }
    }

    pub const fn scope(&self) -> Scope {
        match self {
            Self::Service => Scope::Service,
            Self::Container { .. } => Scope::Container,
            Self::Blob { .. } => Scope::Blob,
            Self::Queue { .. } => Scope::Queue,
            Self::Messages { .. } => Scope::Messages,
            Self::Message { .. } => Scope::Message,
            Self::Tables => Scope::Tables,
            Self::TableEntry { .. } => Scope::TableEntry,
            Self::Table { .. } => Scope::Table,
            Self::BelowTable { .. } => Scope::BelowTable,
            Self::Entity { .. } => Scope::Entity,
            Self::TableBatch => Scope::TableBatch,
            Self::TableMetadata => Scope::TableMetadata,
            Self::Share { .. } => Scope::Share,
            Self::Path { .. } => Scope::Path,
        }
    }
}

/// 400 `InvalidUri`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the URI does not represent any resource on the server")]
pub struct InvalidUri;

impl<'a> Address<'a> {
    /// `path` is as sent. The query is needed because a path of one segment is a blob in the root
    /// container unless `restype` says that it is a container.
    pub fn parse(
        service: Service,
        host: Option<&'a str>,
        host_style: HostStyle,
        path: &'a str,
        query: &UrlQuery<'_>,
    ) -> Result<Self, InvalidUri> {
        let from_host = match host_style {
            HostStyle::Recognized => host.and_then(account_of_host),
            HostStyle::Ignored => None,
        };
        let unslashed = path.strip_prefix('/').ok_or(InvalidUri)?;
        let (name, raw_path) = match from_host {
            Some((_, addressed)) if addressed != service => return Err(InvalidUri),
            Some((account, _)) => (account, path),
            None => {
                let end = memchr(b'/', unslashed.as_bytes()).unwrap_or(unslashed.len());
                unslashed.split_at(end)
            }
        };
        let (account, secondary) = match name.strip_suffix(SECONDARY_SUFFIX) {
            Some(account) => (account, true),
            None => (name, false),
        };
        if account.is_empty() || memchr(b'%', account.as_bytes()).is_some() {
            return Err(InvalidUri);
        }
        let rest = raw_path.strip_prefix('/').unwrap_or(raw_path);
        let resource = match service {
            _ if rest.is_empty() => Resource::Service,
            Service::Blob => blob_resource(rest, query)?,
            Service::Queue => queue_resource(rest)?,
            Service::Table => table_resource(rest)?,
            Service::File => file_resource(rest, query)?,
        };
        Ok(Self { account, secondary, path_style: from_host.is_none(), raw_path, resource })
    }
}

impl Address<'_> {
    /// What a shared access signature can be for.
    pub fn named_resource(&self, service: Service) -> NamedResource<'_> {
        let (container, object) = (self.resource.container(), self.resource.object());
        NamedResource { account: self.account, service, container, object }
    }
}

/// `account.blob.…` names an account of the blob service.
fn account_of_host(host: &str) -> Option<(&str, Service)> {
    let (account, rest) = split_at_byte(host, b'.')?;
    let (service, domain) = split_at_byte(rest, b'.')?;
    let service = Service::from_name(service)?;
    (!account.is_empty() && !domain.is_empty()).then_some((account, service))
}

fn path_text(raw: &str) -> Result<Cow<'_, str>, InvalidUri> {
    let text = decode(raw, Plus::IsPlus).ok_or(InvalidUri)?;
    if text.is_empty() { Err(InvalidUri) } else { Ok(text) }
}

fn blob_name(raw: &str) -> Result<Cow<'_, str>, InvalidUri> {
    path_text(raw).map(with_slashes)
}

fn blob_resource<'a>(rest: &'a str, query: &UrlQuery<'_>) -> Result<Resource<'a>, InvalidUri> {
    match split_at_byte(rest, b'/') {
        Some((container, "")) if query.get_nonempty("restype").is_some() => {
            Ok(Resource::Container { container: path_text(container)? })
        }
        Some((container, blob)) => {
            Ok(Resource::Blob { container: path_text(container)?, blob: blob_name(blob)? })
        }
        None if query.get_nonempty("restype").is_some() => {
            Ok(Resource::Container { container: path_text(rest)? })
        }
        None => {
            Ok(Resource::Blob { container: Cow::Borrowed(ROOT_CONTAINER), blob: blob_name(rest)? })
        }
    }
}

fn queue_resource(rest: &str) -> Result<Resource<'_>, InvalidUri> {
    let mut segments = rest.strip_suffix('/').unwrap_or(rest).split('/');
    let queue = path_text(segments.next().unwrap_or_default())?;
    let (messages, message) = (segments.next(), segments.next());
    if segments.next().is_some() {
        return Err(InvalidUri);
    }
    match (messages, message) {
        (None, _) => Ok(Resource::Queue { queue }),
        (Some(literal), _) if !literal.eq_ignore_ascii_case("messages") => Err(InvalidUri),
        (Some(_), None) => Ok(Resource::Messages { queue }),
        (Some(_), Some(message)) => Ok(Resource::Message { queue, message: path_text(message)? }),
    }
}

fn file_resource<'a>(rest: &'a str, query: &UrlQuery<'_>) -> Result<Resource<'a>, InvalidUri> {
    let (share, path) = rest.split_once('/').unwrap_or((rest, ""));
    let share = path_text(share)?;
    if path.is_empty() {
        let restype = query.get_nonempty("restype");
        let root_directory = match restype {
            Some(restype) => restype.eq_ignore_ascii_case("directory"),
            // Operations on handles have no restype; handles belong to the root of a share, not to
            // the share.
            None => query.get("comp").is_some_and(|comp| {
                comp.eq_ignore_ascii_case("listhandles")
                    || comp.eq_ignore_ascii_case("forceclosehandles")
            }),
        };
        return Ok(if root_directory {
            Resource::Path { share, path: Cow::Borrowed(""), trailing_slash: false }
        } else {
            Resource::Share { share }
        });
    }
    let trimmed = path.strip_suffix('/');
    let path = path_text(trimmed.unwrap_or(path))?;
    if path.split('/').any(str::is_empty) {
        return Err(InvalidUri);
    }
    Ok(Resource::Path { share, path, trailing_slash: trimmed.is_some() })
}

fn table_resource(rest: &str) -> Result<Resource<'_>, InvalidUri> {
    match path_text(rest)? {
        Cow::Borrowed(text) => odata_resource(text),
        Cow::Owned(text) => odata_resource(&text).map(into_owned),
    }
}

fn odata_resource(text: &str) -> Result<Resource<'_>, InvalidUri> {
    let (name, key) = match split_at_byte(text, b'(') {
        Some((name, key)) => (name, Some(key.strip_suffix(')').ok_or(InvalidUri)?)),
        None => (without_slash(text), None),
    };
    if name.is_empty() || name.starts_with('/') {
        return Err(InvalidUri);
    }
    if let Some((table, below)) = split_at_byte(name, b'/')
        && below.bytes().any(|byte| byte != b'/')
    {
        return Ok(Resource::BelowTable { table: Cow::Borrowed(table) });
    }
    let of_tables = name.eq_ignore_ascii_case("Tables");
    match key {
        None if name == "$batch" => Ok(Resource::TableBatch),
        None if name == "$metadata" => Ok(Resource::TableMetadata),
        None | Some("") if of_tables => Ok(Resource::Tables),
        None | Some("") => Ok(Resource::Table { table: Cow::Borrowed(name) }),
        Some(key) if of_tables => {
            let key = key.strip_prefix("TableName=").unwrap_or(key);
            match odata_string(key)? {
                (table, "") if !table.is_empty() => Ok(Resource::TableEntry { table }),
                _ => Err(InvalidUri),
            }
        }
        Some(keys) => {
            let (partition_key, row_key) = entity_keys(keys)?;
            Ok(Resource::Entity { table: Cow::Borrowed(name), partition_key, row_key })
        }
    }
}

/// A slash at the end of an address is ignored; a second one makes the name invalid.
fn without_slash(text: &str) -> &str {
    match text.strip_suffix('/') {
        Some(name) if !name.ends_with('/') => name,
        Some(_) | None => text,
    }
}

/// `PartitionKey='p',RowKey='r'`, in either order.
fn entity_keys(text: &str) -> Result<(Cow<'_, str>, Cow<'_, str>), InvalidUri> {
    let (mut partition_key, mut row_key) = (None, None);
    let mut rest = text;
    for last in [false, true] {
        let (name, value) = split_at_byte(rest, b'=').ok_or(InvalidUri)?;
        let slot = match name.trim() {
            "PartitionKey" => &mut partition_key,
            "RowKey" => &mut row_key,
            _ => return Err(InvalidUri),
        };
        let (key, after) = odata_string(value)?;
        *slot = Some(key);
        rest = match (last, after) {
            (true, "") => "",
            (true, _) => return Err(InvalidUri),
            (false, after) => after.strip_prefix(',').ok_or(InvalidUri)?,
        };
    }
    Ok((partition_key.ok_or(InvalidUri)?, row_key.ok_or(InvalidUri)?))
}

/// A single-quoted literal at the start of `text`, where a quote is doubled, and what follows it.
fn odata_string(text: &str) -> Result<(Cow<'_, str>, &str), InvalidUri> {
    let body = text.strip_prefix('\'').ok_or(InvalidUri)?;
    let bytes = body.as_bytes();
    let mut at = 0;
    loop {
        at += bytes[at..].iter().position(|byte| *byte == b'\'').ok_or(InvalidUri)?;
        if bytes.get(at + 1) != Some(&b'\'') {
            break;
        }
        at += 2;
    }
    let literal = &body[..at];
    let literal = if literal.contains('\'') {
        Cow::Owned(literal.replace("''", "'"))
    } else {
        Cow::Borrowed(literal)
    };
    Ok((literal, &body[at + 1..]))
}

fn into_owned(resource: Resource<'_>) -> Resource<'static> {
    let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
    match resource {
        Resource::Service => Resource::Service,
        Resource::Container { container } => Resource::Container { container: own(container) },
        Resource::Blob { container, blob } => {
            Resource::Blob { container: own(container), blob: own(blob) }
        }
        Resource::Queue { queue } => Resource::Queue { queue: own(queue) },
        Resource::Messages { queue } => Resource::Messages { queue: own(queue) },
        Resource::Message { queue, message } => {
            Resource::Message { queue: own(queue), message: own(message) }
        }
        Resource::Tables => Resource::Tables,
        Resource::TableEntry { table } => Resource::TableEntry { table: own(table) },
        Resource::Table { table } => Resource::Table { table: own(table) },
        Resource::BelowTable { table } => Resource::BelowTable { table: own(table) },
        Resource::Entity { table, partition_key, row_key } => Resource::Entity {
            table: own(table),
            partition_key: own(partition_key),
            row_key: own(row_key),
        },
        Resource::TableBatch => Resource::TableBatch,
        Resource::TableMetadata => Resource::TableMetadata,
        Resource::Share { share } => Resource::Share { share: own(share) },
        Resource::Path { share, path, trailing_slash } => {
            Resource::Path { share: own(share), path: own(path), trailing_slash }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse<'a>(service: Service, host: &'a str, target: &'a str) -> Option<Address<'a>> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let query = UrlQuery::parse(query).expect("a readable query");
        Address::parse(service, Some(host), HostStyle::Recognized, path, &query).ok()
    }

    fn resource(service: Service, target: &str) -> Option<Resource<'_>> {
        parse(service, "127.0.0.1:10000", target).map(|address| address.resource)
    }

    fn text(text: &str) -> Cow<'_, str> {
        Cow::Borrowed(text)
    }

    #[test]
    fn path_style_takes_the_account_from_the_path() {
        for host in ["127.0.0.1:10000", "localhost", "[::1]:10000", "storage.example.org", "blob"] {
            let address = parse(Service::Blob, host, "/acct/con/a%20b").expect(host);
            assert_eq!(
                (address.account, address.secondary, address.path_style),
                ("acct", false, true)
            );
            assert_eq!(address.raw_path, "/con/a%20b");
            let expected = Resource::Blob { container: text("con"), blob: text("a b") };
            assert_eq!(address.resource, expected);
        }
    }

    #[test]
    fn host_style_takes_the_account_from_the_host() {
        for host in
            ["acct.blob.localhost:10000", "acct.blob.core.windows.net", "acct.BLOB.example.org:80"]
        {
            let address = parse(Service::Blob, host, "/con/b").expect(host);
            assert_eq!((address.account, address.path_style), ("acct", false));
            assert_eq!(address.raw_path, "/con/b");
            assert_eq!(address.resource.scope(), Scope::Blob);
        }
    }

    #[test]
    fn host_style_can_be_switched_off() {
        let (host, query) = (Some("azurite.blob.svc.cluster.local"), UrlQuery::default());
        let address =
            Address::parse(Service::Blob, host, HostStyle::Ignored, "/acct/con/b", &query);
        assert_eq!(address.map(|address| address.account), Ok("acct"));
    }

    #[test]
    fn a_host_of_another_service_is_refused() {
        assert_eq!(parse(Service::Blob, "acct.queue.localhost", "/con/b"), None);
    }

    #[test]
    fn the_secondary_suffix_is_cut_off_in_both_styles() {
        for (host, target) in [
            ("127.0.0.1:10000", "/acct-secondary/con/b"),
            ("acct-secondary.blob.localhost:10000", "/con/b"),
        ] {
            let address = parse(Service::Blob, host, target).expect(target);
            assert_eq!((address.account, address.secondary), ("acct", true));
            assert_eq!(address.raw_path, "/con/b");
        }
        assert_eq!(parse(Service::Blob, "127.0.0.1", "/-secondary/con/b"), None);
    }

    #[test]
    fn the_account_alone_is_the_service() {
        for service in Service::ALL {
            for target in ["/acct", "/acct/", "/acct?comp=list"] {
                assert_eq!(resource(service, target), Some(Resource::Service), "{target}");
            }
        }
        for target in ["/", "//con", "", "acct", "/a%62c"] {
            assert_eq!(resource(Service::Blob, target), None, "{target}");
        }
    }

    #[test]
    fn one_segment_is_a_container_with_restype_and_a_blob_of_root_without() {
        let container = Some(Resource::Container { container: text("name") });
        assert_eq!(resource(Service::Blob, "/a/name?restype=container"), container);
        assert_eq!(resource(Service::Blob, "/a/name/?restype=container"), container);
        let blob = Resource::Blob { container: text("$root"), blob: text("name") };
        assert_eq!(resource(Service::Blob, "/a/name"), Some(blob.clone()));
        assert_eq!(resource(Service::Blob, "/a/$root/name"), Some(blob));
        assert_eq!(resource(Service::Blob, "/a/name/"), None);
        let blob = Resource::Blob { container: text("$root"), blob: text("a/b") };
        assert_eq!(resource(Service::Blob, "/a/a%5Cb"), Some(blob));
    }

    #[test]
    fn blob_names_keep_every_slash_plus_and_encoded_character_but_backslashes() {
        for (target, name) in [
            ("/a/c/d/e/f", "d/e/f"),
            ("/a/c//e/", "/e/"),
            ("/a/c/d%2Fe", "d/e"),
            ("/a/c/d+e", "d+e"),
            ("/a/c/%E2%82%AC%25", "€%"),
            ("/a/c/d%5Ce%5c", "d/e/"),
            ("/a/c/d\\e", "d/e"),
        ] {
            let expected = Resource::Blob { container: text("c"), blob: text(name) };
            assert_eq!(resource(Service::Blob, target), Some(expected), "{target}");
        }
        for target in ["/a/c/%", "/a/c/%2", "/a/c/%GG", "/a/c/%FF", "/a/%C3/b", "/a//b"] {
            assert_eq!(resource(Service::Blob, target), None, "{target}");
        }
    }

    #[test]
    fn queue_paths_are_a_queue_its_messages_or_one_message() {
        let queue = || text("q-1");
        let cases = [
            ("/a/q-1", Resource::Queue { queue: queue() }),
            ("/a/q-1/messages", Resource::Messages { queue: queue() }),
            ("/a/q-1/messages/", Resource::Messages { queue: queue() }),
            ("/a/q-1/messages/id", Resource::Message { queue: queue(), message: text("id") }),
        ];
        for (target, expected) in cases {
            assert_eq!(resource(Service::Queue, target), Some(expected), "{target}");
        }
        for target in ["/a/q/other", "/a/q/messages/id/x", "/a/q//id", "/a//messages"] {
            assert_eq!(resource(Service::Queue, target), None, "{target}");
        }
    }

    #[test]
    fn table_paths_have_the_shapes_of_odata() {
        let entity = |partition_key: &'static str, row_key: &'static str| Resource::Entity {
            table: text("T"),
            partition_key: text(partition_key),
            row_key: text(row_key),
        };
        let table = || text("T");
        let cases = [
            ("/a/Tables", Resource::Tables),
            ("/a/Tables()", Resource::Tables),
            ("/a/Tables('T')", Resource::TableEntry { table: table() }),
            ("/a/Tables(%27T%27)", Resource::TableEntry { table: table() }),
            ("/a/T", Resource::Table { table: table() }),
            ("/a/T()", Resource::Table { table: table() }),
            ("/a/T/", Resource::Table { table: table() }),
            ("/a/T/x", Resource::BelowTable { table: table() }),
            ("/a/T/Tables('T')", Resource::BelowTable { table: table() }),
            ("/a/T/$batch", Resource::BelowTable { table: table() }),
            ("/a/T//", Resource::Table { table: text("T//") }),
            ("/a/T%2F%2F", Resource::Table { table: text("T//") }),
            ("/a/T(PartitionKey='p',RowKey='r')", entity("p", "r")),
            ("/a/T(RowKey='r',PartitionKey='p')", entity("p", "r")),
            ("/a/T(PartitionKey='',RowKey='')", entity("", "")),
            ("/a/T(PartitionKey='it''s',RowKey='a'',b')", entity("it's", "a',b")),
            ("/a/T(PartitionKey=%27a%20b%27,RowKey=%27%28x%29%27)", entity("a b", "(x)")),
            ("/a/T(PartitionKey='a+b',RowKey='c=d,e')", entity("a+b", "c=d,e")),
            ("/a/$batch", Resource::TableBatch),
            ("/a/$metadata", Resource::TableMetadata),
        ];
        for (target, expected) in cases {
            assert_eq!(resource(Service::Table, target), Some(expected), "{target}");
        }
    }

    #[test]
    fn table_paths_of_another_shape_are_refused() {
        for target in [
            "/a/Tables('T'",
            "/a/Tables('')",
            "/a/Tables('T')x",
            "/a/Tables(T)",
            "/a/T(PartitionKey='p')",
            "/a/T(PartitionKey='p',RowKey='r'",
            "/a/T(PartitionKey='p',RowKey='r',x)",
            "/a/T(PartitionKey='p',PartitionKey='r')",
            "/a/T(PartitionKey=p,RowKey=r)",
            "/a/T(PartitionKey='p';RowKey='r')",
            "/a/T(PartitionKey='p,RowKey='r')",
            "/a//x",
            "/a/()",
        ] {
            assert_eq!(resource(Service::Table, target), None, "{target}");
        }
    }

    #[test]
    fn file_paths_are_a_share_its_root_or_a_path_below() {
        let path = |path: &'static str, trailing_slash| Resource::Path {
            share: text("s"),
            path: text(path),
            trailing_slash,
        };
        let cases = [
            ("/a/s?restype=share", Resource::Share { share: text("s") }),
            ("/a/s/?restype=share", Resource::Share { share: text("s") }),
            ("/a/s?restype=directory&comp=list", path("", false)),
            ("/a/s/?restype=Directory", path("", false)),
            ("/a/s?comp=listhandles", path("", false)),
            ("/a/s?comp=forceclosehandles", path("", false)),
            ("/a/s/d/f", path("d/f", false)),
            ("/a/s/d/?restype=directory", path("d", true)),
            ("/a/s/d%20e/f", path("d e/f", false)),
        ];
        for (target, expected) in cases {
            assert_eq!(resource(Service::File, target), Some(expected), "{target}");
        }
        for target in ["/a/s//f", "/a//f", "/a/s/d//?restype=directory", "/a/s/%2F"] {
            assert_eq!(resource(Service::File, target), None, "{target}");
        }
    }
}
