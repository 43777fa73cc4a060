//! What the front ends count: requests, latencies, bytes, errors and connections, by service and
//! operation, rendered in the Prometheus text format.
//!
//! Recording takes no lock. A series is found by hashing its labels into a table whose slots are
//! filled once and never move, and its numbers are atomics spread over shards by thread, so that
//! cores that answer the same operation do not contend for a cache line.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::service::Service;

/// Upper bounds of the latency buckets, in microseconds.
const BUCKETS: [u64; 16] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000,
];
/// More than the services have operations, or error codes; what does not fit is counted as `other`.
const SERIES_MAX: usize = 1024;
const SHARDS: usize = 8;
/// A longer turn delays others on the lane noticeably.
const LONG_TURN_NANOSECONDS: u64 = 1_000_000;
/// No other memory depends on the counters.
const RELAXED: Ordering = Ordering::Relaxed;
/// More than the statuses of one operation; further ones are counted as 0.
const STATUSES_MAX: usize = 24;

/// One recorder for the process. Labels are `'static` because they come from the operation table:
/// nothing a client sends can make a new series.
pub struct Metrics {
    operations: Series<Shards<OperationCounts>>,
    errors: Series<AtomicU64>,
    connections: Series<ConnectionCounts>,
    lanes: LaneTurns,
}

/// For all lanes. In its own cache line: it is read at every turn and seldom written.
#[derive(Default)]
#[repr(align(128))]
struct LaneTurns {
    longest_nanoseconds: AtomicU64,
    long: AtomicU64,
    handed_over: AtomicU64,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    pub fn new() -> Self {
        Self {
            operations: Series::new(),
            errors: Series::new(),
            connections: Series::new(),
            lanes: LaneTurns::default(),
        }
    }

    /// One answered request. `error_code` is that of the service (`BlobNotFound`).
    #[allow(clippy::too_many_arguments, reason = "one call per request, all of it needed")]
    pub fn record(
        &self,
        service: Service,
        operation: &'static str,
        status: u16,
        duration: Duration,
        bytes_in: u64,
        bytes_out: u64,
        error_code: Option<&'static str>,
    ) {
        let counts = self.operations.get(service.name(), operation).mine();
        counts.count_status(status);
        let microseconds = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = BUCKETS.partition_point(|bound| *bound < microseconds);
        add(&counts.buckets[bucket], 1);
        add(&counts.microseconds, microseconds);
        add(&counts.bytes_in, bytes_in);
        add(&counts.bytes_out, bytes_out);
        if let Some(code) = error_code {
            add(self.errors.get(service.name(), code), 1);
        }
    }

    /// Counts a connection as open until the answer is dropped.
    pub fn connection_opened(&self, service: Service) -> OpenConnection<'_> {
        let counts = self.connections.get(service.name(), "");
        counts.open.fetch_add(1, RELAXED);
        add(&counts.accepted, 1);
        OpenConnection(counts)
    }

    /// Counts a turn of this length of one connection on a lane.
    pub fn lane_turn(&self, nanoseconds: u64) {
        if nanoseconds > LONG_TURN_NANOSECONDS {
            add(&self.lanes.long, 1);
        }
        if nanoseconds > self.lanes.longest_nanoseconds.load(RELAXED) {
            self.lanes.longest_nanoseconds.fetch_max(nanoseconds, RELAXED);
        }
    }

    /// A request has used up its share of its lane.
    pub fn request_handed_over(&self) {
        add(&self.lanes.handed_over, 1);
    }

    /// Appends everything in the Prometheus text format.
    pub fn render(&self, text: &mut String) {
        let operations = self.totals();
        family(text, "holdfast_requests_total", "counter", "Answered requests.");
        for ((service, operation), totals) in &operations {
            for (status, count) in &totals.statuses {
                let labels = format!("{},status=\"{status}\"", labels(service, operation));
                sample(text, "holdfast_requests_total", &labels, *count);
            }
        }
        self.render_latencies(text, &operations);
        family(text, "holdfast_request_bytes_total", "counter", "Bytes of request bodies.");
        for ((service, operation), totals) in &operations {
            let labels = labels(service, operation);
            sample(text, "holdfast_request_bytes_total", &labels, totals.bytes_in);
        }
        family(text, "holdfast_response_bytes_total", "counter", "Bytes of response bodies.");
        for ((service, operation), totals) in &operations {
            let labels = labels(service, operation);
            sample(text, "holdfast_response_bytes_total", &labels, totals.bytes_out);
        }
        family(text, "holdfast_errors_total", "counter", "Requests refused or failed, by code.");
        for (service, code, count) in self.errors.sorted() {
            let labels = format!("service=\"{service}\",code=\"{code}\"");
            sample(text, "holdfast_errors_total", &labels, count.load(RELAXED));
        }
        self.render_connections(text);
        self.render_lanes(text);
    }

    fn render_lanes(&self, text: &mut String) {
        let name = "holdfast_lane_longest_turn_seconds";
        family(text, name, "gauge", "The longest that a lane has run one connection at a stretch.");
        let longest = Duration::from_nanos(self.lanes.longest_nanoseconds.load(RELAXED));
        sample(text, name, "", longest.as_secs_f64());
        let name = "holdfast_lane_long_turns_total";
        family(text, name, "counter", "Turns of a lane that took more than a millisecond.");
        sample(text, name, "", self.lanes.long.load(RELAXED));
        let name = "holdfast_requests_handed_over_total";
        family(text, name, "counter", "Requests that went on in the pool for long ones.");
        sample(text, name, "", self.lanes.handed_over.load(RELAXED));
    }

    fn totals(&self) -> BTreeMap<(&'static str, &'static str), Totals> {
        let series = self.operations.sorted().into_iter();
        series.map(|(service, operation, shards)| ((service, operation), shards.total())).collect()
    }

    fn render_latencies(
        &self,
        text: &mut String,
        operations: &BTreeMap<(&'static str, &'static str), Totals>,
    ) {
        let name = "holdfast_request_duration_seconds";
        family(
            text,
            name,
            "histogram",
            "From the first byte of a request to the last of its answer.",
        );
        for ((service, operation), totals) in operations {
            let labels = labels(service, operation);
            let mut cumulative = 0;
            for (bound, count) in BUCKETS.iter().zip(&totals.buckets) {
                cumulative += count;
                let bound = *bound as f64 / 1e6;
                let labels = format!("{labels},le=\"{bound}\"");
                sample(text, &format!("{name}_bucket"), &labels, cumulative);
            }
            let count: u64 = totals.buckets.iter().sum();
            sample(text, &format!("{name}_bucket"), &format!("{labels},le=\"+Inf\""), count);
            let seconds = totals.microseconds as f64 / 1e6;
            sample(text, &format!("{name}_sum"), &labels, seconds);
            sample(text, &format!("{name}_count"), &labels, count);
        }
    }

    fn render_connections(&self, text: &mut String) {
        let connections = self.connections.sorted();
        family(text, "holdfast_connections", "gauge", "Connections that are open.");
        for (service, _, counts) in &connections {
            let labels = format!("service=\"{service}\"");
            sample(text, "holdfast_connections", &labels, counts.open.load(RELAXED));
        }
        family(text, "holdfast_connections_total", "counter", "Connections that were accepted.");
        for (service, _, counts) in &connections {
            let labels = format!("service=\"{service}\"");
            let accepted = counts.accepted.load(RELAXED);
            sample(text, "holdfast_connections_total", &labels, accepted);
        }
    }
}

/// See [`Metrics::connection_opened`].
pub struct OpenConnection<'metrics>(&'metrics ConnectionCounts);

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, RELAXED);
    }
}

#[derive(Default)]
struct ConnectionCounts {
    open: AtomicI64,
    accepted: AtomicU64,
}

#[derive(Default)]
#[repr(align(128))]
struct OperationCounts {
    /// A slot belongs to the first status that claimed it.
    statuses: [(AtomicU16, AtomicU64); STATUSES_MAX],
    other_statuses: AtomicU64,
    buckets: [AtomicU64; BUCKETS.len() + 1],
    microseconds: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

impl OperationCounts {
    fn count_status(&self, status: u16) {
        for (owner, count) in &self.statuses {
            let free = owner.load(RELAXED) == 0;
            let claimed = free && owner.compare_exchange(0, status, RELAXED, RELAXED).is_ok();
            if claimed || owner.load(RELAXED) == status {
                return add(count, 1);
            }
        }
        add(&self.other_statuses, 1);
    }
}

/// The sums over all shards of one operation.
#[derive(Default)]
struct Totals {
    statuses: BTreeMap<u16, u64>,
    buckets: [u64; BUCKETS.len() + 1],
    microseconds: u64,
    bytes_in: u64,
    bytes_out: u64,
}

#[derive(Default)]
struct Shards<T>([T; SHARDS]);

impl<T> Shards<T> {
    /// The shard of this thread; threads get shards round-robin.
    fn mine(&self) -> &T {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static INDEX: Cell<usize> = Cell::new(NEXT.fetch_add(1, RELAXED) % SHARDS);
        }
        &self.0[INDEX.get()]
    }
}

impl Shards<OperationCounts> {
    fn total(&self) -> Totals {
        let mut totals = Totals::default();
        for shard in &self.0 {
            let known = shard.statuses.iter().map(|(status, count)| (status.load(RELAXED), count));
            for (status, count) in known.chain([(0, &shard.other_statuses)]) {
                let count = count.load(RELAXED);
                if count > 0 {
                    *totals.statuses.entry(status).or_default() += count;
                }
            }
            for (total, count) in totals.buckets.iter_mut().zip(&shard.buckets) {
                *total += count.load(RELAXED);
            }
            totals.microseconds += shard.microseconds.load(RELAXED);
            totals.bytes_in += shard.bytes_in.load(RELAXED);
            totals.bytes_out += shard.bytes_out.load(RELAXED);
        }
        totals
    }
}

/// Counters by two labels: an open-addressed table that only ever gains entries.
struct Series<T> {
    slots: Box<[OnceLock<Entry<T>>]>,
    overflow: Entry<T>,
}

struct Entry<T> {
    first: &'static str,
    second: &'static str,
    value: Box<T>,
}

impl<T: Default> Series<T> {
    fn new() -> Self {
        Self {
            slots: (0..SERIES_MAX).map(|_| OnceLock::new()).collect(),
            overflow: Entry { first: "other", second: "other", value: Box::default() },
        }
    }

    fn get(&self, first: &'static str, second: &'static str) -> &T {
        let start = hash(first, second);
        for step in 0..SERIES_MAX {
            let slot = &self.slots[(start + step) % SERIES_MAX];
            let entry = slot.get_or_init(|| Entry { first, second, value: Box::default() });
            if entry.first == first && entry.second == second {
                return &entry.value;
            }
        }
        &self.overflow.value
    }

    fn sorted(&self) -> Vec<(&'static str, &'static str, &T)> {
        let filled = self.slots.iter().filter_map(OnceLock::get);
        let full = filled.clone().count() == SERIES_MAX;
        let mut entries: Vec<_> = filled
            .chain(full.then_some(&self.overflow))
            .map(|entry| (entry.first, entry.second, entry.value.as_ref()))
            .collect();
        entries.sort_by_key(|(first, second, _)| (*first, *second));
        entries
    }
}

/// FNV-1a: keys are short and not chosen by clients, so speed matters and flooding does not.
fn hash(first: &str, second: &str) -> usize {
    let bytes = first.bytes().chain(std::iter::once(0)).chain(second.bytes());
    let hash = bytes.fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    (hash ^ (hash >> 32)) as usize
}

fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, RELAXED);
}

fn labels(service: &str, operation: &str) -> String {
    format!("service=\"{service}\",operation=\"{operation}\"")
}

/// The two lines before the samples of a metric.
pub fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// One sample; `labels` is the text between the braces, or empty.
pub fn sample(text: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let _ = match labels {
        "" => writeln!(text, "{name} {value}"),
        labels => writeln!(text, "{name}{{{labels}}} {value}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(metrics: &Metrics) -> String {
        let mut text = String::new();
        metrics.render(&mut text);
        text
    }

    fn leaked(text: String) -> &'static str {
        Box::leak(text.into_boxed_str())
    }

    #[test]
    fn requests_are_counted_by_service_operation_and_status() {
        let metrics = Metrics::new();
        let instant = Duration::from_micros(250);
        metrics.record(Service::Blob, "PutBlob", 201, instant, 100, 0, None);
        metrics.record(Service::Blob, "PutBlob", 201, Duration::from_millis(2), 50, 0, None);
        metrics.record(Service::Blob, "GetBlob", 404, instant, 0, 215, Some("BlobNotFound"));
        let text = rendered(&metrics);
        for line in [
            "holdfast_requests_total{service=\"blob\",operation=\"PutBlob\",status=\"201\"} 2",
            "holdfast_requests_total{service=\"blob\",operation=\"GetBlob\",status=\"404\"} 1",
            "holdfast_request_bytes_total{service=\"blob\",operation=\"PutBlob\"} 150",
            "holdfast_response_bytes_total{service=\"blob\",operation=\"GetBlob\"} 215",
            "holdfast_errors_total{service=\"blob\",code=\"BlobNotFound\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn a_latency_is_in_every_bucket_that_is_not_below_it() {
        let metrics = Metrics::new();
        metrics.record(Service::Blob, "GetBlob", 200, Duration::from_micros(250), 0, 0, None);
        metrics.record(Service::Blob, "GetBlob", 200, Duration::from_secs(60), 0, 0, None);
        let text = rendered(&metrics);
        let labels = "service=\"blob\",operation=\"GetBlob\"";
        for (bound, count) in [("0.0001", 0), ("0.00025", 1), ("10", 1), ("+Inf", 2)] {
            let line = format!(
                "holdfast_request_duration_seconds_bucket{{{labels},le=\"{bound}\"}} {count}"
            );
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
        let sum = format!("holdfast_request_duration_seconds_sum{{{labels}}} 60.00025");
        assert!(text.contains(&sum), "{text}");
        assert!(text.contains(&format!("_count{{{labels}}} 2")), "{text}");
    }

    #[test]
    fn the_longest_turn_is_told_and_long_ones_are_counted() {
        let metrics = Metrics::new();
        for nanoseconds in [700_000, 2_500_000, 1_100_000] {
            metrics.lane_turn(nanoseconds);
        }
        metrics.request_handed_over();
        let text = rendered(&metrics);
        for line in [
            "holdfast_lane_longest_turn_seconds 0.0025",
            "holdfast_lane_long_turns_total 2",
            "holdfast_requests_handed_over_total 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn nothing_is_lost_when_threads_record_at_once() {
        let metrics = Metrics::new();
        let (threads, each) = (16_u64, 5000_u64);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let metrics = &metrics;
                scope.spawn(move || {
                    for request in 0..each {
                        let status = 200 + u16::try_from((thread + request) % 4).expect("small");
                        let operation = if request % 2 == 0 { "GetBlob" } else { "PutBlob" };
                        metrics.record(
                            Service::Blob,
                            operation,
                            status,
                            Duration::ZERO,
                            1,
                            1,
                            Some("X"),
                        );
                    }
                });
            }
        });
        let totals = metrics.totals();
        let answered: u64 = totals.values().flat_map(|total| total.statuses.values()).sum();
        assert_eq!(answered, threads * each);
        let bytes: u64 = totals.values().map(|total| total.bytes_in).sum();
        assert_eq!(bytes, threads * each);
        let line = format!("holdfast_errors_total{{service=\"blob\",code=\"X\"}} {answered}");
        assert!(rendered(&metrics).contains(&line));
    }

    #[test]
    fn a_table_that_is_full_counts_the_rest_together() {
        let metrics = Metrics::new();
        for number in 0..SERIES_MAX + 5 {
            let operation = leaked(format!("Operation{number}"));
            metrics.record(Service::Blob, operation, 200, Duration::ZERO, 0, 0, None);
        }
        let line =
            "holdfast_requests_total{service=\"other\",operation=\"other\",status=\"200\"} 5";
        assert!(rendered(&metrics).contains(line));
    }

    #[test]
    fn more_statuses_than_slots_are_still_counted() {
        let metrics = Metrics::new();
        for status in 200..260 {
            metrics.record(Service::Blob, "GetBlob", status, Duration::ZERO, 0, 0, None);
        }
        let totals = metrics.totals();
        let answered: u64 = totals[&("blob", "GetBlob")].statuses.values().sum();
        assert_eq!(answered, 60);
    }

    #[test]
    fn a_connection_is_open_until_it_is_dropped() {
        let metrics = Metrics::new();
        let open = metrics.connection_opened(Service::Blob);
        assert!(rendered(&metrics).contains("holdfast_connections{service=\"blob\"} 1"));
        drop(open);
        let text = rendered(&metrics);
        assert!(text.contains("holdfast_connections{service=\"blob\"} 0"), "{text}");
        assert!(text.contains("holdfast_connections_total{service=\"blob\"} 1"), "{text}");
    }
}
