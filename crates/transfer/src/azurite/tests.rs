//! Small folders made by hand: what Azurite writes, and what it would never write.

use super::*;
use crate::edm::Property;
use crate::model::BlobKind;

const EXTENT: &str = "0a0a0a0a-0000-4000-8000-000000000001";

struct Made {
    folder: tempfile::TempDir,
}

impl Made {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("there is room");
        for (name, bytes) in [(BLOB_EXTENTS, "hello, world"), (QUEUE_EXTENTS, "first<second>")] {
            let path = folder.path().join(name);
            std::fs::create_dir(&path).expect("made");
            std::fs::write(path.join(EXTENT), bytes).expect("written");
        }
        Self { folder }
    }

    fn database(self, name: &str, collections: &[(&str, &[String])]) -> Self {
        let collections: Vec<_> = collections
            .iter()
            .map(|(name, rows)| format!(r#"{{"name":"{name}","data":[{}]}}"#, rows.join(",")))
            .collect();
        let text = format!(r#"{{"collections":[{}]}}"#, collections.join(","));
        std::fs::write(self.folder.path().join(name), text).expect("written");
        self
    }

    fn blobs(self, rows: &[String]) -> Self {
        let container = r#"{"accountName":"a","name":"c","metadata":{"Owner":"me"},
            "properties":{"publicAccess":"blob"},
            "containerAcl":[{"id":"p","accessPolicy":{"start":"s","permission":"r"}}]}"#;
        let containers = [container.to_owned()];
        self.database(
            BLOBS,
            &[("$CONTAINERS_COLLECTION$", &containers), ("$BLOBS_COLLECTION$", rows)],
        )
    }

    fn open(&self) -> Folder {
        Folder::open(self.folder.path()).expect("it is a folder of Azurite")
    }

    fn account(&self) -> AzuriteAccount {
        self.open().account("a").expect("it has the account")
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime can be made").block_on(future)
}

fn usable<T>(listed: Listed<T>) -> Vec<T> {
    let items = listed.expect("it can be listed").items;
    items.into_iter().map(|item| item.unwrap_or_else(|it| panic!("{it:?}"))).collect()
}

fn unusable<T>(listed: Listed<T>) -> Vec<String> {
    let items = listed.expect("it can be listed").items;
    items.into_iter().filter_map(Result::err).map(|it| format!("{}: {}", it.what, it.why)).collect()
}

/// A row of a block blob of one chunk; `more` begins with a comma.
fn row(name: &str, length: u64, more: &str) -> String {
    format!(
        r#"{{"accountName":"a","containerName":"c","name":"{name}","isCommitted":true,
        "properties":{{"blobType":"BlockBlob","contentLength":{length},"contentType":"a/b",
        "lastModified":"2024-01-01T00:00:00.000Z","accessTier":"Hot","accessTierInferred":true}}
        {more}}}"#
    )
}

fn chunk(offset: u64, count: u64) -> String {
    format!(r#"{{"id":"{EXTENT}","offset":{offset},"count":{count}}}"#)
}

fn whole(offset: u64, count: u64) -> String {
    format!(r#","persistency":{}"#, chunk(offset, count))
}

#[test]
fn containers_come_with_metadata_access_and_policies() {
    let account = Made::new().blobs(&[]).account();
    let containers = usable(run(account.containers(None)));
    assert_eq!(containers[0].name, "c");
    assert_eq!(containers[0].metadata["Owner"], "me");
    assert_eq!(containers[0].public_access, "blob");
    assert_eq!(containers[0].policies[0].permission, "r");
    assert_eq!(containers[0].policies[0].expiry, "");
}

#[test]
fn block_and_page_blobs_are_put_together_and_uncommitted_ones_dropped() {
    let blocks = format!(
        r#","committedBlocksInOrder":[{{"persistency":{}}},{{"persistency":{}}}]"#,
        chunk(7, 5),
        chunk(0, 5)
    );
    let pages = format!(
        r#"{{"accountName":"a","containerName":"c","name":"page","properties":{{
        "blobType":"PageBlob","contentLength":10,"blobSequenceNumber":7}},
        "pageRangesInOrder":[{{"start":2,"end":4,"persistency":{}}}]}}"#,
        chunk(0, 3)
    );
    let uncommitted = row("never", 0, "").replace("true", "false");
    let deleted = row("gone", 0, r#","deleted":true"#);
    let made = Made::new().blobs(&[row("blocks", 10, &blocks), pages, uncommitted, deleted]);
    let (folder, account) = (made.open(), made.account());
    assert_eq!(folder.notes, ["1 blobs have only uncommitted blocks, which are dropped"]);
    let blobs = usable(run(account.blobs("c", None)));
    let [blocks, page] = blobs.as_slice() else { panic!("{blobs:?}") };
    let read = |blob: &Blob, offset, length| {
        run(account.read(&blob.versions[0], offset, length)).expect("it can be read")
    };
    assert_eq!(&*read(blocks, 0, 10), b"worldhello");
    assert_eq!(&*read(blocks, 4, 3), b"dhe");
    assert_eq!(&*read(page, 0, 10), b"\0\0hel\0\0\0\0\0");
    assert_eq!(run(account.page_ranges(&page.versions[0])), Ok(vec![(2, 3)]));
    assert_eq!((page.versions[0].kind, page.versions[0].sequence_number), (BlobKind::Page, 7));
    assert_eq!(blocks.versions[0].tier, "", "the tier is that of the account");
}

#[test]
fn snapshots_precede_their_blob_in_order_of_time() {
    let version = |time: &str, at| row("b", 1, &format!(r#","snapshot":"{time}"{}"#, whole(at, 1)));
    let rows = [
        version("2024-01-02T00:00:00.0000000Z", 1),
        version("", 2),
        version("2024-01-01T00:00:00.0000000Z", 0),
    ];
    let made = Made::new().blobs(&rows);
    let account = made.account();
    let blobs = usable(run(account.blobs("c", None)));
    let texts: Vec<_> = blobs[0]
        .versions
        .iter()
        .map(|version| run(account.read(version, 0, 1)).expect("it can be read"))
        .collect();
    assert_eq!(texts, ["h", "e", "l"]);
}

#[test]
fn damaged_blobs_are_reported_and_the_others_are_there() {
    let elsewhere = |id: &str| format!(r#","persistency":{{"id":"{id}","offset":0,"count":4}}"#);
    let pages =
        |start: u64, end: u64, count: u64| {
            let chunk = chunk(0, count);
            row("pages", 8, &format!(
            r#","pageRangesInOrder":[{{"start":{start},"end":{end},"persistency":{chunk}}}]"#
        ))
        .replace("BlockBlob", "PageBlob")
        };
    for (damaged, why) in [
        (row("b", 4, &elsewhere("0a0a0a0a-gone")), "No such file"),
        (row("b", 4, &elsewhere("../__azurite_db_blob__.json")), "is no name of an extent"),
        (row("b", 4, &elsewhere("..")), "is no name of an extent"),
        (row("b", 4, &elsewhere("/etc/passwd")), "is no name of an extent"),
        (row("b", 4, &whole(9, 4)), "has 12 bytes, and 4 at 9 are wanted"),
        (row("b", 4, &whole(u64::MAX, 4)), "has 12 bytes"),
        (row("b", 5, &whole(0, 4)), "its length is 5 and its parts have 4 bytes"),
        (row("b", 4, &elsewhere("*ZERO*")), "only pages can be zeros"),
        (row("b", 4, ""), "its length is 4 and its parts have 0 bytes"),
        (row("b", 4, &whole(0, 4)).replace("BlockBlob", "OtherBlob"), "is no kind of blob"),
        (row("b", 1, &format!(r#","snapshot":"2024"{}"#, whole(0, 1))), "there are only snapshots"),
        (pages(4, 8, 5), "its range from 4 to 8 cannot be"),
        (pages(4, 3, 5), "its range from 4 to 3 cannot be"),
        (pages(0, 3, 5), "its range from 0 to 3 cannot be"),
    ] {
        let made = Made::new().blobs(&[damaged, row("good", 5, &whole(0, 5))]);
        let account = made.account();
        let listed = run(account.blobs("c", None)).expect("it can be listed");
        let good: Vec<_> = listed.items.iter().flatten().collect();
        assert_eq!(&*good[0].versions[0].name, "good");
        let errors = unusable(Ok(listed));
        assert!(errors.len() == 1 && errors[0].contains(why), "{why}: {errors:?}");
    }
}

#[test]
fn rows_that_cannot_be_read_and_blobs_without_a_container_are_reported() {
    let lost = row("lost", 0, "").replace("\"c\"", "\"other\"");
    let broken = r#"{"accountName":"a","containerName":"c","name":"broken"}"#.to_owned();
    let nobodys = r#"{"containerName":7}"#.to_owned();
    let negative = row("b", 4, &whole(0, 4)).replace("\"offset\":0", "\"offset\":-1");
    let made = Made::new().blobs(&[lost, broken, nobodys, negative]);
    let errors = unusable(run(made.account().containers(None)));
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert!(errors[0].starts_with("blob c/broken: missing field"), "{errors:?}");
    assert!(errors[1].starts_with("blob c/b: "), "{errors:?}");
    assert_eq!(errors[2], "blob other/lost: its container is not there");
    assert_eq!(made.open().unusable.len(), 1);
}

#[test]
fn names_are_never_paths() {
    let name = "../../outside/./x";
    let made = Made::new().blobs(&[row(name, 5, &whole(0, 5))]);
    let account = made.account();
    let blobs = usable(run(account.blobs("c", None)));
    assert_eq!(&*blobs[0].versions[0].name, name);
    let read = run(account.read(&blobs[0].versions[0], 0, 5)).expect("it can be read");
    assert_eq!(&*read, b"hello");
}

#[test]
fn messages_come_with_text_and_times_and_damaged_ones_are_reported() {
    let message = |id: &str, offset: u64, count: u64| {
        format!(
            r#"{{"accountName":"a","queueName":"q","messageId":"{id}","timeNextVisible":1700000000500,
            "insertionTime":"2024-01-01T00:00:00.000Z","expirationTime":"9999-12-31T23:59:59.999Z",
            "persistency":{}}}"#,
            chunk(offset, count)
        )
    };
    let queue = r#"{"accountName":"a","name":"q","metadata":{"k":"v"}}"#.to_owned();
    let rows =
        [message("1", 0, 5), message("2", 5, 8), message("3", 10, 99), message("4", 0, 1 << 40)];
    let account = Made::new()
        .database(QUEUES, &[("$QUEUES_COLLECTION$", &[queue]), ("$MESSAGES_COLLECTION$", &rows)])
        .account();
    let Ok(Messages::All(messages)) = run(account.messages("q")) else { panic!("they are there") };
    let texts: Vec<_> = messages.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(texts, ["first", "<second>"]);
    assert_eq!((messages[0].visible, messages[0].expires), (1_700_000_000, 253_402_300_799));
    let errors = unusable(run(account.queues(None)));
    assert!(errors[0].starts_with("message 3 of queue q: the extent"), "{errors:?}");
    assert_eq!(errors[1], format!("message 4 of queue q: it has {} bytes", 1_u64 << 40));
}

#[test]
fn entities_come_sorted_with_their_types() {
    let entity = |row: &str, more: &str| {
        format!(
            r#"{{"PartitionKey":"p","RowKey":"{row}","properties":{{"PartitionKey":"p"{more}}}}}"#
        )
    };
    let table = r#"{"account":"a","table":"T"}"#.to_owned();
    let rows = [
        entity("2", r#","n":1,"d":1,"d@odata.type":"Edm.Double""#),
        entity("1", ""),
        entity("3", r#","x":"?","x@odata.type":"Edm.Int64""#),
    ];
    let account = Made::new()
        .database(TABLES, &[("$TABLES_COLLECTION$", &[table]), ("a$T", &rows), ("a$U", &rows)])
        .account();
    let listed = run(account.entities("T", None)).expect("it can be listed");
    let good: Vec<_> = listed.items.iter().flatten().collect();
    assert_eq!(good.iter().map(|it| it.row_key.as_str()).collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(good[1].properties["n"], Property::Int32(1));
    assert_eq!(good[1].properties["d"], Property::Double(1.0));
    let errors = unusable(Ok(listed));
    assert!(errors[0].ends_with("the property \"x\" is no Edm.Int64"), "{errors:?}");
    let tables = unusable(run(account.tables(None)));
    assert_eq!(tables, ["the entities of table U: what they are in is not there"]);
}

#[test]
fn folder_that_is_none_of_azurite_and_a_truncated_database_are_refused() {
    let made = Made::new();
    let error = Folder::open(made.folder.path()).err().expect("it has no database").to_string();
    assert!(error.contains("is no folder of Azurite"), "{error}");
    let made = made.blobs(&[row("b", 0, "")]);
    let path = made.folder.path().join(BLOBS);
    let text = std::fs::read(&path).expect("it was written");
    for length in [0, 1, text.len() / 2, text.len() - 1] {
        std::fs::write(&path, &text[..length]).expect("written");
        let error = Folder::open(made.folder.path()).err().expect("it is cut off").to_string();
        assert!(error.starts_with("__azurite_db_blob__.json is no LokiJS database"), "{error}");
    }
}

#[test]
fn state_that_was_being_saved_is_told() {
    let made = Made::new().blobs(&[]);
    std::fs::write(made.folder.path().join(format!("{BLOBS}~")), "{").expect("written");
    assert!(made.open().notes[0].starts_with("__azurite_db_blob__.json~: Azurite was ended"));
}

#[test]
fn long_lists_come_in_pages() {
    let rows: Vec<_> = (0..2500).map(|at| row(&format!("{at:04}"), 5, &whole(0, 5))).collect();
    let made = Made::new().blobs(&rows);
    let account = made.account();
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = run(account.blobs("c", after.as_deref())).expect("it can be listed");
        assert!(page.items.len() <= PAGE_ITEMS);
        found.extend(page.items.into_iter().flatten());
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found.len(), 2500);
    assert!(found.windows(2).all(|two| two[0].versions[0].name < two[1].versions[0].name));
}
