//! The table against the specification.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::super::*;
use super::workspace;

/// A file of the specification, which is kept beside the workspace and not in it.
fn specification(name: &str) -> Option<Vec<Vec<String>>> {
    let folder = match std::env::var_os("HOLDFAST_SPECIFICATION") {
        Some(folder) => PathBuf::from(folder),
        None => workspace().join("../shared/spec"),
    };
    if !folder.exists() {
        return None;
    }
    let text = std::fs::read_to_string(folder.join(name)).expect("the specification can be read");
    let lines = text.lines().skip(1);
    Some(lines.map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

/// Operations of the specification that are part of another one in the table: the same request by
/// another method, or two requests that cannot be told apart.
const FOLDED: [(&str, &str, Operation); 10] = [
    (
        "blob",
        "HEAD forms of Get Container Properties",
        Operation::Blob(BlobOperation::GetContainerProperties),
    ),
    ("blob", "Get Container ACL via HEAD", Operation::Blob(BlobOperation::GetContainerAcl)),
    (
        "blob",
        "Rename Container (in specification, no REST reference page)",
        Operation::Blob(BlobOperation::RenameContainer),
    ),
    ("queue", "Get Queue Metadata via HEAD", Operation::Queue(QueueOperation::GetQueueMetadata)),
    ("queue", "Get Queue ACL via HEAD", Operation::Queue(QueueOperation::GetQueueAcl)),
    ("file", "List Handles (directory)", Operation::File(FileOperation::ListHandles)),
    ("file", "List Handles (file)", Operation::File(FileOperation::ListHandles)),
    ("file", "Force Close Handles (directory)", Operation::File(FileOperation::ForceCloseHandles)),
    ("file", "Force Close Handles (file)", Operation::File(FileOperation::ForceCloseHandles)),
    ("file", "List Ranges (paginated)", Operation::File(FileOperation::ListRanges)),
];

fn operation_of(service: &str, name: &str) -> Option<Operation> {
    let folded = FOLDED.iter().find(|row| (row.0, row.1) == (service, name));
    // The specification describes an upsert twice: with the update and separately.
    let name = name.split(" (If-Match present)").next().unwrap_or(name);
    folded.map(|row| row.2).or_else(|| {
        Operation::all()
            .find(|operation| operation.service().name() == service && operation.as_str() == name)
    })
}

#[test]
fn the_table_is_that_of_the_specification() {
    let Some(specified) = specification("operations.tsv") else { return };
    let mut seen: BTreeMap<Operation, usize> = BTreeMap::new();
    for columns in specified.iter().filter(|columns| columns[0] != "dfs") {
        let [service, name, verbs, url] =
            [&columns[0], &columns[2], &columns[3], &columns[4]].map(String::as_str);
        if name == "Verb tunnelling" {
            continue;
        }
        let operation = operation_of(service, name).unwrap_or_else(|| panic!("{service} {name}"));
        let row = operation.row();
        *seen.entry(operation).or_default() += 1;
        for verb in verbs.split(',') {
            let verb = Verb::parse(verb).expect(verb);
            assert!(row.verbs.has(verb), "{name}: {}", verb.as_str());
        }
        assert_eq!(parameter(url, "restype"), row.restype.map(Restype::as_str), "{name}");
        assert_eq!(parameter(url, "comp"), row.comp.map(Comp::as_str), "{name}");
        let success: Vec<u16> =
            columns[8].split(',').filter_map(|code| code.parse().ok()).collect();
        assert_eq!(success, row.success, "{name}");
        assert_eq!(columns[11], lease_column(row.lease), "{name}");
        assert_eq!(condition_headers(&columns[10]), sorted(&row.conditions.to_string()), "{name}");
        if name != "List Ranges (paginated)" {
            assert!(columns[7].starts_with(&row.since.to_string()), "{name}: {}", columns[7]);
        }
    }
    let missing: Vec<_> = Operation::all().filter(|one| !seen.contains_key(one)).collect();
    assert!(missing.is_empty(), "not in the specification: {missing:?}");
}

fn parameter<'a>(url: &'a str, name: &str) -> Option<&'a str> {
    let (_, query) = url.split_once('?')?;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(sent, _)| *sent == name).map(|(_, value)| value)
}

fn lease_column(lease: LeaseHeaders) -> &'static str {
    match lease {
        LeaseHeaders::None => "-",
        LeaseHeaders::Id => "lease-id(optional)",
        LeaseHeaders::IdRequired => "lease-id(required)",
        LeaseHeaders::ProposedId => "proposed-lease-id(optional)",
        LeaseHeaders::IdAndProposedIdRequired => "lease-id(required); proposed-lease-id(required)",
        LeaseHeaders::IdRequiredAndProposedId => "lease-id(required); proposed-lease-id(optional)",
        LeaseHeaders::SourceId => "source-lease-id(optional)",
        LeaseHeaders::SourceIdAndDestinationId => {
            "source-lease-id(optional); destination-lease-id(optional)"
        }
    }
}

fn sorted(list: &str) -> Vec<String> {
    let mut names: Vec<_> =
        list.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect();
    names.sort();
    names
}

/// The header names that the column of conditional headers means.
fn condition_headers(column: &str) -> Vec<String> {
    let mut names = Vec::new();
    for part in column.split([';', ',']).map(str::trim) {
        match part {
            "all four" => names.push(Conditions::ALL_FOUR.to_string()),
            "x-ms-source-if-*(4)" => names.push(Conditions::SOURCE.to_string()),
            name if name.starts_with("x-ms-") || name.starts_with("If-") => {
                names.push(name.to_owned());
            }
            _ => {}
        }
    }
    sorted(&names.join(", "))
}

/// Rows of the list of permissions that apply only if the blob or file exists, or depend on the
/// query; the other rows check what is always enough.
const DEPENDS_ON_STATE: [&str; 6] = [
    "Put Blob (overwrite existing block blob)",
    "Put Blob (overwrite existing page blob)",
    "Copy Blob (destination is an existing blob)",
    "Create File (overwrite existing)",
    "Put Block List (update existing blob)",
    "Permanently delete snapshot / version",
];

/// Operations with another name in the list of permissions.
const LISTED_AS: [(&str, &str); 8] = [
    ("Put Blob (create new block blob)", "Put Blob (block blob)"),
    ("Put Blob (create new page blob)", "Put Blob (page blob)"),
    ("Copy Blob (destination is new blob)", "Copy Blob (asynchronous)"),
    ("Put Block List (create new blob)", "Put Block List"),
    ("Create File (create new)", "Create File"),
    ("Clear Page", "Put Page: clear"),
    ("Incremental Copy", "Incremental Copy Blob"),
    ("Clear Range", "Put Range (update or clear)"),
];

#[test]
fn the_letters_of_an_account_sas_are_those_of_the_specification() {
    let Some(specified) = specification("account-sas-permissions.tsv") else { return };
    for columns in specified {
        let [service, listed, resource_type, permission] =
            [&columns[0], &columns[1], &columns[2], &columns[3]].map(String::as_str);
        if DEPENDS_ON_STATE.contains(&listed) {
            continue;
        }
        let name = LISTED_AS.iter().find(|row| row.0 == listed).map_or(listed, |row| row.1);
        let name = name.replace("  ", " ");
        let about: Vec<_> = Operation::all()
            .filter(|operation| operation.service().name() == service)
            .filter(|operation| {
                let family = operation.as_str().split([':', '(']).next().unwrap_or_default();
                operation.as_str() == name || family.trim() == name
            })
            .collect();
        assert!(!about.is_empty(), "{service} {listed}");
        for operation in about {
            let need = operation.row().need;
            assert!(need.resource_type.letters().contains(resource_type), "{operation:?}");
            for letter in need.letters.concat().chars() {
                let allowed = permission.contains(&format!("({letter})"));
                assert!(allowed, "{operation:?} takes {letter}");
            }
            let together = need.letters.iter().any(|letters| letters.len() > 1);
            assert_eq!(together, permission.contains(" and "), "{operation:?}");
        }
    }
}
