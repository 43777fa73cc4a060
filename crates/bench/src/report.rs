//! Figures of a run, and how they are printed.

use std::fmt;
use std::time::Duration;

use crate::load::Tally;

#[derive(Clone, Copy, Debug)]
pub struct Figures {
    pub operations: u64,
    pub errors: u64,
    pub operations_per_second: f64,
    pub megabytes_per_second: f64,
    pub p50_milliseconds: f64,
    pub p99_milliseconds: f64,
    pub max_milliseconds: f64,
    /// Processor time that this program spent on an operation.
    pub client_microseconds: f64,
    /// Processor time that the server spent on an operation, if it was started for the run.
    pub server_microseconds: Option<f64>,
}

impl Figures {
    pub fn of(tally: &Tally) -> Self {
        let seconds = tally.elapsed.as_secs_f64().max(f64::EPSILON);
        let milliseconds = |quantile: f64| {
            let microseconds = tally.latencies.value_at_quantile(quantile);
            u32::try_from(microseconds).map_or(f64::INFINITY, f64::from) / 1e3
        };
        let operations = tally.latencies.len();
        Self {
            operations,
            errors: tally.errors,
            operations_per_second: per_second(operations, seconds),
            megabytes_per_second: per_second(tally.bytes, seconds) / 1e6,
            p50_milliseconds: milliseconds(0.5),
            p99_milliseconds: milliseconds(0.99),
            max_milliseconds: milliseconds(1.0),
            client_microseconds: microseconds_each(tally.made, tally.processor),
            server_microseconds: tally.server.map(|spent| microseconds_each(tally.made, spent)),
        }
    }

    /// The median of several runs for each figure; operations and errors are summed.
    pub fn median(runs: &[Self]) -> Self {
        let middle = |figure: fn(&Self) -> f64| median(runs.iter().map(figure).collect());
        Self {
            operations: runs.iter().map(|run| run.operations).sum(),
            errors: runs.iter().map(|run| run.errors).sum(),
            operations_per_second: middle(|run| run.operations_per_second),
            megabytes_per_second: middle(|run| run.megabytes_per_second),
            p50_milliseconds: middle(|run| run.p50_milliseconds),
            p99_milliseconds: middle(|run| run.p99_milliseconds),
            max_milliseconds: middle(|run| run.max_milliseconds),
            client_microseconds: middle(|run| run.client_microseconds),
            server_microseconds: runs
                .iter()
                .map(|run| run.server_microseconds)
                .collect::<Option<Vec<f64>>>()
                .map(median),
        }
    }
}

fn microseconds_each(count: u64, spent: Duration) -> f64 {
    1e6 / per_second(count, spent.as_secs_f64())
}

/// Counts of a run are far below 2^53, where a float is still exact.
#[allow(clippy::cast_precision_loss)]
fn per_second(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds
}

pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    match figures.len() {
        0 => 0.0,
        length if length % 2 == 1 => figures[length / 2],
        length => f64::midpoint(figures[length / 2 - 1], figures[length / 2]),
    }
}

pub const HEADINGS: &str = "      ops/s       MB/s     p50 ms     p99 ms     max ms  client µs  server µs       ops  errors";

impl fmt::Display for Figures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{:>11.1}{:>11.1}{:>11.3}{:>11.3}{:>11.3}{:>11.1}{:>11}{:>10}{:>8}",
            self.operations_per_second,
            self.megabytes_per_second,
            self.p50_milliseconds,
            self.p99_milliseconds,
            self.max_milliseconds,
            self.client_microseconds,
            self.server_microseconds.map_or_else(|| "-".to_owned(), |spent| format!("{spent:.1}")),
            self.operations,
            self.errors,
        )
    }
}

pub fn print_failures(tally: &Tally) {
    for (failure, times) in &tally.failures {
        println!("  {times} × {failure}");
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn median_is_the_middle_or_between_the_two_in_the_middle() {
        for (figures, middle) in
            [(vec![3.0, 1.0, 2.0], 2.0), (vec![4.0, 1.0, 3.0, 2.0], 2.5), (vec![], 0.0)]
        {
            assert!((median(figures) - middle).abs() < f64::EPSILON);
        }
    }
}
