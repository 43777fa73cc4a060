//! Runs a test under many schedules.

use std::env;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

/// Of each test, unless `HOLDFAST_SHUTTLE_SCHEDULES` says how many.
const SCHEDULES: usize = 400;
/// Every so many of them has few switches at moments that matter instead of many at any: some
/// mistakes show by this, others by that.
const ONE_IN_FEW_SWITCHES: usize = 4;
const FEW_SWITCHES: usize = 3;
/// The row store runs as it is, with all the depth that files and tables take.
const STACK_BYTES: usize = 1024 * 1024;

/// Runs `test` once per schedule; a panic, or that everybody waits for somebody, is a failure. It
/// ends with how to run that very schedule again.
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
