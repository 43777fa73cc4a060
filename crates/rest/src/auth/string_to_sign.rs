//! The text that each kind of shared access signature signs, by version: §8.3 of the notes on the
//! protocol. Every value is signed as it was received after URL decoding, so that no order of
//! letters or form of a time has to be guessed.

use percent_encoding::percent_decode_str;

use super::sas::{
    Below, FIRST_SIGNED_VERSION, Parameters, RESPONSE_HEADERS_SINCE, SignedResource, malformed,
};
use super::{AuthRefusal, Presented};
use crate::service::Service;

const RESPONSE_HEADERS: [&str; 5] = ["rscc", "rscd", "rsce", "rscl", "rsct"];
const KEY_FIELDS: [&str; 6] = ["skoid", "sktid", "skt", "ske", "sks", "skv"];

/// What the signature is for.
pub(super) struct ResourcePath {
    /// In its signed form.
    pub path: String,
    pub resource: SignedResource,
}

impl ResourcePath {
    pub fn of(parameters: Parameters<'_>, request: &Presented<'_>) -> Result<Self, AuthRefusal> {
        let container = match (request.resource.container, request.resource.service) {
            (Some(container), _) => container,
            // The parts of a batch name their tables; each is compared with this one.
            (None, Service::Table) => parameters.required("tn")?,
            (None, Service::Blob | Service::Queue | Service::File) => {
                return Err(AuthRefusal::failed("The signature is not for the whole account."));
            }
        };
        let object = request.resource.object.unwrap_or_default();
        let version = parameters.text("sv");
        let (below, signed) = match (request.resource.service, parameters.get("sr")) {
            (Service::Queue | Service::Table, _)
            | (Service::Blob, Some("c"))
            | (Service::File, Some("s")) => ("", Below::Everything),
            (Service::Blob, Some(kind @ ("b" | "bs" | "bv")))
            | (Service::File, Some(kind @ "f")) => {
                check_kind(kind, version)?;
                if object.is_empty() {
                    return Err(AuthRefusal::failed(
                        "The signature is for what is in a container.",
                    ));
                }
                let signed = match kind {
                    "bs" | "bv" => Below::PastState,
                    _ => Below::Object(object.to_owned()),
                };
                (object, signed)
            }
            (Service::Blob, Some(kind @ "d")) => {
                check_kind(kind, version)?;
                let path = signed_directory(parameters, object)?;
                (path, Below::Directory(path.to_owned()))
            }
            (Service::Blob | Service::File, Some(_)) => {
                return Err(malformed("sr", "is not a kind of resource of this service"));
            }
            (Service::Blob | Service::File, None) => {
                return Err(malformed("sr", "is mandatory. Cannot be empty"));
            }
        };
        let container = match request.resource.service {
            Service::Table => {
                let name = parameters.required("tn")?;
                if !name.eq_ignore_ascii_case(container) {
                    return Err(AuthRefusal::failed("tn is not the table of the request."));
                }
                name.to_ascii_lowercase()
            }
            Service::Blob | Service::Queue | Service::File => container.to_owned(),
        };
        let mut path = String::with_capacity(64);
        if version >= "2015-02-21" {
            path.push('/');
            path.push_str(request.resource.service.name());
        }
        for part in [request.resource.account, &container, below] {
            if !part.is_empty() {
                path.push('/');
                path.push_str(part);
            }
        }
        let service = request.resource.service;
        Ok(Self { path, resource: SignedResource { service, container, below: signed } })
    }
}

/// Refuses a kind of resource that the version does not have. In versions that do not sign `sr`, a
/// signature for a blob could otherwise be turned into one for a directory of that name.
fn check_kind(kind: &str, version: &str) -> Result<(), AuthRefusal> {
    let since = match kind {
        "bs" => "2018-11-09",
        "bv" => "2019-10-10",
        "d" => "2020-02-10",
        _ => return Ok(()),
    };
    match kind {
        _ if version >= since => Ok(()),
        "d" => Err(AuthRefusal::DirectorySasNotSupported),
        _ => Err(malformed("sr", "is of a later version")),
    }
}

/// The first `sdd` segments of the path of the request.
fn signed_directory<'a>(
    parameters: Parameters<'_>,
    object: &'a str,
) -> Result<&'a str, AuthRefusal> {
    let Some(depth) = parameters.get("sdd") else {
        return Err(AuthRefusal::SasParameterMandatory { name: "sdd" });
    };
    let depth: usize = depth.parse().map_err(|_| AuthRefusal::DirectoryDepthInvalid)?;
    if depth == 0 {
        return Ok("");
    }
    // A leading slash is kept: it makes an empty first segment, which is another name.
    let path = object.trim_end_matches('/');
    let segments = path.split('/').filter(|segment| !segment.is_empty()).count();
    if segments < depth {
        return Err(AuthRefusal::DirectoryDepthInvalid);
    }
    let end = path.match_indices('/').nth(depth - 1).map_or(path.len(), |(at, _)| at);
    Ok(&path[..end])
}

/// The time of the snapshot or version, if the signature is for one.
fn snapshot_time<'a>(parameters: Parameters<'a>) -> &'a str {
    match parameters.get("sr") {
        Some("bs") => parameters.text("snapshot"),
        Some("bv") => parameters.text("versionid"),
        Some(_) | None => "",
    }
}

pub(super) fn account(parameters: Parameters<'_>, account: &str) -> String {
    let mut text = format!("{account}\n");
    let fields = ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"];
    let scope = (parameters.text("sv") >= "2020-12-06").then_some("ses");
    for name in fields.into_iter().chain(scope) {
        text.push_str(parameters.text(name));
        text.push('\n');
    }
    text
}

pub(super) fn service(
    parameters: Parameters<'_>,
    service: Service,
    version: &str,
    resource: &str,
) -> String {
    let mut fields = Vec::with_capacity(20);
    fields.extend(["sp", "st", "se"].map(|name| parameters.text(name)));
    fields.extend([resource, parameters.text("si")]);
    if version >= "2015-04-05" {
        fields.extend(["sip", "spr"].map(|name| parameters.text(name)));
    }
    if version >= FIRST_SIGNED_VERSION {
        fields.push(version);
    }
    match service {
        Service::Blob => {
            if version >= "2018-11-09" {
                fields.extend([parameters.text("sr"), snapshot_time(parameters)]);
            }
            if version >= "2020-12-06" {
                fields.push(parameters.text("ses"));
            }
        }
        Service::Table => {
            fields.extend(["spk", "srk", "epk", "erk"].map(|name| parameters.text(name)));
        }
        Service::Queue | Service::File => {}
    }
    if matches!(service, Service::Blob | Service::File) && version >= RESPONSE_HEADERS_SINCE {
        fields.extend(RESPONSE_HEADERS.map(|name| parameters.text(name)));
    }
    fields.join("\n")
}

pub(super) fn user_delegation(
    parameters: Parameters<'_>,
    request: &Presented<'_>,
    version: &str,
    resource: &str,
) -> Result<String, AuthRefusal> {
    let (headers, query) = (bound_headers(parameters, request)?, bound_query(parameters)?);
    let blob = request.resource.service == Service::Blob;
    let mut fields = Vec::with_capacity(32);
    fields.extend(["sp", "st", "se"].map(|name| parameters.text(name)));
    fields.push(resource);
    fields.extend(KEY_FIELDS.map(|name| parameters.text(name)));
    if blob && version >= "2020-02-10" {
        fields.extend(["saoid", "suoid", "scid"].map(|name| parameters.text(name)));
    }
    if version >= "2025-07-05" {
        fields.extend(["skdutid", "sduoid"].map(|name| parameters.text(name)));
    }
    fields.extend(["sip", "spr"].map(|name| parameters.text(name)));
    fields.push(version);
    if blob {
        fields.extend([parameters.text("sr"), snapshot_time(parameters)]);
        if version >= "2020-12-06" {
            fields.push(parameters.text("ses"));
        }
        if version >= "2026-04-06" {
            fields.extend([headers.as_str(), query.as_str()]);
        }
    }
    if matches!(request.resource.service, Service::Blob | Service::File) {
        fields.extend(RESPONSE_HEADERS.map(|name| parameters.text(name)));
    }
    Ok(fields.join("\n"))
}

/// The names in a list such as `srh`, each encoded once more within the list.
fn bound_names(list: &str) -> impl Iterator<Item = Option<String>> {
    let names = list.split(',').filter(|name| !name.is_empty());
    names.map(|name| percent_decode_str(name).decode_utf8().ok().map(|name| name.into_owned()))
}

/// The headers that the request must have, with their values.
fn bound_headers(
    parameters: Parameters<'_>,
    request: &Presented<'_>,
) -> Result<String, AuthRefusal> {
    let mut text = String::new();
    for name in bound_names(parameters.text("srh")) {
        let sent = name.as_ref().and_then(|name| request.headers.text(&name.to_ascii_lowercase()));
        let (Some(name), Some(value)) = (name.as_ref(), sent) else {
            return Err(malformed("srh", "names a header that the request does not have"));
        };
        text.extend([name, ":", value, "\n"]);
    }
    Ok(text)
}

fn bound_query(parameters: Parameters<'_>) -> Result<String, AuthRefusal> {
    let mut text = String::new();
    for name in bound_names(parameters.text("srq")) {
        let Some((name, value)) =
            name.as_ref().and_then(|name| Some((name, parameters.sent(name)?)))
        else {
            return Err(malformed("srq", "names a parameter that the request does not have"));
        };
        text.extend(["\n", name, ":", value]);
    }
    Ok(text)
}
