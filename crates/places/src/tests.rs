use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use holdfast_random::Random;

use super::*;

const A: &str = "192.0.2.1";
const B: &str = "192.0.2.2";
const C: &str = "192.0.2.3";

fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

fn places(places: usize, kept_by_address: usize, left_to_each_listener: usize) -> Arc<Places> {
    Places::new(Limits { places, kept_by_address, left_to_each_listener })
}

fn take(entrance: &Entrance, address: &str) -> Place {
    let address = address.parse().unwrap();
    now(entrance.take(address)).expect("nobody waits").expect("nobody is refused")
}

fn known(entrance: &Entrance, address: &str) -> Place {
    let place = take(entrance, address);
    place.authenticated();
    place
}

fn is_gone(place: &Place) -> bool {
    now(place.taken_away()).is_some()
}

#[test]
fn address_may_have_every_place_that_nobody_else_wants() {
    let entrance = places(4, 1, 0).entrance();
    let held: Vec<Place> = (0..4).map(|_| known(&entrance, A)).collect();
    assert!(!held.iter().any(is_gone));
}

#[test]
fn strangers_go_first_and_the_oldest_of_them() {
    let entrance = places(3, 3, 0).entrance();
    let (kept, first, second) = (known(&entrance, A), take(&entrance, B), take(&entrance, B));
    let _new = take(&entrance, C);
    assert_eq!([&kept, &first, &second].map(is_gone), [false, true, false]);
}

#[test]
fn stranger_of_the_address_with_most_of_them_goes_though_others_are_older() {
    let entrance = places(3, 3, 0).entrance();
    let (old, one, other) = (take(&entrance, A), take(&entrance, B), take(&entrance, B));
    let new = take(&entrance, C);
    assert_eq!([&old, &one, &other, &new].map(is_gone), [false, true, false, false]);
}

#[test]
fn stranger_at_work_goes_after_one_that_is_idle() {
    let entrance = places(2, 2, 0).entrance();
    let (at_work, idle) = (take(&entrance, A), take(&entrance, A));
    at_work.works(true);
    let third = take(&entrance, A);
    assert_eq!([&at_work, &idle].map(is_gone), [false, true]);
    third.works(true);
    let _fourth = take(&entrance, A);
    assert_eq!([&at_work, &third].map(is_gone), [true, false]);
}

#[test]
fn what_an_address_has_beyond_its_share_goes_to_others() {
    let entrance = places(4, 2, 0).entrance();
    let held: Vec<Place> = (0..4).map(|_| known(&entrance, A)).collect();
    held.iter().for_each(|place| place.works(true));
    let (_one, _other) = (known(&entrance, B), known(&entrance, B));
    let gone: Vec<bool> = held.iter().map(is_gone).collect();
    assert_eq!(gone, [false, false, true, true]);
}

#[test]
fn address_with_its_share_takes_nothing_that_works_and_does_not_wait() {
    let entrance = places(4, 2, 0).entrance();
    let held: Vec<Place> = (0..4).map(|_| known(&entrance, A)).collect();
    held.iter().for_each(|place| place.works(true));
    let refused = now(entrance.take(A.parse().unwrap())).expect("an answer at once");
    assert!(refused.is_none() && !held.iter().any(is_gone));
    held[3].works(false);
    let _another = take(&entrance, A);
    assert!(is_gone(&held[3]), "an idle one of its own");
}

#[test]
fn newcomer_waits_while_all_places_are_kept_by_others() {
    let entrance = places(2, 1, 0).entrance();
    let (one, _other) = (known(&entrance, A), known(&entrance, B));
    let mut waiting = pin!(entrance.take(C.parse().unwrap()));
    let mut context = Context::from_waker(Waker::noop());
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    drop(one);
    assert!(matches!(waiting.as_mut().poll(&mut context), Poll::Ready(Some(_))));
}

#[test]
fn each_listener_has_places_that_others_cannot_keep() {
    let places = places(8, 8, 2);
    let (blob, queue, table) = (places.entrance(), places.entrance(), places.entrance());
    let on_blob: Vec<Place> = (0..8).map(|_| known(&blob, A)).collect();
    on_blob.iter().for_each(|place| place.works(true));
    let others: Vec<Place> = [&queue, &queue, &table, &table].map(|it| known(it, B)).into();
    let gone = on_blob.iter().filter(|place| is_gone(place)).count();
    assert_eq!((gone, others.iter().any(is_gone)), (4, false));
    assert!(now(queue.take(C.parse().unwrap())).is_none(), "all is kept now");
}

#[test]
fn lent_place_is_kept_when_another_of_its_address_is_gone() {
    let entrance = places(3, 1, 0).entrance();
    let (kept, lent, _stranger) = (known(&entrance, A), known(&entrance, A), take(&entrance, B));
    drop(kept);
    let (_one, _other) = (known(&entrance, B), known(&entrance, C));
    assert!(!is_gone(&lent), "the stranger went instead");
}

#[test]
fn newcomers_wait_for_those_that_were_told_to_go() {
    let entrance = places(LEAVING_MAX, LEAVING_MAX, 0).entrance();
    let mut held: Vec<Place> = (0..2 * LEAVING_MAX).map(|_| take(&entrance, A)).collect();
    assert!(now(entrance.take(B.parse().unwrap())).is_none(), "it waits");
    drop(held.remove(0));
    take(&entrance, B);
}

#[test]
fn connection_that_has_closed_is_waited_for_no_longer_though_it_is_still_at_work() {
    let entrance = places(LEAVING_MAX, LEAVING_MAX, 0).entrance();
    let held: Vec<Place> = (0..2 * LEAVING_MAX).map(|_| take(&entrance, A)).collect();
    held[0].closed();
    let _new = take(&entrance, B);
    drop(held);
    let state = entrance.places.state.lock();
    assert_eq!((state.taken, state.leaving), (1, 0));
}

#[test]
fn network_of_an_address_counts_in_ipv6_and_mapped_addresses_are_those_of_ipv4() {
    let address = |text: &str| Address::from(text.parse::<IpAddr>().unwrap());
    assert_eq!(address("2001:db8::1"), address("2001:db8::ffff:2"));
    assert_ne!(address("2001:db8::1"), address("2001:db8:0:1::1"));
    assert_eq!(address("::ffff:192.0.2.1"), address("192.0.2.1"));
    assert_ne!(address("::1"), address("0.0.0.0"));
}

/// At any time there are no more connections than places, except those that are leaving, and none
/// is lost.
#[test]
fn count_holds_through_a_long_history() {
    let places = places(20, 7, 3);
    let entrances = [places.entrance(), places.entrance(), places.entrance()];
    let mut held: Vec<Place> = Vec::new();
    let mut random = Random::new(1);
    for _ in 0..20_000 {
        let pick = random.within(0..1 << 32);
        match random.below(5) {
            0 | 1 => {
                let address = IpAddr::from([192, 0, 2, (pick % 5) as u8]);
                if let Some(Some(place)) = now(entrances[pick % 3].take(address)) {
                    held.push(place);
                }
            }
            2 if !held.is_empty() => drop(held.swap_remove(pick % held.len())),
            3 if !held.is_empty() => held[pick % held.len()].authenticated(),
            4 if !held.is_empty() => held[pick % held.len()].works(pick.is_multiple_of(2)),
            _ => {}
        }
        let leaving = held.iter().filter(|place| place.entry.is(Standing::Leaving)).count();
        let kept = held.iter().filter(|place| place.entry.is(Standing::Kept)).count();
        let state = places.state.lock();
        assert_eq!((state.taken + leaving, state.leaving), (held.len(), leaving));
        assert_eq!((state.kept, state.kept_by_listener.iter().sum::<usize>()), (kept, kept));
        assert!(state.taken <= 20 && leaving <= LEAVING_MAX);
    }
    drop(held);
    let state = places.state.lock();
    assert_eq!((state.taken, state.leaving, state.kept), (0, 0, 0));
    assert!(state.kept_by_address.is_empty());
}
