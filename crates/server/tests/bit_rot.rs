//! A flipped bit on disk, seen through the real binary: a clear 500 and a log line, never wrong
//! bytes; and a line of `holdfast scrub` that names the damage.

mod support;

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_testkit::client::Client;
use holdfast_testkit::process::{command, output};
use support::{Server, binary};

/// The folders of the two trees of rows.
const TREES: [&str; 2] = ["rows", "rows-apart"];

/// More than fits in a row, and easy to find on disk.
fn content() -> Vec<u8> {
    (0..200_000_u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect()
}

fn segments(data: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(data.join("segments")).expect("a folder of segments");
    found.map(|entry| entry.expect("an entry").path()).collect()
}

/// Flips the lowest bit of the byte at `at` of the content, wherever it is stored.
fn flip(data: &Path, content: &[u8], at: usize) {
    for path in segments(data) {
        let bytes = fs::read(&path).expect("a segment can be read");
        let begin = &content[..64];
        if let Some(found) = bytes.windows(begin.len()).position(|window| window == begin) {
            let file = File::options().write(true).open(&path).expect("a segment can be written");
            let position = found + at;
            file.write_all_at(&[bytes[position] ^ 1], position as u64).expect("written");
            return;
        }
    }
    panic!("the content is in no segment");
}

#[tokio::test]
async fn a_flipped_bit_is_a_500_and_a_log_line_that_names_the_extent() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, log) = (folder.path().join("data"), folder.path().join("log"));
    let server = Server::start(&data, &log);
    let mut client = Client::new(server.blob);
    let container = [("restype", "container")];
    let created = client.send("PUT", "/rot", &container, &[], Vec::new()).await.expect("an answer");
    assert_eq!(created.status, 201);
    let content = content();
    let put = [("x-ms-blob-type", "BlockBlob")];
    for name in ["/rot/damaged", "/rot/whole"] {
        let body = if name == "/rot/damaged" { content.clone() } else { vec![7; 100_000] };
        let answer = client.send("PUT", name, &[], &put, body).await.expect("an answer");
        assert_eq!(answer.status, 201);
    }
    let before = client.send("GET", "/rot/damaged", &[], &[], Vec::new()).await.expect("an answer");
    assert!(before.body == content, "the blob comes back before it is damaged");

    flip(&data, &content, 70_000);
    let answer = client.send("GET", "/rot/damaged", &[], &[], Vec::new()).await.expect("an answer");
    assert_eq!(answer.status, 500);
    assert_eq!(answer.header("x-ms-error-code"), Some("InternalError"));
    // A range outside of the damaged piece can still be read, and so can everything else.
    let range = [("x-ms-range", "bytes=0-999")];
    let part =
        client.send("GET", "/rot/damaged", &[], &range, Vec::new()).await.expect("an answer");
    assert_eq!((part.status.as_u16(), &part.body[..]), (206, &content[..1000]));
    let other = client.send("GET", "/rot/whole", &[], &[], Vec::new()).await.expect("an answer");
    assert_eq!(other.body, vec![7; 100_000]);
    drop(server);
    let log = fs::read_to_string(&log).expect("a log");
    assert!(log.contains("extent"), "the log names the extent:\n{log}");
}

/// The exit code and what is printed.
fn scrub(data: &Path) -> (i32, String) {
    let done = output(command(binary(), data).arg("scrub").arg("--data").arg(data));
    let text = String::from_utf8(done.stdout).expect("UTF-8");
    (done.status.code().expect("an exit code"), text)
}

fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.map(|path| (path.clone(), fs::read(path).expect("a file"))).collect()
}

/// The newest segment of the log: its header has the highest number.
fn newest_log(folder: &Path) -> PathBuf {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes[8..16].try_into().expect("eight bytes"));
    let segments =
        files(folder).into_iter().filter(|(path, _)| path.extension() == Some("log".as_ref()));
    segments.max_by_key(|(_, bytes)| number(bytes)).expect("a segment").0
}

fn longest(folder: &Path) -> PathBuf {
    files(folder).into_iter().max_by_key(|(_, bytes)| bytes.len()).expect("a file").0
}

fn manifests(data: &Path) -> [Vec<u8>; 2] {
    TREES.map(|rows| fs::read(data.join(rows).join("levels")).expect("the list of tables"))
}

/// Flushing runs in the background; a tree has a table once its manifest has changed.
async fn wait_for_tables(data: &Path, at_start: &[Vec<u8>; 2]) {
    for _ in 0..1000 {
        if manifests(data).iter().zip(at_start).all(|(now, at_start)| now != at_start) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no rows were flushed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scrub_names_every_kind_of_file_that_is_hurt() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, log) = (folder.path().join("data"), folder.path().join("log"));
    let mut server = Server::start(&data, &log);
    let at_start = manifests(&data);
    let mut client = Client::new(server.blob);
    let container = [("restype", "container")];
    let created = client.send("PUT", "/rot", &container, &[], Vec::new()).await.expect("an answer");
    assert_eq!(created.status, 201);
    let put = [("x-ms-blob-type", "BlockBlob")];
    // Enough rows that some of them are flushed.
    for number in 0..700 {
        let name = format!("/rot/row-{number}");
        let body = vec![number as u8; 15_000];
        let answer = client.send("PUT", &name, &[], &put, body).await.expect("an answer");
        assert_eq!(answer.status, 201);
    }
    let content = content();
    let answer = client.send("PUT", "/rot/damaged", &[], &put, content.clone()).await;
    assert_eq!(answer.expect("an answer").status, 201);
    wait_for_tables(&data, &at_start).await;
    server.kill();

    let mut damaged = vec![
        (data.join("FORMAT"), 0),
        (data.join("log/checkpoint"), 10),
        (newest_log(&data.join("log")), 4096 + 40),
    ];
    for rows in TREES.map(|rows| data.join(rows)) {
        damaged.push((rows.join("levels"), 40));
        damaged.push((longest(&rows.join("tables")), 5000));
    }
    for (path, position) in damaged {
        let whole = fs::read(&path).expect("a file");
        let mut bytes = whole.clone();
        bytes[position] ^= 4;
        fs::write(&path, bytes).expect("written");
        let (code, said) = scrub(&data);
        assert_eq!(code, 1, "{}: {said}", path.display());
        assert!(said.contains(path.to_str().expect("UTF-8")), "{}: {said}", path.display());
        fs::write(&path, whole).expect("written");
    }
    assert_eq!(scrub(&data).0, 0);

    flip(&data, &content, 70_000);
    let (code, said) = scrub(&data);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("blob devstoreaccount1/rot/damaged"), "{said}");
    assert!(said.contains(".seg from byte "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}
