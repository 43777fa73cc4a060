//! Runs every target briefly on its seeds and changes of them: nothing may panic, take long or take
//! more memory than its bound. `scripts/fuzz` runs them for longer.
//!
//! `HOLDFAST_FUZZ_SEED` repeats a run, `HOLDFAST_FUZZ_MILLISECONDS` lengthens it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use holdfast_fuzz::mutate::mutate;
use holdfast_fuzz::{TARGETS, Target};
use holdfast_random::{Random, seed, setting};

/// The time for each target; enough for thousands of inputs.
const MILLISECONDS: u64 = 1000;
/// The limit for one input, far above what any takes.
const INPUT_SECONDS_MAX: Duration = Duration::from_secs(2);

/// The bytes allocated now, and their peak since the last reset.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: everything is passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn seeds(target: &Target) -> Vec<Vec<u8>> {
    let folder =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target.name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|_| panic!("no seeds for {}", target.name));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a seed").path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("a seed can be read")).collect()
}

/// Returns whether the input was valid. Prints the input if it exceeded a limit.
fn feed(target: &Target, input: &[u8], seed: u64) -> bool {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let began = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let (took, grown) = (began.elapsed(), PEAK.load(Ordering::Relaxed).saturating_sub(before));
    let name = target.name;
    let Ok(understood) = outcome else {
        panic!("{name} panics (HOLDFAST_FUZZ_SEED={seed}) at {}", input.escape_ascii())
    };
    assert!(took < INPUT_SECONDS_MAX, "{name} takes {took:?} for {}", input.escape_ascii());
    assert!(
        grown <= target.memory_bytes_max,
        "{name} takes {grown} bytes for {}",
        input.escape_ascii()
    );
    understood
}

/// One test, since the memory of concurrent tests could not be separated.
#[test]
fn no_parser_panics_hangs_or_takes_more_memory_than_it_may() {
    let seed = seed("HOLDFAST_FUZZ_SEED", 0x5EED_0000_0001);
    let time = Duration::from_millis(setting("HOLDFAST_FUZZ_MILLISECONDS").unwrap_or(MILLISECONDS));
    for target in TARGETS {
        let seeds = seeds(target);
        let known = seeds.iter().filter(|input| feed(target, input, seed)).count();
        // Otherwise the changes would never get past the first check.
        assert!(known > 0, "{}: its seeds mean something", target.name);
        let mut random = Random::new(seed);
        let (mut inputs, mut understood) = (0u64, 0u64);
        let began = Instant::now();
        while began.elapsed() < time {
            let mut input = seeds[random.within(0..seeds.len())].clone();
            let other = &seeds[random.within(0..seeds.len())];
            mutate(&mut input, other, &mut random);
            understood += u64::from(feed(target, &input, seed));
            inputs += 1;
        }
        println!("{}: {inputs} inputs, {understood} of them understood", target.name);
        assert!(inputs > 0, "{}", target.name);
    }
}

#[test]
fn every_target_has_its_fuzz_target() {
    let manifest = include_str!("../../../fuzz/Cargo.toml");
    for target in TARGETS {
        assert!(manifest.contains(&format!("name = \"{}\"", target.name)), "{}", target.name);
    }
}
