//! Fills a server, overwrites and deletes, and reports the size of its folder after each step.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::client::Failure;
use crate::load::PreparedServer;
use crate::servers::Server;
use crate::workload::{Kind, Settings, population};

/// How long the folder is watched after a deletion, since space is freed in the background.
const WATCHED: Duration = Duration::from_secs(180);
/// What may be left: so many times the live bytes and this many more.
const LEFT_RATIO: f64 = 1.6;
const LEFT_BYTES: u64 = 1 << 30;

pub fn churn(server: &Server, kind: Kind, settings: Settings) -> Result<(), Failure> {
    let live = settings.objects * settings.payload_bytes as u64;
    let watch = Watch { folder: server.data(), began: Instant::now() };
    println!("  seconds  folder MiB    live MiB");
    let target = PreparedServer::with(server.account.clone(), vec![population(kind, settings)])?;
    watch.tell("filled", live);
    if kind != Kind::Messages {
        target.populate()?;
        target.populate()?;
        watch.tell("overwritten twice", live);
        target.remove_half()?;
        watch.tell("half deleted", live / 2);
        watch.until_settled(live / 2);
    }
    target.clean_up()?;
    watch.tell("container deleted", 0);
    watch.until_settled(0);
    Ok(())
}

struct Watch<'server> {
    folder: &'server Path,
    began: Instant,
}

impl Watch<'_> {
    fn tell(&self, what: &str, live: u64) {
        let seconds = self.began.elapsed().as_secs_f64();
        println!("{seconds:>9.1}{:>12}{:>12}  {what}", bytes_below(self.folder) >> 20, live >> 20);
    }

    /// Reports when the folder has shrunk to what may be left, and its final size.
    fn until_settled(&self, live: u64) {
        // Lengths of folders are far below 2^53, where a float is still exact.
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss
        )]
        let bound = (live as f64 * LEFT_RATIO) as u64 + LEFT_BYTES;
        let (began, mut is_within) = (Instant::now(), false);
        let mut before = bytes_below(self.folder);
        let mut unchanged = 0;
        while began.elapsed() < WATCHED && unchanged < 30 {
            if !is_within && before <= bound {
                is_within = true;
                self.tell("no more than 1.6 times the live bytes and 1 GiB", live);
            }
            std::thread::sleep(Duration::from_secs(1));
            let now = bytes_below(self.folder);
            unchanged = if now == before { unchanged + 1 } else { 0 };
            before = now;
        }
        self.tell("in the end", live);
    }
}

/// The disk space of the files in a folder.
fn bytes_below(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
            Ok(metadata) => metadata.blocks() * 512,
            // Removed just now.
            Err(_) => 0,
        })
        .sum()
}
