//! Runs a test under many schedules.

use std::env;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

/// Schedules per test, unless `HOLDFAST_SHUTTLE_SCHEDULES` is set.
const SCHEDULES: usize = 400;
/// One in so many schedules has few switches, at important moments, instead of many at random ones:
/// each finds other bugs.
const ONE_IN_FEW_SWITCHES: usize = 4;
const FEW_SWITCHES: usize = 3;
/// The row store runs unchanged and needs a deep stack.
const STACK_BYTES: usize = 1024 * 1024;

/// Runs `test` once per schedule; a panic or a deadlock is a failure, which prints how to repeat
/// that schedule.
pub fn explore(test: impl Fn() + Send + Sync + Copy + 'static) {
    let schedules = env::var("HOLDFAST_SHUTTLE_SCHEDULES")
        .map_or(SCHEDULES, |count| count.parse().expect("a number of schedules"));
    let mut config = Config::default();
    config.stack_size = STACK_BYTES;
    let with_few_switches = (schedules / ONE_IN_FEW_SWITCHES).max(1);
    let with_any = (schedules - with_few_switches).max(1);
    Runner::new(RandomScheduler::new(with_any), config.clone()).run(test);
    Runner::new(PctScheduler::new(FEW_SWITCHES, with_few_switches), config).run(test);
    println!("{} schedules", with_any + with_few_switches);
}
