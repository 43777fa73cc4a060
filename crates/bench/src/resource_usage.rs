//! The resources used by a running server, with its child processes.

use std::fs;
use std::time::Duration;

/// A process and its children, by its number.
#[derive(Clone, Copy, Debug)]
pub struct Process(pub u32);

impl Process {
    /// User and system time since it began, in the ticks of the kernel.
    pub fn processor_time(&self) -> Duration {
        let ticks: u64 = self.family().filter_map(processor_ticks).sum();
        Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND)
    }

    /// The peak of resident memory; for several processes the sum.
    pub fn memory_bytes_peak(&self) -> Option<u64> {
        self.family().map(peak).sum()
    }

    fn family(&self) -> impl Iterator<Item = u32> {
        let path = format!("/proc/{0}/task/{0}/children", self.0);
        let children = fs::read_to_string(path).unwrap_or_default();
        let children: Vec<u32> =
            children.split_ascii_whitespace().filter_map(|child| child.parse().ok()).collect();
        std::iter::once(self.0).chain(children)
    }
}

/// Fixed for user space, whatever the kernel uses internally.
const TICKS_PER_SECOND: u64 = 100;

fn processor_ticks(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before may contain anything, even spaces; it ends with the last parenthesis.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

fn peak(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_spent_time_and_memory() {
        let process = Process(std::process::id());
        let begun = process.processor_time();
        let mut sum = 0_u64;
        while process.processor_time() == begun {
            sum = (0..100_000).fold(sum, |sum, number| std::hint::black_box(sum ^ number));
        }
        assert!(process.memory_bytes_peak().expect("it is running") > 1024 * 1024);
        assert_eq!(Process(u32::MAX).memory_bytes_peak(), None);
    }
}
