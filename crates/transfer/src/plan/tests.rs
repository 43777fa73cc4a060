use super::*;
use crate::edm::Property;
use crate::model::Place;

const KEEP: Rules = Rules { overwrite: false, compare: Compare::Content };
const OVERWRITE: Rules = Rules { overwrite: true, compare: Compare::Content };
const BY_TIME: Rules = Rules { overwrite: false, compare: Compare::Time };

fn metadata(pairs: &[(&str, &str)]) -> Metadata {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn version(snapshot: &str, md5: &str) -> Version {
    Version {
        container: "c".into(),
        name: "b".into(),
        snapshot: snapshot.to_owned(),
        kind: BlobKind::Block,
        length: 3,
        headers: ContentHeaders { md5: md5.to_owned(), ..ContentHeaders::default() },
        metadata: metadata(&[("Owner", "me")]),
        tags: BTreeMap::new(),
        tier: String::new(),
        sequence_number: 0,
        is_sealed: false,
        last_modified: 100,
        place: Place::Endpoint { etag: "\"1\"".to_owned() },
    }
}

#[test]
fn blob_that_is_not_there_is_sent_and_the_same_one_is_not() {
    let source = [version("", "x")];
    assert_eq!(decide_blob(&source, &[], KEEP), Decision::Send);
    assert_eq!(decide_blob(&source, &source, KEEP), Decision::Same);
}

#[test]
fn each_difference_of_a_blob_is_a_conflict_unless_it_may_be_overwritten() {
    type Change = fn(&mut Version);
    let changes: [(&str, Change); 10] = [
        ("it is of another kind", |it| it.kind = BlobKind::Append),
        ("its length differs", |it| it.length = 4),
        ("its content differs", |it| it.headers.md5 = "y".to_owned()),
        ("its content headers differ", |it| it.headers.content_type = "a/b".to_owned()),
        ("its content headers differ", |it| it.headers.cache_control = "no".to_owned()),
        ("its metadata differs", |it| it.metadata = metadata(&[("owner", "you")])),
        ("its tags differ", |it| it.tags = BTreeMap::from([("a".to_owned(), "b".to_owned())])),
        ("its tier differs", |it| it.tier = "Cool".to_owned()),
        ("its sequence number differs", |it| it.sequence_number = 1),
        ("one of both is sealed", |it| it.is_sealed = true),
    ];
    let there = [version("", "x")];
    for (what, change) in changes {
        let mut source = version("", "x");
        change(&mut source);
        let source = [source];
        assert_eq!(decide_blob(&source, &there, KEEP), Decision::Conflict(what));
        assert_eq!(decide_blob(&source, &there, OVERWRITE), Decision::Replace, "{what}");
    }
}

#[test]
fn what_a_server_fills_in_by_itself_is_no_difference() {
    let source = [version("", "x")];
    let mut there = version("", "x");
    there.headers.content_type = "application/octet-stream".to_owned();
    there.metadata = metadata(&[("owner", "me")]);
    there.tier = "Hot".to_owned();
    assert_eq!(decide_blob(&source, &[there], KEEP), Decision::Same);
}

#[test]
fn contents_without_hashes_are_read_or_judged_by_their_time() {
    let hashed = version("", "x");
    for (source, there) in [
        (version("", ""), hashed.clone()),
        (hashed, version("", "")),
        (version("", ""), version("", "")),
    ] {
        let older = [Version { last_modified: 99, ..there.clone() }];
        let (source, there) = ([source], [there]);
        assert_eq!(decide_blob(&source, &there, KEEP), Decision::CompareContents);
        assert_eq!(decide_blob(&source, &there, BY_TIME), Decision::Same);
        assert_eq!(decide_blob(&source, &older, BY_TIME), Decision::Conflict("it is older"));
    }
    let empty = [Version { length: 0, ..version("", "") }];
    assert_eq!(decide_blob(&empty, &empty, KEEP), Decision::Same);
}

#[test]
fn marked_blob_is_from_a_run_that_was_broken_off() {
    let there = Version { metadata: metadata(&[("Holdfast_Moving", "1")]), ..version("", "") };
    assert_eq!(decide_blob(&[version("", "x")], &[there], KEEP), Decision::Replace);
}

/// Versions by their hashes, the blob itself at the end.
fn versions(hashes: &[&str]) -> Vec<Version> {
    let last = hashes.len() - 1;
    let version = |(at, md5): (usize, &&str)| match at == last {
        true => version("", md5),
        false => version(&at.to_string(), md5),
    };
    hashes.iter().enumerate().map(version).collect()
}

#[test]
fn snapshots_that_a_broken_run_has_left_are_told_from_others() {
    let source = versions(&["a", "b", "c"]);
    let cases = [
        (&["a", "b", "c"][..], Decision::Same),
        // The first version without its snapshot, with it, and each step that follows.
        (&["a"], Decision::ReplaceIfBegun(0)),
        (&["a", "a"], Decision::ReplaceIfBegun(0)),
        (&["a", "b"], Decision::ReplaceIfBegun(1)),
        (&[""], Decision::ReplaceIfBegun(0)),
        (&["a", "b", "b"], Decision::ReplaceIfBegun(1)),
        (&["a", "b", "x"], Decision::Conflict("its content differs")),
        (&["c"], Decision::Conflict("it has other snapshots")),
        (&["x"], Decision::Conflict("it has other snapshots")),
        (&["x", "b"], Decision::Conflict("it has other snapshots")),
        (&["a", "b", "c", "d"], Decision::Conflict("it has other snapshots")),
    ];
    for (there, expected) in cases {
        assert_eq!(decide_blob(&source, &versions(there), KEEP), expected, "{there:?}");
    }
}

#[test]
fn metadata_that_headers_cannot_carry_is_set_apart() {
    let all = metadata(&[
        ("good", "a b"),
        ("with-dash", "x"),
        ("empty", ""),
        ("line", "a\r\nx-ms-version: 1"),
        ("letter", "ü"),
        ("na me", "x"),
    ]);
    let (good, bad) = sendable(&all);
    assert_eq!(good, metadata(&[("good", "a b")]));
    assert_eq!(bad, ["empty", "letter", "line", "na me", "with-dash"]);
}

#[test]
fn pieces_cover_a_content_once_and_blocks_are_as_many_as_allowed() {
    assert_eq!(pieces(10, 0, 4).count(), 0);
    assert_eq!(pieces(10, 9, 4).collect::<Vec<_>>(), [(10, 4), (14, 4), (18, 1)]);
    assert_eq!(pieces(0, 8, 4).collect::<Vec<_>>(), [(0, 4), (4, 4)]);
    assert_eq!(block_bytes(0), PIECE_BYTES);
    assert_eq!(block_bytes(BLOCKS_MAX * PIECE_BYTES), PIECE_BYTES);
    let longer = BLOCKS_MAX * PIECE_BYTES + 1;
    assert_eq!(block_bytes(longer), PIECE_BYTES + MEBIBYTE);
    assert!(longer.div_ceil(block_bytes(longer)) <= BLOCKS_MAX);
}

#[test]
fn containers_are_the_same_by_what_they_say_not_by_how_they_say_it() {
    let policy = |start: &str, permission: &str| Policy {
        id: "p".to_owned(),
        start: start.to_owned(),
        expiry: String::new(),
        permission: permission.to_owned(),
    };
    let source = Container {
        name: "c".to_owned(),
        metadata: metadata(&[("Owner", "me")]),
        policies: vec![policy("2020-01-01T00:00:00Z", "rl")],
        ..Container::default()
    };
    let there = Container {
        metadata: metadata(&[("owner", "me")]),
        policies: vec![policy("2020-01-01T00:00:00.0000000Z", "lr")],
        ..source.clone()
    };
    assert_eq!(decide_container(&source, &there, KEEP), Decision::Same);
    for (what, other) in [
        ("its metadata differs", Container { metadata: Metadata::new(), ..there.clone() }),
        (
            "its public access differs",
            Container { public_access: "blob".to_owned(), ..there.clone() },
        ),
        (
            "its stored access policies differ",
            Container { policies: vec![policy("2021-01-01T00:00:00Z", "rl")], ..there.clone() },
        ),
    ] {
        assert_eq!(decide_container(&source, &other, KEEP), Decision::Conflict(what));
        assert_eq!(decide_container(&source, &other, OVERWRITE), Decision::Replace);
    }
}

#[test]
fn message_keeps_what_is_left_of_its_times() {
    const NOW: i64 = 1_000_000;
    const WEEK: i64 = 7 * 24 * 3600;
    const NEVER: i64 = 253_402_300_799;
    let cases = [
        // Expires, visible, time to live and invisible.
        (NOW, NOW, None),
        (NOW - 1, NOW, None),
        (NOW + 60, NOW - 5, Some((60, 0))),
        (NOW + 60, NOW + 20, Some((60, 20))),
        (NOW + 60, NOW + 60, Some((60, 59))),
        (NOW + 1, NOW + 60, Some((1, 0))),
        (NEVER, NOW, Some((-1, 0))),
        (NEVER, NOW + 2 * WEEK, Some((-1, WEEK))),
    ];
    for (expires, visible, expected) in cases {
        let message = Message {
            id: String::new(),
            receipt: String::new(),
            text: String::new(),
            expires,
            visible,
        };
        let found = remaining(&message, NOW).map(|it| (it.time_to_live, it.invisible));
        assert_eq!(found, expected, "{expires} {visible}");
    }
}

#[test]
fn messages_are_sent_once() {
    let plain = Container::default();
    let marked = Container { metadata: metadata(&[(MARK, "1")]), ..Container::default() };
    let fewer = Decision::Conflict("it was there before and has fewer messages");
    for (messages, queue, there, rules, expected) in [
        (3, &plain, 3, KEEP, Decision::Same),
        (3, &plain, 9, OVERWRITE, Decision::Same),
        (0, &plain, 0, KEEP, Decision::Same),
        (3, &plain, 2, KEEP, fewer),
        (3, &plain, 2, OVERWRITE, Decision::Replace),
        (3, &marked, 3, KEEP, Decision::Replace),
    ] {
        let found = decide_messages(messages, &QueueThere { queue, messages: there }, rules);
        assert_eq!(found, expected, "{messages} {there}");
    }
}

#[test]
fn entity_is_compared_by_types_and_values() {
    let entity = |property| Entity {
        partition_key: String::new(),
        row_key: String::new(),
        properties: BTreeMap::from([("a".to_owned(), property)]),
    };
    let source = entity(Property::Int32(1));
    assert_eq!(decide_entity(&source, None, KEEP), Decision::Send);
    assert_eq!(decide_entity(&source, Some(&source), KEEP), Decision::Same);
    let other = entity(Property::Int64(1));
    let conflict = Decision::Conflict("its properties differ");
    assert_eq!(decide_entity(&source, Some(&other), KEEP), conflict);
    assert_eq!(decide_entity(&source, Some(&other), OVERWRITE), Decision::Replace);
}

fn file() -> Node {
    Node {
        path: "d/f".to_owned(),
        is_directory: false,
        length: 3,
        headers: ContentHeaders { md5: "x".to_owned(), ..ContentHeaders::default() },
        metadata: metadata(&[("a", "b")]),
        attributes: "ReadOnly | Archive".to_owned(),
        created: "1".to_owned(),
        written: "2".to_owned(),
        etag: "\"1\"".to_owned(),
    }
}

#[test]
fn file_is_the_same_if_all_that_is_moved_is_the_same() {
    assert_eq!(decide_node(&file(), None, KEEP), Decision::Send);
    let there = Node { attributes: "Archive | ReadOnly".to_owned(), ..file() };
    assert_eq!(decide_node(&file(), Some(&there), KEEP), Decision::Same);
    let unhashed = Node { headers: ContentHeaders::default(), ..file() };
    assert_eq!(decide_node(&file(), Some(&unhashed), KEEP), Decision::CompareContents);
    assert_eq!(decide_node(&file(), Some(&unhashed), BY_TIME), Decision::Same);
    let marked = Node { metadata: metadata(&[(MARK, "1")]), ..file() };
    assert_eq!(decide_node(&file(), Some(&marked), KEEP), Decision::Replace);
}

#[test]
fn each_difference_of_a_file_is_a_conflict() {
    for (what, there) in [
        ("one of both is a directory", Node { is_directory: true, ..file() }),
        ("its metadata differs", Node { metadata: Metadata::new(), ..file() }),
        ("its attributes differ", Node { attributes: "Archive".to_owned(), ..file() }),
        ("its attributes differ", Node { created: "9".to_owned(), ..file() }),
        ("its length differs", Node { length: 4, ..file() }),
        ("its last write time differs", Node { written: "9".to_owned(), ..file() }),
    ] {
        assert_eq!(decide_node(&file(), Some(&there), KEEP), Decision::Conflict(what));
    }
    let directory = Node { is_directory: true, length: 0, ..file() };
    let written = Node { written: "9".to_owned(), ..directory.clone() };
    assert_eq!(decide_node(&directory, Some(&written), KEEP), Decision::Same);
}
