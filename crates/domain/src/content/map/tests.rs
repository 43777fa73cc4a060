//! Maps against plain arrays of bytes: random writes and clears, shared states, and what is told
//! of their differences.

use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_store::contract::{Random, seed};
use holdfast_store::memory::{MemoryEngine, MemoryExtents};
use holdfast_store::{Extents as _, KeyRange, Order};

use crate::content::{
    self, ByteSource, Content, ContentReader, Difference, Differences, Entry, INLINE_BYTES_MAX, Map,
};
use crate::domain::Domain;
use crate::failure::Failure;
use crate::features::Features;
use crate::rows;
use crate::time::{Clock, Timestamp};

const PAGE: usize = 512;
const PAGES: usize = 4 * INLINE_BYTES_MAX / PAGE;

struct StandingClock;

impl Clock for StandingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_ticks(638_000_000_000_000_000)
    }
}

struct Body(Option<Bytes>);

#[async_trait]
impl ByteSource for Body {
    type Refusal = Infallible;

    async fn next(&mut self) -> Result<Option<Bytes>, Infallible> {
        Ok(self.0.take())
    }
}

/// A content, and what it should be: for each page the write it came from, and its bytes.
#[derive(Clone)]
struct State {
    content: Content,
    pages: Vec<Option<(usize, u8)>>,
}

impl State {
    fn bytes(&self) -> Vec<u8> {
        self.pages.iter().flat_map(|page| [page.map_or(0, |(_, byte)| byte); PAGE]).collect()
    }

    /// What has happened since `older`, page by page and joined by a second way than the one under
    /// test.
    fn since(&self, older: &Self) -> Vec<(Difference, Range<u64>)> {
        let mut found: Vec<(Difference, Range<u64>)> = Vec::new();
        for (at, (new, old)) in self.pages.iter().zip(&older.pages).enumerate() {
            let range = (at * PAGE) as u64..((at + 1) * PAGE) as u64;
            let difference = match (new.map(|page| page.0), old.map(|page| page.0)) {
                (new, old) if new == old => continue,
                (Some(_), _) => Difference::Written,
                (None, _) => Difference::Cleared,
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
        let (engine, extents) = (Arc::new(MemoryEngine::default()), MemoryExtents::default());
        let kept = Arc::new(extents.clone());
        let domain = Domain::open(engine, kept, Arc::new(StandingClock), Features::default());
        Self { domain: domain.await.expect("memory opens"), extents }
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
        state.pages[pages].fill(Some((written, byte)));
    }

    async fn clear(&self, state: &mut State, pages: Range<usize>) {
        let id = self.domain.fresh_id();
        let bytes = (pages.start * PAGE) as u64..(pages.end * PAGE) as u64;
        let changed: Result<Content, Failure<()>> = self
            .domain
            .transact(&[], async |mut transaction| {
                let map = Map::own(&mut transaction, &state.content, id).await?;
                map.clear(&mut transaction, bytes.clone()).await?;
                Ok((map.content(), transaction))
            })
            .await;
        state.content = changed.expect("cleared");
        state.pages[pages].fill(None);
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
        while self.domain.collect_garbage().await.expect("collected") {}
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
        let differences = Differences::new(snapshot, older, newer, all);
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
    let mut random = Random::new(seed(20_091_109));
    for _ in 0..12 {
        let store = Store::new().await;
        let empty = State { content: Content::Empty, pages: vec![None; PAGES] };
        let (mut current, mut kept) = (empty.clone(), vec![empty.clone()]);
        for step in 0..60 {
            match random.within(0..10) {
                0..5 => {
                    let pages = some_pages(&mut random);
                    let byte = random.within(1..256) as u8;
                    store.write(&mut current, pages, step, byte).await;
                }
                5..8 => store.clear(&mut current, some_pages(&mut random)).await,
                8 => kept.push(store.share(&current).await),
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
        for state in kept.into_iter().chain([current]) {
            store.release(state).await;
        }
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

    let Content::Mapped(id) = kept.content else { panic!("a map") };
    store.release(kept).await;
    let snapshot = store.domain.engine.snapshot().await.expect("a snapshot");
    let entries = KeyRange::prefix(rows::map_entries(id));
    let left = snapshot.scan(&entries, Order::Ascending, 1).await.expect("rows");
    assert!(left.is_empty(), "the map goes with its last content");
}
