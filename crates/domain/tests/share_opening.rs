//! Opening a missing node by many clients at once, on the memory store.

#[path = "support/handles.rs"]
mod handles;
mod support;

use std::sync::Arc;

use handles::{Client, close, open, refusal, with_share};
use holdfast_domain::share::handles::{Action, Disposition, HandleRefusal, OpenNode};
use holdfast_domain::share::opens::{LeaseKey, ShareMode};
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread")]
async fn of_those_who_create_a_file_for_themselves_the_one_who_gets_it_has_created_it() {
    let store = Arc::new(with_share().await);
    for round in 0..200 {
        let mut openers = JoinSet::new();
        for number in 0..4 {
            let store = Arc::clone(&store);
            openers.spawn(async move {
                let wants = Client::new(number).wants(&format!("file{round}"));
                store.domain.open_handle(&OpenNode { sharing: ShareMode::NONE, ..wants }).await
            });
        }
        let mut actions = Vec::new();
        for opened in openers.join_all().await {
            match opened {
                Ok(opened) => actions.push(opened.action),
                refused => assert_eq!(refusal(refused), HandleRefusal::SharingViolation),
            }
        }
        assert_eq!(actions, [Action::Created], "round {round}");
    }
}

#[tokio::test]
async fn an_open_that_is_refused_leaves_no_new_file_and_no_open() {
    let store = with_share().await;
    let client = Client::new(1);
    let leased = open(&store, &client.wants_lease("leased", 1, "RH")).await;
    let refused = store.domain.open_handle(&client.wants_lease("new", 1, "RH")).await;
    assert_eq!(refusal(refused), HandleRefusal::InvalidParameter);
    let disposition = Disposition::Open;
    let absent = OpenNode { disposition, ..client.wants("new") };
    assert_eq!(refusal(store.domain.open_handle(&absent).await), HandleRefusal::NotFound);
    assert_eq!(leased.handle.lease, Some(LeaseKey(1)));
    close(&store, &leased.handle).await;
    let again = store.domain.open_handle(&client.wants_lease("new", 1, "RH")).await;
    assert_eq!(again.expect("the key is free").action, Action::Created);
}
