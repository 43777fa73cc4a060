//! What [`Extents`] promises, as cases. `extents_contract!` makes tests of them.

use std::collections::HashSet;
use std::task::Poll;

use bytes::Bytes;
use holdfast_random::Random;

use crate::engine::Fault;
use crate::extents::{
    EXTENT_BYTES_MAX, Extent, ExtentId, Extents, PIECE_BYTES, READ_BYTES_MAX, checksums_of,
};

/// One test for every case. The expression makes an empty store, or something that derefs to it.
#[macro_export]
macro_rules! extents_contract {
    ($store:expr) => {
        $crate::extents_contract!(@cases $store,
            streams_of_every_size_come_back,
            a_stream_without_bytes_has_no_extents,
            the_cut_of_a_stream_into_appends_does_not_matter,
            a_long_stream_becomes_several_extents,
            ranges_at_every_piece_boundary_come_back,
            a_read_returns_at_least_a_byte_and_at_most_the_maximum,
            concurrent_writers_do_not_mix,
            a_dropped_writer_leaves_nothing,
            an_extent_id_is_given_once,
            freed_bytes_are_counted_once,
            a_free_reclaims_at_once_when_nobody_reads,
            a_pin_of_all_holds_back_what_is_freed_after_it,
            a_pin_of_all_does_not_hold_back_what_was_freed_before_it,
            a_pin_takes_over_from_a_pin_of_all,
            a_pin_holds_back_only_its_extents,
            every_pin_of_an_extent_counts,
            a_reader_in_progress_keeps_what_it_reads,
        );
    };
    (@cases $store:expr, $($case:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let store = $store;
                $crate::contract::extents::$case(&*store).await;
            }
        )*
    };
}

const MIB: usize = 1024 * 1024;
const PIECE: usize = PIECE_BYTES as usize;

/// Bytes that differ from stream to stream and from place to place.
pub fn content(seed: u64, length: usize) -> Bytes {
    Random::for_user(seed, 0).bytes(length).into()
}

pub async fn write(extents: &dyn Extents, bytes: Bytes) -> Result<Vec<Extent>, Fault> {
    let mut writer = extents.writer();
    writer.append(bytes).await?;
    writer.finish().await
}

pub async fn write_one(extents: &dyn Extents, bytes: Bytes) -> Extent {
    let mut written = write(extents, bytes).await.unwrap();
    assert_eq!(written.len(), 1);
    written.remove(0)
}

pub async fn read_all(extents: &dyn Extents, of: &[Extent]) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    for extent in of {
        let mut position = 0;
        while position < extent.length {
            let part = extents.read(extent, position..extent.length).await?;
            position += part.len() as u64;
            bytes.extend_from_slice(&part);
        }
    }
    Ok(bytes)
}

fn live_bytes(extents: &dyn Extents) -> u64 {
    let statistics = extents.statistics();
    statistics.bytes_written - statistics.bytes_freed
}

pub async fn streams_of_every_size_come_back(extents: &dyn Extents) {
    let around = |size: usize| [size - 1, size, size + 1];
    let sizes = [1, 100].into_iter().chain(
        [4096, PIECE, 2 * PIECE, MIB, MIB + PIECE, 2 * MIB, 5 * MIB].into_iter().flat_map(around),
    );
    for size in sizes {
        let bytes = content(size as u64, size);
        let written = write(extents, bytes.clone()).await.unwrap();
        assert_eq!(written.iter().map(|it| it.length).sum::<u64>(), size as u64);
        assert!(read_all(extents, &written).await.unwrap() == bytes, "{size} bytes");
        let mut rest = &bytes[..];
        for extent in &written {
            let (own, others) = rest.split_at(extent.length as usize);
            assert_eq!(extent.checksums, checksums_of(own), "{size} bytes");
            rest = others;
        }
    }
}

pub async fn a_stream_without_bytes_has_no_extents(extents: &dyn Extents) {
    assert_eq!(extents.writer().finish().await.unwrap(), []);
    let mut writer = extents.writer();
    writer.append(Bytes::new()).await.unwrap();
    assert_eq!(writer.finish().await.unwrap(), []);
    assert_eq!(extents.statistics().bytes_written, 0);
}

pub async fn the_cut_of_a_stream_into_appends_does_not_matter(extents: &dyn Extents) {
    let bytes = content(1, 3 * MIB + 77);
    for part in [1000, 4096, PIECE + 1, MIB, 2 * MIB + 5] {
        let mut writer = extents.writer();
        let mut rest = bytes.clone();
        while !rest.is_empty() {
            writer.append(rest.split_to(part.min(rest.len()))).await.unwrap();
        }
        let written = writer.finish().await.unwrap();
        assert!(read_all(extents, &written).await.unwrap() == bytes, "in parts of {part}");
    }
}

pub async fn a_long_stream_becomes_several_extents(extents: &dyn Extents) {
    let long = EXTENT_BYTES_MAX as usize + 3;
    let mut writer = extents.writer();
    let part = content(2, MIB);
    for _ in 0..long / MIB {
        writer.append(part.clone()).await.unwrap();
    }
    writer.append(part.slice(..long % MIB)).await.unwrap();
    let written = writer.finish().await.unwrap();
    assert!(written.len() > 1);
    assert!(written.iter().all(|it| (1..=EXTENT_BYTES_MAX).contains(&it.length)));
    let read = read_all(extents, &written).await.unwrap();
    assert_eq!(read.len(), long);
    assert!(read.chunks(MIB).all(|chunk| chunk == &part[..chunk.len()]));
}

pub async fn ranges_at_every_piece_boundary_come_back(extents: &dyn Extents) {
    let bytes = content(3, 3 * PIECE + 17);
    let extent = write_one(extents, bytes.clone()).await;
    let mut ends: Vec<usize> = (0..=3)
        .flat_map(|piece| [(piece * PIECE).saturating_sub(1), piece * PIECE, piece * PIECE + 1])
        .chain([bytes.len() - 1, bytes.len()])
        .collect();
    ends.dedup();
    for start in &ends {
        for end in ends.iter().filter(|end| *end > start) {
            let read = extents.read(&extent, *start as u64..*end as u64).await.unwrap();
            assert!(read == bytes[*start..*end], "{start}..{end}");
        }
    }
}

pub async fn a_read_returns_at_least_a_byte_and_at_most_the_maximum(extents: &dyn Extents) {
    let bytes = content(4, 2 * MIB + 100);
    let written = write(extents, bytes.clone()).await.unwrap();
    let mut start_in_stream = 0;
    for extent in &written {
        for start in [0, 1, PIECE_BYTES - 1, PIECE_BYTES, extent.length - 1] {
            let start = start.min(extent.length - 1);
            let read = extents.read(extent, start..extent.length).await.unwrap();
            assert!((1..=READ_BYTES_MAX).contains(&(read.len() as u64)));
            let from = (start_in_stream + start) as usize;
            assert!(read == bytes[from..from + read.len()]);
        }
        start_in_stream += extent.length;
    }
}

pub async fn concurrent_writers_do_not_mix(extents: &dyn Extents) {
    let sizes = [10, 4096, 5000, PIECE, 300_000, MIB, MIB + 1, 3 * MIB];
    let streams = (0..48).map(|seed| async move {
        let bytes = content(seed, sizes[seed as usize % sizes.len()]);
        let mut writer = extents.writer();
        for part in bytes.chunks(100_000) {
            writer.append(Bytes::copy_from_slice(part)).await.unwrap();
            tokio::task::yield_now().await;
        }
        (bytes, writer.finish().await.unwrap())
    });
    let written = futures_util::future::join_all(streams).await;
    for (bytes, of) in &written {
        assert!(read_all(extents, of).await.unwrap() == *bytes);
    }
    let mut ranges: Vec<_> = written
        .iter()
        .flat_map(|(_, of)| of)
        .map(|it| (it.id.segment, it.id.offset, it.id.offset + it.length))
        .collect();
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        assert!(pair[0].0 < pair[1].0 || pair[0].2 <= pair[1].1, "{pair:?} overlap");
    }
}

pub async fn a_dropped_writer_leaves_nothing(extents: &dyn Extents) {
    let kept = content(5, 200_000);
    let before = write(extents, kept.clone()).await.unwrap();
    let live = live_bytes(extents);
    for size in [100, MIB, 2 * MIB + 9] {
        let mut writer = extents.writer();
        writer.append(content(6, size)).await.unwrap();
        drop(writer);
    }
    let mut writer = extents.writer();
    writer.append(content(7, MIB + 1)).await.unwrap();
    let mut finish = writer.finish();
    if let Poll::Ready(finished) = futures_util::poll!(finish.as_mut()) {
        for extent in finished.unwrap() {
            extents.free(extent.id, extent.length);
        }
    }
    drop(finish);
    let after = write(extents, kept.clone()).await.unwrap();
    assert_eq!(live_bytes(extents), live + kept.len() as u64);
    assert!(read_all(extents, &before).await.unwrap() == kept);
    assert!(read_all(extents, &after).await.unwrap() == kept);
}

pub async fn an_extent_id_is_given_once(extents: &dyn Extents) {
    let mut ids = HashSet::new();
    for round in 0..200 {
        let extent = write_one(extents, content(round, 90_000)).await;
        assert!(ids.insert(extent.id), "{:?} was given twice", extent.id);
        extents.free(extent.id, extent.length);
    }
}

pub async fn freed_bytes_are_counted_once(extents: &dyn Extents) {
    let first = write_one(extents, content(8, 10_000)).await;
    let second = write_one(extents, content(9, 70_000)).await;
    assert_eq!(live_bytes(extents), 80_000);
    extents.free(first.id, first.length);
    extents.free(first.id, first.length);
    assert_eq!(live_bytes(extents), 70_000);
    extents.free(second.id, second.length);
    assert_eq!(live_bytes(extents), 0);
}

pub async fn a_free_reclaims_at_once_when_nobody_reads(extents: &dyn Extents) {
    let extent = write_one(extents, content(10, 5000)).await;
    drop(extents.pin_all());
    drop(extents.pin(&[extent.id]));
    extents.free(extent.id, extent.length);
    assert_eq!(extents.statistics().bytes_freed, 5000);
}

pub async fn a_pin_of_all_holds_back_what_is_freed_after_it(extents: &dyn Extents) {
    let extent = write_one(extents, content(11, 5000)).await;
    let (first, second) = (extents.pin_all(), extents.pin_all());
    extents.free(extent.id, extent.length);
    assert_eq!(extents.statistics().bytes_freed, 0);
    drop(second);
    assert_eq!(extents.statistics().bytes_freed, 0);
    drop(first);
    assert_eq!(extents.statistics().bytes_freed, 5000);
}

pub async fn a_pin_of_all_does_not_hold_back_what_was_freed_before_it(extents: &dyn Extents) {
    let extent = write_one(extents, content(12, 5000)).await;
    let before = extents.pin_all();
    extents.free(extent.id, extent.length);
    let after = extents.pin_all();
    assert_eq!(extents.statistics().bytes_freed, 0);
    drop(before);
    assert_eq!(extents.statistics().bytes_freed, 5000);
    drop(after);
}

pub async fn a_pin_takes_over_from_a_pin_of_all(extents: &dyn Extents) {
    let bytes = content(13, 5000);
    let extent = write_one(extents, bytes.clone()).await;
    let all = extents.pin_all();
    extents.free(extent.id, extent.length);
    let one = extents.pin(&[extent.id]);
    drop(all);
    assert_eq!(extents.statistics().bytes_freed, 0);
    assert!(read_all(extents, std::slice::from_ref(&extent)).await.unwrap() == bytes);
    drop(one);
    assert_eq!(extents.statistics().bytes_freed, 5000);
}

pub async fn a_pin_holds_back_only_its_extents(extents: &dyn Extents) {
    let slow = write_one(extents, content(14, 5000)).await;
    let other = write_one(extents, content(15, 7000)).await;
    let pin = extents.pin(&[slow.id]);
    extents.free(slow.id, slow.length);
    extents.free(other.id, other.length);
    assert_eq!(extents.statistics().bytes_freed, 7000);
    drop(pin);
    assert_eq!(extents.statistics().bytes_freed, 12_000);
}

pub async fn every_pin_of_an_extent_counts(extents: &dyn Extents) {
    let extent = write_one(extents, content(16, 5000)).await;
    let pins: Vec<_> = (0..3).map(|_| extents.pin(&[extent.id, extent.id])).collect();
    extents.free(extent.id, extent.length);
    for pin in pins {
        assert_eq!(extents.statistics().bytes_freed, 0);
        drop(pin);
    }
    assert_eq!(extents.statistics().bytes_freed, 5000);
}

pub async fn a_reader_in_progress_keeps_what_it_reads(extents: &dyn Extents) {
    let bytes = content(17, 4 * MIB);
    let written = write(extents, bytes.clone()).await.unwrap();
    let ids: Vec<ExtentId> = written.iter().map(|it| it.id).collect();
    let pin = extents.pin(&ids);
    for extent in &written {
        extents.free(extent.id, extent.length);
    }
    for seed in 0..8 {
        let others = write(extents, content(100 + seed, 4 * MIB)).await.unwrap();
        assert!(read_all(extents, &written).await.unwrap() == bytes);
        for extent in others {
            extents.free(extent.id, extent.length);
        }
    }
    drop(pin);
    assert_eq!(live_bytes(extents), 0);
}
