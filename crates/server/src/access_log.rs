//! The file of the access log: a line of JSON for each record, rotated by size.
//!
//! A thread writes it, so that no request waits for the disk. Records that come faster than it writes
//! are left out, and a line says how many.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use holdfast_rest::access_log::{AccessLog, AccessRecord};
use serde_json::json;

use crate::settings::AccessLogSettings;

/// Lines that wait for the writer.
const WAITING_MAX: usize = 64 * 1024;
/// Written together at most, before the file is looked at again.
const CHUNK_BYTES: usize = 256 * 1024;
/// Older files are deleted.
const KEPT_MAX: u32 = 9;
const IDLE: Duration = Duration::from_secs(1);

/// The file that the settings name.
pub fn open(settings: &AccessLogSettings) -> Result<Arc<AccessLogFile>, String> {
    let AccessLogSettings { path, bytes_max } = settings;
    let opened = AccessLogFile::open(path, *bytes_max);
    opened
        .map(Arc::new)
        .map_err(|error| format!("cannot write the access log {}: {error}", path.display()))
}

pub struct AccessLogFile {
    /// None once it is closed.
    lines: Mutex<Option<SyncSender<String>>>,
    left_out: Arc<AtomicU64>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl AccessLogFile {
    fn open(path: &Path, bytes_max: u64) -> io::Result<Self> {
        let mut file = RotatedFile::open(path, bytes_max)?;
        let (lines, waiting) = sync_channel(WAITING_MAX);
        let left_out = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&left_out);
        let writer = std::thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || write_lines(&mut file, &waiting, &counted))?;
        Ok(Self { lines: Mutex::new(Some(lines)), left_out, writer: Mutex::new(Some(writer)) })
    }

    /// Writes what was recorded. Later records are left out.
    pub fn close(&self) {
        drop(lock(&self.lines).take());
        if let Some(writer) = lock(&self.writer).take() {
            let _ = writer.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl AccessLog for AccessLogFile {
    fn record(&self, record: &AccessRecord<'_>) {
        let Ok(mut line) = serde_json::to_string(record) else { return };
        line.push('\n');
        let is_taken = lock(&self.lines).as_ref().is_some_and(|lines| lines.try_send(line).is_ok());
        if !is_taken {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn write_lines(file: &mut RotatedFile, waiting: &Receiver<String>, left_out: &AtomicU64) {
    let mut failing = false;
    loop {
        let mut chunk = match waiting.recv_timeout(IDLE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => String::new(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        while chunk.len() < CHUNK_BYTES
            && let Ok(line) = waiting.try_recv()
        {
            chunk.push_str(&line);
        }
        let missing = left_out.swap(0, Ordering::Relaxed);
        if missing > 0 {
            chunk.push_str(&format!("{}\n", json!({ "left_out": missing })));
        }
        if chunk.is_empty() {
            continue;
        }
        match file.write(chunk.as_bytes()) {
            Ok(()) => failing = false,
            Err(error) => {
                let lines = chunk.lines().count() as u64;
                left_out.fetch_add(lines, Ordering::Relaxed);
                if !std::mem::replace(&mut failing, true) {
                    let path = file.path.display();
                    tracing::error!(%error, %path, "the access log cannot be written");
                }
            }
        }
    }
}

/// `access.log`, and before it `access.log.1`, `access.log.2` and so on.
struct RotatedFile {
    path: PathBuf,
    bytes_max: u64,
    file: File,
    bytes: u64,
}

impl RotatedFile {
    fn open(path: &Path, bytes_max: u64) -> io::Result<Self> {
        let file = append_to(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), bytes_max, file, bytes })
    }

    fn write(&mut self, chunk: &[u8]) -> io::Result<()> {
        if self.bytes > 0 && self.bytes + chunk.len() as u64 > self.bytes_max {
            self.rotate()?;
        }
        self.file.write_all(chunk)?;
        self.bytes += chunk.len() as u64;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        for number in (1..KEPT_MAX).rev() {
            move_if_there(&self.earlier(number), &self.earlier(number + 1))?;
        }
        move_if_there(&self.path, &self.earlier(1))?;
        self.file = append_to(&self.path)?;
        self.bytes = 0;
        Ok(())
    }

    fn earlier(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

/// For its owner only: it tells who uses what.
fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

fn move_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        moved => moved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_is_rotated_and_only_some_are_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("access.log");
        let mut file = RotatedFile::open(&path, 10).expect("opened");
        for number in 0..20 {
            file.write(format!("line {number:02}\n").as_bytes()).expect("written");
        }
        let read = |path: &Path| fs::read_to_string(path).expect("it is there");
        assert_eq!(read(&path), "line 19\n");
        assert_eq!(read(&file.earlier(1)), "line 18\n");
        assert_eq!(read(&file.earlier(KEPT_MAX)), "line 10\n");
        assert!(!file.earlier(KEPT_MAX + 1).exists());
        drop(file);
        let mut again = RotatedFile::open(&path, 100).expect("opened");
        again.write(b"more\n").expect("written");
        assert_eq!(read(&path), "line 19\nmore\n");
    }

    #[test]
    fn what_cannot_be_written_is_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("access.log");
        let mut file = RotatedFile::open(&path, 1000).expect("opened");
        let (lines, waiting) = sync_channel(4);
        let left_out = AtomicU64::new(3);
        lines.send("one\n".to_owned()).expect("taken");
        drop(lines);
        write_lines(&mut file, &waiting, &left_out);
        let written = fs::read_to_string(&path).expect("it is there");
        assert_eq!(written, "one\n{\"left_out\":3}\n");
    }
}
