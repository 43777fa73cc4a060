//! A flipped bit on disk, seen through the real binary: a clear 500 and a log line, never wrong
//! bytes.

mod support;

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use support::Server;
use support::client::Client;

/// More than fits in a row, and recognizable on disk.
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
    for name in ["/rot/hurt", "/rot/whole"] {
        let body = if name == "/rot/hurt" { content.clone() } else { vec![7; 100_000] };
        let answer = client.send("PUT", name, &[], &put, body).await.expect("an answer");
        assert_eq!(answer.status, 201);
    }
    let before = client.send("GET", "/rot/hurt", &[], &[], Vec::new()).await.expect("an answer");
    assert!(before.body == content, "the blob comes back before it is hurt");

    flip(&data, &content, 70_000);
    let answer = client.send("GET", "/rot/hurt", &[], &[], Vec::new()).await.expect("an answer");
    assert_eq!(answer.status, 500);
    assert_eq!(answer.header("x-ms-error-code"), Some("InternalError"));
    // A range that does not touch the hurt piece is still good, and so is everything else.
    let range = [("x-ms-range", "bytes=0-999")];
    let part = client.send("GET", "/rot/hurt", &[], &range, Vec::new()).await.expect("an answer");
    assert_eq!((part.status.as_u16(), &part.body[..]), (206, &content[..1000]));
    let other = client.send("GET", "/rot/whole", &[], &[], Vec::new()).await.expect("an answer");
    assert_eq!(other.body, vec![7; 100_000]);
    drop(server);
    let log = fs::read_to_string(&log).expect("a log");
    assert!(log.contains("extent"), "the log names the extent:\n{log}");
}
