//! CREATEs that SMB clients send again without having an answer, on the memory store.

#[path = "support/handles.rs"]
mod handles;
mod support;

use std::sync::Arc;
use std::time::Duration;

use handles::{Client, close, granted, lease_wanted, open, path, refusal, with_share};
use holdfast_domain::share::handles::{
    Action, CachingWanted, Disposition, DurableWanted, HandleRefusal, OpenNode,
};
use holdfast_domain::share::opens::{Caching, CachingGranted, Durability, OplockLevel, ShareMode};

const FILE: &str = "file.dat";

fn create(client: &Client, guid: u128) -> OpenNode {
    let durable = DurableWanted {
        kind: Durability::Second(guid),
        timeout_milliseconds: 0,
        persistent: false,
    };
    OpenNode { durable: Some(durable), ..client.wants_oplock(FILE, OplockLevel::Batch) }
}

fn again(command: &OpenNode) -> OpenNode {
    OpenNode { is_replay: true, ..command.clone() }
}

#[tokio::test]
async fn a_create_that_comes_again_gets_the_same_handle() {
    let store = with_share().await;
    let mut client = Client::new(1);
    let command = OpenNode { sharing: ShareMode::NONE, ..create(&client, 7) };
    let first = open(&store, &command).await;
    assert_eq!(first.action, Action::Created);
    for sharing in [ShareMode::NONE, ShareMode::ALL] {
        let disposition = Disposition::Open;
        let second = open(&store, &OpenNode { sharing, disposition, ..again(&command) }).await;
        assert!(Arc::ptr_eq(&first.handle, &second.handle));
        assert_eq!((second.action, second.durable), (first.action, Some(60_000)));
        assert_eq!((second.caching, &second.information), (first.caching, &first.information));
    }
    let contender = create(&client, 8);
    let contending = store.domain.open_handle(&contender);
    let (other, _) = tokio::join!(contending, client.answer(&store, &first.handle));
    assert_eq!(refusal(other), HandleRefusal::SharingViolation);
}

#[tokio::test]
async fn a_create_with_the_identifier_of_another_is_refused() {
    let store = with_share().await;
    let client = Client::new(1);
    let command = create(&client, 7);
    let first = open(&store, &command).await;
    let twice = store.domain.open_handle(&command).await;
    assert_eq!(refusal(twice), HandleRefusal::AlreadyCreated);
    close(&store, &first.handle).await;
    open(&store, &command).await;
}

#[tokio::test]
async fn identifiers_of_two_clients_are_different_ones() {
    let store = with_share().await;
    let (one, two) = (Client::new(1), Client::new(2));
    let first = open(&store, &OpenNode { path: path("one"), ..create(&one, 7) }).await;
    let second = open(&store, &OpenNode { path: path("two"), ..again(&create(&two, 7)) }).await;
    assert_ne!(first.handle.id, second.handle.id);
}

#[tokio::test]
async fn a_create_is_over_once_its_handle_was_used() {
    let store = with_share().await;
    let client = Client::new(1);
    let command = OpenNode { caching: CachingWanted::None, ..create(&client, 7) };
    let first = open(&store, &command).await;
    store.domain.use_handle(&first.handle);
    let second = open(&store, &again(&command)).await;
    assert_ne!(first.handle.id, second.handle.id);
    assert_eq!(second.action, Action::Opened);
    // The identifier now belongs to the second; closing the first changes nothing.
    close(&store, &first.handle).await;
    assert_eq!(open(&store, &again(&command)).await.handle.id, second.handle.id);
    close(&store, &second.handle).await;
    assert_ne!(open(&store, &again(&command)).await.handle.id, second.handle.id);
}

#[tokio::test]
async fn of_an_oplock_no_more_is_told_than_is_asked_for_again() {
    for (asked, told, durable) in [
        (CachingWanted::None, CachingGranted::None, None),
        (CachingWanted::Oplock(OplockLevel::Two), CachingGranted::Oplock(OplockLevel::Two), None),
        (
            CachingWanted::Oplock(OplockLevel::Batch),
            CachingGranted::Oplock(OplockLevel::Batch),
            Some(60_000),
        ),
    ] {
        let store = with_share().await;
        let mut client = Client::new(1);
        let command = create(&client, 7);
        open(&store, &command).await;
        let second = open(&store, &OpenNode { caching: asked, ..again(&command) }).await;
        assert_eq!((second.caching, second.durable), (told, durable), "{asked:?}");
        assert!(client.told().is_empty());
        let _ = tokio::time::timeout(
            Duration::from_millis(10),
            store.domain.open_handle(&create(&client, 8)),
        )
        .await;
        assert_eq!(client.told(), ["Two!"], "the open has its oplock still");
    }
}

#[tokio::test]
async fn a_lease_is_told_as_it_is_now_and_only_to_who_knows_its_key() {
    let store = with_share().await;
    let client = Client::new(1);
    let command = OpenNode { caching: lease_wanted(1, "RH", 0), ..create(&client, 7) };
    open(&store, &command).await;
    open(&store, &client.wants_lease(FILE, 1, "RWH")).await;
    for asked in ["RH", "R"] {
        let caching = lease_wanted(1, asked, 0);
        let second = open(&store, &OpenNode { caching, ..again(&command) }).await;
        assert_eq!((granted(&second), second.durable), (Caching::ALL, Some(60_000)), "{asked}");
    }
    for caching in
        [lease_wanted(2, "RH", 0), CachingWanted::None, CachingWanted::Oplock(OplockLevel::Batch)]
    {
        let refused = store.domain.open_handle(&OpenNode { caching, ..again(&command) }).await;
        assert_eq!(refusal(refused), HandleRefusal::AccessDenied, "{caching:?}");
    }
}

#[tokio::test]
async fn an_open_with_an_oplock_is_not_told_to_who_asks_for_a_lease() {
    let store = with_share().await;
    let client = Client::new(1);
    let command = create(&client, 7);
    open(&store, &command).await;
    let caching = lease_wanted(1, "RH", 0);
    let refused = store.domain.open_handle(&OpenNode { caching, ..again(&command) }).await;
    assert_eq!(refusal(refused), HandleRefusal::AccessDenied);
}

#[tokio::test]
async fn only_its_own_session_and_user_get_a_handle_again() {
    let store = with_share().await;
    let client = Client::new(1);
    let command = create(&client, 7);
    open(&store, &command).await;
    let mut elsewhere = again(&command);
    elsewhere.opener.session = 9;
    let refused = store.domain.open_handle(&elsewhere).await;
    assert_eq!(refusal(refused), HandleRefusal::AlreadyCreated);
    let mut stranger = again(&command);
    stranger.opener.user = Arc::from("account2");
    let refused = store.domain.open_handle(&stranger).await;
    assert_eq!(refusal(refused), HandleRefusal::AccessDenied);
    let elsewhere = OpenNode { path: path("other"), ..again(&command) };
    let refused = store.domain.open_handle(&elsewhere).await;
    assert_eq!(refusal(refused), HandleRefusal::InvalidParameter);
}

#[tokio::test]
async fn a_handle_whose_connection_was_lost_is_had_by_its_create_as_well() {
    let store = with_share().await;
    let client = Client::new(1);
    let command = create(&client, 7);
    let first = open(&store, &command).await;
    store.domain.disconnect_session(1).await;
    let mut back = again(&command);
    back.opener.session = 2;
    let second = open(&store, &back).await;
    assert!(Arc::ptr_eq(&first.handle, &second.handle) && !first.handle.is_lost());
    assert_eq!(first.handle.opener().session, 2);
}

#[tokio::test]
async fn a_create_is_not_repeated_while_the_first_is_at_work() {
    let store = with_share().await;
    let (mut holder, client) = (Client::new(1), Client::new(2));
    let held = open(&store, &holder.wants_oplock(FILE, OplockLevel::Batch)).await;
    let command = create(&client, 7);
    let opening = store.domain.open_handle(&command);
    let repeating = async {
        let replayed = store.domain.open_handle(&again(&command)).await;
        assert_eq!(refusal(replayed), HandleRefusal::StillPending);
        let twice = store.domain.open_handle(&command).await;
        assert_eq!(refusal(twice), HandleRefusal::AlreadyCreated);
        holder.answer(&store, &held.handle).await;
    };
    let opened = tokio::join!(opening, repeating).0.expect("it opens");
    let replayed = open(&store, &again(&command)).await;
    assert_eq!(opened.handle.id, replayed.handle.id);
}

#[tokio::test]
async fn a_create_that_came_to_nothing_can_be_sent_again() {
    let store = with_share().await;
    let (holder, client) = (Client::new(1), Client::new(2));
    let held = open(&store, &OpenNode { sharing: ShareMode::NONE, ..holder.wants(FILE) }).await;
    let command = create(&client, 7);
    for command in [&command, &again(&command)] {
        let refused = store.domain.open_handle(command).await;
        assert_eq!(refusal(refused), HandleRefusal::SharingViolation);
    }
    close(&store, &held.handle).await;
    open(&store, &again(&command)).await;
    let waiting = OpenNode { path: path("other"), ..create(&client, 9) };
    let held = open(
        &store,
        &OpenNode { path: path("other"), ..holder.wants_oplock(FILE, OplockLevel::Batch) },
    )
    .await;
    let given_up =
        tokio::time::timeout(Duration::from_millis(10), store.domain.open_handle(&waiting)).await;
    assert!(given_up.is_err());
    close(&store, &held.handle).await;
    open(&store, &waiting).await;
}
