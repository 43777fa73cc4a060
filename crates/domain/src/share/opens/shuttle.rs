//! Locks, leases and opens of one file, under the schedules of shuttle. Time stands still, so a
//! waiter that is not woken makes the test fail.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use holdfast_sync::{Mutex, explore, future};
use tokio::sync::mpsc;

use super::breaks::Cause;
use super::handle::{HandleState, Position};
use super::locking::LockRefusal;
use super::node::Wish;
use super::range_locks::{LockKind, Range, RangeLock};
use super::*;
use crate::names::{AccountName, FilePath, ShareName, TrailingDots};
use crate::share::{Place, SharePath};
use crate::time::Timestamp;

const FILE: NodeKey = NodeKey { share: 1, node: 2 };
const DATA: AccessMask = AccessMask::READ_DATA.union(AccessMask::WRITE_DATA);

/// Deadlines need the clock of a runtime. This one is never driven, so no deadline ever passes.
fn explore_with_clock(test: impl Fn() + Send + Sync + Copy + 'static) {
    let clock = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let clock = clock.expect("a runtime");
    let _entered = clock.enter();
    explore(test);
}

fn wish(lease: Option<(ClientId, LeaseWanted)>) -> Wish {
    let claim = Claim { access: DATA, share: ShareMode::ALL };
    Wish { claim, overwrites: false, lease, oplock: OplockLevel::None, is_directory: false }
}

fn handle(client: u64, position: Arc<Mutex<Position>>, events: Events) -> Arc<Handle> {
    let opener = Opener {
        connection: client,
        session: client,
        tree: client,
        client: ClientId(client.into()),
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        client_name: Arc::from("machine"),
        user: Arc::from("account1"),
        events,
    };
    Arc::new(Handle {
        id: client,
        share: SharePath {
            account: AccountName::new("account1").expect("a name"),
            share: ShareName::new("share1").expect("a name"),
        },
        key: FILE,
        access: DATA,
        sharing: ShareMode::ALL,
        is_directory: false,
        snapshot: None,
        write_through: false,
        opened: Timestamp::default(),
        lease: None,
        create: None,
        is_replayable: false.into(),
        position,
        state: Mutex::new(HandleState::new(opener)),
    })
}

type Events = mpsc::UnboundedSender<CachingEvent>;

/// Opens the file, retrying while other opens come between.
async fn open(
    opens: &Opens,
    client: u64,
    wish: &Wish,
    events: &Events,
    delete_on_close: bool,
) -> (Arc<Handle>, CachingGranted) {
    loop {
        opens.approach(FILE, wish).await.expect("everything is shared");
        let path = FilePath::directory("file.dat", TrailingDots::Kept).expect("a path");
        let position = Position { place: Place::root(FILE.share), path };
        let make = |position| handle(client, position, events.clone());
        if let Some(admitted) = opens.admit(make, FILE, position, wish, delete_on_close) {
            return admitted;
        }
    }
}

async fn open_plainly(opens: &Opens, client: u64) -> Arc<Handle> {
    open(opens, client, &wish(None), &mpsc::unbounded_channel().0, false).await.0
}

fn exclusive(owner: OpenId, half: usize) -> RangeLock {
    let range = Range::new(half as u64 * 10, 10).expect("a range");
    RangeLock { owner, range, kind: LockKind::Exclusive }
}

/// Halves of the file that are locked.
struct Locked(Arc<[AtomicBool; 2]>, Vec<usize>);

impl Locked {
    fn begin(file: &Arc<[AtomicBool; 2]>, halves: &[usize]) -> Self {
        for half in halves {
            assert!(!file[*half].swap(true, Ordering::SeqCst), "two have half {half}");
        }
        Self(Arc::clone(file), halves.to_vec())
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.1.iter().for_each(|half| self.0[*half].store(false, Ordering::SeqCst));
    }
}

async fn lock_and_unlock(
    opens: &Opens,
    handle: &Handle,
    locked: &Arc<[AtomicBool; 2]>,
    halves: &[usize],
) -> Result<(), LockRefusal> {
    let locks: Vec<RangeLock> = halves.iter().map(|half| exclusive(handle.id, *half)).collect();
    let ranges: Vec<Range> = locks.iter().map(|lock| lock.range).collect();
    opens.lock(handle, locks, true).await?;
    let held = Locked::begin(locked, halves);
    future::yield_now().await;
    drop(held);
    opens.unlock(handle, &ranges).expect("locked a moment ago");
    Ok(())
}

#[test]
fn a_range_is_with_one_at_a_time_and_whoever_waits_for_it_gets_it() {
    explore(|| {
        future::block_on(async {
            let (opens, locked) = (Arc::new(Opens::default()), Arc::default());
            let wanted: [&[usize]; 4] = [&[0, 1], &[1], &[0], &[1, 0]];
            let mut clients = Vec::new();
            for (client, halves) in (1..).zip(wanted) {
                let handle = open_plainly(&opens, client).await;
                let (opens, locked) = (Arc::clone(&opens), Arc::clone(&locked));
                clients.push(future::spawn(async move {
                    for _ in 0..2 {
                        lock_and_unlock(&opens, &handle, &locked, halves).await.expect("its turn");
                    }
                    opens.close(&handle);
                }));
            }
            for client in clients {
                client.await.expect("done");
            }
            assert!(opens.peek(FILE, |_| ()).is_none(), "nothing is left of it");
        });
    });
}

#[test]
fn a_lock_request_that_is_cancelled_or_whose_handle_is_closed_leaves_nothing_behind() {
    explore(|| {
        future::block_on(async {
            let (opens, locked) = (Arc::new(Opens::default()), Arc::default());
            let mut handles = Vec::new();
            for client in 1..=4 {
                handles.push(open_plainly(&opens, client).await);
            }
            let has_lock = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
            let disturbed = [0, 1].map(|client: usize| {
                let (opens, handle) = (Arc::clone(&opens), Arc::clone(&handles[client]));
                let has_lock = Arc::clone(&has_lock);
                future::spawn(async move {
                    let outcome = opens.lock(&handle, vec![exclusive(handle.id, 0)], true).await;
                    has_lock[client].store(outcome.is_ok(), Ordering::SeqCst);
                    future::yield_now().await;
                    outcome
                })
            });
            let others = [2, 3].map(|client: usize| {
                let (opens, handle) = (Arc::clone(&opens), Arc::clone(&handles[client]));
                let locked = Arc::clone(&locked);
                future::spawn(async move { lock_and_unlock(&opens, &handle, &locked, &[0]).await })
            });
            // The first gives up: it waits, or is granted the lock without knowing it. If it knows, it
            // keeps the lock until it releases it.
            let [first, second] = disturbed;
            first.abort();
            let _ = first.await;
            let ranges = [exclusive(handles[0].id, 0).range];
            let unlocked = opens.unlock(&handles[0], &ranges);
            assert_eq!(unlocked.is_ok(), has_lock[0].load(Ordering::SeqCst));
            opens.close(&handles[1]);
            for other in others {
                assert_eq!(other.await.expect("done"), Ok(()));
            }
            let second = second.await.expect("done");
            assert!(matches!(second, Ok(()) | Err(LockRefusal::Closed)), "{second:?}");
            let last = exclusive(handles[2].id, 0);
            assert_eq!(opens.lock(&handles[2], vec![last], false).await, Ok(()));
        });
    });
}

/// What each client believes to have cached.
#[derive(Default)]
struct Caches([AtomicBool; 3]);

impl Caches {
    fn nobody_else_writes(&self, client: usize) {
        let writes = |other: usize| other != client && self.0[other].load(Ordering::SeqCst);
        assert!(!(0..3).any(writes), "another still keeps writes to itself");
    }
}

/// Opens with a lease, answers breaks, writes, and closes.
async fn cache(opens: Arc<Opens>, caches: Arc<Caches>, client: usize) {
    let id = ClientId(client as u128 + 1);
    let lease = LeaseWanted {
        key: LeaseKey(client as u128 + 1),
        caching: Caching::ALL,
        version: LeaseVersion::Two,
        epoch: 0,
        parent: None,
    };
    let (events, mut told) = mpsc::unbounded_channel();
    let opened = open(&opens, client as u64 + 1, &wish(Some((id, lease))), &events, false).await;
    let (handle, CachingGranted::Lease(granted)) = opened else { panic!("a lease was asked for") };
    caches.0[client].store(granted.caching.contains(Caching::WRITE), Ordering::SeqCst);
    let listening = {
        let (opens, caches) = (Arc::clone(&opens), Arc::clone(&caches));
        future::spawn(async move {
            while let Some(event) = told.recv().await {
                let CachingEvent::LeaseBreak { key, notice, .. } = event else { continue };
                caches.0[client].store(notice.to.contains(Caching::WRITE), Ordering::SeqCst);
                if notice.must_acknowledge {
                    // `None` if it was closed instead, which is an answer, too.
                    let _ = opens.acknowledge_lease(id, key, notice.to);
                }
            }
        })
    };
    future::yield_now().await;
    opens.disturb(&handle, Cause::Write).await;
    caches.nobody_else_writes(client);
    caches.0[client].store(false, Ordering::SeqCst);
    opens.close(&handle);
    drop((handle, events));
    listening.await.expect("no way to be told anything any more");
}

#[test]
fn writes_are_cached_by_one_client_at_a_time_and_written_back_before_others_go_on() {
    explore_with_clock(|| {
        future::block_on(async {
            let (opens, caches) = (Arc::new(Opens::default()), Arc::<Caches>::default());
            let clients = [0, 1].map(|client| {
                future::spawn(cache(Arc::clone(&opens), Arc::clone(&caches), client))
            });
            let rest = {
                let (opens, caches) = (Arc::clone(&opens), Arc::clone(&caches));
                future::spawn(async move {
                    let timeout = Duration::from_secs(30);
                    let read = opens.enter(FILE, RestOperation::GetFile, timeout).await;
                    let _read = read.expect("everything is shared");
                    caches.nobody_else_writes(2);
                })
            };
            for task in clients.into_iter().chain([rest]) {
                task.await.expect("done");
            }
            assert!(opens.peek(FILE, |_| ()).is_none(), "nothing is left of it");
        });
    });
}

#[test]
fn a_file_is_removed_by_exactly_one_of_those_who_close_it_and_newcomers_wait_for_that() {
    explore(|| {
        future::block_on(async {
            let opens = Arc::new(Opens::default());
            let (removals, removed) =
                (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
            let mut handles = Vec::new();
            for client in 1..=3 {
                let events = mpsc::unbounded_channel().0;
                handles.push(open(&opens, client, &wish(None), &events, client == 2).await.0);
            }
            let mut tasks = Vec::new();
            for handle in handles {
                let (opens, removals) = (Arc::clone(&opens), Arc::clone(&removals));
                let removed = Arc::clone(&removed);
                tasks.push(future::spawn(async move {
                    if opens.close(&handle).expect("open").remove {
                        removals.fetch_add(1, Ordering::SeqCst);
                        future::yield_now().await;
                        removed.store(true, Ordering::SeqCst);
                        opens.forget(FILE);
                    }
                }));
            }
            for _ in 0..2 {
                let (opens, removed) = (Arc::clone(&opens), Arc::clone(&removed));
                tasks.push(future::spawn(async move {
                    if opens.removed(FILE).await {
                        assert!(removed.load(Ordering::SeqCst), "it is still there");
                    }
                }));
            }
            for task in tasks {
                task.await.expect("done");
            }
            assert_eq!(removals.load(Ordering::SeqCst), 1);
            assert!(opens.peek(FILE, |_| ()).is_none(), "nothing is left of it");
        });
    });
}
