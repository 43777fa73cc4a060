//! Oplocks and leases of SMB clients, among themselves and with REST, on the memory store.

#[path = "support/handles.rs"]
mod handles;
mod support;

use std::time::Duration;

use handles::{Client, caching, close, granted, lease_wanted, open, refusal, with_share, write};
use holdfast_domain::share::handles::{
    CachingWanted, Disposition, HandleRefusal, OpenNode, WriteAt,
};
use holdfast_domain::share::opens::{
    AccessMask, AcknowledgeRefusal, Caching, CachingGranted, EnterRefusal, LeaseKey, OplockLevel,
    RestOperation, ShareMode,
};

const FILE: &str = "file.dat";

#[tokio::test]
async fn a_second_lease_breaks_the_first_as_far_as_it_must() {
    for (held, wanted, broken, second) in [
        ("R", "R", "R", "R"),
        ("R", "RH", "R", "RH"),
        ("R", "RW", "R", "R"),
        ("R", "RHW", "R", "RH"),
        ("RH", "R", "RH", "R"),
        ("RH", "RH", "RH", "RH"),
        ("RH", "RW", "RH", "R"),
        ("RH", "RHW", "RH", "RH"),
        ("RW", "R", "R", "R"),
        ("RW", "RH", "R", "RH"),
        ("RW", "RW", "R", "R"),
        ("RW", "RHW", "R", "RH"),
        ("RHW", "R", "RH", "R"),
        ("RHW", "RH", "RH", "RH"),
        ("RHW", "RW", "RH", "R"),
        ("RHW", "RHW", "RH", "RH"),
    ] {
        let store = with_share().await;
        let mut client = Client::new(1);
        let first = open(&store, &client.wants_lease(FILE, 1, held)).await;
        assert_eq!(granted(&first), caching(held), "{held}");
        let contender = client.wants_lease(FILE, 2, wanted);
        let opening = store.domain.open_handle(&contender);
        let opened = if held == broken {
            opening.await
        } else {
            tokio::join!(opening, client.answer(&store, &first.handle)).0
        };
        let opened = opened.expect("it opens");
        assert_eq!(granted(&opened), caching(second), "{held} {wanted}");
        assert!(client.told().is_empty());
        let again = open(&store, &client.wants_lease(FILE, 1, "RWH")).await;
        assert_eq!(granted(&again), caching(broken), "{held} {wanted}: no upgrade beside another");
        assert!(client.told().is_empty());
    }
}

#[tokio::test]
async fn an_oplock_and_a_lease_know_each_other() {
    use OplockLevel::{Batch, Exclusive, None, Two};
    for (held, wanted, told, level) in [
        ("R", Two, "", Two),
        ("R", Exclusive, "", Two),
        ("R", Batch, "", Two),
        ("RH", Batch, "", None),
        ("RW", Batch, "RW->R!", Two),
        ("RHW", Two, "RWH->RH!", None),
    ] {
        let store = with_share().await;
        let mut client = Client::new(1);
        let first = open(&store, &client.wants_lease(FILE, 1, held)).await;
        let command = client.wants_oplock(FILE, wanted);
        let opening = store.domain.open_handle(&command);
        let opened = if told.is_empty() {
            opening.await
        } else {
            let (opened, heard) = tokio::join!(opening, client.answer(&store, &first.handle));
            assert_eq!(heard, told);
            opened
        };
        assert_eq!(granted(&opened.expect("it opens")), level.caching(), "{held} {wanted:?}");
    }
    for held in [Two, Exclusive, Batch] {
        for wanted in ["R", "RH", "RW", "RHW"] {
            let store = with_share().await;
            let mut client = Client::new(1);
            let first = open(&store, &client.wants_oplock(FILE, held)).await;
            assert_eq!(granted(&first), held.caching());
            let command = client.wants_lease(FILE, 1, wanted);
            let opening = store.domain.open_handle(&command);
            let opened = if held == Two {
                opening.await
            } else {
                let (opened, heard) = tokio::join!(opening, client.answer(&store, &first.handle));
                assert_eq!(heard, "Two!");
                opened
            };
            assert_eq!(granted(&opened.expect("it opens")), Caching::READ, "{held:?} {wanted}");
        }
    }
}

#[tokio::test]
async fn an_open_for_attributes_breaks_nothing_and_caches_nothing_beside_a_batch_oplock() {
    let store = with_share().await;
    let mut client = Client::new(1);
    let sharing = ShareMode::NONE;
    let batch = OpenNode { sharing, ..client.wants_oplock(FILE, OplockLevel::Batch) };
    open(&store, &batch).await;
    let access = AccessMask::READ_ATTRIBUTES.union(AccessMask::SYNCHRONIZE);
    let look = open(&store, &OpenNode { access, ..batch.clone() }).await;
    assert_eq!(granted(&look), Caching::empty());
    assert!(client.told().is_empty());
}

#[tokio::test]
async fn a_sharing_violation_breaks_a_batch_oplock_first_and_a_close_resolves_it() {
    let store = with_share().await;
    let (mut first, second) = (Client::new(1), Client::new(2));
    let alone = |client: &Client| OpenNode {
        sharing: ShareMode::NONE,
        ..client.wants_oplock(FILE, OplockLevel::Batch)
    };
    let held = open(&store, &alone(&first)).await;
    let contender = alone(&second);
    let (refused, heard) =
        tokio::join!(store.domain.open_handle(&contender), first.answer(&store, &held.handle));
    assert_eq!(refusal(refused), HandleRefusal::SharingViolation);
    assert_eq!(heard, "Two!");
    let refused = store.domain.open_handle(&contender).await;
    assert_eq!(refusal(refused), HandleRefusal::SharingViolation, "without another break");
    assert!(first.told().is_empty());
    close(&store, &held.handle).await;

    let held = open(&store, &alone(&first)).await;
    let (opened, ()) = tokio::join!(store.domain.open_handle(&contender), async {
        first.events.recv().await.expect("a break");
        close(&store, &held.handle).await;
    });
    assert_eq!(granted(&opened.expect("the way is free")), Caching::ALL);
}

#[tokio::test]
async fn a_write_breaks_level_two_of_all_and_leases_of_others() {
    let store = with_share().await;
    let mut client = Client::new(1);
    let first = open(&store, &client.wants_oplock(FILE, OplockLevel::Two)).await;
    let second = open(&store, &client.wants_lease(FILE, 1, "R")).await;
    assert_eq!(granted(&second), Caching::READ);
    write(&store, &first.handle, WriteAt::Offset(0), b"x").await.expect("written");
    assert_eq!(client.told(), ["None", "R->none"]);

    let again = open(&store, &client.wants_lease(FILE, 1, "R")).await;
    assert_eq!(granted(&again), Caching::READ);
    write(&store, &second.handle, WriteAt::Offset(0), b"x").await.expect("written");
    assert!(client.told().is_empty(), "a lease is not broken by its own handles");
    let refused = store.domain.acknowledge_oplock(&first.handle, OplockLevel::None);
    assert_eq!(refused, Err(AcknowledgeRefusal::NotBreaking));
}

#[tokio::test]
async fn a_break_goes_on_in_steps_while_openers_wait() {
    let store = with_share().await;
    let mut client = Client::new(1);
    let lease = OpenNode { caching: lease_wanted(1, "RWH", 0x11), ..client.wants(FILE) };
    let held = open(&store, &lease).await;
    let plain = client.wants(FILE);
    let overwrite = OpenNode { disposition: Disposition::Overwrite, ..client.wants(FILE) };
    let acknowledge = |kept: &str| {
        let client = client.opener.client;
        store.domain.acknowledge_lease(client, LeaseKey(1), caching(kept)).expect("a lease")
    };
    let events = &mut client.events;
    let mut next = async || handles::shown(events.recv().await.expect("a break"));
    let opening = async {
        tokio::join!(store.domain.open_handle(&plain), async {
            tokio::task::yield_now().await;
            store.domain.open_handle(&overwrite).await
        })
    };
    let ((first, second), ()) = tokio::join!(opening, async {
        assert_eq!(next().await, "RWH->RH!");
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let own = open(&store, &lease).await;
        let CachingGranted::Lease(lease) = own.caching else { panic!("a lease") };
        assert_eq!((lease.caching, lease.breaking, lease.epoch), (caching("RWH"), true, 0x13));
        close(&store, &own.handle).await;
        assert_eq!(acknowledge("RWH"), Err(AcknowledgeRefusal::TooMuch));
        acknowledge("RH").expect("as asked");
        assert_eq!(next().await, "RH->R!");
        acknowledge("R").expect("as asked");
        assert_eq!(next().await, "R->none");
        assert_eq!(acknowledge(""), Err(AcknowledgeRefusal::NotBreaking));
    });
    first.expect("it opens");
    second.expect("it overwrites");
    close(&store, &held.handle).await;
}

#[tokio::test]
async fn what_only_loses_reads_and_its_handle_is_not_waited_for() {
    let store = with_share().await;
    let mut client = Client::new(1);
    open(&store, &client.wants_lease(FILE, 1, "RH")).await;
    let overwrite = OpenNode { disposition: Disposition::Overwrite, ..client.wants(FILE) };
    close(&store, &open(&store, &overwrite).await.handle).await;
    assert_eq!(client.told(), ["RH->none!"]);
    close(&store, &open(&store, &overwrite).await.handle).await;
    assert!(client.told().is_empty(), "it is breaking already");
    let look = open(&store, &client.wants_lease(FILE, 1, "")).await;
    let CachingGranted::Lease(lease) = look.caching else { panic!("a lease") };
    assert_eq!((lease.caching, lease.breaking), (caching("RH"), true));
}

#[tokio::test]
async fn a_key_is_for_one_file() {
    let store = with_share().await;
    let client = Client::new(1);
    let first = open(&store, &client.wants_lease(FILE, 1, "RWH")).await;
    let refused = store.domain.open_handle(&client.wants_lease("other.dat", 1, "RWH")).await;
    assert_eq!(refusal(refused), HandleRefusal::InvalidParameter);
    let plain = OpenNode { disposition: Disposition::Open, ..client.wants("other.dat") };
    let absent = store.domain.open_handle(&plain).await;
    assert_eq!(refusal(absent), HandleRefusal::NotFound, "it was not created");
    let stranger = Client::new(2);
    open(&store, &stranger.wants_lease("other.dat", 1, "RWH")).await;
    close(&store, &first.handle).await;
    open(&store, &client.wants_lease("third.dat", 1, "RWH")).await;
}

#[tokio::test]
async fn a_rest_read_waits_for_a_writing_cache_and_no_longer_than_it_may() {
    let store = with_share().await;
    let mut client = Client::new(1);
    let held = open(&store, &client.wants_lease(FILE, 1, "RWH")).await;
    let enter =
        |timeout| store.domain.opens().enter(held.handle.key, RestOperation::GetFile, timeout);
    let late = enter(Duration::from_millis(50)).await.err();
    assert_eq!(late, Some(EnterRefusal::CacheFlushDelay));
    let (entered, heard) =
        tokio::join!(enter(Duration::from_secs(30)), client.answer(&store, &held.handle));
    assert_eq!(heard, "RWH->RH!");
    drop(entered.expect("the cache is written back"));
    assert!(enter(Duration::ZERO).await.is_ok(), "nothing is left to wait for");
}

#[tokio::test]
async fn a_rest_delete_breaks_the_handle_and_fails_if_the_file_stays_open() {
    let store = with_share().await;
    let mut client = Client::new(1);
    let held = open(&store, &client.wants_lease(FILE, 1, "RH")).await;
    let timeout = Duration::from_secs(30);
    let delete = || store.domain.opens().enter(held.handle.key, RestOperation::DeleteFile, timeout);
    let (refused, heard) = tokio::join!(delete(), client.answer(&store, &held.handle));
    assert_eq!((refused.err(), heard.as_str()), (Some(EnterRefusal::SharingViolation), "RH->R!"));
    close(&store, &held.handle).await;
    assert!(delete().await.is_ok());
}

#[tokio::test]
async fn a_waiting_open_that_is_cancelled_leaves_no_trace() {
    let store = with_share().await;
    let mut client = Client::new(1);
    let held = open(&store, &client.wants_lease(FILE, 1, "RWH")).await;
    let contender = client.wants(FILE);
    let waiting = store.domain.open_handle(&contender);
    let outcome = tokio::time::timeout(Duration::from_millis(20), waiting).await;
    assert!(outcome.is_err(), "it waits");
    assert_eq!(client.answer(&store, &held.handle).await, "RWH->RH!");
    let scope = holdfast_domain::share::opens::HandleScope { key: held.handle.key, below: None };
    assert_eq!(store.domain.opens().list_handles(&scope, 0, 10).len(), 1);
    let none = CachingWanted::None;
    open(&store, &OpenNode { caching: none, ..client.wants(FILE) }).await;
}
