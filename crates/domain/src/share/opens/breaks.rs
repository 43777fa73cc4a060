//! When caches break, to which level, and who waits for it; and the steps of one break.

use std::time::Duration;

use super::caching::{Caching, HolderKind, OplockLevel};

/// How long a client has to answer a break before its cache is revoked.
pub const BREAK_TIMEOUT: Duration = Duration::from_secs(35);

/// Operations that may break the caches of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// An open for more than attributes.
    Open,
    /// An open that replaces the content.
    Overwrite,
    /// An open that a share mode forbids: a client that only caches a handle may close it.
    SharingConflict,
    /// A read over REST, without an open.
    Read,
    /// A change of the content or its length, or a byte-range lock.
    Write,
    /// A rename or a deletion: a client that only caches a handle may close it.
    Remove,
}

/// How a cache breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Break {
    pub to: Caching,
    /// The operation that causes the break waits for it.
    pub waits: bool,
    /// The client is asked to close handles that it only caches.
    pub asks_to_close: bool,
}

/// Whether a cache must break ([MS-FSA] 2.1.4.12). `None` if it can stay.
pub fn decide(kind: HolderKind, held: Caching, cause: Cause) -> Option<Break> {
    let (lost, waits_for) = match cause {
        Cause::Open | Cause::Read => (Caching::WRITE, Caching::WRITE),
        Cause::Overwrite | Cause::Write => (Caching::ALL, Caching::WRITE),
        Cause::SharingConflict | Cause::Remove => (Caching::HANDLE, Caching::HANDLE),
    };
    if !held.intersects(lost) {
        return None;
    }
    let to = match kind {
        HolderKind::Lease => held.difference(lost),
        // Level two is the only level below batch and exclusive.
        HolderKind::Oplock => held.difference(lost).intersection(Caching::READ),
    };
    let asks_to_close = matches!(cause, Cause::SharingConflict | Cause::Remove);
    Some(Break { to, waits: held.intersects(waits_for), asks_to_close })
}

/// A cache that one holder has, and its break under way.
#[derive(Clone, Debug)]
pub struct Holder {
    pub kind: HolderKind,
    pub held: Caching,
    /// Counts changes of a lease, so that clients know which of two messages is newer.
    pub epoch: u16,
    breaking: Option<Breaking>,
}

#[derive(Clone, Copy, Debug)]
struct Breaking {
    /// What the client was asked for.
    asked: Caching,
    /// The level it must reach in the end: more may have happened since it was asked.
    required: Caching,
}

/// What the client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    pub from: Caching,
    pub to: Caching,
    pub epoch: u16,
    pub must_acknowledge: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AcknowledgeRefusal {
    #[error("no break of this oplock or lease is under way")]
    NotBreaking,
    #[error("the client keeps more than it was allowed to")]
    TooMuch,
}

/// The result of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    pub held: Caching,
    /// The next step, if more is required.
    pub next: Option<Notice>,
    /// Whether the break is over.
    pub settled: bool,
}

impl Holder {
    pub fn new(kind: HolderKind, held: Caching, epoch: u16) -> Self {
        Self { kind, held, epoch, breaking: None }
    }

    pub fn is_breaking(&self) -> bool {
        self.breaking.is_some()
    }

    /// The most that the holder will have once its break is over.
    pub fn remaining(&self) -> Caching {
        self.breaking.map_or(self.held, |breaking| breaking.required)
    }

    fn must_acknowledge(&self) -> bool {
        self.held.intersects(Caching::WRITE.union(Caching::HANDLE))
    }

    /// What the client was asked for by a break that is under way.
    pub fn asked(&self) -> Option<Notice> {
        let Breaking { asked, .. } = self.breaking?;
        Some(Notice { from: self.held, to: asked, epoch: self.epoch, must_acknowledge: true })
    }

    /// Breaks to `to`. A break under way keeps its level; the rest follows when it is acknowledged.
    pub fn start(&mut self, to: Caching) -> Option<Notice> {
        if let Some(breaking) = &mut self.breaking {
            breaking.required = breaking.required.intersection(to);
            return None;
        }
        if self.held.difference(to).is_empty() {
            return None;
        }
        self.epoch = self.epoch.wrapping_add(1);
        Some(self.ask(to, to))
    }

    fn ask(&mut self, asked: Caching, required: Caching) -> Notice {
        let must_acknowledge = self.must_acknowledge();
        let notice = Notice { from: self.held, to: asked, epoch: self.epoch, must_acknowledge };
        if must_acknowledge {
            self.breaking = Some(Breaking { asked, required });
        } else {
            self.held = asked;
            self.breaking = None;
        }
        notice
    }

    /// The client keeps `kept`. Steps that follow count as the same change.
    pub fn acknowledge(&mut self, kept: Caching) -> Result<Acknowledged, AcknowledgeRefusal> {
        let breaking = self.breaking.ok_or(AcknowledgeRefusal::NotBreaking)?;
        if !breaking.asked.contains(kept) {
            return Err(AcknowledgeRefusal::TooMuch);
        }
        self.held = kept;
        self.breaking = None;
        let next = (!breaking.required.contains(kept)).then(|| {
            // Read caching is given up in a separate step.
            let reads = if self.must_acknowledge() { Caching::READ } else { Caching::empty() };
            let asked = breaking.required.union(kept.intersection(reads));
            self.ask(asked, breaking.required)
        });
        Ok(Acknowledged { held: kept, next, settled: self.breaking.is_none() })
    }

    /// As [`Holder::acknowledge`], for an oplock. A wrong level ends the oplock, too.
    pub fn acknowledge_level(
        &mut self,
        level: OplockLevel,
    ) -> Result<Acknowledged, AcknowledgeRefusal> {
        let outcome = self.acknowledge(level.caching());
        if outcome == Err(AcknowledgeRefusal::TooMuch) {
            self.give_up();
        }
        outcome
    }

    /// The client has not answered in time, or is gone: its whole cache is revoked.
    pub fn give_up(&mut self) {
        self.held = Caching::empty();
        self.breaking = None;
    }

    /// The lease of this holder was asked for once more.
    pub fn grow(&mut self, held: Caching) {
        if self.held != held {
            self.held = held;
            self.epoch = self.epoch.wrapping_add(1);
        }
    }
}

#[cfg(test)]
#[path = "breaks_tests.rs"]
mod tests;
