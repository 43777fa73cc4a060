//! A blob in memory, optionally with a bug.

use std::sync::MutexGuard;
use std::time::Duration;

use holdfast_verify::blob::{Answer, BlobWorkload, Request};
use holdfast_verify::etag::{Condition, ETag};
use holdfast_verify::lease::{Action, BLOB, Lease, LeaseId};
use holdfast_verify::record::Target;
use tokio::time::{Instant, sleep};

use super::{Faulty, travel};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    None,
    /// The ETag is compared, and the update made later.
    LostUpdate,
    /// A read is sometimes answered from an old copy.
    StaleRead,
    /// The lease is checked, and the write made later.
    LeaseCheckedOutsideCommit,
    /// The name is checked, and the blob created later.
    CreatedTwice,
    /// ETags come from a clock that is too coarse.
    EtagReused,
    /// A write is sometimes acknowledged and dropped.
    LostWrite,
    /// A refused write is applied all the same.
    RefusedWriteApplied,
    /// Leases end a second early.
    LeaseEndsEarly,
    /// A broken lease still lets its holder write.
    BrokenLeaseWrites,
    /// A deleted blob can be read for a while.
    DeletedBlobRead,
}

#[derive(Clone, Debug)]
struct Blob {
    value: u64,
    etag: ETag,
    lease: Lease,
}

#[derive(Default)]
pub struct Server {
    blob: Option<Blob>,
    old: Option<Blob>,
    etags: u64,
    timers: Vec<(u32, Instant)>,
    actions: u32,
}

pub type FaultyBlob = Faulty<Server, Bug>;

impl Target<BlobWorkload> for FaultyBlob {
    async fn call(&mut self, request: &Request) -> Option<Answer> {
        travel(&mut self.random).await;
        let is_split = match request {
            Request::Put { condition: Condition::Absent, .. } => self.bug == Bug::CreatedTwice,
            Request::Put { condition: Condition::Is(_), .. } => self.bug == Bug::LostUpdate,
            Request::Put { .. } => self.bug == Bug::LeaseCheckedOutsideCommit,
            Request::Get | Request::Delete { .. } | Request::Lease(_) => false,
        };
        let answer = if is_split {
            let refused = self.now().refusal(request, self.bug);
            match refused {
                Some(refused) => refused,
                None => {
                    // Clients of leases pause for longer between their requests.
                    let is_leased = self.bug == Bug::LeaseCheckedOutsideCommit;
                    sleep(Duration::from_millis(if is_leased { 60 } else { 3 })).await;
                    self.now().commit(request, self.bug)
                }
            }
        } else {
            let unlucky = self.random.percent(10);
            self.now().serve(request, self.bug, unlucky)
        };
        travel(&mut self.random).await;
        Some(answer)
    }
}

impl FaultyBlob {
    /// The current state of the server.
    fn now(&self) -> MutexGuard<'_, Server> {
        let mut server = self.lock();
        server.end_timers();
        server
    }
}

fn refused(status: u16, code: &str) -> Answer {
    Answer::Refused { status, code: code.to_owned() }
}

impl Server {
    fn end_timers(&mut self) {
        let now = Instant::now();
        let (ended, running) = self.timers.iter().partition(|(_, end)| *end <= now);
        self.timers = running;
        let ended: Vec<(u32, Instant)> = ended;
        for (number, _) in ended {
            if let Some(blob) = &mut self.blob {
                blob.lease = blob.lease.timer_ends(number);
            }
        }
    }

    fn serve(&mut self, request: &Request, bug: Bug, unlucky: bool) -> Answer {
        let stale = unlucky && bug == Bug::StaleRead && self.old.is_some();
        let risen = unlucky && bug == Bug::DeletedBlobRead && self.blob.is_none();
        match request {
            Request::Get => {
                let blob = if stale || risen { &self.old } else { &self.blob };
                match blob {
                    Some(Blob { value, etag, lease }) => Answer::Read {
                        value: *value,
                        etag: etag.clone(),
                        lease: lease.word().to_owned(),
                    },
                    None => refused(404, "BlobNotFound"),
                }
            }
            Request::Lease(action) => self.act(*action, bug),
            Request::Put { .. } | Request::Delete { .. } => {
                if let Some(refused) = self.refusal(request, bug) {
                    if bug == Bug::RefusedWriteApplied {
                        self.commit(request, bug);
                    }
                    return refused;
                }
                if unlucky && bug == Bug::LostWrite && matches!(request, Request::Put { .. }) {
                    self.etags += 1;
                    return Answer::Written { etag: ETag::new(&format!("\"{}\"", self.etags)) };
                }
                self.commit(request, bug)
            }
        }
    }

    fn refusal(&self, request: &Request, bug: Bug) -> Option<Answer> {
        let (condition, lease, is_delete) = match request {
            Request::Put { condition, lease, .. } => (condition, lease, false),
            Request::Delete { condition, lease } => (condition, lease, true),
            Request::Get | Request::Lease(_) => return None,
        };
        match (&self.blob, condition) {
            (None, _) if is_delete => return Some(refused(404, "BlobNotFound")),
            (Some(_), Condition::Absent) => return Some(refused(409, "BlobAlreadyExists")),
            (None, Condition::Exists | Condition::Is(_)) => {
                return Some(refused(412, "ConditionNotMet"));
            }
            (Some(blob), Condition::Is(etag)) if blob.etag != *etag => {
                return Some(refused(412, "ConditionNotMet"));
            }
            _ => {}
        }
        self.lease_after(*lease, bug).err().map(|code| refused(412, code))
    }

    fn lease_after(&self, id: Option<LeaseId>, bug: Bug) -> Result<Lease, &'static str> {
        let lease = self.blob.as_ref().map_or(Lease::Available, |blob| blob.lease.clone());
        if let (Bug::BrokenLeaseWrites, Lease::Broken { id: held }) = (bug, &lease)
            && id == Some(*held)
        {
            return Ok(lease);
        }
        lease.after_write(id, &BLOB).map_err(|codes| codes[0])
    }

    fn commit(&mut self, request: &Request, bug: Bug) -> Answer {
        match request {
            Request::Put { value, lease, .. } => {
                self.etags += 1;
                let number = if bug == Bug::EtagReused { self.etags / 2 } else { self.etags };
                let etag = ETag::new(&format!("\"{number}\""));
                let held = self.blob.as_ref().map_or(Lease::Available, |blob| blob.lease.clone());
                let lease = self.lease_after(*lease, bug).unwrap_or(held);
                let blob = Blob { value: *value, etag: etag.clone(), lease };
                self.old = self.blob.replace(blob);
                Answer::Written { etag }
            }
            Request::Delete { .. } => {
                self.old = self.blob.take();
                Answer::Deleted
            }
            Request::Get | Request::Lease(_) => Answer::Done,
        }
    }

    fn act(&mut self, action: Action, bug: Bug) -> Answer {
        let Some(blob) = &mut self.blob else { return refused(404, "BlobNotFound") };
        self.actions += 1;
        match blob.lease.after(action, self.actions) {
            Ok(lease) => blob.lease = lease,
            Err(code) => return refused(409, code),
        }
        let seconds = match action {
            Action::Acquire { seconds, .. } => seconds,
            Action::Renew { .. } => Some(15),
            Action::Break { seconds } => seconds,
            Action::Change { .. } | Action::Release { .. } => None,
        };
        if let Some(seconds) = seconds {
            let early = if bug == Bug::LeaseEndsEarly { 1000 } else { 0 };
            let length = Duration::from_secs(seconds.into());
            let length = length.saturating_sub(Duration::from_millis(early));
            self.timers.push((self.actions, Instant::now() + length));
        }
        Answer::Done
    }
}
