//! What reading a range of a map costs, and what of the map is kept meanwhile.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use holdfast_store::{KeyRange, Moment, Order, Row};

use super::*;
use crate::content::MapWriter;
use crate::content::test_store::{Body, open_in_memory};
use crate::domain::Domain;
use crate::failure::Failure;

/// Counts the reads of another snapshot.
struct Counted {
    snapshot: Box<dyn Snapshot>,
    scans: Arc<AtomicUsize>,
}

#[async_trait]
impl Snapshot for Counted {
    fn moment(&self) -> Moment {
        self.snapshot.moment()
    }

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Fault> {
        self.snapshot.get(key).await
    }

    async fn scan(&self, range: &KeyRange, order: Order, limit: usize) -> Result<Vec<Row>, Fault> {
        self.scans.fetch_add(1, Ordering::Relaxed);
        self.snapshot.scan(range, order, limit).await
    }
}

struct Store {
    domain: Domain,
    scans: Arc<AtomicUsize>,
}

impl Store {
    async fn new() -> Self {
        let (domain, _) = open_in_memory().await;
        Self { domain, scans: Arc::default() }
    }

    /// A content of parts of this length; each is filled with its number.
    async fn map_of(&self, parts: usize, part_bytes: usize) -> Content {
        let mut received = Vec::new();
        for number in 0..parts {
            let body = Bytes::from(vec![number as u8; part_bytes]);
            let Ok(part) = self.domain.receive_part(&mut Body(Some(body)), None).await else {
                panic!("a body in memory arrives");
            };
            received.push(part);
        }
        let id = self.domain.fresh_id();
        let made: Result<Content, Failure<()>> = self
            .domain
            .transact(&[], async |mut transaction| {
                let mut map = MapWriter::new(&mut transaction, id);
                for part in &received {
                    let part = part.claim_part(&mut transaction);
                    map.push(&mut transaction, &Entry::whole(part, id));
                }
                Ok((map.finish(), transaction))
            })
            .await;
        made.expect("committed")
    }

    async fn open(&self, content: &Content, range: Range<u64>) -> ContentReader {
        let pin = self.domain.extents.pin_all();
        let snapshot = self.domain.engine.snapshot().await.expect("a snapshot");
        let scans = Arc::clone(&self.scans);
        let snapshot = Box::new(Counted { snapshot, scans });
        let reader = ContentReader::open(&self.domain.extents, snapshot, pin, content, range, None);
        reader.await.expect("opened")
    }

    /// The pieces returned, and the scans that it took.
    async fn read(&self, content: &Content, range: Range<u64>) -> (Vec<Bytes>, usize) {
        let before = self.scans.load(Ordering::Relaxed);
        let (mut reader, mut pieces) = (self.open(content, range).await, Vec::new());
        while let Some(piece) = reader.next().await.expect("memory reads") {
            pieces.push(piece);
        }
        assert_eq!(reader.remaining(), 0);
        (pieces, self.scans.load(Ordering::Relaxed) - before)
    }
}

#[tokio::test]
async fn each_entry_of_a_range_is_looked_up_once() {
    let store = Store::new().await;
    let map = store.map_of(300, 100).await;
    let cases = [
        ("inside a part", 10_010..10_020, 1),
        ("a whole part", 10_000..10_100, 1),
        ("in two parts", 10_010..10_120, 2),
        ("from the beginning", 0..10_000, 1),
        ("to the end", 20_050..30_000, 2),
        ("all", 0..30_000, 2),
    ];
    for (case, range, expected) in cases {
        let (pieces, scans) = store.read(&map, range.clone()).await;
        let bytes = pieces.concat();
        let right = range.map(|at| (at / 100) as u8).collect::<Vec<_>>();
        assert_eq!((bytes, scans), (right, expected), "{case}");
    }
}

#[tokio::test]
async fn short_parts_are_handed_out_together_and_long_ones_alone() {
    let store = Store::new().await;
    let lengths = async |parts, part_bytes| {
        let map = store.map_of(parts, part_bytes).await;
        let (pieces, _) = store.read(&map, 0..(parts * part_bytes) as u64).await;
        pieces.iter().map(Bytes::len).collect::<Vec<_>>()
    };
    assert_eq!(lengths(2, 5000).await, [10_000]);
    assert_eq!(lengths(5, 30_000).await, [60_000, 60_000, 30_000]);
    assert_eq!(lengths(2, 40_000).await, [40_000; 2]);
    // However short they are, the reader yields after so many.
    assert_eq!(lengths(200, 1).await, [64, 64, 64, 8]);
}

#[tokio::test]
async fn what_is_kept_of_a_long_map_is_bounded() {
    let store = Store::new().await;
    for (parts, part_bytes) in [(4000, 1000), (4000, 2000)] {
        let map = store.map_of(parts, part_bytes).await;
        let bytes = (parts * part_bytes) as u64;
        let reader = store.open(&map, 0..bytes).await;
        let kept: usize = reader.spans.iter().map(Span::kept_bytes).sum();
        assert!(kept < 512 * 1024, "{kept} bytes of parts of {part_bytes}");
        assert!(reader.unread.is_some(), "of parts of {part_bytes}");
        let (pieces, _) = store.read(&map, 0..bytes).await;
        let right = (0..bytes).map(|at| (at / part_bytes as u64) as u8).collect::<Vec<_>>();
        assert!(pieces.concat() == right, "parts of {part_bytes}");
    }
}
