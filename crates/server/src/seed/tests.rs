use std::sync::Mutex;

use super::*;

const EVERYTHING: &str = r#"
[[containers]]
name = "images"
public-access = "blob"
metadata = { team = "x" }

[[containers.blobs]]
name = "a/hello.txt"
text = "hello"
content-type = "text/plain"

[[containers.blobs]]
name = "raw"
base64 = "AAEC"

[[containers.blobs]]
name = "from-file"
file = "content.bin"

[[queues]]
account = "second"
name = "jobs"
messages = ["one", "two"]

[[tables]]
name = "People"
entities = [
  { PartitionKey = "p", RowKey = "1", Age = 5, "Big@odata.type" = "Edm.Int64", Big = "5" },
  { PartitionKey = "p", RowKey = "2", Active = true },
]

[[shares]]
name = "files"
quota-gib = 5
directories = ["a/b"]

[[shares.files]]
path = "a/readme.txt"
text = "read me"
"#;

fn read_text(name: &str, text: &str) -> Result<Seed, String> {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("content.bin"), b"from a file").expect("written");
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("written");
    // Contents are read again when they are stored, so the folder must outlive the test.
    std::mem::forget(folder);
    read(&path, &["first", "second"]).map_err(|error| error.to_string())
}

/// Records what it is asked for; what is in `there` exists already.
#[derive(Default)]
struct Recorder {
    there: Vec<&'static str>,
    calls: Mutex<Vec<String>>,
}

impl Recorder {
    fn call(&self, call: String) -> Result<Seeded, String> {
        let found = self.there.iter().any(|there| call == *there);
        self.calls.lock().expect("not poisoned").push(call);
        Ok(if found { Seeded::AlreadyThere } else { Seeded::Created })
    }
}

impl SeedTarget for Recorder {
    async fn create_container(&self, account: &str, it: &Container) -> Result<Seeded, String> {
        self.call(format!("{account} container {} {:?}", it.name, it.public_access))
    }

    async fn put_blob(
        &self,
        _account: &str,
        container: &str,
        blob: &Blob,
        content: Bytes,
    ) -> Result<Seeded, String> {
        self.call(format!("blob {container}/{} {content:?}", blob.name))
    }

    async fn create_queue(&self, account: &str, queue: &Queue) -> Result<Seeded, String> {
        self.call(format!("{account} queue {}", queue.name))
    }

    async fn put_message(&self, _account: &str, queue: &str, text: &str) -> Result<(), String> {
        self.call(format!("message {queue} {text}")).map(drop)
    }

    async fn create_table(&self, account: &str, table: &Table) -> Result<Seeded, String> {
        self.call(format!("{account} table {}", table.name))
    }

    async fn insert_entity(
        &self,
        _account: &str,
        table: &str,
        entity: &Map<String, Value>,
    ) -> Result<Seeded, String> {
        self.call(format!("entity {table} {}", entity["RowKey"]))
    }

    async fn create_share(&self, account: &str, share: &Share) -> Result<Seeded, String> {
        self.call(format!("{account} share {} {:?}", share.name, share.quota_gib))
    }

    async fn create_directory(
        &self,
        _account: &str,
        share: &str,
        path: &str,
    ) -> Result<Seeded, String> {
        self.call(format!("directory {share}/{path}"))
    }

    async fn put_file(
        &self,
        _account: &str,
        share: &str,
        file: &ShareFile,
        content: Bytes,
    ) -> Result<Seeded, String> {
        let path = &file.path;
        if content.is_empty() {
            return Err(format!("{path} is empty"));
        }
        self.call(format!("file {share}/{path} {content:?}"))
    }
}

#[tokio::test]
async fn everything_listed_is_created_in_order() {
    let seed = read_text("seed.toml", EVERYTHING).expect("a seed");
    let target = Recorder::default();
    let created = apply(&seed, "first", &target).await.expect("applied");
    let calls = target.calls.into_inner().expect("not poisoned");
    assert_eq!(
        calls,
        [
            "first container images Blob",
            "blob images/a/hello.txt b\"hello\"",
            "blob images/raw b\"\\0\\x01\\x02\"",
            "blob images/from-file b\"from a file\"",
            "second queue jobs",
            "message jobs one",
            "message jobs two",
            "first table People",
            "entity People \"1\"",
            "entity People \"2\"",
            "first share files Some(5)",
            "directory files/a/b",
            "file files/a/readme.txt b\"read me\"",
        ]
    );
    assert_eq!(created, calls.len());
}

#[tokio::test]
async fn messages_are_not_put_again_into_a_queue_that_is_there() {
    let seed = read_text("seed.toml", EVERYTHING).expect("a seed");
    let target = Recorder { there: vec!["second queue jobs"], ..Recorder::default() };
    apply(&seed, "first", &target).await.expect("applied");
    let calls = target.calls.into_inner().expect("not poisoned");
    assert!(!calls.iter().any(|call| call.starts_with("message")), "{calls:?}");
}

#[tokio::test]
async fn a_failure_names_the_entry() {
    let text = "[[shares]]\nname = 'abc'\nfiles = [{ path = 'x', text = '' }]";
    let seed = read_text("seed.toml", text).expect("a seed");
    let failure = apply(&seed, "first", &Recorder::default()).await.expect_err("refused");
    assert_eq!(failure.to_string(), "cannot seed file \"x\" of share \"abc\": x is empty");
}

#[test]
fn json_has_the_same_shape() {
    let text = r#"{"containers": [{"name": "abc", "blobs": [{"name": "b", "text": "t"}]}]}"#;
    let seed = read_text("seed.json", text).expect("a seed");
    assert_eq!(seed.containers[0].blobs[0].name, "b");
}

#[test]
fn a_blob_gets_the_name_that_requests_find_it_by() {
    let text = "[[containers]]\nname = 'abc'\nblobs = [{ name = 'a\\b', text = '' }]";
    let seed = read_text("seed.toml", text).expect("a seed");
    assert_eq!(seed.containers[0].blobs[0].name, "a/b");
}

#[test]
fn a_mistake_is_told_with_the_entry_it_is_in() {
    for (text, parts) in [
        ("[[containers]]\nname = 'A'", &["container \"A\"", "name"][..]),
        ("[[containers]]\nname = 'abc'\nnmae = 'x'", &["nmae"]),
        ("[[boxes]]\nname = 'abc'", &["boxes"]),
        ("[[containers]]\nname = 'abc'\npublic-access = 'all'", &["all", "blob", "container"]),
        ("[[containers]]\nname = 'abc'\n[[containers]]\nname = 'abc'", &["\"abc\"", "twice"]),
        ("[[containers]]\nname = 'abc'\naccount = 'nobody'", &["nobody", "first, second"]),
        ("[[containers]]\nname = 'abc'\nmetadata = { 'a b' = 'x' }", &["\"abc\"", "metadata"]),
        (
            "[[containers]]\nname = 'abc'\nblobs = [{ name = 'b' }]",
            &["\"abc\"", "blob \"b\"", "exactly one of"],
        ),
        (
            "[[containers]]\nname = 'abc'\nblobs = [{ name = 'b', text = 'x', file = 'y' }]",
            &["blob \"b\"", "exactly one of"],
        ),
        (
            "[[containers]]\nname = 'abc'\nblobs = [{ name = 'b', base64 = '*' }]",
            &["blob \"b\"", "Base64"],
        ),
        (
            "[[containers]]\nname = 'abc'\nblobs = [{ name = 'b', file = 'missing' }]",
            &["blob \"b\"", "missing"],
        ),
        (
            "[[containers]]\nname = '$root'\nblobs = [{ name = 'a/b', text = 'x' }]",
            &["blob \"a/b\""],
        ),
        ("[[queues]]\nname = 'UP'", &["queue \"UP\""]),
        ("[[tables]]\nname = '1st'", &["table \"1st\""]),
        ("[[tables]]\nname = 'abc'\n[[tables]]\nname = 'ABC'", &["table \"ABC\"", "twice"]),
        (
            "[[tables]]\nname = 'abc'\nentities = [{ PartitionKey = 'p' }]",
            &["table \"abc\"", "entity 1", "RowKey"],
        ),
        (
            "[[tables]]\nname = 'abc'\nentities = [{ PartitionKey = 'p', RowKey = 'r', X = [] }]",
            &["entity 1", "\"X\""],
        ),
        (
            "[[tables]]\nname = 'abc'\nentities = [{ PartitionKey = 'p', RowKey = 'r', G = 'x', \
             'G@odata.type' = 'Edm.Guid' }]",
            &["entity 1", "type"],
        ),
        (
            "[[tables]]\nname = 'abc'\nentities = [{ PartitionKey = 'p/q', RowKey = 'r' }]",
            &["entity 1", "key"],
        ),
        ("[[shares]]\nname = 'abc'\nquota-gib = 0", &["share \"abc\"", "quota-gib"]),
        (
            "[[shares]]\nname = 'abc'\nfiles = [{ path = 'a|b', text = 'x' }]",
            &["share \"abc\"", "file \"a|b\""],
        ),
        (
            "[[shares]]\nname = 'abc'\nfiles = [{ path = 'a', text = '' }, { path = 'A', text = '' }]",
            &["file \"A\"", "twice"],
        ),
        ("containers = 5", &["seed.toml"]),
    ] {
        let message = read_text("seed.toml", text).map(|_| ()).expect_err(text);
        for part in parts {
            assert!(message.contains(part), "{text}\n{message}");
        }
    }
    let queue = format!("[[queues]]\nname = 'abc'\nmessages = ['ok', '{}']", "x".repeat(65_537));
    let message = read_text("seed.toml", &queue).map(|_| ()).expect_err("too long");
    assert!(message.contains("queue \"abc\": message 2"), "{message}");
}
