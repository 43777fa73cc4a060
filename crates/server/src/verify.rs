//! `holdfast verify`: records the requests of many concurrent clients to a running server, checks
//! the history, and prints the result. Exit code 0: no violation; 1: a violation; 2: an invalid
//! command line, or a server that is unreachable or let nothing be checked.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Parser;
use holdfast_verify::account::Account;
use holdfast_verify::report::Report;
use holdfast_verify::run::{self, Plan, Progress};

use crate::{BAD_SETTINGS, FAULT};

/// Check the concurrency of a running server, this one or another of the same protocol.
///
/// Many clients write, update, lease and read the same objects at once, and every answer is compared
/// with what a correct server could have answered. The run uses containers, queues, tables and
/// shares of its own, and removes them at its end.
#[derive(Parser)]
#[command(name = "verify", bin_name = "holdfast verify", version)]
pub struct Arguments {
    /// The server: UseDevelopmentStorage=true, or AccountName=…;AccountKey=…;BlobEndpoint=http://…
    #[arg(long, value_name = "STRING", default_value = "UseDevelopmentStorage=true")]
    connection_string: String,
    /// End after this many minutes; 1 if no other limit is given.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    minutes: Option<u64>,
    /// End after this many seconds.
    #[arg(long, conflicts_with = "minutes", value_parser = clap::value_parser!(u64).range(1..))]
    seconds: Option<u64>,
    /// End after this many operations.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    operations: Option<u64>,
    /// Repeat the random choices of an earlier run; the timing may still differ.
    #[arg(long)]
    seed: Option<u64>,
    /// Clients of each workload.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(2..=512))]
    clients: u32,
}

impl Arguments {
    fn plan(&self) -> Plan {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = self.seconds.or(self.minutes.map(|minutes| minutes * 60));
        Plan {
            seed: self.seed.unwrap_or(now.as_secs()),
            clients: self.clients,
            duration_max: match (seconds, self.operations) {
                (Some(seconds), _) => Duration::from_secs(seconds),
                (None, Some(_)) => Duration::MAX,
                (None, None) => Duration::from_secs(60),
            },
            operations_max: self.operations.unwrap_or(u64::MAX),
        }
    }
}

/// Runs the subcommand; its own name is the first of its arguments.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(usage) => return crate::usage(&usage),
    };
    let account = match Account::parse(&arguments.connection_string) {
        Ok(account) => account,
        Err(error) => {
            eprintln!("holdfast verify: --connection-string: {error}");
            return ExitCode::from(BAD_SETTINGS);
        }
    };
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("holdfast verify: {error}");
            return ExitCode::from(FAULT);
        }
    };
    let report = runtime.block_on(watched(account, arguments.plan()));
    println!("{report}");
    if report.violations().next().is_some() {
        ExitCode::from(FAULT)
    } else if report.operations() == 0 {
        eprintln!("holdfast verify: nothing was checked");
        ExitCode::from(BAD_SETTINGS)
    } else {
        ExitCode::SUCCESS
    }
}

const PROGRESS_PERIOD: Duration = Duration::from_secs(5);

async fn watched(account: Account, plan: Plan) -> Report {
    let progress = Progress::default();
    let begun = tokio::time::Instant::now();
    println!("verify: seed {}", plan.seed);
    let mut running = std::pin::pin!(run::run(account, plan, &progress));
    let mut ticks = tokio::time::interval_at(begun + PROGRESS_PERIOD, PROGRESS_PERIOD);
    loop {
        tokio::select! {
            report = &mut running => return report,
            _ = ticks.tick() => println!(
                "{:>6.0} s  {} operations, {} with an unknown outcome, {} violations",
                begun.elapsed().as_secs_f64(),
                progress.operations.load(Ordering::Relaxed),
                progress.maybes.load(Ordering::Relaxed),
                progress.violations.load(Ordering::Relaxed)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(arguments: &[&str]) -> Plan {
        let all = ["verify", "--seed", "7"].iter().chain(arguments);
        Arguments::try_parse_from(all).expect("it is allowed").plan()
    }

    #[test]
    fn a_run_is_bounded_by_time_by_operations_or_by_both() {
        assert_eq!(plan(&[]).duration_max, Duration::from_secs(60));
        assert_eq!(plan(&["--minutes", "3"]).duration_max, Duration::from_secs(180));
        assert_eq!(plan(&["--seconds", "3"]).duration_max, Duration::from_secs(3));
        let counted = plan(&["--operations", "9"]);
        assert_eq!((counted.duration_max, counted.operations_max), (Duration::MAX, 9));
        let both = plan(&["--operations", "9", "--minutes", "1"]);
        assert_eq!((both.duration_max, both.operations_max), (Duration::from_secs(60), 9));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for arguments in [&["--minutes", "0"][..], &["--clients", "1"], &["stray"]] {
            let all = [&["verify"][..], arguments].concat();
            assert!(Arguments::try_parse_from(all).is_err(), "{arguments:?}");
        }
    }
}
