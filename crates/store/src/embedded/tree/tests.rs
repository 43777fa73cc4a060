//! Trees as the engine uses them: rows go in with rising sequences, memtables are closed, flushed and
//! merged, and every snapshot that is held sees what it saw.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::*;
use crate::contract::Random;

/// A tree, and every state it had.
struct Checked {
    tree: Tree,
    next: u64,
    value_bytes: usize,
    /// What a snapshot of each bound sees.
    states: BTreeMap<u64, BTreeMap<String, u64>>,
    _folder: tempfile::TempDir,
}

fn options() -> EngineOptions {
    EngineOptions { table_bytes: 8 * 1024, log_segment_bytes: 4096, ..EngineOptions::default() }
}

fn open(path: &Path) -> Tree {
    let options = options();
    let common = Common {
        options: &options,
        cache: Arc::new(Cache::with_capacity_bytes(64 * 1024)),
        open_tables: Arc::new(DescriptorTable::new(16)),
    };
    Tree::open(&common, path, 0).expect("a tree")
}

impl Checked {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let states = BTreeMap::from([(1, BTreeMap::new())]);
        Self { tree: open(folder.path()), next: 1, value_bytes: 90, states, _folder: folder }
    }

    fn reopen(&mut self) {
        let path = self.tree.path().to_path_buf();
        self.tree = open(&path);
    }

    /// Puts the sequence itself as text, and some bytes more, or deletes the row.
    fn write(&mut self, key: &str, is_put: bool) {
        let sequence = self.next;
        self.next += 1;
        let mut state = self.states.last_key_value().expect("the first").1.clone();
        let key_bytes = Bytes::copy_from_slice(key.as_bytes());
        let write = if is_put {
            state.insert(key.to_owned(), sequence);
            Write::Put { key: key_bytes, value: self.value(sequence) }
        } else {
            state.remove(key);
            Write::Delete { key: key_bytes }
        };
        self.tree.write(hash_of(key.as_bytes()), write, sequence);
        self.states.insert(self.next, state);
    }

    fn value(&self, sequence: u64) -> Bytes {
        format!("{sequence}:{:1$}", "", self.value_bytes).into()
    }

    fn flush(&self) {
        self.tree.close_memtable();
        self.tree.flush(self.oldest()).expect("it is flushed");
    }

    /// Snapshots below this one are released.
    fn release(&mut self, oldest: u64) {
        self.states = self.states.split_off(&oldest);
    }

    fn oldest(&self) -> u64 {
        *self.states.first_key_value().expect("the newest").0
    }

    fn merge_all(&self, effort: Effort) -> usize {
        let mut merges = 0;
        while self.tree.merge_once(self.oldest(), effort).expect("it is merged") {
            merges += 1;
            assert!(merges < 10_000, "merging does not end");
        }
        merges
    }

    fn check(&self, random: &mut Random) {
        let number = |value: &[u8]| -> u64 {
            let text = std::str::from_utf8(value).expect("a text");
            text.split(':').next().and_then(|number| number.parse().ok()).expect("a sequence")
        };
        let all: Vec<_> = self.states.iter().collect();
        let some = [0, random.within(0..all.len()), all.len() - 1].map(|at| all[at]);
        for (before, state) in some {
            for (order, steps) in [(Order::Ascending, 7), (Order::Descending, 1000)] {
                let (mut rows, mut rest) = (Vec::new(), Some(KeyRange::all()));
                while let Some(range) = rest {
                    let part = self.tree.scan(&range, order, *before, usize::MAX, steps);
                    let part = part.expect("it can be read");
                    rows.extend(part.rows);
                    rest = part.rest;
                }
                if order == Order::Descending {
                    rows.reverse();
                }
                let found = rows.iter().map(|row| {
                    let key = String::from_utf8(row.key.to_vec()).expect("a text");
                    (key, number(&row.value))
                });
                assert!(found.eq(state.clone()), "{order:?} at {before}");
            }
            for key in (0..120).map(|number| format!("{number:03}")) {
                let found = self.tree.get(hash_of(key.as_bytes()), key.as_bytes(), *before);
                let found = found.expect("it can be read").map(|value| number(&value));
                assert_eq!(found, state.get(&key).copied(), "{key} at {before}");
            }
        }
    }

    fn tombstones(&self) -> u64 {
        self.tree.sources.load().levels.tables().map(|table| table.summary().tombstones).sum()
    }

    fn files(&self) -> usize {
        table_files(&self.tree.path().join(TABLES_FOLDER)).expect("files").len()
    }
}

#[test]
fn every_snapshot_sees_its_rows_wherever_they_have_gone() {
    for seed in 0..6 {
        let mut random = Random::new(seed);
        let mut checked = Checked::new();
        let mut merges = 0;
        for round in 0..40 {
            for _ in 0..random.within(1..60) {
                let key = format!("{:03}", random.within(0..120));
                checked.write(&key, !random.one_in(3));
            }
            match random.within(0..6) {
                0 => checked.tree.close_memtable(),
                1 | 2 => checked.flush(),
                3 => merges += checked.merge_all(Effort::Needed),
                4 => merges += checked.merge_all(Effort::Idle),
                _ => {
                    let oldest = checked.oldest();
                    checked
                        .release(random.within(oldest as usize..checked.next as usize + 1) as u64);
                }
            }
            if round % 10 == 9 {
                checked.flush();
                checked.reopen();
            }
            checked.check(&mut random);
        }
        assert!(merges > 5, "{merges}");
        let named = checked.tree.sources.load().levels.tables().count();
        assert_eq!(checked.files(), named, "files of tables that nobody has");
    }
}

#[test]
fn deleted_rows_and_their_tombstones_go_without_new_writes() {
    let mut checked = Checked::new();
    for round in 0..5 {
        for number in 0..400 {
            checked.write(&format!("{round}-{number:03}"), true);
        }
        checked.flush();
    }
    for number in 0..400 {
        for round in [0, 1, 3] {
            checked.write(&format!("{round}-{number:03}"), false);
        }
    }
    checked.flush();
    let before = checked.tree.bytes();
    let newest = checked.next;
    checked.release(newest);
    checked.merge_all(Effort::Needed);
    checked.merge_all(Effort::Idle);
    let after = checked.tree.bytes();
    assert!(after * 2 < before, "{before} bytes became {after}");
    assert_eq!(checked.tombstones(), 0);
    checked.check(&mut Random::new(1));
}

#[test]
fn nothing_that_a_snapshot_sees_is_merged_away_and_merging_ends() {
    let mut checked = Checked::new();
    for number in 0..400 {
        checked.write(&format!("{number:03}"), true);
    }
    checked.flush();
    let held = checked.next;
    for number in 0..400 {
        checked.write(&format!("{number:03}"), false);
    }
    checked.flush();
    checked.release(held);
    checked.merge_all(Effort::Idle);
    checked.check(&mut Random::new(1));
    assert_eq!(checked.tombstones(), 400);
    let newest = checked.next;
    checked.release(newest);
    checked.merge_all(Effort::Idle);
    assert_eq!((checked.tombstones(), checked.tree.bytes()), (0, 0));
    assert_eq!(checked.files(), 0);
}

#[test]
fn rows_behind_all_others_are_written_once() {
    let mut checked = Checked::new();
    checked.value_bytes = 4096;
    let mut number = 0;
    for _ in 0..20 {
        for _ in 0..50 {
            number += 1;
            checked.write(&format!("{number:06}"), true);
            if number > 200 {
                // Of the older ones one in ten goes: too few to write the others again for it.
                if number % 10 == 0 {
                    checked.write(&format!("{:06}", number - 200), false);
                }
            }
        }
        checked.flush();
    }
    let newest = checked.next;
    checked.release(newest);
    let ids = |checked: &Checked| -> HashSet<u64> {
        let sources = checked.tree.sources.load();
        sources
            .levels
            .tables()
            .filter(|it| it.summary().tombstones == 0)
            .map(|it| it.summary().id)
            .collect()
    };
    let before = ids(&checked);
    checked.merge_all(Effort::Needed);
    assert!(before.is_subset(&ids(&checked)), "tables were written again");
    checked.check(&mut Random::new(1));
}

/// A folder as the crate lsm-tree leaves it, with tables on several levels.
fn lsm_tree_folder(path: &Path) -> BTreeMap<String, u64> {
    use lsm_tree::{AbstractTree, Config, SequenceNumberCounter, compaction::Leveled};
    let sequences = SequenceNumberCounter::new(1);
    let tree = Config::new(path, sequences.clone(), SequenceNumberCounter::new(1)).open();
    let tree = tree.expect("a tree");
    let strategy = Leveled::default().with_l0_threshold(4).with_table_target_size(4096);
    let mut random = Random::new(7);
    let mut rows = BTreeMap::new();
    for round in 0..30 {
        for _ in 0..60 {
            let (key, sequence) = (format!("{:03}", random.within(0..120)), sequences.next());
            if random.one_in(4) {
                rows.remove(&key);
                tree.remove(key, sequence);
            } else {
                tree.insert(key.clone(), format!("{sequence}:{:90}", ""), sequence);
                rows.insert(key, sequence);
            }
        }
        tree.flush_active_memtable(sequences.get()).expect("it is flushed");
        if round < 28 {
            tree.compact(Arc::new(strategy.clone()), sequences.get()).expect("it is merged");
        }
    }
    rows
}

#[test]
fn folders_that_lsm_tree_wrote_are_converted_again_and_again_until_it_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = lsm_tree_folder(folder.path());
    // The second time as after a crash in between.
    convert_lsm_tree(folder.path()).expect("it is converted");
    convert_lsm_tree(folder.path()).expect("it is converted");
    remove_lsm_tree(folder.path()).expect("it is cleaned");
    remove_lsm_tree(folder.path()).expect("it is cleaned");
    let names = fs::read_dir(folder.path()).expect("entries");
    let names: HashSet<_> = names.map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(names, ["levels", TABLES_FOLDER].map(Into::into).into());

    let mut checked = Checked::new();
    checked.tree = open(folder.path());
    checked.next = 1_000_000;
    checked.states = BTreeMap::from([(1_000_000, rows)]);
    checked.check(&mut Random::new(1));
    let before = checked.tombstones();
    checked.merge_all(Effort::Idle);
    assert!(checked.tombstones() < before, "{before}");
    checked.check(&mut Random::new(1));
}

#[test]
fn tables_without_a_list_of_them_are_refused() {
    let mut checked = Checked::new();
    checked.write("key", true);
    checked.flush();
    fs::remove_file(checked.tree.path().join(manifest::FILE)).expect("it is there");
    let options = options();
    let common = Common {
        options: &options,
        cache: Arc::new(Cache::with_capacity_bytes(0)),
        open_tables: Arc::new(DescriptorTable::new(1)),
    };
    let refused = Tree::open(&common, checked.tree.path(), 0).err().expect("a refusal");
    assert!(refused.to_string().contains("no list"), "{refused}");
    assert_eq!(checked.files(), 1);
}
