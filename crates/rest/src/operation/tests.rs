//! The table against itself, against the specification, and against the documentation.

mod specification;

use std::path::{Path, PathBuf};

use super::*;
use crate::address::{Address, HostStyle};
use crate::headers::RequestHeaders;
use crate::version::Version;

/// A request made from a row: the target and the headers.
fn request_of(row: &Row) -> (String, RequestHeaders) {
    let path = match row.scope {
        Scope::Service => "/acct",
        Scope::Any | Scope::Container | Scope::Queue | Scope::Share => "/acct/name",
        Scope::Blob => "/acct/name/a/b",
        Scope::Messages => "/acct/name/messages",
        Scope::Message => "/acct/name/messages/7",
        Scope::Tables => "/acct/Tables",
        Scope::TableEntry => "/acct/Tables('T')",
        Scope::Table => "/acct/T()",
        Scope::BelowTable => "/acct/T/x",
        Scope::Entity => "/acct/T(PartitionKey='p',RowKey='r')",
        Scope::TableBatch => "/acct/$batch",
        Scope::TableMetadata => "/acct/$metadata",
        Scope::Path => "/acct/name/directory/file",
    };
    let mut query = Vec::new();
    query.extend(row.restype.map(|restype| format!("restype={}", restype.as_str())));
    query.extend(row.comp.map(|comp| format!("comp={}", comp.as_str())));
    let mut headers = RequestHeaders::default();
    let mut set = |name: &'static str, value: &'static str| {
        headers.append(name, value.as_bytes()).expect("a header");
    };
    if row.scope == Scope::Any {
        set("origin", "http://example.org");
        set("access-control-request-method", "GET");
    }
    for selector in row.selectors {
        match *selector {
            Selector::Header(name) => set(name, "value"),
            Selector::HeaderIs(name, values) => set(name, values[0]),
            Selector::Accepts(media) => set("accept", media),
            Selector::Query(name) | Selector::QueryOrHeader(name, _) => {
                query.push(format!("{name}=value"));
            }
            Selector::QueryIs(name, value) => query.push(format!("{name}={value}")),
        }
    }
    (format!("{path}?{}", query.join("&")), headers)
}

fn routed(
    service: Service,
    method: &str,
    target: &str,
    headers: &RequestHeaders,
) -> Result<Operation, RouteRefusal> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = UrlQuery::parse(query).expect("a readable query");
    let address = Address::parse(service, None, HostStyle::Recognized, path, &query);
    let scope = address.map_err(|_| RouteRefusal::InvalidUri)?.resource.scope();
    route(service, method, scope, &query, headers)
}

fn headers(pairs: &[(&'static str, &'static str)]) -> RequestHeaders {
    pairs.iter().copied().collect()
}

#[test]
fn every_operation_is_reached_by_a_request_made_from_its_row() {
    for service in Service::ALL {
        for row in rows(service) {
            assert_eq!(row.operation.service(), service);
            let (target, headers) = request_of(row);
            for verb in row.verbs.each() {
                let reached = routed(service, verb.as_str(), &target, &headers);
                assert_eq!(reached, Ok(row.operation), "{} {target} {headers:?}", verb.as_str());
            }
        }
    }
}

#[test]
fn no_two_rows_are_meant_by_the_same_request() {
    for service in Service::ALL {
        for row in rows(service) {
            let alike = rows(service).iter().filter(|other| {
                other.operation != row.operation
                    && other.scope == row.scope
                    && other.restype == row.restype
                    && other.comp == row.comp
                    && other.selectors == row.selectors
                    && other.verbs.each().any(|verb| row.verbs.has(verb))
            });
            let names: Vec<_> = alike.map(|row| row.name).collect();
            assert!(names.is_empty(), "{} is the same request as {names:?}", row.name);
        }
    }
}

#[test]
fn a_row_is_found_by_its_operation() {
    for operation in Operation::all() {
        assert_eq!(operation.row().operation, operation);
        assert_eq!(operation.as_str(), operation.row().name);
    }
    assert_eq!(Operation::Blob(BlobOperation::GetBlob).as_str(), "Get Blob");
    assert_eq!(Operation::File(FileOperation::PreflightFileRequest).service(), Service::File);
}

#[test]
fn more_selectors_mean_more() {
    let put = |pairs: &[(&'static str, &'static str)]| {
        routed(Service::Blob, "PUT", "/a/c/b", &headers(pairs))
    };
    let (kind, source) = (("x-ms-blob-type", "BlockBlob"), ("x-ms-copy-source", "http://x/y"));
    assert_eq!(put(&[kind]), Ok(Operation::Blob(BlobOperation::PutBlockBlob)));
    assert_eq!(put(&[kind, source]), Ok(Operation::Blob(BlobOperation::PutBlobFromUrl)));
    assert_eq!(put(&[source]), Ok(Operation::Blob(BlobOperation::CopyBlob)));
    assert_eq!(
        put(&[source, ("x-ms-requires-sync", "true")]),
        Ok(Operation::Blob(BlobOperation::CopyBlobFromUrl))
    );
    assert_eq!(
        put(&[source, ("x-ms-requires-sync", "false")]),
        Ok(Operation::Blob(BlobOperation::CopyBlob))
    );
    let list = |target| routed(Service::Blob, "GET", target, &RequestHeaders::default());
    assert_eq!(
        list("/a/c?restype=container&comp=list"),
        Ok(Operation::Blob(BlobOperation::ListBlobs))
    );
    assert_eq!(
        list("/a/c?restype=container&comp=list&delimiter="),
        Ok(Operation::Blob(BlobOperation::ListBlobs))
    );
    assert_eq!(
        list("/a/c?restype=container&comp=list&delimiter=%2F"),
        Ok(Operation::Blob(BlobOperation::ListBlobsByDelimiter))
    );
    let accepting = |media| {
        let headers = headers(&[("accept", media)]);
        routed(Service::Blob, "GET", "/a/c?restype=container&comp=list", &headers)
    };
    for (media, expected) in [
        ("application/vnd.apache.arrow.stream", Operation::Blob(BlobOperation::ListBlobsAsArrow)),
        // As sent by the Python SDK.
        (
            "application/vnd.apache.arrow.stream,application/xml",
            Operation::Blob(BlobOperation::ListBlobsAsArrow),
        ),
        (
            "Application/Vnd.Apache.Arrow.Stream;q=1 , */*",
            Operation::Blob(BlobOperation::ListBlobsAsArrow),
        ),
        (
            "application/xml, application/vnd.apache.arrow.stream",
            Operation::Blob(BlobOperation::ListBlobs),
        ),
        ("", Operation::Blob(BlobOperation::ListBlobs)),
    ] {
        assert_eq!(accepting(media), Ok(expected), "{media}");
    }
}

#[test]
fn an_earlier_version_lists_in_the_form_that_it_knows() {
    let (before, since) = (Version::V2026_06_06, Version::V2026_10_06);
    for (arrow, xml) in [
        (
            Operation::Blob(BlobOperation::ListBlobsAsArrow),
            Operation::Blob(BlobOperation::ListBlobs),
        ),
        (
            Operation::Blob(BlobOperation::ListBlobsByDelimiterAsArrow),
            Operation::Blob(BlobOperation::ListBlobsByDelimiter),
        ),
    ] {
        assert_eq!(in_known_form(arrow, before), xml);
        assert_eq!(in_known_form(arrow, since), arrow);
    }
    let other = Operation::Blob(BlobOperation::FindBlobsByTagsInContainer);
    assert_eq!(in_known_form(other, Version::V2009_09_19), other, "it is refused");
}

#[test]
fn names_and_values_of_selectors_are_found_in_any_case() {
    let acquire = headers(&[("x-ms-lease-action", "Acquire")]);
    let reached = routed(Service::Blob, "PUT", "/a/c/b?COMP=Lease", &acquire);
    assert_eq!(reached, Ok(Operation::Blob(BlobOperation::AcquireBlobLease)));
    let reached = routed(Service::Blob, "PUT", "/a/c?Comp=LEASE&ResType=Container", &acquire);
    assert_eq!(reached, Ok(Operation::Blob(BlobOperation::AcquireContainerLease)));
}

#[test]
fn an_empty_comp_is_no_comp() {
    let reached = routed(Service::Blob, "GET", "/a/c/b?comp=", &RequestHeaders::default());
    assert_eq!(reached, Ok(Operation::Blob(BlobOperation::GetBlob)));
}

#[test]
fn a_batch_of_the_account_is_known_although_the_javascript_sdk_calls_it_one_of_a_container() {
    for target in ["/acct?comp=batch", "/acct?restype=container&comp=batch"] {
        let routed = routed(Service::Blob, "POST", target, &RequestHeaders::default());
        assert_eq!(routed, Ok(Operation::Blob(BlobOperation::BlobBatch)), "{target}");
    }
}

#[test]
fn an_operation_of_a_later_version_is_refused_by_what_the_older_one_does_not_know() {
    let bad_query = |name, value: &str| {
        Err(RouteRefusal::InvalidQueryParameterValue { name, value: value.to_owned() })
    };
    let bad_header =
        |name, value: &str| Err(RouteRefusal::InvalidHeaderValue { name, value: value.to_owned() });
    let append: &[_] = &[("x-ms-blob-type", "AppendBlob")];
    let from_url: &[_] = &[("x-ms-blob-type", "BlockBlob"), ("x-ms-copy-source", "http://a")];
    let change: &[_] = &[("x-ms-lease-action", "change")];
    let restored: &[_] = &[("x-ms-deleted-container-name", "n")];
    let account = "/a/c/b?restype=account&comp=properties";
    let diff = "/a/c/b?comp=pagelist&prevsnapshot=s";
    for (cell, version, method, target, sent, expected) in [
        ("13 batch", "2018-03-28", "POST", "/a?comp=batch", &[][..], bad_query("comp", "batch")),
        ("13 batch", "2018-11-09", "POST", "/a?comp=batch", &[], Ok(())),
        (
            "13 account information",
            "2017-11-09",
            "GET",
            account,
            &[],
            bad_query("restype", "account"),
        ),
        ("13 tags", "2019-10-10", "GET", "/a/c/b?comp=tags", &[], bad_query("comp", "tags")),
        (
            "13 append blob",
            "2014-02-14",
            "PUT",
            "/a/c/b",
            append,
            bad_header("x-ms-blob-type", "AppendBlob"),
        ),
        ("13 append blob", "2015-02-21", "PUT", "/a/c/b", append, Ok(())),
        (
            "13 from URL",
            "2019-12-12",
            "PUT",
            "/a/c/b",
            from_url,
            bad_header("x-ms-copy-source", "http://a"),
        ),
        (
            "2.1 change",
            "2011-08-18",
            "PUT",
            "/a/c/b?comp=lease",
            change,
            bad_header("x-ms-lease-action", "change"),
        ),
        ("13 diff", "2015-04-05", "GET", diff, &[], bad_query("prevsnapshot", "s")),
        (
            "13 container lease",
            "2011-08-18",
            "PUT",
            "/a/c?restype=container&comp=lease",
            change,
            bad_query("comp", "lease"),
        ),
        (
            "13 restore container",
            "2019-07-07",
            "PUT",
            "/a/c?restype=container&comp=undelete",
            restored,
            bad_query("comp", "undelete"),
        ),
    ] {
        let headers = headers(sent);
        let operation = routed(Service::Blob, method, target, &headers).expect(cell);
        let (_, query) = target.split_once('?').unwrap_or((target, ""));
        let query = UrlQuery::parse(query).expect("a readable query");
        let version = Version::parse(version).expect("a version");
        let checked = check_since(operation, version, &query, &headers);
        assert_eq!(checked, expected, "{cell}: {method} {target} at {version}");
    }
}

#[test]
fn upserts_came_with_2011_08_18_and_were_updates_without_a_condition_before() {
    let target = "/acct/T(PartitionKey='p',RowKey='r')";
    let (headers, query) = (RequestHeaders::default(), UrlQuery::default());
    for method in ["PUT", "MERGE", "PATCH"] {
        let operation = routed(Service::Table, method, target, &headers).expect(method);
        let checked = |version| check_since(operation, version, &query, &headers);
        let refusal = RouteRefusal::MissingRequiredHeader { name: "if-match" };
        assert_eq!(checked(Version::V2009_09_19), Err(refusal), "4.4 {method}");
        assert_eq!(checked(Version::V2011_08_18), Ok(()), "4.4 {method}");
    }
}

#[test]
fn unknown_requests_are_refused_by_what_is_wrong_with_them() {
    let none = RequestHeaders::default();
    let bad_query = |name, value: &str| {
        Err(RouteRefusal::InvalidQueryParameterValue { name, value: value.to_owned() })
    };
    let cases = [
        (Service::Blob, "GET", "/a/c/b?comp=nonsense", bad_query("comp", "nonsense")),
        (Service::Blob, "GET", "/a/c/b?restype=nonsense", bad_query("restype", "nonsense")),
        (Service::Blob, "GET", "/a/c/b?restype=container", bad_query("restype", "container")),
        (Service::Blob, "GET", "/a/c?restype=share", bad_query("restype", "share")),
        (Service::Blob, "GET", "/a/c?restype=container&comp=tags", bad_query("comp", "tags")),
        (Service::Blob, "PUT", "/a/c/b?comp=range", bad_query("comp", "range")),
        (Service::Blob, "GET", "/a", bad_query("comp", "")),
        (Service::Blob, "GET", "/a?restype=service", bad_query("comp", "")),
        (Service::Queue, "GET", "/a/q/messages?comp=acl", bad_query("comp", "acl")),
        (Service::File, "GET", "/a/s", Err(RouteRefusal::InvalidUri)),
        (Service::File, "GET", "/a/s?restype=container", bad_query("restype", "container")),
        (
            Service::Blob,
            "PATCH",
            "/a/c/b",
            Err(RouteRefusal::UnsupportedVerb {
                allow: Verbs::GET_OR_HEAD.union(Verbs::PUT).union(Verbs::DELETE),
            }),
        ),
        (
            Service::Blob,
            "PUT",
            "/a/c/b?comp=query",
            Err(RouteRefusal::UnsupportedVerb { allow: Verbs::POST }),
        ),
        (
            Service::Blob,
            "TRACE",
            "/a/c/b?comp=query",
            Err(RouteRefusal::UnsupportedVerb { allow: Verbs::POST }),
        ),
        (Service::Blob, "BREW", "/a/c/b?comp=query", Err(RouteRefusal::UnknownVerb)),
        (
            Service::Queue,
            "GET",
            "/a/q",
            Err(RouteRefusal::UnsupportedVerb { allow: Verbs::PUT.union(Verbs::DELETE) }),
        ),
    ];
    for (service, method, target, expected) in cases {
        assert_eq!(routed(service, method, target, &none), expected, "{method} {target}");
    }
}

#[test]
fn a_missing_or_bad_selector_header_is_named() {
    let missing = |name| Err(RouteRefusal::MissingRequiredHeader { name });
    let bad =
        |name, value: &str| Err(RouteRefusal::InvalidHeaderValue { name, value: value.to_owned() });
    let cases: [(_, _, &[(&str, &str)], _); 9] = [
        (Service::Blob, "/a/c/b", &[], missing("x-ms-blob-type")),
        (Service::Blob, "/a/c/b", &[("x-ms-blob-type", "Blob")], bad("x-ms-blob-type", "Blob")),
        (Service::Blob, "/a/c/b?comp=lease", &[], missing("x-ms-lease-action")),
        (
            Service::Blob,
            "/a/c?restype=container&comp=lease",
            &[("x-ms-lease-action", "grab")],
            bad("x-ms-lease-action", "grab"),
        ),
        (Service::Blob, "/a/c/b?comp=page", &[], missing("x-ms-page-write")),
        (Service::Blob, "/a/c/b?comp=copy&copyid=1", &[], missing("x-ms-copy-action")),
        (Service::File, "/a/s/f", &[], missing("x-ms-type")),
        (Service::File, "/a/s/f?comp=range", &[], missing("x-ms-write")),
        // Leases on files cannot be renewed.
        (
            Service::File,
            "/a/s/f?comp=lease",
            &[("x-ms-lease-action", "renew")],
            bad("x-ms-lease-action", "renew"),
        ),
    ];
    for (service, target, sent, expected) in cases {
        assert_eq!(routed(service, "PUT", target, &headers(sent)), expected, "{target} {sent:?}");
    }
    for (sent, absent) in
        [("origin", "access-control-request-method"), ("access-control-request-method", "origin")]
    {
        let reached = routed(Service::Table, "OPTIONS", "/a/T", &headers(&[(sent, "x")]));
        assert_eq!(reached, missing(absent));
    }
}

#[test]
fn a_post_to_an_entity_can_tunnel_another_method() {
    let entity = "/a/T(PartitionKey='p',RowKey='r')";
    let post = |target, pairs: &[(&'static str, &'static str)]| {
        routed(Service::Table, "POST", target, &headers(pairs))
    };
    let method = |value| ("x-http-method", value);
    assert_eq!(
        post(entity, &[method("MERGE")]),
        Ok(Operation::Table(TableOperation::InsertOrMergeEntity))
    );
    let reached = post(entity, &[method("MERGE"), ("if-match", "*")]);
    assert_eq!(reached, Ok(Operation::Table(TableOperation::MergeEntity)));
    assert_eq!(
        post(entity, &[method("PUT")]),
        Ok(Operation::Table(TableOperation::InsertOrReplaceEntity))
    );
    assert_eq!(
        post(entity, &[method("DELETE")]),
        Ok(Operation::Table(TableOperation::DeleteEntity))
    );
    assert_eq!(post(entity, &[method("GET")]), Err(RouteRefusal::TunnelIncorrectValue));
    assert_eq!(post("/a/T", &[method("PUT")]), Err(RouteRefusal::TunnelIncorrectValue));
    let twice = post(entity, &[method("PUT"), method("PUT")]);
    assert_eq!(twice, Err(RouteRefusal::TunnelIncorrectCount));
    let put = routed(Service::Table, "PUT", entity, &headers(&[method("MERGE")]));
    assert_eq!(put, Err(RouteRefusal::TunnelNotUsingPost));
    // Other services ignore the header.
    let other = routed(Service::Blob, "GET", "/a/c/b", &headers(&[method("PUT")]));
    assert_eq!(other, Ok(Operation::Blob(BlobOperation::GetBlob)));
}

#[test]
fn below_a_table_only_a_post_means_something() {
    let below = |method| routed(Service::Table, method, "/a/T/Tables", &headers(&[]));
    assert_eq!(below("POST"), Ok(Operation::Table(TableOperation::InsertEntity)));
    for method in ["GET", "PUT", "DELETE", "MERGE"] {
        assert_eq!(below(method), Err(RouteRefusal::BelowTable), "{method}");
    }
    assert_eq!(below("PROPFIND"), Err(RouteRefusal::UnknownVerb));
}

#[test]
fn deleting_a_version_or_for_good_takes_its_own_letters() {
    let letters = |raw| {
        Operation::Blob(BlobOperation::DeleteBlob)
            .need(&UrlQuery::parse(raw).expect("a readable query"))
            .letters
    };
    assert_eq!(letters(""), ["d"]);
    assert_eq!(letters("snapshot=2024-01-01"), ["d"]);
    assert_eq!(letters("versionid=2024-01-01"), ["x"]);
    assert_eq!(letters("versionid=2024-01-01&deletetype=permanent"), ["y"]);
}

#[test]
fn the_support_matrix_of_the_documentation_is_that_of_the_table() {
    let path = workspace().join("docs/support-matrix.md");
    let matrix = support_matrix();
    if std::env::var_os("HOLDFAST_REWRITE_DOCS").is_some() {
        std::fs::write(&path, &matrix).expect("the documentation can be written");
    }
    let written = std::fs::read_to_string(&path).expect("docs/support-matrix.md can be read");
    assert!(written == matrix, "run the test again with HOLDFAST_REWRITE_DOCS=1 to write it");
}

#[test]
fn the_readme_tells_how_many_operations_are_served() {
    let readme = std::fs::read_to_string(workspace().join("README.md")).expect("a README.md");
    let summary = support_summary();
    assert!(readme.contains(&summary), "README.md has to have this table:\n{summary}");
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
