//! Opens that outlive the process: a second domain on the same rows stands for the next run.

#[path = "support/handles.rs"]
mod handles;
mod support;

use std::sync::Arc;
use std::time::Duration;

use handles::{
    Client, caching, close, granted, lease_wanted, open, path, read, refusal, share, with_share_of,
    write,
};
use holdfast_domain::features::Features;
use holdfast_domain::share::handles::{
    Action, CachingWanted, DurableWanted, HandleRefusal, LockRequest, OpenNode, Opened, Reconnect,
    RenameTo, WriteAt,
};
use holdfast_domain::share::opens::range_locks::{LockKind, Range};
use holdfast_domain::share::opens::{
    Caching, CachingGranted, Durability, EnterRefusal, Handle, LockSequence, NodeKey, OplockLevel,
    RestOperation, ShareMode,
};
use holdfast_store::Engine;
use holdfast_store::memory::MemoryEngine;
use support::Store;

const FILE: &str = "file.dat";
const GUID: u128 = 7;
const TIMEOUT_MILLISECONDS: u32 = 100;
const PATIENCE: Duration = Duration::from_millis(20);

/// Runs of a server, one after the other, on the same rows.
struct Runs {
    engine: Arc<MemoryEngine>,
    store: Store,
    count: u64,
}

impl Runs {
    async fn new() -> Self {
        let engine = Arc::new(MemoryEngine::default());
        let dynamic: Arc<dyn Engine> = engine.clone();
        let store = with_share_of(Store::on(dynamic, Features::default()).await).await;
        Self { engine, store, count: 0 }
    }

    /// The process is killed, and another starts.
    async fn restart(&mut self) {
        self.count += 1;
        let engine: Arc<dyn Engine> = self.engine.clone();
        self.store = Store::on(engine, Features::default()).await;
        self.store.clock.pass(Duration::from_secs(3600 * self.count));
        self.store.domain.restore_opens().await.expect("the rows can be read");
    }

    fn commits(&self) -> u64 {
        self.engine.statistics().commits
    }

    /// Enters a REST call.
    async fn enter(&self, key: NodeKey, operation: RestOperation) -> Result<(), EnterRefusal> {
        self.store.domain.opens().enter(key, operation, PATIENCE).await.map(drop)
    }

    async fn come_back(&self, client: &Client, handle: &Handle) -> Result<Opened, HandleRefusal> {
        let command = back(client, handle);
        match self.store.domain.reconnect_handle(&command).await {
            Ok(opened) => Ok(opened),
            refused => Err(refusal(refused)),
        }
    }
}

fn persistent(client: &Client) -> OpenNode {
    let durable = DurableWanted {
        kind: Durability::Second(GUID),
        timeout_milliseconds: 60_000,
        persistent: true,
    };
    OpenNode { durable: Some(durable), ..client.wants(FILE) }
}

fn short(client: &Client) -> OpenNode {
    let mut command = persistent(client);
    let durable = command.durable.as_mut().expect("it is");
    durable.timeout_milliseconds = TIMEOUT_MILLISECONDS;
    command
}

fn back(client: &Client, handle: &Handle) -> Reconnect {
    let lease = handle.lease.map(|key| {
        let CachingWanted::Lease(lease) = lease_wanted(key.0, "RWH", 0) else { panic!("a lease") };
        lease
    });
    Reconnect {
        share: share(),
        opener: client.opener.clone(),
        handle: handle.id,
        durability: Durability::Second(GUID),
        persistent: true,
        lease,
        path: handle.path(),
    }
}

fn exclusive(offset: u64, length: u64) -> LockRequest {
    LockRequest { range: range(offset, length), kind: LockKind::Exclusive }
}

fn range(offset: u64, length: u64) -> Range {
    Range::new(offset, length).expect("a range")
}

#[tokio::test]
async fn a_persistent_open_needs_no_cache_and_comes_back_as_it_was() {
    for caching_wanted in
        [CachingWanted::None, CachingWanted::Oplock(OplockLevel::Batch), lease_wanted(3, "RWH", 0)]
    {
        let mut runs = Runs::new().await;
        let client = Client::new(1);
        let command = OpenNode { caching: caching_wanted, ..persistent(&client) };
        let first = open(&runs.store, &command).await;
        assert_eq!(first.durable, Some(60_000));
        assert!(first.handle.is_persistent());
        write(&runs.store, &first.handle, WriteAt::Offset(0), b"bytes").await.expect("written");
        runs.restart().await;
        let again = runs.come_back(&client, &first.handle).await.expect("it is there");
        assert_eq!(again.handle.id, first.handle.id);
        assert_eq!((again.caching, again.durable), (first.caching, first.durable));
        assert_eq!(
            (again.handle.access, again.handle.sharing),
            (first.handle.access, ShareMode::ALL)
        );
        assert_eq!(again.information.length, 5);
        assert_eq!(read(&runs.store, &again.handle, 0, 5).await.expect("read"), b"bytes");
        let twice = runs.come_back(&client, &first.handle).await;
        assert_eq!(twice.expect_err("it is not lost"), HandleRefusal::NotFound);
    }
}

#[tokio::test]
async fn locks_come_back_but_for_those_that_were_given_back() {
    let mut runs = Runs::new().await;
    let client = Client::new(1);
    let first = open(&runs.store, &persistent(&client)).await.handle;
    let locks = [exclusive(0, 4), exclusive(10, 4)];
    runs.store.domain.lock_handle(&first, &locks, false).await.expect("free");
    runs.store.domain.unlock_handle(&first, &[range(0, 4)]).await.expect("locked");
    let sequence = LockSequence { index: 3, number: 9 };
    let last = [exclusive(20, 1)];
    let locked = runs.store.domain.lock_in_sequence(&first, &last, false, Some(sequence)).await;
    locked.expect("free");
    let refused = LockSequence { index: 4, number: 1 };
    let locked = runs.store.domain.lock_in_sequence(&first, &last, false, Some(refused)).await;
    assert_eq!(refusal(locked), HandleRefusal::LockNotGranted);
    runs.restart().await;
    assert_eq!(
        runs.enter(first.key, RestOperation::PutRange).await,
        Err(EnterRefusal::LockConflict)
    );
    let stranger = open(&runs.store, &Client::new(2).wants(FILE)).await.handle;
    for (offset, expected) in [(0, true), (10, false), (20, false)] {
        let locked = runs.store.domain.lock_handle(&stranger, &[exclusive(offset, 1)], false).await;
        assert_eq!(locked.is_ok(), expected, "{offset}");
    }
    let again = runs.come_back(&client, &first).await.expect("it is there").handle;
    assert!(again.is_lock_replayed(sequence) && !again.is_lock_replayed(refused));
    runs.store.domain.unlock_handle(&again, &[range(10, 4)]).await.expect("still locked");
}

#[tokio::test]
async fn the_share_mode_of_an_orphaned_open_holds_at_once_whatever_it_caches() {
    for caching in [CachingWanted::Oplock(OplockLevel::Batch), lease_wanted(3, "RWH", 0)] {
        for kills in [false, true] {
            let mut runs = Runs::new().await;
            let client = Client::new(1);
            let command = OpenNode { caching, sharing: ShareMode::NONE, ..persistent(&client) };
            let first = open(&runs.store, &command).await.handle;
            if kills {
                runs.restart().await;
            } else {
                runs.store.domain.disconnect(1).await;
            }
            let violation = Err(EnterRefusal::SharingViolation);
            for operation in [
                RestOperation::GetFile,
                RestOperation::PutRange,
                RestOperation::DeleteFile,
                RestOperation::RenameSource,
            ] {
                assert_eq!(runs.enter(first.key, operation).await, violation, "{operation:?}");
            }
            let contender = Client::new(2).wants(FILE);
            let opening = runs.store.domain.open_handle(&contender);
            let refused = tokio::time::timeout(Duration::from_secs(5), opening).await;
            assert_eq!(refusal(refused.expect("at once")), HandleRefusal::SharingViolation);
            runs.come_back(&client, &first).await.expect("it is there still");
        }
    }
}

#[tokio::test]
async fn who_needs_the_cache_of_an_orphaned_open_waits_and_its_client_is_told_when_it_is_back() {
    let mut runs = Runs::new().await;
    let client = Client::new(1);
    let command = OpenNode { caching: lease_wanted(3, "RWH", 0), ..persistent(&client) };
    let first = open(&runs.store, &command).await.handle;
    runs.restart().await;
    assert_eq!(
        runs.enter(first.key, RestOperation::GetFile).await,
        Err(EnterRefusal::CacheFlushDelay)
    );
    let mut returned = Client::new(1);
    let again = runs.come_back(&returned, &first).await.expect("it is there");
    assert!(matches!(again.caching, CachingGranted::Lease(lease) if lease.breaking));
    let contender = Client::new(2).wants(FILE);
    let (opened, told) = tokio::join!(
        runs.store.domain.open_handle(&contender),
        returned.answer(&runs.store, &again.handle)
    );
    assert_eq!(told, "RWH->RH!");
    opened.expect("it opens beside");
}

#[tokio::test]
async fn a_lease_comes_back_as_it_was_last_agreed_on() {
    let mut runs = Runs::new().await;
    let mut client = Client::new(1);
    let command = OpenNode { caching: lease_wanted(3, "RH", 0), ..persistent(&client) };
    let first = open(&runs.store, &command).await;
    assert_eq!(granted(&first), caching("RH"));
    // Another open with the same lease makes the lease grow, whether that open is persistent or
    // not.
    let second = open(&runs.store, &client.wants_lease(FILE, 3, "RWH")).await;
    assert_eq!(granted(&second), Caching::ALL);
    runs.restart().await;
    let again = runs.come_back(&client, &first.handle).await.expect("it is there");
    assert_eq!(granted(&again), Caching::ALL);
    let contender = Client::new(2).wants(FILE);
    let opening = runs.store.domain.open_handle(&contender);
    let (opened, _) = tokio::join!(opening, client.answer(&runs.store, &again.handle));
    opened.expect("it opens beside");
    let lease = again.handle.lease.expect("a lease");
    runs.store.domain.keep_lease(client.opener.client, lease).await.expect("kept");
    runs.restart().await;
    let again = runs.come_back(&client, &first.handle).await.expect("it is there");
    assert_eq!(granted(&again), caching("RH"));
}

#[tokio::test]
async fn only_who_knows_a_persistent_open_gets_it() {
    let mut runs = Runs::new().await;
    let client = Client::new(1);
    let first = open(&runs.store, &persistent(&client)).await.handle;
    runs.restart().await;
    let right = back(&client, &first);
    let mut stranger = right.clone();
    stranger.opener.user = Arc::from("account2");
    for wrong in [
        stranger,
        Reconnect { persistent: false, ..right.clone() },
        Reconnect { durability: Durability::Second(GUID + 1), ..right.clone() },
        Reconnect { durability: Durability::First, ..right.clone() },
    ] {
        let refused = runs.store.domain.reconnect_handle(&wrong).await;
        assert_eq!(refusal(refused), HandleRefusal::NotFound, "{wrong:?}");
    }
    // A client that knows the CREATE need not know the number.
    let by_create = Reconnect { handle: 1, ..right };
    let again = runs.store.domain.reconnect_handle(&by_create).await.expect("it is there");
    assert_eq!(again.handle.id, first.id);
}

#[tokio::test]
async fn a_create_of_the_run_before_is_answered_again() {
    let mut runs = Runs::new().await;
    let client = Client::new(1);
    let command = persistent(&client);
    let first = open(&runs.store, &command).await.handle;
    runs.restart().await;
    let twice = runs.store.domain.open_handle(&command).await;
    assert_eq!(refusal(twice), HandleRefusal::AlreadyCreated);
    let again = open(&runs.store, &OpenNode { is_replay: true, ..command }).await;
    assert_eq!((again.handle.id, again.action), (first.id, Action::Created));
    assert!(!again.handle.is_lost());
}

#[tokio::test]
async fn a_closed_open_does_not_come_back() {
    let mut runs = Runs::new().await;
    let client = Client::new(1);
    let command = OpenNode { sharing: ShareMode::NONE, ..persistent(&client) };
    let first = open(&runs.store, &command).await.handle;
    runs.restart().await;
    let again = runs.come_back(&client, &first).await.expect("it is there").handle;
    close(&runs.store, &again).await;
    runs.restart().await;
    assert_eq!(runs.enter(first.key, RestOperation::GetFile).await, Ok(()));
    let gone = runs.come_back(&client, &first).await;
    assert_eq!(gone.expect_err("gone"), HandleRefusal::NotFound);
}

#[tokio::test]
async fn an_open_whose_client_stays_away_is_gone_for_good_before_others_are_let_in() {
    let mut runs = Runs::new().await;
    let client = Client::new(1);
    let command = OpenNode { sharing: ShareMode::NONE, ..short(&client) };
    let first = open(&runs.store, &command).await.handle;
    tokio::time::sleep(Duration::from_millis(2 * u64::from(TIMEOUT_MILLISECONDS))).await;
    // Its time begins when the server accepts reconnections.
    runs.restart().await;
    let contender = Client::new(2).wants(FILE);
    let early = runs.store.domain.open_handle(&contender).await;
    assert_eq!(refusal(early), HandleRefusal::SharingViolation);
    tokio::time::sleep(Duration::from_millis(2 * u64::from(TIMEOUT_MILLISECONDS))).await;
    open(&runs.store, &contender).await;
    runs.restart().await;
    let gone = runs.come_back(&client, &first).await;
    assert_eq!(gone.expect_err("gone"), HandleRefusal::NotFound);
}

#[tokio::test]
async fn an_open_is_found_where_its_file_was_moved_to() {
    let mut runs = Runs::new().await;
    let client = Client::new(1);
    let first = open(&runs.store, &persistent(&client)).await.handle;
    let to = RenameTo { path: path("moved.dat"), replace: false };
    runs.store.domain.rename_handle(&first, &to).await.expect("renamed");
    runs.restart().await;
    let again = runs.come_back(&client, &first).await.expect("it is there");
    assert_eq!(again.handle.path(), path("moved.dat"));
}

#[tokio::test]
async fn an_open_of_what_is_deleted_is_forgotten() {
    let mut runs = Runs::new().await;
    let client = Client::new(1);
    let first = open(&runs.store, &persistent(&client)).await.handle;
    runs.store.domain.set_handle_disposition(&first, true).await.expect("it may go");
    runs.restart().await;
    let contender = Client::new(2).wants(FILE);
    let refused = runs.store.domain.open_handle(&contender).await;
    assert_eq!(refusal(refused), HandleRefusal::DeletePending);
    let again = runs.come_back(&client, &first).await.expect("it is there").handle;
    close(&runs.store, &again).await;
    let created = open(&runs.store, &contender).await;
    assert_eq!(created.action, Action::Created);
}

#[tokio::test]
async fn an_open_without_the_flag_costs_no_commit_and_goes_with_the_process() {
    let mut runs = Runs::new().await;
    let client = Client::new(1);
    let file = open(&runs.store, &client.wants(FILE)).await.handle;
    close(&runs.store, &file).await;
    let kept = open(&runs.store, &OpenNode { path: path("other"), ..persistent(&client) }).await;
    let mut command = persistent(&Client::new(2));
    command.durable.as_mut().expect("it is").persistent = false;
    command.caching = CachingWanted::Oplock(OplockLevel::Batch);
    let before = runs.commits();
    let plain = open(&runs.store, &command).await;
    assert!(plain.durable.is_some() && !plain.handle.is_persistent());
    runs.store.domain.lock_handle(&plain.handle, &[exclusive(0, 1)], false).await.expect("free");
    runs.store.domain.unlock_handle(&plain.handle, &[range(0, 1)]).await.expect("locked");
    close(&runs.store, &plain.handle).await;
    assert_eq!(runs.commits(), before);
    runs.restart().await;
    assert!(runs.store.domain.opens().handle(plain.handle.id).is_none());
    assert!(runs.store.domain.opens().handle(kept.handle.id).is_some());
}

#[tokio::test]
async fn a_create_that_is_given_up_leaves_nothing_behind() {
    let mut runs = Runs::new().await;
    let (holder, client) = (Client::new(1), Client::new(2));
    let held = open(&runs.store, &holder.wants_oplock(FILE, OplockLevel::Batch)).await.handle;
    let command = persistent(&client);
    let given_up = tokio::time::timeout(PATIENCE, runs.store.domain.open_handle(&command)).await;
    assert!(given_up.is_err());
    close(&runs.store, &held).await;
    runs.restart().await;
    assert_eq!(runs.enter(held.key, RestOperation::DeleteFile).await, Ok(()));
}

#[tokio::test]
async fn a_persistent_open_has_no_more_locks_than_its_row_has_room_for() {
    let mut runs = Runs::new().await;
    let client = Client::new(1);
    let first = open(&runs.store, &persistent(&client)).await.handle;
    let locks: Vec<LockRequest> = (0..10_000).map(|at| exclusive(u64::MAX / 2 + at, 1)).collect();
    runs.store.domain.lock_handle(&first, &locks, false).await.expect("free");
    let refused = runs.store.domain.lock_handle(&first, &[exclusive(0, 1)], false).await;
    assert_eq!(refusal(refused), HandleRefusal::TooManyLocks);
    runs.restart().await;
    let again = runs.come_back(&client, &first).await.expect("it is there").handle;
    let last = [locks[9_999].range];
    runs.store.domain.unlock_handle(&again, &last).await.expect("still locked");
    runs.store.domain.lock_handle(&again, &[exclusive(0, 1)], false).await.expect("free");
}
