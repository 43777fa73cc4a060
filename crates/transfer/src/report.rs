//! What was done, as it goes on and at the end.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// More than this is counted and not shown.
const SHOWN_MAX: usize = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Container,
    Blob,
    Snapshot,
    Queue,
    Message,
    Table,
    Entity,
    Share,
    Directory,
    File,
}

impl Kind {
    const ALL: [Self; 10] = [
        Self::Container,
        Self::Blob,
        Self::Snapshot,
        Self::Queue,
        Self::Message,
        Self::Table,
        Self::Entity,
        Self::Share,
        Self::Directory,
        Self::File,
    ];

    fn plural(self) -> &'static str {
        match self {
            Self::Container => "containers",
            Self::Blob => "blobs",
            Self::Snapshot => "snapshots",
            Self::Queue => "queues",
            Self::Message => "messages",
            Self::Table => "tables",
            Self::Entity => "entities",
            Self::Share => "shares",
            Self::Directory => "directories",
            Self::File => "files",
        }
    }
}

#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    there: AtomicU64,
}

#[derive(Default)]
pub struct Report {
    is_dry: bool,
    counts: [Counts; Kind::ALL.len()],
    bytes: AtomicU64,
    left: AtomicU64,
    lines: Mutex<Lines>,
}

#[derive(Default)]
struct Lines {
    left: Vec<String>,
    notes: Vec<String>,
}

impl Report {
    pub fn new(is_dry: bool) -> Self {
        Self { is_dry, ..Self::default() }
    }

    pub fn sent(&self, kind: Kind) {
        self.sent_many(kind, 1);
    }

    pub fn sent_many(&self, kind: Kind, count: u64) {
        self.counts[kind as usize].sent.fetch_add(count, Ordering::Relaxed);
    }

    pub fn there(&self, kind: Kind) {
        self.there_many(kind, 1);
    }

    pub fn there_many(&self, kind: Kind, count: u64) {
        self.counts[kind as usize].there.fetch_add(count, Ordering::Relaxed);
    }

    pub fn bytes(&self, count: u64) {
        self.bytes.fetch_add(count, Ordering::Relaxed);
    }

    /// Something that was not taken, and why.
    pub fn left(&self, what: impl fmt::Display, why: impl fmt::Display) {
        self.left.fetch_add(1, Ordering::Relaxed);
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.left.len() < SHOWN_MAX {
            lines.left.push(printable(&format!("{what}: {why}")));
        }
    }

    /// Something that the user should know and that is not left out. Said once.
    pub fn note(&self, note: impl fmt::Display) {
        let note = printable(&note.to_string());
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.notes.len() < SHOWN_MAX && !lines.notes.contains(&note) {
            lines.notes.push(note);
        }
    }

    pub fn is_complete(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    /// One line of progress.
    pub fn progress(&self) -> String {
        let (sent, there) = self.counts.iter().fold((0, 0), |(sent, there), counts| {
            let [more_sent, more_there] =
                [&counts.sent, &counts.there].map(|count| count.load(Ordering::Relaxed));
            (sent + more_sent, there + more_there)
        });
        let bytes = self.bytes.load(Ordering::Relaxed);
        let left = self.left.load(Ordering::Relaxed);
        format!("{sent} sent ({}), {there} there already, {left} left out", size(bytes))
    }
}

/// Names come from other machines: they must not steer a terminal.
fn printable(line: &str) -> String {
    line.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let (mut size, mut unit) = (bytes as f64, 0);
    while size >= 1024.0 && unit < UNITS.len() - 1 {
        size /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} bytes") } else { format!("{size:.1} {}", UNITS[unit]) }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sent = if self.is_dry { "to send" } else { "sent" };
        writeln!(formatter, "{:<12} {sent:>10} {:>14}", "", "there already")?;
        for kind in Kind::ALL {
            let counts = &self.counts[kind as usize];
            let [sent, there] =
                [&counts.sent, &counts.there].map(|count| count.load(Ordering::Relaxed));
            if sent + there > 0 {
                writeln!(formatter, "{:<12} {sent:>10} {there:>14}", kind.plural())?;
            }
        }
        writeln!(formatter, "{:<12} {:>10}", "contents", size(self.bytes.load(Ordering::Relaxed)))?;
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        for note in &lines.notes {
            writeln!(formatter, "note: {note}")?;
        }
        for left in &lines.left {
            writeln!(formatter, "left out: {left}")?;
        }
        let left = self.left.load(Ordering::Relaxed);
        if left > lines.left.len() as u64 {
            writeln!(formatter, "left out: {} more", left - lines.left.len() as u64)?;
        }
        match (left, self.is_dry) {
            (0, true) => write!(formatter, "nothing was sent, and nothing would be left out"),
            (0, false) => write!(formatter, "complete: everything is there"),
            (_, true) => write!(formatter, "nothing was sent; {left} would be left out"),
            (_, false) => write!(formatter, "not complete: {left} left out"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_shows_counts_notes_and_what_is_left_out() {
        let report = Report::new(false);
        report.sent(Kind::Blob);
        report.there_many(Kind::Entity, 3);
        report.bytes(1536);
        report.note("once");
        report.note("once");
        report.left("blob c/\u{1b}[31m", "why");
        assert!(!report.is_complete());
        let text = report.to_string();
        let expected = "blobs                 1              0\n\
                        entities              0              3\n\
                        contents        1.5 KiB\n\
                        note: once\n\
                        left out: blob c/\u{fffd}[31m: why\n\
                        not complete: 1 left out";
        assert!(text.ends_with(expected), "{text}");
        assert_eq!(report.progress(), "1 sent (1.5 KiB), 3 there already, 1 left out");
    }

    #[test]
    fn what_is_left_out_is_counted_beyond_what_is_shown() {
        let report = Report::new(true);
        (0..=SHOWN_MAX).for_each(|at| report.left(at, "why"));
        assert!(
            report
                .to_string()
                .ends_with("left out: 1 more\nnothing was sent; 1001 would be left out")
        );
    }
}
