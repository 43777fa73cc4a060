//! Which tables are merged next: a function of the arrangement alone.
//!
//! Flushed tables are merged into the highest level in use, and from there on a level that is too large
//! gives tables to the next. That keeps the number of tables small in which a row is searched. It frees
//! space only as a side effect: what a tombstone deletes stays until the two are merged, and without new
//! rows that never happens. So tables with many tombstones are merged with the tables below as soon as
//! what they delete is worth the writing.

use std::sync::Arc;

use super::levels::{BOTTOM, LEVELS, Levels, Run, Summarized, bytes_of};

/// What the choice depends on besides the tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct MergeOptions {
    /// The size of the highest level in use; each one below may have `LEVEL_RATIO` times as much.
    level_bytes: u64,
    /// Fewer tombstones in a table do no harm.
    tombstones_min: u64,
    /// How much is merged to remove tombstones that free little space.
    tidied_bytes_max: u64,
}

impl MergeOptions {
    pub fn new(table_bytes: u64) -> Self {
        Self {
            level_bytes: table_bytes * FLUSHED_RUNS as u64,
            tombstones_min: (table_bytes / (64 * 1024)).max(1),
            tidied_bytes_max: table_bytes * 32,
        }
    }
}

/// So many runs of flushed tables are merged at once. With keys spread over the whole range, each merge
/// rewrites the whole next level, so many at once mean less writing; reads look into more tables, which
/// their filters make cheap.
const FLUSHED_RUNS: usize = 16;

const LEVEL_RATIO: u64 = 10;
/// How much may be written for each tombstone removed, with other work to do and without. Merging large
/// levels rewrites rows about as often.
const BYTES_PER_TOMBSTONE: u64 = 4 * 1024;
const IDLE_BYTES_PER_TOMBSTONE: u64 = 16 * 1024;
/// One byte in so many of those that are rewritten must be garbage for tombstones to be merged. So garbage
/// is at most a third of what is live.
const GARBAGE_PART: u64 = 4;

pub(super) struct Merge<T> {
    /// In runs, the newest first.
    pub inputs: Vec<Vec<Arc<T>>>,
    /// Where the rows go.
    pub level: usize,
    /// The tables only move: nothing at that level overlaps them.
    pub is_move: bool,
}

/// How much may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::embedded) enum Effort {
    /// What keeps reads cheap and the disk from filling up.
    Needed,
    /// There is nothing else to do: removing tombstones may cost more.
    Idle,
}

/// `oldest` is the lowest bound that a snapshot has or can get: deletions at or above it cannot be
/// carried out yet.
pub(super) fn choose<T: Summarized>(
    levels: &Levels<T>,
    options: MergeOptions,
    effort: Effort,
    oldest: u64,
) -> Option<Merge<T>> {
    let budget = match effort {
        Effort::Needed => BYTES_PER_TOMBSTONE,
        Effort::Idle => IDLE_BYTES_PER_TOMBSTONE,
    };
    if levels.flushed.len() >= FLUSHED_RUNS {
        return Some(merge_flushed(levels, options));
    }
    if let Some(level) = too_large(levels, options) {
        return Some(relieve(levels, level));
    }
    best_of_tombstones(levels, options, budget, oldest)
        .or_else(|| flushed_tombstones(levels, options, budget))
}

/// The highest level that takes rows, chosen so that the levels below fit the size of the bottom
/// one.
fn top_level<T: Summarized>(levels: &Levels<T>, options: MergeOptions) -> usize {
    let below: u64 = (1..LEVELS).map(|level| levels.level(level).bytes()).sum();
    let mut top = BOTTOM;
    let mut room = options.level_bytes;
    while top > 1 && below > room {
        top -= 1;
        room = room.saturating_mul(LEVEL_RATIO);
    }
    // Levels in use are not skipped.
    let highest_used = (1..BOTTOM).find(|level| !levels.level(*level).tables().is_empty());
    highest_used.map_or(top, |used| top.min(used))
}

fn merge_flushed<T: Summarized>(levels: &Levels<T>, options: MergeOptions) -> Merge<T> {
    let level = top_level(levels, options);
    let mut inputs: Vec<Vec<Arc<T>>> =
        levels.flushed.iter().map(|run| run.tables().to_vec()).collect();
    let touched = overlapped(levels.level(level), inputs.iter().flatten());
    if !touched.is_empty() {
        inputs.push(touched);
    }
    Merge { inputs, level, is_move: false }
}

/// The tables of a run that any of these overlaps, each once.
fn overlapped<'a, T: Summarized + 'a>(
    run: &Run<T>,
    tables: impl Iterator<Item = &'a Arc<T>>,
) -> Vec<Arc<T>> {
    let mut found: Vec<Arc<T>> = tables
        .flat_map(|table| {
            let summary = table.summary();
            run.overlapping(&summary.first_key, &summary.last_key)
        })
        .cloned()
        .collect();
    found.sort_by(|one, other| one.summary().first_key.cmp(&other.summary().first_key));
    found.dedup_by_key(|table| table.summary().id);
    found
}

/// The level that exceeds its size limit most.
fn too_large<T: Summarized>(levels: &Levels<T>, options: MergeOptions) -> Option<usize> {
    let top = top_level(levels, options);
    let mut room = options.level_bytes;
    let mut worst = None;
    for level in top..BOTTOM {
        let bytes = levels.level(level).bytes();
        let excess = bytes as f64 / room as f64;
        if excess > worst.map_or(1.0, |(_, excess)| excess) {
            worst = Some((level, excess));
        }
        room = room.saturating_mul(LEVEL_RATIO);
    }
    worst.map(|(level, _)| level)
}

/// Moves the table that is cheapest to move to the next level, and others that cost nothing more.
fn relieve<T: Summarized>(levels: &Levels<T>, level: usize) -> Merge<T> {
    let next = levels.level(level + 1);
    let below = |table: &Arc<T>| {
        let summary = table.summary();
        next.overlapping(&summary.first_key, &summary.last_key)
    };
    let tables = levels.level(level).tables();
    let cost = |table: &&Arc<T>| {
        let bytes = table.summary().bytes.max(1);
        ((bytes_of(below(table)) as f64 / bytes as f64) * 1000.0) as u64
    };
    let chosen = tables.iter().min_by_key(cost).expect("a level that is too large has tables");
    let touched = below(chosen).to_vec();
    if touched.is_empty() {
        let movable = tables.iter().filter(|table| below(table).is_empty());
        return Merge { inputs: vec![movable.cloned().collect()], level: level + 1, is_move: true };
    }
    // Those within the key range that is written anyway.
    let (first, last) = (&touched[0], &touched[touched.len() - 1]);
    let within = levels
        .level(level)
        .overlapping(&first.summary().first_key, &last.summary().last_key)
        .iter()
        .filter(|table| {
            let summary = table.summary();
            let is_inside = summary.first_key >= first.summary().first_key
                && summary.last_key <= last.summary().last_key;
            is_inside || summary.id == chosen.summary().id
        });
    Merge { inputs: vec![within.cloned().collect(), touched], level: level + 1, is_move: false }
}

/// The table whose tombstones give the most room back for what is written.
fn best_of_tombstones<T: Summarized>(
    levels: &Levels<T>,
    options: MergeOptions,
    budget: u64,
    oldest: u64,
) -> Option<Merge<T>> {
    let mut best: Option<(f64, Merge<T>)> = None;
    let is_ready = |table: &&Arc<T>| {
        let summary = table.summary();
        summary.tombstones >= options.tombstones_min && summary.newest < oldest
    };
    for level in 1..LEVELS {
        for table in levels.level(level).tables().iter().filter(is_ready) {
            let worth = worth_merging(levels, options, level, table, budget);
            let Some((worth, merge)) = worth else { continue };
            if best.as_ref().is_none_or(|(most, _)| worth > *most) {
                best = Some((worth, merge));
            }
        }
    }
    best.map(|(_, merge)| merge)
}

/// How much is given back for each byte that is written, if that is enough.
fn worth_merging<T: Summarized>(
    levels: &Levels<T>,
    options: MergeOptions,
    level: usize,
    table: &Arc<T>,
    budget: u64,
) -> Option<(f64, Merge<T>)> {
    let summary = table.summary();
    let below = (level + 1..LEVELS)
        .map(|level| {
            (level, levels.level(level).overlapping(&summary.first_key, &summary.last_key))
        })
        .find(|(_, tables)| !tables.is_empty());
    let Some((level_below, below)) = below else {
        // They delete nothing any more: the rows are rewritten without them.
        let is_worth_it = summary.tombstones.saturating_mul(budget) >= summary.bytes;
        let inputs = vec![vec![Arc::clone(table)]];
        let merge = Merge { inputs, level: BOTTOM, is_move: false };
        return is_worth_it.then_some((f64::MAX, merge));
    };
    let below_bytes = bytes_of(below);
    let below_versions: u64 = below.iter().map(|table| table.summary().versions).sum();
    let deleted = summary.tombstones.min(below_versions);
    let garbage = below_bytes / below_versions.max(1) * deleted;
    let written = below_bytes + summary.bytes;
    let gives_room = garbage >= written / GARBAGE_PART;
    let is_cheap =
        written <= options.tidied_bytes_max && summary.tombstones.saturating_mul(budget) >= written;
    if !gives_room && !is_cheap {
        return None;
    }
    let inputs = vec![vec![Arc::clone(table)], below.to_vec()];
    let merge = Merge { inputs, level: level_below, is_move: false };
    Some((garbage as f64 / written.max(1) as f64, merge))
}

/// Tombstones of flushed tables are worth a merge of all flushed tables if there are enough of them.
fn flushed_tombstones<T: Summarized>(
    levels: &Levels<T>,
    options: MergeOptions,
    budget: u64,
) -> Option<Merge<T>> {
    let flushed = levels.flushed.iter().flat_map(|run| run.tables());
    let tombstones: u64 = flushed.map(|table| table.summary().tombstones).sum();
    if tombstones < options.tombstones_min {
        return None;
    }
    let merge = merge_flushed(levels, options);
    let written: u64 = merge.inputs.iter().map(|run| bytes_of(run)).sum();
    (tombstones.saturating_mul(budget) >= written).then_some(merge)
}

#[cfg(test)]
mod tests {
    use super::super::levels::Place::{Level, Newest};
    use super::super::levels::Summary;
    use super::super::levels::tests::{ids, table};
    use super::*;

    const MIB: u64 = 1024 * 1024;
    const OLDEST: u64 = 100;

    fn options() -> MergeOptions {
        MergeOptions::new(16 * MIB)
    }

    fn with_tombstones(id: u64, keys: [&str; 2], bytes: u64, tombstones: u64) -> Arc<Summary> {
        let plain = table(id, keys, bytes);
        Arc::new(Summary { tombstones, versions: tombstones, ..Summary::clone(&plain) })
    }

    fn rows(id: u64, keys: [&str; 2], bytes: u64, versions: u64) -> Arc<Summary> {
        Arc::new(Summary { versions, ..Summary::clone(&table(id, keys, bytes)) })
    }

    /// The inputs by their numbers, and where they go.
    fn chosen(levels: &Levels<Summary>, effort: Effort) -> Option<(Vec<Vec<u64>>, usize, bool)> {
        let merge = choose(levels, options(), effort, OLDEST)?;
        let inputs = merge.inputs.iter().map(|run| ids(run)).collect();
        Some((inputs, merge.level, merge.is_move))
    }

    #[test]
    fn flushed_tables_are_merged_when_there_are_enough() {
        let mut levels = Levels::default();
        levels = levels.changed(&[], vec![(Level(6), vec![table(1, ["a", "c"], MIB)])]);
        levels = levels.changed(&[], vec![(Level(6), vec![table(2, ["x", "z"], MIB)])]);
        for id in 10..25 {
            assert_eq!(chosen(&levels, Effort::Idle), None);
            let added = vec![(Newest, vec![table(id, ["b", "d"], MIB)])];
            levels = levels.changed(&[], added);
        }
        let last = vec![(Newest, vec![table(25, ["e", "f"], MIB)])];
        let (inputs, level, is_move) = chosen(&levels.changed(&[], last), Effort::Needed).unwrap();
        assert_eq!((inputs.len(), inputs.last().unwrap().as_slice()), (17, [1].as_slice()));
        assert_eq!((level, is_move), (6, false));
    }

    #[test]
    fn a_level_that_is_too_large_gives_away_what_is_cheapest() {
        let bottom = vec![table(1, ["a", "c"], 300 * MIB), table(2, ["x", "z"], 900 * MIB)];
        let levels = Levels::default().changed(&[], vec![(Level(6), bottom)]);
        let above = vec![
            table(3, ["a", "b"], 100 * MIB),
            table(4, ["w", "y"], 100 * MIB),
            table(5, ["z", "z"], 100 * MIB),
        ];
        let levels = levels.changed(&[], vec![(Level(5), above)]);
        assert_eq!(chosen(&levels, Effort::Needed), Some((vec![vec![3], vec![1]], 6, false)));
        // One that overlaps nothing is only moved.
        let free = vec![(Level(5), vec![table(6, ["m", "n"], 10 * MIB)])];
        let levels = levels.changed(&[], free);
        assert_eq!(chosen(&levels, Effort::Needed), Some((vec![vec![6]], 6, true)));
    }

    #[test]
    fn tombstones_meet_what_they_delete_when_that_is_worth_it() {
        // Contents of 4 KiB: 40,000 in the bottom level, and tombstones for some of them.
        let bottom = || rows(1, ["a", "z"], 160 * MIB, 40_000);
        for (tombstones, effort, is_merged) in [
            (20_000, Effort::Needed, true),
            (11_000, Effort::Needed, true),
            (9_000, Effort::Needed, false),
            (11_000, Effort::Idle, true),
            (9_000, Effort::Idle, false),
            (200, Effort::Idle, false),
        ] {
            let levels = Levels::default().changed(&[], vec![(Level(6), vec![bottom()])]);
            let above = with_tombstones(2, ["b", "y"], MIB, tombstones);
            let levels = levels.changed(&[], vec![(Level(4), vec![above])]);
            let expected = is_merged.then(|| (vec![vec![2], vec![1]], 6, false));
            assert_eq!(chosen(&levels, effort), expected, "{tombstones} {effort:?}");
        }
    }

    #[test]
    fn tombstones_that_somebody_does_not_see_yet_wait() {
        let levels =
            Levels::default().changed(&[], vec![(Level(6), vec![rows(1, ["a", "z"], MIB, 900)])]);
        let unseen = with_tombstones(2, ["a", "z"], MIB, 900);
        let unseen = Arc::new(Summary { newest: OLDEST, ..Summary::clone(&unseen) });
        let levels = levels.changed(&[], vec![(Level(5), vec![unseen])]);
        assert_eq!(chosen(&levels, Effort::Idle), None);
    }

    #[test]
    fn tombstones_that_delete_nothing_any_more_go() {
        let levels =
            Levels::default().changed(&[], vec![(Level(6), vec![table(1, ["a", "b"], MIB)])]);
        let above = vec![(Level(4), vec![with_tombstones(2, ["c", "d"], MIB, 900)])];
        let levels = levels.changed(&[], above);
        assert_eq!(chosen(&levels, Effort::Needed), Some((vec![vec![2]], 6, false)));
        let alone = vec![(Level(6), vec![with_tombstones(2, ["c", "d"], MIB, 900)])];
        let levels = Levels::default().changed(&[], alone);
        assert_eq!(chosen(&levels, Effort::Needed), Some((vec![vec![2]], 6, false)));
    }

    #[test]
    fn flushed_tombstones_are_merged_before_there_are_many_tables_if_they_are_many() {
        for (tombstones, effort, is_merged) in [
            (3_000, Effort::Needed, false),
            (3_000, Effort::Idle, true),
            (20_000, Effort::Needed, true),
        ] {
            let bottom = rows(1, ["a", "z"], 30 * MIB, 100_000);
            let levels = Levels::default().changed(&[], vec![(Level(6), vec![bottom])]);
            let flushed = with_tombstones(2, ["a", "z"], 2 * MIB, tombstones);
            let levels = levels.changed(&[], vec![(Newest, vec![flushed])]);
            let expected = is_merged.then(|| (vec![vec![2], vec![1]], 6, false));
            assert_eq!(chosen(&levels, effort), expected, "{tombstones} {effort:?}");
        }
    }
}
