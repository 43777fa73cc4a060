//! Maps against plain arrays of bytes: random writes and clears, shared states, and the reported
//! differences.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use holdfast_random::{Random, seed};
use holdfast_store::memory::MemoryExtents;
use holdfast_store::{Extents as _, KeyRange, Order};
use tokio::sync::Mutex;

use super::super::rows;
use crate::content::test_store::{Body, open_in_memory};
use crate::content::{
    self, Content, ContentReader, Difference, Differences, Entry, INLINE_BYTES_MAX, Map, layers,
};
use crate::domain::Domain;
use crate::failure::Failure;

const PAGE: usize = 512;
const PAGES: usize = 4 * INLINE_BYTES_MAX / PAGE;

/// A content, and what it should be: for each page the change it came from and, if that was a write,
/// its bytes.
#[derive(Clone)]
struct State {
    content: Content,
    pages: Vec<Option<(usize, Option<u8>)>>,
}

impl State {
    fn bytes(&self) -> Vec<u8> {
        let byte = |page: &Option<(usize, Option<u8>)>| page.and_then(|(_, byte)| byte);
        self.pages.iter().flat_map(|page| [byte(page).unwrap_or(0); PAGE]).collect()
    }

    /// What has happened since `older`, computed page by page in another way than the code under
    /// test.
    fn since(&self, older: &Self) -> Vec<(Difference, Range<u64>)> {
        let mut found: Vec<(Difference, Range<u64>)> = Vec::new();
        for (at, (new, old)) in self.pages.iter().zip(&older.pages).enumerate() {
            let range = (at * PAGE) as u64..((at + 1) * PAGE) as u64;
            let difference = match new {
                _ if new == old => continue,
                Some((_, Some(_))) => Difference::Written,
                Some((_, None)) | None => Difference::Cleared,
            };
            match found.last_mut() {
                Some((same, last)) if *same == difference && last.end == range.start => {
                    last.end = range.end;
                }
                _ => found.push((difference, range)),
            }
        }
        found
    }
}

struct Store {
    domain: Domain,
    extents: MemoryExtents,
}

impl Store {
    async fn new() -> Self {
        let (domain, extents) = open_in_memory().await;
        Self { domain, extents }
    }

    async fn write(&self, state: &mut State, pages: Range<usize>, written: usize, byte: u8) {
        let body = Bytes::from(vec![byte; pages.len() * PAGE]);
        let Ok(received) = self.domain.receive(&mut Body(Some(body))).await else {
            panic!("a body in memory arrives");
        };
        let id = self.domain.fresh_id();
        let changed: Result<Content, Failure<()>> = self
            .domain
            .transact(&[], async |mut transaction| {
                let entry = Entry::whole(received.claim_part(&mut transaction), id);
                let map = Map::own(&mut transaction, &state.content, id).await?;
                map.write(&mut transaction, (pages.start * PAGE) as u64, &entry).await?;
                Ok((map.content(), transaction))
            })
            .await;
        state.content = received.conclude(changed).expect("written");
        state.pages[pages].fill(Some((written, Some(byte))));
    }

    async fn clear(&self, state: &mut State, pages: Range<usize>) {
        let id = self.domain.fresh_id();
        let bytes = (pages.start * PAGE) as u64..(pages.end * PAGE) as u64;
        let changed: Result<Content, Failure<()>> = self
            .domain
            .transact(&[], async |mut transaction| {
                let mut map = Map::own(&mut transaction, &state.content, id).await?;
                map.clear(&mut transaction, bytes.clone(), id).await?;
                Ok((map.content(), transaction))
            })
            .await;
        state.content = changed.expect("cleared");
        state.pages[pages].fill(Some((id as usize, None)));
    }

    /// Removes everything from `page` on.
    async fn cut_off(&self, state: &mut State, page: usize) {
        let id = self.domain.fresh_id();
        let changed: Result<Content, Failure<()>> = self
            .domain
            .transact(&[], async |mut transaction| {
                let mut map = Map::own(&mut transaction, &state.content, id).await?;
                let lost = (page * PAGE) as u64..(PAGES * PAGE) as u64;
                map.cut_off(&mut transaction, lost).await?;
                Ok((map.content(), transaction))
            })
            .await;
        state.content = changed.expect("cut off");
        state.pages[page..].fill(None);
    }

    async fn share(&self, state: &State) -> State {
        let id = self.domain.fresh_id();
        let shared: Result<Content, Failure<()>> = self
            .domain
            .transact(&[], async |mut transaction| {
                let shared = content::share(&mut transaction, &state.content, id).await?;
                Ok((shared, transaction))
            })
            .await;
        State { content: shared.expect("shared"), pages: state.pages.clone() }
    }

    async fn release(&self, state: State) {
        let released: Result<(), Failure<()>> = self
            .domain
            .transact(&[], async |mut transaction| {
                content::release(&mut transaction, &state.content);
                Ok(((), transaction))
            })
            .await;
        released.expect("released");
    }

    async fn collect_all(&self) {
        while self.domain.collect_garbage().await.expect("collected") {}
    }

    /// The rows of a map's own entries.
    async fn rows_of(&self, content: &Content) -> usize {
        let Content::Mapped(id) = content else { return 0 };
        let snapshot = self.domain.engine.snapshot().await.expect("a snapshot");
        let entries = KeyRange::prefix(rows::map_entries(*id));
        snapshot.scan(&entries, Order::Ascending, usize::MAX).await.expect("rows").len()
    }

    async fn read(&self, state: &State, range: Range<usize>) -> Vec<u8> {
        let pin = self.domain.extents.pin_all();
        let snapshot = self.domain.engine.snapshot().await.expect("a snapshot");
        let (extents, range) = (&self.domain.extents, range.start as u64..range.end as u64);
        let reader = ContentReader::open(extents, snapshot, pin, &state.content, range, None);
        let (mut reader, mut bytes) = (reader.await.expect("opened"), Vec::new());
        while let Some(more) = reader.next().await.expect("memory reads") {
            bytes.extend_from_slice(&more);
        }
        bytes
    }

    async fn differences(&self, older: &Content, newer: &Content) -> Vec<(Difference, Range<u64>)> {
        let snapshot = self.domain.engine.snapshot().await.expect("a snapshot");
        let all = 0..(PAGES * PAGE) as u64;
        let differences = Differences::new(snapshot, Some(older), newer, all);
        let (mut differences, mut found) = (differences.expect("maps"), Vec::new());
        while let Some(difference) = differences.next().await.expect("memory reads") {
            found.push(difference);
        }
        found
    }
}

fn some_pages(random: &mut Random) -> Range<usize> {
    let start = random.within(0..PAGES);
    // Mostly a few pages, which fit a row; now and then more than a row takes.
    let longest = if random.one_in(4) { PAGES } else { 8 };
    start..start + random.within(1..longest.min(PAGES - start) + 1)
}

#[tokio::test]
async fn random_changes_read_as_those_of_plain_bytes_whatever_shares_the_map() {
    let mut random = Random::new(seed("HOLDFAST_TEST_SEED", 20_091_109));
    for _ in 0..20 {
        let store = Store::new().await;
        let empty = State { content: Content::Empty, pages: vec![None; PAGES] };
        let (mut current, mut kept) = (empty.clone(), vec![empty.clone()]);
        for step in 0..60 {
            match random.within(0..13) {
                0..5 => {
                    let pages = some_pages(&mut random);
                    let byte = random.within(1..256) as u8;
                    store.write(&mut current, pages, step, byte).await;
                }
                5..8 => store.clear(&mut current, some_pages(&mut random)).await,
                8 => kept.push(store.share(&current).await),
                // Some background work.
                9..11 => drop(store.domain.collect_garbage().await.expect("collected")),
                11 => {
                    // Mostly near the end: what is cut off leaves less to look at.
                    let page = PAGES - 1 - random.within(0..PAGES / 4);
                    store.cut_off(&mut current, page).await;
                }
                _ => {
                    let gone = kept.swap_remove(random.within(0..kept.len()));
                    store.release(gone).await;
                    if kept.is_empty() {
                        kept.push(empty.clone());
                    }
                }
            }
            let range = some_pages(&mut random);
            let range = range.start * PAGE + 1..range.end * PAGE - 1;
            for state in kept.iter().chain([&current]) {
                assert_eq!(store.read(state, range.clone()).await, state.bytes()[range.clone()]);
            }
            let older = &kept[random.within(0..kept.len())];
            let told = store.differences(&older.content, &current.content).await;
            assert_eq!(told, current.since(older), "step {step}");
        }
        assert_eq!(store.read(&current, 0..PAGES * PAGE).await, current.bytes());
        store.collect_all().await;
        for state in kept.iter().chain([&current]) {
            assert_eq!(store.read(state, 0..PAGES * PAGE).await, state.bytes(), "all is filled");
        }
        for state in kept.into_iter().chain([current]) {
            store.release(state).await;
        }
        store.collect_all().await;
        let statistics = store.extents.statistics();
        assert_eq!(statistics.bytes_written, statistics.bytes_freed, "all space comes back");
        let snapshot = store.domain.engine.snapshot().await.expect("a snapshot");
        let left = snapshot.scan(&KeyRange::all(), Order::Ascending, 10).await.expect("rows");
        assert!(left.is_empty(), "rows are left: {left:?}");
    }
}

#[tokio::test]
async fn the_first_change_of_a_shared_map_copies_it_and_the_next_does_not() {
    let store = Store::new().await;
    let mut current = State { content: Content::Empty, pages: vec![None; PAGES] };
    store.write(&mut current, 0..2, 0, 1).await;
    let kept = store.share(&current).await;
    assert_eq!(kept.content, current.content, "one map, counted twice");
    store.write(&mut current, 1..3, 1, 2).await;
    let own = current.content.clone();
    assert_ne!(own, kept.content);
    store.clear(&mut current, 0..1).await;
    assert_eq!(current.content, own, "a map of its own is changed in place");
    assert_eq!(store.read(&kept, 0..PAGES * PAGE).await, kept.bytes());
    assert_eq!(store.read(&current, 0..PAGES * PAGE).await, current.bytes());

    let content = kept.content.clone();
    store.release(kept).await;
    store.collect_all().await;
    assert_eq!(store.rows_of(&content).await, 0, "the map goes with its last content");
}

/// A content of one write for each of so many pages.
async fn in_single_pages(store: &Store, pages: usize) -> State {
    let mut state = State { content: Content::Empty, pages: vec![None; PAGES] };
    for page in 0..pages {
        store.write(&mut state, page..page + 1, page, 1 + page as u8).await;
    }
    state
}

#[tokio::test]
async fn the_first_change_of_a_long_shared_map_copies_none_of_it() {
    let store = Store::new().await;
    let mut current = in_single_pages(&store, 40).await;
    let kept = store.share(&current).await;
    store.write(&mut current, 3..5, 90, 200).await;
    assert_eq!(store.rows_of(&current.content).await, 1, "the change alone");
    store.clear(&mut current, 10..30).await;
    assert_eq!(store.rows_of(&current.content).await, 2, "and what hides the cleared pages");
    for state in [&kept, &current] {
        assert_eq!(store.read(state, 0..PAGES * PAGE).await, state.bytes());
    }
    store.release(kept).await;
    store.collect_all().await;
    assert_eq!(store.rows_of(&current.content).await, 20, "it stands alone in the end");
    assert_eq!(store.read(&current, 0..PAGES * PAGE).await, current.bytes());
}

#[tokio::test]
async fn clearing_many_entries_hides_them_first_and_frees_them_later() {
    let store = Store::new().await;
    let mut current = in_single_pages(&store, 60).await;
    let before = current.content.clone();
    store.clear(&mut current, 5..55).await;
    assert_eq!(store.rows_of(&before).await, 60, "none is touched");
    assert_eq!(store.rows_of(&current.content).await, 1);
    assert_eq!(store.read(&current, 0..PAGES * PAGE).await, current.bytes());
    store.collect_all().await;
    assert_eq!(store.rows_of(&before).await, 0, "they are gone");
    assert_eq!(store.rows_of(&current.content).await, 11, "what is left, and the clear");
    assert_eq!(store.read(&current, 0..PAGES * PAGE).await, current.bytes());
}

#[tokio::test]
async fn maps_do_not_pile_up_beyond_a_limit() {
    let store = Store::new().await;
    let mut current = in_single_pages(&store, 40).await;
    let mut kept = Vec::new();
    for step in 0..20 {
        kept.push(store.share(&current).await);
        store.write(&mut current, step..step + 2, 100 + step, 100 + step as u8).await;
        let Content::Mapped(id) = current.content else { panic!("a map") };
        let snapshot = store.domain.engine.snapshot().await.expect("a snapshot");
        let depth = layers::depth(&*snapshot, id).await.expect("rows");
        assert!(depth <= super::LAYERS_MAX, "{depth} below");
    }
    for state in kept.iter().chain([&current]) {
        assert_eq!(store.read(state, 0..PAGES * PAGE).await, state.bytes());
    }
}

/// Filling and writing touch the same pages, on two threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_map_that_is_filled_while_it_is_written_loses_nothing() {
    let mut random = Random::new(seed("HOLDFAST_TEST_SEED", 20_120_212));
    let store = Arc::new(Store::new().await);
    for _ in 0..30 {
        let mut current = in_single_pages(&store, 40).await;
        let kept = store.share(&current).await;
        let filler = Arc::clone(&store);
        let filling = tokio::spawn(async move {
            loop {
                match filler.domain.collect_garbage().await {
                    Ok(true) | Err(Failure::Busy) => tokio::task::yield_now().await,
                    Ok(false) => break,
                    Err(failure) => panic!("{failure:?}"),
                }
            }
        });
        for step in 0..30 {
            let start = random.within(0..44);
            let pages = start..start + random.within(1..6);
            if random.one_in(3) {
                store.clear(&mut current, pages).await;
            } else {
                store.write(&mut current, pages, 100 + step, 100 + step as u8).await;
            }
            if step == 15 {
                assert_eq!(store.read(&current, 0..PAGES * PAGE).await, current.bytes());
            }
        }
        filling.await.expect("filled");
        store.collect_all().await;
        for state in [kept, current] {
            assert_eq!(store.read(&state, 0..PAGES * PAGE).await, state.bytes());
            store.release(state).await;
        }
        store.collect_all().await;
        let snapshot = store.domain.engine.snapshot().await.expect("a snapshot");
        let left = snapshot.scan(&KeyRange::all(), Order::Ascending, 10).await.expect("rows");
        assert!(left.is_empty(), "rows are left: {left:?}");
    }
}

/// Pages written while `fill` runs: before the filled range, across its beginning, within, across its
/// end, all of it, and after it.
const MEETING: [Range<usize>; 7] = [0..3, 10..13, 13..14, 14..16, 16..20, 11..20, 20..24];

/// A content of three pages to a write, of which the first twelve pages are filled, and the map below
/// it. Six more pages are filled next.
async fn half_filled(store: &Store) -> (State, State) {
    let mut current = State { content: Content::Empty, pages: vec![None; PAGES] };
    for write in 0..14 {
        store.write(&mut current, write * 3..write * 3 + 3, write, 1 + write as u8).await;
    }
    let kept = store.share(&current).await;
    store.write(&mut current, 30..31, 90, 90).await;
    for _ in 0..2 {
        store.domain.collect_garbage().await.expect("collected");
    }
    (current, kept)
}

fn map_of(state: &State) -> u64 {
    let Content::Mapped(map) = state.content else { panic!("a map") };
    map
}

#[tokio::test]
async fn what_is_filled_gives_way_to_what_is_written_meanwhile() {
    for pages in MEETING {
        let store = Store::new().await;
        let (current, kept) = half_filled(&store).await;
        let (map, written) = (map_of(&current), AtomicBool::new(false));
        let current = Mutex::new(current);
        let filled: Result<(), Failure<()>> = store
            .domain
            .transact(&[], async |mut transaction| {
                layers::fill(&mut transaction, map).await?;
                if !written.swap(true, Ordering::Relaxed) {
                    store.write(&mut *current.lock().await, pages.clone(), 91, 91).await;
                }
                Ok(((), transaction))
            })
            .await;
        filled.expect("filled");
        store.collect_all().await;
        for state in [&current.into_inner(), &kept] {
            let read = store.read(state, 0..PAGES * PAGE).await;
            assert!(read == state.bytes(), "a write of {pages:?} was met by the filling");
        }
    }
}

#[tokio::test]
async fn what_is_written_sees_what_is_filled_meanwhile() {
    for pages in MEETING {
        let store = Store::new().await;
        let (current, kept) = half_filled(&store).await;
        let (map, id) = (map_of(&current), store.domain.fresh_id());
        let filled = AtomicBool::new(false);
        let range = (pages.start * PAGE) as u64..(pages.end * PAGE) as u64;
        let body = Bytes::from(vec![91; pages.len() * PAGE]);
        let Ok(received) = store.domain.receive(&mut Body(Some(body))).await else {
            panic!("a body in memory arrives");
        };
        let written: Result<Content, Failure<()>> = store
            .domain
            .transact(&[], async |mut transaction| {
                let entry = Entry::whole(received.claim_part(&mut transaction), id);
                let own = Map::own(&mut transaction, &current.content, id).await?;
                own.write(&mut transaction, range.start, &entry).await?;
                if !filled.swap(true, Ordering::Relaxed) {
                    layers::fill_layered_map(&store.domain, map).await?;
                }
                Ok((own.content(), transaction))
            })
            .await;
        let content = received.conclude(written).expect("written");
        let mut current = State { content, ..current };
        current.pages[pages.clone()].fill(Some((91, Some(91))));
        store.collect_all().await;
        for state in [current, kept] {
            let read = store.read(&state, 0..PAGES * PAGE).await;
            assert!(read == state.bytes(), "a write of {pages:?} met the filling");
            store.release(state).await;
        }
        store.collect_all().await;
        let snapshot = store.domain.engine.snapshot().await.expect("a snapshot");
        let left = snapshot.scan(&KeyRange::all(), Order::Ascending, 10).await.expect("rows");
        assert!(left.is_empty(), "rows are left: {left:?}");
    }
}
