use std::sync::mpsc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;

use super::*;

const IN_TIME: Duration = Duration::from_secs(60);

fn lane() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

fn pool() -> HeavyPool {
    HeavyPool::start(1).expect("a thread")
}

/// Blocks the thread of the pool until the sender is dropped.
fn hold(pool: &HeavyPool, lane: &Runtime) -> mpsc::Sender<()> {
    let (go_on, waits) = mpsc::channel();
    let (begun, begins) = mpsc::channel();
    let work = Box::pin(async move {
        begun.send(()).expect("waited for");
        let _ = waits.recv();
    });
    drop(pool.entrance().run(AccountKey::of("holds"), lane.handle().clone(), work));
    begins.recv_timeout(IN_TIME).expect("begun");
    go_on
}

#[test]
fn accounts_take_turns_however_much_they_have_to_do() {
    let (lane, pool) = (lane(), pool());
    let held = hold(&pool, &lane);
    let turns = Arc::new(Mutex::new(String::new()));
    let run = |account: &str, letter: char, count: usize| {
        let turns = Arc::clone(&turns);
        let work = Box::pin(async move {
            for _ in 0..count {
                turns.lock().push(letter);
                yield_now().await;
            }
        });
        pool.entrance().run(AccountKey::of(account), lane.handle().clone(), work)
    };
    let mut all: Vec<_> = ('a'..='d').map(|letter| run("greedy", letter, 3)).collect();
    all.push(run("modest", 'X', 4));
    all.push(run("small", 'Y', 1));
    drop(held);
    for one in all {
        one.blocking_recv().expect("finished");
    }
    assert_eq!(*turns.lock(), "aXYbXcXdXabcdabcd");
}

#[test]
fn work_goes_on_when_its_runtime_wakes_it() {
    let (lane, pool) = (lane(), pool());
    let (tell, told) = oneshot::channel();
    let work = Box::pin(async move {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let aside = tokio::task::spawn_blocking(|| 1).await.expect("no panic");
        let thread = thread::current().name().map(str::to_owned);
        (aside + told.await.unwrap_or(0), thread)
    });
    let answer = pool.entrance().run(AccountKey(1), lane.handle().clone(), work);
    tell.send(2).expect("waited for");
    assert_eq!(answer.blocking_recv().expect("finished"), (3, Some("heavy-0".to_owned())));
}

#[test]
fn work_is_finished_though_nobody_waits_for_it() {
    let (lane, pool) = (lane(), pool());
    let (finished, finishes) = mpsc::channel();
    let work = Box::pin(async move {
        tokio::time::sleep(Duration::from_millis(5)).await;
        finished.send(()).expect("waited for");
    });
    drop(pool.entrance().run(AccountKey(1), lane.handle().clone(), work));
    finishes.recv_timeout(IN_TIME).expect("finished");
}

#[test]
fn a_panic_ends_its_own_work_only() {
    let (lane, pool) = (lane(), pool());
    let run = |panics: bool| {
        let work = Box::pin(async move {
            yield_now().await;
            assert!(!panics, "as planned");
        });
        pool.entrance().run(AccountKey(1), lane.handle().clone(), work)
    };
    let [panicked, other] = [run(true), run(false)];
    assert!(panicked.blocking_recv().is_err());
    assert!(other.blocking_recv().is_ok());
    // A finished task is removed just after its result was sent.
    while !pool.entrance().shared.queue.lock().unfinished.is_empty() {
        thread::yield_now();
    }
}

#[test]
fn a_pool_that_ends_drops_what_it_has_and_takes_nothing_more() {
    let (lane, pool) = (lane(), pool());
    let held = Arc::new(());
    let waits = |pool: &PoolEntrance| {
        let held = Arc::clone(&held);
        let work = Box::pin(async move {
            tokio::time::sleep(IN_TIME * 10).await;
            drop(held);
        });
        pool.run(AccountKey(1), lane.handle().clone(), work)
    };
    let entrance = pool.entrance().clone();
    let begun = waits(&entrance);
    drop(pool);
    assert!(begun.blocking_recv().is_err(), "it was given up");
    assert!(waits(&entrance).blocking_recv().is_err(), "it was not begun");
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
#[cfg(target_os = "linux")]
fn the_threads_have_a_lower_priority() {
    let (lane, pool) = (lane(), pool());
    let nice = || rustix::process::getpriority_process(None).expect("a priority");
    let work = Box::pin(async move { nice() });
    let answer = pool.entrance().run(AccountKey(1), lane.handle().clone(), work);
    assert_eq!(answer.blocking_recv().expect("finished"), (nice() + NICENESS).min(19));
}
