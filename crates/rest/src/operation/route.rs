//! Finds the operation of a request in the table. Every request has one operation or one refusal.
//! Nothing is allocated unless the request is refused.

use super::{
    BlobOperation, Comp, FileOperation, Operation, QueueOperation, Restype, Row, Scope, Selector,
    TableOperation, Verb, Verbs, rows,
};
use crate::headers::RequestHeaders;
use crate::service::Service;
use crate::url_query::UrlQuery;
use crate::version::Version;

/// HTTP methods without operations; unknown methods have another refusal.
const OTHER_METHODS: [&str; 2] = ["CONNECT", "TRACE"];

/// The header in which a POST can name the intended method.
pub const TUNNELLED_METHOD: &str = "x-http-method";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteRefusal {
    /// 405 `UnsupportedHttpVerb` (tables: `MethodNotAllowed`), with `allow` as the header Allow.
    #[error("the resource does not support the HTTP verb; it supports {allow}")]
    UnsupportedVerb { allow: Verbs },
    /// 400 `InvalidHttpVerb`
    #[error("no service knows the HTTP verb")]
    UnknownVerb,
    /// 400 `InvalidQueryParameterValue`
    #[error("query parameter {name} cannot be {value:?} here")]
    InvalidQueryParameterValue { name: &'static str, value: String },
    /// 400 `MissingRequiredHeader`
    #[error("header {name} is missing")]
    MissingRequiredHeader { name: &'static str },
    /// 400 `InvalidHeaderValue`
    #[error("header {name} cannot be {value:?}")]
    InvalidHeaderValue { name: &'static str, value: String },
    /// 400 `MissingRequiredQueryParameter`
    #[error("query parameter {name} is missing")]
    MissingRequiredQueryParameter { name: &'static str },
    /// 400 `InvalidUri`
    #[error("the URI does not represent any resource on the server")]
    InvalidUri,
    /// 400 `InvalidInput`
    #[error("the path goes on behind the name of the table")]
    BelowTable,
    /// 400 `XMethodNotUsingPost`
    #[error("X-HTTP-Method is only allowed with POST")]
    TunnelNotUsingPost,
    /// 400 `XMethodIncorrectCount`
    #[error("X-HTTP-Method is sent more than once")]
    TunnelIncorrectCount,
    /// 400 `XMethodIncorrectValue`
    #[error("X-HTTP-Method can be PUT, MERGE, PATCH or DELETE")]
    TunnelIncorrectValue,
}

/// The operation of the request. `scope` is that of its address.
pub fn route(
    service: Service,
    method: &str,
    scope: Scope,
    query: &UrlQuery<'_>,
    headers: &RequestHeaders,
) -> Result<Operation, RouteRefusal> {
    let verb = Verb::parse(method);
    if verb == Some(Verb::Options) {
        return preflight(service, headers);
    }
    let verb = match service {
        Service::Table => tunnelled(verb, scope, headers.all(TUNNELLED_METHOD))?,
        Service::Blob | Service::Queue | Service::File => verb,
    };
    let scope = match (scope, verb) {
        (Scope::BelowTable, Some(Verb::Post)) => Scope::Table,
        (Scope::BelowTable, Some(_)) => return Err(RouteRefusal::BelowTable),
        (_, _) => scope,
    };
    let restype = query_value(query, "restype", Restype::parse)?;
    let comp = query_value(query, "comp", Comp::parse)?;
    let restype = match (service, scope, comp) {
        // The JavaScript SDK takes the account in a path-style address for a container, and sends
        // `restype=container` with a batch of the account (BlobBatchClient, 12.x).
        (Service::Blob, Scope::Service, Some(Comp::Batch)) => None,
        _ => restype,
    };
    let same_place = |row: &&Row| row.scope == scope && row.restype == restype && row.comp == comp;

    let mut best: Option<&Row> = None;
    let mut unmet: Option<Selector> = None;
    let mut allow = Verbs::empty();
    for row in rows(service).iter().filter(same_place) {
        allow = allow.union(row.verbs);
        if !verb.is_some_and(|verb| row.verbs.has(verb)) {
            continue;
        }
        match row.selectors.iter().find(|selector| !selector.holds(query, headers)) {
            Some(selector) => unmet = unmet.or(Some(*selector)),
            None if best.is_none_or(|best| best.selectors.len() < row.selectors.len()) => {
                best = Some(row);
            }
            None => {}
        }
    }
    match (best, unmet) {
        (Some(row), _) => Ok(row.operation),
        (None, Some(selector)) => Err(selector.refusal(query, headers)),
        (None, None) if verb.is_none() && !OTHER_METHODS.contains(&method) => {
            Err(RouteRefusal::UnknownVerb)
        }
        (None, None) if !allow.is_empty() => Err(RouteRefusal::UnsupportedVerb { allow }),
        (None, None) => Err(nothing_here(service, scope, restype, query, |_| true)),
    }
}

/// The operation in the form that `version` has: an earlier one ignores `Accept`.
pub fn in_known_form(operation: Operation, version: Version) -> Operation {
    let meant = operation.row();
    let others = || meant.selectors.iter().filter(|selector| !selector.is_about_form());
    if meant.since <= version || others().count() == meant.selectors.len() {
        return operation;
    }
    let place = |row: &Row| (row.scope, row.restype, row.comp, row.verbs);
    let same = |row: &&Row| place(row) == place(meant) && row.selectors.iter().eq(others());
    rows(meant.operation.service()).iter().find(same).map_or(operation, |row| row.operation)
}

/// Whether `version` has the operation of the request. If not, the refusal names what that version
/// does not know.
pub fn check_since(
    operation: Operation,
    version: Version,
    query: &UrlQuery<'_>,
    headers: &RequestHeaders,
) -> Result<(), RouteRefusal> {
    let meant = operation.row();
    if meant.since <= version {
        return Ok(());
    }
    let known = |row: &Row| row.since <= version;
    let place = |row: &Row| (row.scope, row.restype, row.comp);
    let same_place = |row: &&Row| known(row) && place(row) == place(meant);
    let there = || rows(meant.operation.service()).iter().filter(same_place);
    let allow = there().fold(Verbs::empty(), |allow, row| allow.union(row.verbs));
    // That version takes it for another operation with the same verbs, in which something is
    // missing.
    let taken_for = there().find(|row| row.verbs == meant.verbs);
    let lacking = taken_for.and_then(|row| row.selectors.first());
    match meant.selectors.last().or(lacking) {
        _ if allow.is_empty() => {
            Err(nothing_here(meant.operation.service(), meant.scope, meant.restype, query, known))
        }
        Some(selector) => Err(selector.refusal(query, headers)),
        None => Err(RouteRefusal::UnsupportedVerb { allow }),
    }
}

fn preflight(service: Service, headers: &RequestHeaders) -> Result<Operation, RouteRefusal> {
    for name in ["origin", "access-control-request-method"] {
        if !headers.contains(name) {
            return Err(RouteRefusal::MissingRequiredHeader { name });
        }
    }
    Ok(match service {
        Service::Blob => Operation::Blob(BlobOperation::PreflightBlobRequest),
        Service::Queue => Operation::Queue(QueueOperation::PreflightQueueRequest),
        Service::Table => Operation::Table(TableOperation::PreflightTableRequest),
        Service::File => Operation::File(FileOperation::PreflightFileRequest),
    })
}

/// A POST to an entity can have the intended method in a header, with these values.
fn tunnelled(
    verb: Option<Verb>,
    scope: Scope,
    mut sent: impl Iterator<Item = impl AsRef<[u8]>>,
) -> Result<Option<Verb>, RouteRefusal> {
    let Some(first) = sent.next() else { return Ok(verb) };
    if sent.next().is_some() {
        return Err(RouteRefusal::TunnelIncorrectCount);
    }
    if verb != Some(Verb::Post) {
        return Err(RouteRefusal::TunnelNotUsingPost);
    }
    let meant = std::str::from_utf8(first.as_ref())
        .ok()
        .and_then(Verb::parse)
        .filter(|meant| matches!(meant, Verb::Put | Verb::Merge | Verb::Patch | Verb::Delete));
    match (meant, scope) {
        (Some(meant), Scope::Entity | Scope::TableEntry) => Ok(Some(meant)),
        _ => Err(RouteRefusal::TunnelIncorrectValue),
    }
}

fn query_value<T>(
    query: &UrlQuery<'_>,
    name: &'static str,
    parse: fn(&str) -> Option<T>,
) -> Result<Option<T>, RouteRefusal> {
    match query.get_nonempty(name) {
        None => Ok(None),
        Some(text) => match parse(text) {
            Some(value) => Ok(Some(value)),
            None => Err(RouteRefusal::InvalidQueryParameterValue { name, value: text.to_owned() }),
        },
    }
}

/// No method is served at this scope with this `restype` and `comp`: names the one that is wrong.
fn nothing_here(
    service: Service,
    scope: Scope,
    restype: Option<Restype>,
    query: &UrlQuery<'_>,
    known: impl Fn(&Row) -> bool,
) -> RouteRefusal {
    let in_scope = |row: &&Row| row.scope == scope && known(row);
    let mut in_scope = rows(service).iter().filter(in_scope).peekable();
    if in_scope.peek().is_none() {
        return RouteRefusal::InvalidUri;
    }
    let wrong = if in_scope.any(|row| row.restype == restype) { "comp" } else { "restype" };
    let value = query.get(wrong).unwrap_or_default();
    if value.is_empty() && scope != Scope::Service {
        return RouteRefusal::InvalidUri;
    }
    // The root of a service without parameters is answered so, too, with an empty value.
    RouteRefusal::InvalidQueryParameterValue { name: wrong, value: value.to_owned() }
}

const ACCEPT: &str = "accept";

impl Selector {
    fn holds(&self, query: &UrlQuery<'_>, headers: &RequestHeaders) -> bool {
        match *self {
            Self::Header(name) => headers.contains(name),
            Self::HeaderIs(name, values) => headers.get(name).is_some_and(|sent| {
                values.iter().any(|value| sent.eq_ignore_ascii_case(value.as_bytes()))
            }),
            Self::Accepts(media) => headers.get(ACCEPT).is_some_and(|sent| {
                let first = sent.split(|byte| matches!(byte, b',' | b';')).next();
                first.is_some_and(|first| first.trim_ascii().eq_ignore_ascii_case(media.as_bytes()))
            }),
            Self::Query(name) => query.get_nonempty(name).is_some(),
            Self::QueryIs(name, value) => {
                query.get(name).is_some_and(|sent| sent.eq_ignore_ascii_case(value))
            }
            Self::QueryOrHeader(parameter, header) => {
                query.get_nonempty(parameter).is_some() || headers.contains(header)
            }
        }
    }

    /// Whether it selects only the form of the answer, not another operation.
    const fn is_about_form(&self) -> bool {
        matches!(self, Self::Accepts(_))
    }

    /// The refusal of a request that lacks this and matches no other operation.
    fn refusal(&self, query: &UrlQuery<'_>, headers: &RequestHeaders) -> RouteRefusal {
        let of_header = |name| match headers.get(name) {
            None => RouteRefusal::MissingRequiredHeader { name },
            Some(sent) => RouteRefusal::InvalidHeaderValue {
                name,
                value: String::from_utf8_lossy(sent).into_owned(),
            },
        };
        match *self {
            Self::Header(name) | Self::HeaderIs(name, _) => of_header(name),
            Self::Accepts(_) => of_header(ACCEPT),
            Self::Query(name) | Self::QueryIs(name, _) | Self::QueryOrHeader(name, _) => {
                match query.get_nonempty(name) {
                    None => RouteRefusal::MissingRequiredQueryParameter { name },
                    Some(sent) => {
                        RouteRefusal::InvalidQueryParameterValue { name, value: sent.to_owned() }
                    }
                }
            }
        }
    }
}
