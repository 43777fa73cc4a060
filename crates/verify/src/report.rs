//! The results of a run, for people to read.

use std::fmt;
use std::time::Duration;

/// Of a longer history only the end is shown.
const SHOWN_OPERATIONS_MAX: usize = 40;

/// A violated promise, with the operations that show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which checker found it.
    pub checker: &'static str,
    /// What is wrong, in a sentence.
    pub what: String,
    /// The shortest history found that shows it, one operation per line.
    pub history: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "VIOLATION ({}): {}", self.checker, self.what)?;
        let hidden = self.history.len().saturating_sub(SHOWN_OPERATIONS_MAX);
        if hidden > 0 {
            writeln!(formatter, "    ({hidden} operations before these)")?;
        }
        for line in &self.history[hidden..] {
            writeln!(formatter, "    {line}")?;
        }
        Ok(())
    }
}

/// The result of a checker for one history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub violations: Vec<Violation>,
    /// The search for an explanation was given up.
    pub is_unjudged: bool,
}

impl From<Vec<Violation>> for Verdict {
    fn from(violations: Vec<Violation>) -> Self {
        Self { violations, is_unjudged: false }
    }
}

/// Figures of one workload.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub workload: &'static str,
    pub operations: u64,
    /// Operations with an unknown outcome: no answer, a broken connection, a 5xx.
    pub maybes: u64,
    pub objects: u64,
    /// Objects whose history was too complex to check within its time limit.
    pub unjudged: u64,
    pub violations: Vec<Violation>,
}

impl Figures {
    pub fn add(&mut self, other: Self) {
        self.operations += other.operations;
        self.maybes += other.maybes;
        self.objects += other.objects;
        self.unjudged += other.unjudged;
        self.violations.extend(other.violations);
    }
}

/// The final report of `holdfast verify`.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub seed: u64,
    pub elapsed: Duration,
    pub workloads: Vec<Figures>,
    /// Workloads that could not run, and why.
    pub skipped: Vec<(&'static str, String)>,
}

impl Report {
    pub fn operations(&self) -> u64 {
        self.workloads.iter().map(|figures| figures.operations).sum()
    }

    pub fn violations(&self) -> impl Iterator<Item = &Violation> {
        self.workloads.iter().flat_map(|figures| &figures.violations)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "{:<16} {:>12} {:>8} {:>8} {:>9} {:>11}",
            "workload", "operations", "unknown", "objects", "unjudged", "violations"
        )?;
        for figures in &self.workloads {
            let Figures { workload, operations, maybes, objects, unjudged, violations } = figures;
            writeln!(
                formatter,
                "{workload:<16} {operations:>12} {maybes:>8} {objects:>8} {unjudged:>9} {:>11}",
                violations.len()
            )?;
        }
        for (workload, reason) in &self.skipped {
            writeln!(formatter, "{workload:<16} not run: {reason}")?;
        }
        writeln!(formatter)?;
        for violation in self.violations() {
            writeln!(formatter, "{violation}")?;
        }
        let found = self.violations().count();
        let verdict = match found {
            0 => "no violation found".to_owned(),
            1 => "1 VIOLATION".to_owned(),
            more => format!("{more} VIOLATIONS"),
        };
        write!(
            formatter,
            "{} operations in {:.0} s with seed {}: {verdict}",
            self.operations(),
            self.elapsed.as_secs_f64(),
            self.seed
        )
    }
}
