//! The same load on two servers, in turns, so that both see the same machine.

use crate::account::Account;
use crate::client::Failure;
use crate::load::{Plan, Target};
use crate::report::{Figures, HEADINGS, median, print_failures};
use crate::workload::{Settings, WorkloadName};

pub struct Side {
    pub name: String,
    pub account: Account,
}

/// Runs every round on both sides and prints each, then the medians and their ratio. Returns how
/// many operations failed.
pub fn compare(
    sides: [Side; 2],
    workload: WorkloadName,
    settings: Settings,
    plan: Plan,
    rounds: usize,
) -> Result<u64, Failure> {
    let [left, right] = sides;
    let width = left.name.len().max(right.name.len());
    let targets = [
        (left.name, Target::prepare(left.account, workload, settings)?),
        (right.name, Target::prepare(right.account, workload, settings)?),
    ];
    println!("round  {:width$}{HEADINGS}", "");
    let mut figures: [Vec<Figures>; 2] = [Vec::new(), Vec::new()];
    for round in 1..=rounds {
        for ((name, target), figures) in targets.iter().zip(&mut figures) {
            let tally = target.run(plan);
            let measured = Figures::of(&tally);
            println!("{round:>5}  {name:width$}{measured}");
            print_failures(&tally);
            figures.push(measured);
        }
    }
    for ((name, _), figures) in targets.iter().zip(&figures) {
        println!("median {name:width$}{}", Figures::median(figures));
    }
    print_ratio(&targets[0].0, &targets[1].0, &figures);
    for (_, target) in &targets {
        target.clean_up()?;
    }
    Ok(figures.iter().flatten().map(|figures| figures.errors).sum())
}

fn print_ratio(left: &str, right: &str, figures: &[Vec<Figures>; 2]) {
    let by_round: Vec<f64> = figures[0]
        .iter()
        .zip(&figures[1])
        .map(|(left, right)| left.operations_per_second / right.operations_per_second)
        .collect();
    let lowest = by_round.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = by_round.iter().copied().fold(0.0, f64::max);
    println!(
        "ratio  {left} / {right}: {:.2}× operations a second (median of the rounds; {lowest:.2} to {highest:.2})",
        median(by_round)
    );
}
