//! The same load on several servers, alternating, so that all run under the same conditions.

use crate::account::Account;
use crate::client::Failure;
use crate::load::{Plan, PreparedServer};
use crate::report::{Figures, HEADINGS, median, print_failures};
use crate::resource_usage::Process;
use crate::workload::{Settings, WorkloadName};

pub struct Side {
    pub name: String,
    pub account: Account,
    /// The process of a server that was started for the comparison.
    pub process: Option<Process>,
}

struct Contender {
    name: String,
    process: Option<Process>,
    target: PreparedServer,
    figures: Vec<Figures>,
}

impl Contender {
    fn prepare(side: Side, workload: WorkloadName, settings: Settings) -> Result<Self, Failure> {
        let Side { name, account, process } = side;
        let target = PreparedServer::prepare(account, workload, settings)?;
        Ok(Self { name, process, target, figures: Vec::new() })
    }

    fn run(&mut self, plan: Plan, round: usize, width: usize) {
        let spent = |process: &Option<Process>| process.as_ref().map(Process::processor_time);
        let before = spent(&self.process);
        let mut tally = self.target.run(plan);
        tally.server =
            spent(&self.process).zip(before).map(|(after, before)| after.saturating_sub(before));
        let measured = Figures::of(&tally);
        println!("{round:>5}  {:width$}{measured}", self.name);
        print_failures(&tally);
        self.figures.push(measured);
    }
}

/// Runs every round on all sides and prints each, then the medians, the ratio of the first side to
/// each other, and the memory of the servers. Returns how many operations failed.
pub fn compare(
    sides: Vec<Side>,
    workload: WorkloadName,
    settings: Settings,
    plan: Plan,
    rounds: usize,
) -> Result<u64, Failure> {
    let width = sides.iter().map(|side| side.name.len()).max().unwrap_or(0);
    let mut contenders = sides
        .into_iter()
        .map(|side| Contender::prepare(side, workload, settings))
        .collect::<Result<Vec<_>, _>>()?;
    println!("round  {:width$}{HEADINGS}", "");
    for round in 1..=rounds {
        for contender in &mut contenders {
            contender.run(plan, round, width);
        }
    }
    for contender in &contenders {
        println!("median {:width$}{}", contender.name, Figures::median(&contender.figures));
    }
    if let Some((first, others)) = contenders.split_first() {
        for other in others {
            print_ratio(first, other);
        }
    }
    for Contender { name, process, .. } in &contenders {
        if let Some(bytes) = process.as_ref().and_then(Process::memory_bytes_peak) {
            println!("memory {name:width$} {} MiB resident at most", bytes >> 20);
        }
    }
    for contender in &contenders {
        contender.target.clean_up()?;
    }
    let figures = contenders.iter().flat_map(|contender| &contender.figures);
    Ok(figures.map(|figures| figures.errors).sum())
}

fn print_ratio(left: &Contender, right: &Contender) {
    let by_round: Vec<f64> = left
        .figures
        .iter()
        .zip(&right.figures)
        .map(|(left, right)| left.operations_per_second / right.operations_per_second)
        .collect();
    let lowest = by_round.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = by_round.iter().copied().fold(0.0, f64::max);
    println!(
        "ratio  {} / {}: {:.2}× operations a second (median of the rounds; {lowest:.2} to {highest:.2})",
        left.name,
        right.name,
        median(by_round)
    );
}
