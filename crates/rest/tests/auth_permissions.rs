//! What each kind of caller may do, and the restrictions that operations must check.

mod golden_request;

use golden_request::{Golden, assignment, rfc1123, unsigned_token};
use holdfast_domain::access::PublicAccess;
use holdfast_rest::auth::{
    AccountKeys, Assignment, AuthRefusal, BearerSettings, Below, Granted, Identity, Key, KeyFields,
    KeyRange, KeyRefusal, NamedResource, authorize, check_public_access, issue_user_delegation_key,
    key_time,
};
use holdfast_rest::operation::{
    Anonymous, BlobOperation, Need, NeededActions, Operation, ResourceType,
};
use holdfast_rest::service::Service;
use holdfast_rest::version::Version;

const VERSION_TEXT: &str = "2021-12-02";
const VERSION: Version = Version::V2021_12_02;
const OBJECT_ID: &str = "aaaaaaaa-0000-4000-8000-000000000001";

const READ: Need = Need {
    shared_key: true,
    resource_type: ResourceType::Object,
    letters: &["r"],
    create_since: None,
    service_sas: true,
    actions: NeededActions {
        any_of: &[&["blobServices/containers/blobs/read"]],
        since: Version::V2017_11_09,
    },
    anonymous: Anonymous::Blob,
};
const PUT: Need = Need {
    letters: &["c", "w"],
    actions: NeededActions {
        any_of: &[
            &["blobServices/containers/blobs/write"],
            &["blobServices/containers/blobs/add/action"],
        ],
        since: Version::V2017_11_09,
    },
    anonymous: Anonymous::Never,
    ..READ
};
const UPSERT: Need = Need { letters: &["au"], anonymous: Anonymous::Never, ..READ };
const LIST_CONTAINERS: Need = Need {
    resource_type: ResourceType::Service,
    letters: &["l"],
    service_sas: false,
    anonymous: Anonymous::Never,
    ..READ
};
const GET_ACL: Need = Need {
    resource_type: ResourceType::Container,
    letters: &[],
    service_sas: false,
    actions: NeededActions { any_of: &[&[]], since: Version::V2025_07_05 },
    anonymous: Anonymous::Never,
    ..READ
};
const GET_KEY: Need = Need { shared_key: false, anonymous: Anonymous::Never, ..READ };

const TARGET: NamedResource<'static> = NamedResource {
    account: "goldenaccount",
    service: Service::Blob,
    container: Some("container"),
    object: Some("blob"),
};

fn golden(name: &str) -> Golden {
    let files =
        [include_str!("golden/sas_python.json"), include_str!("golden/sas_javascript.json")];
    let found = files.iter().flat_map(|file| Golden::load(file)).find(|golden| golden.name == name);
    found.unwrap_or_else(|| panic!("no golden case {name}"))
}

fn identity(name: &str) -> Identity {
    golden(name).authenticate().expect(name)
}

fn may(identity: &Identity, need: &Need) -> Result<Granted, AuthRefusal> {
    authorize(identity, need, VERSION, &TARGET)
}

#[test]
fn the_owner_may_do_everything_but_get_a_key_meant_for_tokens() {
    for need in [READ, PUT, UPSERT, LIST_CONTAINERS, GET_ACL] {
        let granted = may(&Identity::Owner, &need).expect("allowed");
        assert!(!granted.create_only && granted.may_read_tags && granted.may_write_tags);
        assert!(granted.may('i', "anything"));
    }
    let refused = may(&Identity::Owner, &GET_KEY);
    assert!(matches!(refused, Err(AuthRefusal::AuthenticationFailed { .. })));
}

#[test]
fn an_account_signature_gives_its_letters_on_its_types_of_resources() {
    // srt=co, sp=rl
    let identity = identity("python old account 2020-12-06");
    assert!(may(&identity, &READ).is_ok());
    let mismatch = AuthRefusal::PermissionMismatch { hidden: false };
    assert_eq!(may(&identity, &PUT).err(), Some(mismatch.clone()));
    assert_eq!(may(&identity, &UPSERT).err(), Some(mismatch));
    let types = AuthRefusal::ResourceTypeMismatch;
    assert_eq!(may(&identity, &LIST_CONTAINERS).err(), Some(types));
    assert_eq!(may(&identity, &GET_ACL).err(), Some(AuthRefusal::AuthorizationFailure));
    assert!(!may(&identity, &READ).expect("allowed").may_read_tags);
    let whole_batch = Need { letters: &[""], ..LIST_CONTAINERS };
    assert!(may(&identity, &whole_batch).is_ok(), "each part is checked by itself");
}

#[test]
fn a_service_signature_gives_its_letters_on_what_service_signatures_may_do() {
    let reader = identity("python blob");
    assert!(may(&reader, &READ).is_ok());
    let mismatch = AuthRefusal::PermissionMismatch { hidden: false };
    assert_eq!(may(&reader, &PUT).err(), Some(mismatch));
    for need in [LIST_CONTAINERS, GET_ACL] {
        assert_eq!(may(&reader, &need).err(), Some(AuthRefusal::AuthorizationFailure));
    }
    let key = may(&reader, &GET_KEY);
    assert!(matches!(key, Err(AuthRefusal::AuthenticationFailed { .. })));
}

#[test]
fn old_signatures_hide_what_they_do_not_allow() {
    let hidden = AuthRefusal::PermissionMismatch { hidden: true };
    assert_eq!(may(&identity("python old blob 2014-02-14"), &PUT).err(), Some(hidden));
    let told = AuthRefusal::PermissionMismatch { hidden: false };
    assert_eq!(may(&identity("python old blob 2015-04-05"), &PUT).err(), Some(told));
}

#[test]
fn a_signature_whose_policy_is_not_resolved_gives_nothing() {
    let unresolved = identity("python blob policy and times");
    assert_eq!(may(&unresolved, &READ).err(), Some(AuthRefusal::PolicyNotFound));
}

#[test]
fn create_without_write_creates_only() {
    let both = may(&identity("javascript blob 2026-04-06"), &PUT).expect("racwd is enough");
    assert!(!both.create_only);
    let create = Need { letters: &["c", "w"], ..PUT };
    let limited = identity("python blob create only");
    assert!(may(&limited, &create).expect("c is enough").create_only);
    assert!(may(&limited, &Need { letters: &["w"], ..PUT }).is_err());
}

#[test]
fn what_a_signature_says_reaches_the_operation() {
    let granted = may(&identity("python blob, every field"), &READ).expect("allowed");
    assert_eq!(granted.scope().encryption_scope.as_deref(), Some("scope1"));
    assert_eq!(granted.scope().response_headers.cache_control.as_deref(), Some("no-store"));
    let granted = may(&identity("python table, every field"), &READ).expect("allowed");
    let range = granted.scope().key_range.as_ref().expect("a range");
    assert!(range.contains("b", "0") && !range.contains("a", "0"));
    let granted = may(&identity("python directory"), &READ).expect("allowed");
    let directory = Some(Below::Directory("d/e".to_owned()));
    assert_eq!(granted.scope().resource.clone().map(|resource| resource.below), directory);
    let granted = may(&identity("python account with scope"), &READ).expect("allowed");
    assert_eq!(granted.scope().encryption_scope.as_deref(), Some("scope1"));
}

#[test]
fn letters_count_from_the_version_that_introduced_them() {
    let tags = Need { letters: &["t"], ..READ };
    let granted = may(&identity("python container with tags"), &tags).expect("allowed");
    assert!(granted.may_read_tags && granted.may_write_tags);
    let older = identity("python old container with tags");
    assert!(!may(&older, &READ).expect("allowed").may_read_tags);
    assert!(may(&older, &tags).is_err());
}

#[test]
fn a_key_range_includes_its_ends() {
    let text = |text: &str| Some(text.to_owned());
    let whole_partitions =
        KeyRange { start_partition: text("b"), end_partition: text("d"), ..KeyRange::default() };
    let with_rows =
        KeyRange { start_row: text("5"), end_row: text("5"), ..whole_partitions.clone() };
    let open_end = KeyRange { start_partition: text("b"), ..KeyRange::default() };
    for (partition, row, whole, rows, open) in [
        ("a", "9", false, false, false),
        ("b", "4", true, false, true),
        ("b", "5", true, true, true),
        ("c", "0", true, true, true),
        ("d", "5", true, true, true),
        ("d", "6", true, false, true),
        ("e", "0", false, false, true),
    ] {
        assert_eq!(whole_partitions.contains(partition, row), whole, "{partition} {row}");
        assert_eq!(with_rows.contains(partition, row), rows, "{partition} {row}");
        assert_eq!(open_end.contains(partition, row), open, "{partition} {row}");
    }
}

fn bearer(settings: BearerSettings) -> Identity {
    let mut golden = golden("python blob");
    golden.remove_query("sig");
    let token = unsigned_token(OBJECT_ID, "tenant", golden.now.unix_seconds());
    golden.set_header("authorization", &format!("Bearer {token}"));
    golden.bearer = settings;
    golden.authenticate().expect("a valid token")
}

fn development() -> BearerSettings {
    BearerSettings::development()
}

/// Only the holder of the object id has a role, with these actions.
fn assigned(actions: &[&str]) -> BearerSettings {
    let actions: Vec<String> = actions.iter().map(|action| (*action).to_owned()).collect();
    development().with_assignments(vec![assignment(OBJECT_ID, &actions)])
}

#[test]
fn without_assignments_development_gives_all_that_tokens_can_give() {
    let anyone = bearer(development());
    for need in [READ, PUT, UPSERT, LIST_CONTAINERS, GET_KEY] {
        let granted = may(&anyone, &need).expect("allowed");
        assert!(!granted.create_only && granted.may_read_tags);
        assert_eq!(granted.principal.expect("a principal").object_id, OBJECT_ID);
    }
    assert_eq!(may(&anyone, &GET_ACL).err(), Some(AuthRefusal::AuthorizationFailure));
    assert!(authorize(&anyone, &GET_ACL, Version::V2025_07_05, &TARGET).is_ok());
}

#[test]
fn without_an_assignment_a_token_may_do_nothing() {
    let mismatch = Some(AuthRefusal::PermissionMismatch { hidden: false });
    let any_role = Need {
        actions: NeededActions { any_of: &[&[]], since: Version::V2017_11_09 },
        anonymous: Anonymous::Never,
        ..READ
    };
    let mut elsewhere = assignment(OBJECT_ID, &["*".to_owned()]);
    elsewhere.scope.account = Some("another".to_owned());
    let stranger = assignment("someone else", &["*".to_owned()]);
    for assignments in [vec![], vec![elsewhere], vec![stranger]] {
        let caller = bearer(development().with_assignments(assignments));
        for need in [READ, PUT, UPSERT, LIST_CONTAINERS, GET_KEY, any_role] {
            assert_eq!(may(&caller, &need).err(), mismatch);
        }
    }
}

#[test]
fn a_role_in_one_container_opens_that_container_only() {
    let mut reader = assignment(OBJECT_ID, &["*/blobs/read".to_owned()]);
    reader.scope.account = Some(TARGET.account.to_owned());
    reader.scope.container = Some((Service::Blob, "container".to_owned()));
    let caller = bearer(development().with_assignments(vec![reader]));
    let any_role =
        Need { actions: NeededActions { any_of: &[&[]], since: Version::V2017_11_09 }, ..READ };
    for (container, reads) in [(Some("container"), true), (Some("other"), false), (None, false)] {
        let target = NamedResource { container, ..TARGET };
        let decided = authorize(&caller, &READ, VERSION, &target);
        assert_eq!(decided.is_ok(), reads, "{container:?}");
        let decided = authorize(&caller, &any_role, VERSION, &target);
        assert!(decided.is_ok(), "any role in the account: {container:?}");
    }
    let other_account = NamedResource { account: "another", ..TARGET };
    assert!(authorize(&caller, &any_role, VERSION, &other_account).is_err());
}

#[test]
fn from_2026_06_06_on_a_signature_to_create_may_stage() {
    let limited = identity("python blob create only");
    let staging = Need { letters: &["w"], ..PUT };
    assert!(may(&limited, &staging).is_err());
    let since = |version| Need { create_since: Some(version), ..staging };
    assert!(may(&limited, &since("2100-01-01")).is_err());
    assert!(may(&limited, &since("2015-04-05")).expect("c is enough").create_only);
    let versions = |operation: Operation| Some((operation, operation.row().need.create_since?));
    let staged: Vec<_> = Operation::all().filter_map(versions).collect();
    let expected =
        [Operation::Blob(BlobOperation::PutBlock), Operation::Blob(BlobOperation::PutBlockList)]
            .map(|it| (it, "2026-06-06"));
    assert_eq!(staged, expected);
}

#[test]
fn with_roles_a_token_gives_the_actions_of_its_roles() {
    const BLOBS: &str = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs";
    let mismatch = Some(AuthRefusal::PermissionMismatch { hidden: false });
    for (actions, read, put) in [
        (vec![format!("{BLOBS}/read")], true, None),
        (vec![format!("{BLOBS}/*")], true, Some(false)),
        (vec!["microsoft.storage/STORAGEACCOUNTS/*".to_owned()], true, Some(false)),
        (vec![format!("{BLOBS}/add/action")], false, Some(true)),
        (vec!["*/blobs/write".to_owned()], false, Some(false)),
        (vec!["Microsoft.Storage/storageAccounts/queueServices/*".to_owned()], false, None),
        (vec![], false, None),
    ] {
        let actions: Vec<&str> = actions.iter().map(String::as_str).collect();
        let caller = bearer(assigned(&actions));
        assert_eq!(may(&caller, &READ).is_ok(), read, "{actions:?}");
        let result = may(&caller, &PUT);
        assert_eq!(result.as_ref().ok().map(|granted| granted.create_only), put, "{actions:?}");
        assert!(put.is_some() || result.err() == mismatch, "{actions:?}");
    }
}

#[test]
fn a_user_delegation_signature_gives_no_more_than_its_user_may_do() {
    let delegated = |settings| {
        let mut golden = golden("python user delegation blob, every field");
        golden.bearer = settings;
        golden.authenticate().expect("a valid signature")
    };
    let free = delegated(development());
    assert!(may(&free, &READ).is_ok());
    assert!(!may(&free, &PUT).expect("w is enough").create_only);
    let missing = may(&free, &Need { letters: &["d"], ..PUT });
    assert_eq!(missing.err(), Some(AuthRefusal::PermissionMismatch { hidden: false }));
    for need in [LIST_CONTAINERS, GET_ACL, GET_KEY] {
        assert_eq!(may(&free, &need).err(), Some(AuthRefusal::AuthorizationFailure));
    }
    let reader = delegated(assigned(&["*/blobs/read"]));
    assert!(may(&reader, &READ).is_ok());
    assert!(may(&reader, &PUT).is_err());
    let stranger = delegated(development().with_assignments(Vec::<Assignment>::new()));
    assert!(may(&stranger, &READ).is_err());
}

#[test]
fn a_signature_made_for_an_agent_acts_as_the_agent() {
    let mut golden = golden("python user delegation directory with agent");
    golden.bearer = development();
    let identity = golden.authenticate().expect("a valid signature");
    let granted = may(&identity, &READ).expect("allowed");
    let principal = granted.principal.expect("a principal");
    assert_eq!(principal.object_id, "dddddddd-0000-4000-8000-000000000004");
}

#[test]
fn a_signature_for_one_user_gives_nothing_without_their_token() {
    let identity = identity("python user delegation to a user");
    let refused = may(&identity, &READ);
    assert!(matches!(refused, Err(AuthRefusal::AuthenticationFailed { .. })));
}

fn anonymous(service: &str, version: &str) -> Identity {
    let mut golden = golden("python blob");
    golden.remove_query("sig");
    golden.service = service.to_owned();
    golden.set_header("x-ms-version", version);
    golden.bearer = BearerSettings::development();
    golden.authenticate().expect("nobody in particular")
}

#[test]
fn callers_without_credentials_read_what_is_public() {
    let caller = anonymous("blob", VERSION_TEXT);
    let challenge = BearerSettings::development().challenge(Service::Blob, VERSION);
    assert!(challenge.is_some());
    let told = AuthRefusal::NoAuthenticationInformation { challenge };
    assert_eq!(may(&caller, &PUT).err(), Some(told.clone()));
    let list = Need { anonymous: Anonymous::Container, ..READ };
    let always = Need { anonymous: Anonymous::Always, ..READ };
    for (level, reads, lists) in [
        (Some(PublicAccess::Container), true, true),
        (Some(PublicAccess::Blob), true, false),
        (Some(PublicAccess::None), false, false),
        (None, false, false),
    ] {
        for (need, allowed) in [(READ, reads), (list, lists), (always, true)] {
            let granted = may(&caller, &need).expect("depends on the container");
            assert!(!granted.may_read_tags);
            let expected = if allowed { Ok(()) } else { Err(told.clone()) };
            assert_eq!(check_public_access(&granted, level, true), expected, "{level:?}");
        }
        let granted = may(&caller, &READ).expect("depends on the container");
        let off = check_public_access(&granted, level, false);
        assert_eq!(off, Err(AuthRefusal::PublicAccessNotPermitted));
    }
    let owner = may(&Identity::Owner, &READ).expect("allowed");
    assert_eq!(
        check_public_access(&owner, None, false),
        Ok(()),
        "the owner needs no public access"
    );
}

#[test]
fn in_older_versions_private_blobs_do_not_exist_for_the_public() {
    let caller = anonymous("blob", "2019-07-07");
    assert_eq!(may(&caller, &PUT).err(), Some(AuthRefusal::ResourceNotFound));
    let granted = may(&caller, &READ).expect("depends on the container");
    let hidden = check_public_access(&granted, Some(PublicAccess::None), true);
    assert_eq!(hidden, Err(AuthRefusal::ResourceNotFound));
    let queue = may(&anonymous("queue", "2019-07-07"), &PUT);
    let told = AuthRefusal::NoAuthenticationInformation { challenge: None };
    assert_eq!(queue.err(), Some(told));
}

#[test]
fn the_keys_that_are_issued_are_those_that_signatures_are_checked_with() {
    let file: serde_json::Value =
        serde_json::from_str(include_str!("golden/sas_python.json")).expect("a golden file");
    let key = Key::from_base64(file["key"].as_str().expect("a key")).expect("a key");
    let keys = AccountKeys { primary: key, secondary: None };
    let now = rfc1123("Sat, 01 Jun 2024 11:00:00 GMT");
    let fields = |start: &str, expiry: &str| KeyFields {
        signed_oid: OBJECT_ID.to_owned(),
        signed_tid: "bbbbbbbb-0000-4000-8000-000000000002".to_owned(),
        signed_start: rfc1123(start),
        signed_expiry: rfc1123(expiry),
        signed_service: "b".to_owned(),
        signed_version: "2024-11-04".to_owned(),
        signed_delegated_user_tid: None,
    };
    const START: &str = "Sat, 01 Jun 2024 11:00:00 GMT";
    let issue = |start, expiry| issue_user_delegation_key(fields(start, expiry), &keys, now);
    let issued = issue(START, "Sun, 02 Jun 2024 11:00:00 GMT").expect("issued");
    assert_eq!(Some(issued.value.as_str()), file["delegation_key"]["value"].as_str());
    assert_eq!(key_time(issued.fields.signed_start), "2024-06-01T11:00:00Z");
    assert!(!format!("{issued:?}").contains(&issued.value), "the value is not printed");

    let mut other = fields(START, "Sun, 02 Jun 2024 11:00:00 GMT");
    other.signed_oid.push('x');
    let other = issue_user_delegation_key(other, &keys, now).expect("issued");
    assert_ne!(other.value, issued.value);

    assert!(issue(START, "Sat, 08 Jun 2024 11:00:00 GMT").is_ok(), "seven days exactly");
    let too_long = issue(START, "Sat, 08 Jun 2024 11:00:01 GMT");
    assert_eq!(too_long.err(), Some(KeyRefusal::TooLong));
    for (start, expiry) in [
        (START, START),
        ("Sun, 02 Jun 2024 11:00:00 GMT", START),
        ("Fri, 31 May 2024 11:00:00 GMT", "Sat, 01 Jun 2024 10:59:59 GMT"),
    ] {
        assert_eq!(issue(start, expiry).err(), Some(KeyRefusal::Expired), "{start} {expiry}");
    }
}
