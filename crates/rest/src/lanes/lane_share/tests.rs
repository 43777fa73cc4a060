use std::sync::mpsc;
use std::thread;

use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;

use super::*;
use crate::lanes::heavy_pool::HeavyPool;

fn lane() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn share_of(lane: &Runtime, pool: &HeavyPool) -> Arc<LaneShare> {
    LaneShare::new(lane.handle().clone(), pool.entrance().clone(), Arc::default())
}

/// Runs it as a part of one request.
fn carried<T: Send + 'static>(work: Work<T>) -> T {
    let (lane, pool) = (lane(), HeavyPool::start(1).expect("a thread"));
    let share = share_of(&lane, &pool);
    share.begin();
    lane.block_on(share.count_turns(share.carry(work))).expect("finished")
}

/// Uses so much processor time.
fn compute(time: Duration) {
    let begun = thread_time();
    while thread_time() - begun < time {
        std::hint::spin_loop();
    }
}

fn is_in_pool() -> bool {
    thread::current().name() == Some("heavy-0")
}

#[test]
fn a_request_goes_on_in_the_pool_when_its_share_is_used_up() {
    let threads = carried(Box::pin(async {
        let mut threads = vec![is_in_pool()];
        for _ in 0..3 {
            compute(SHARE.mul_f64(0.6));
            yield_now().await;
            threads.push(is_in_pool());
        }
        threads
    }));
    assert_eq!(threads, [false, false, true, true]);
}

#[test]
fn a_request_that_takes_little_stays_on_its_lane_however_long_it_waits() {
    let threads = carried(Box::pin(async {
        let mut threads = Vec::new();
        for _ in 0..5 {
            tokio::time::sleep(SHARE).await;
            threads.push(is_in_pool());
        }
        threads
    }));
    assert_eq!(threads, [false; 5]);
}

#[test]
fn who_is_about_to_take_long_can_leave_the_lane_first() {
    let threads = carried(Box::pin(async {
        let before = is_in_pool();
        leave_lane().await;
        let behind = is_in_pool();
        leave_lane().await;
        [before, behind, is_in_pool()]
    }));
    assert_eq!(threads, [false, true, true]);
}

#[test]
fn the_next_part_of_a_request_follows_it_and_the_next_request_does_not() {
    let (lane, pool) = (lane(), HeavyPool::start(1).expect("a thread"));
    let share = share_of(&lane, &pool);
    let parts = async {
        share.begin();
        share.carry(Box::pin(leave_lane())).await.expect("finished");
        let answer = share.carry(Box::pin(async { is_in_pool() })).await.expect("finished");
        share.begin();
        (answer, share.carry(Box::pin(async { is_in_pool() })).await.expect("finished"))
    };
    assert_eq!(lane.block_on(share.count_turns(parts)), (true, false));
}

#[test]
fn what_has_been_handed_over_is_finished_without_its_connection() {
    let (lane, pool) = (lane(), HeavyPool::start(1).expect("a thread"));
    let share = share_of(&lane, &pool);
    let (finished, finishes) = mpsc::channel();
    let mut carrying = Box::pin(share.carry(Box::pin(async move {
        leave_lane().await;
        yield_now().await;
        finished.send(is_in_pool()).expect("waited for");
    })));
    lane.block_on(async {
        assert!(futures_util::poll!(&mut carrying).is_pending());
        drop(carrying);
    });
    assert!(finishes.recv_timeout(Duration::from_secs(60)).expect("finished"));
}

#[test]
fn a_request_whose_pool_has_ended_is_given_up() {
    let (lane, pool) = (lane(), HeavyPool::start(1).expect("a thread"));
    let share = share_of(&lane, &pool);
    let carrying = share.carry(Box::pin(async {
        leave_lane().await;
        std::future::pending::<()>().await;
    }));
    let ending = async {
        yield_now().await;
        drop(pool);
    };
    let (ended, ()) = lane.block_on(async { tokio::join!(biased; carrying, ending) });
    assert!(ended.is_err());
}

#[test]
fn a_turn_is_what_it_takes_of_the_processor() {
    let clock = LaneClock::new();
    let turn = |work: &dyn Fn()| {
        work();
        clock.turn_has_ended()
    };
    clock.start();
    let long = Duration::from_millis(20);
    assert!(turn(&|| thread::sleep(long)) < long / 4, "other threads had the processor");
    let computed = turn(&|| compute(long));
    assert!(computed >= long && computed < long * 2, "{computed:?}");
    let short = (0..100).map(|_| turn(&|| ())).max().expect("some");
    assert!(short < long / 4, "{short:?}");
}
