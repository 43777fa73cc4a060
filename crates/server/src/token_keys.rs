//! Keeps the keys for verifying bearer tokens up to date with their source: a file that may be
//! replaced, or the key set published by an issuer.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::content::ByteSource as _;
use holdfast_domain::workers::Worker;
use holdfast_rest::auth::{KeyRing, KeySet};
use holdfast_rest::source::{Asked, Fetcher, HostPattern, SourceSettings, SourceUrl};
use tokio::time::{Instant, sleep_until};

use crate::settings::KeySource;
use crate::wiring::Node;

/// How soon a changed file is noticed.
const FILE_PERIOD: Duration = Duration::from_secs(1);
/// How often a published key set is fetched without a reason.
const URL_PERIOD: Duration = Duration::from_secs(15 * 60);
/// The shortest time between two fetches, however many tokens name unknown keys, and after a
/// failure.
const URL_PERIOD_MIN: Duration = Duration::from_secs(10);
/// Far more than any issuer's key set.
const KEY_SET_BYTES_MAX: u64 = 1024 * 1024;
const STALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Reads the keys of a file at the start, where missing keys are an error.
pub fn read_file(path: &Path) -> Result<KeySet, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read the key set {}: {error}", path.display()))?;
    KeySet::from_json(&text)
        .map_err(|error| format!("cannot use the key set {}: {error}", path.display()))
}

/// Reads the keys again when they may have changed, until the server stops. If that fails, the known
/// keys stay.
pub async fn follow(
    source: KeySource,
    keys: Arc<KeyRing>,
    sources: SourceSettings,
    node: Arc<Node>,
) {
    let worker = node.domain().workers().start("token-keys", None);
    let failed = |error: &str| worker.has_failed(node.domain().now(), &format_args!("{error}"));
    let following = async {
        match source {
            KeySource::File(path) => follow_file(&path, &keys, &worker, failed).await,
            KeySource::Url(url) => follow_url(&url, &keys, sources, &worker, failed).await,
        }
    };
    tokio::select! {
        () = following => {}
        () = worker.told_to_stop() => {}
    }
}

async fn follow_file(path: &Path, keys: &KeyRing, worker: &Worker, failed: impl Fn(&str)) {
    let mut known = read_file(path).ok();
    let mut is_told = false;
    loop {
        tokio::time::sleep(FILE_PERIOD).await;
        match read_file(path) {
            Ok(read) => {
                is_told = false;
                worker.has_finished_round();
                if known.as_ref() != Some(&read) {
                    tracing::info!(file = %path.display(), "the keys of bearer tokens were replaced");
                    keys.replace(read.clone());
                    known = Some(read);
                }
            }
            Err(error) if !is_told => {
                is_told = true;
                failed(&format!("{error}; the keys that are known stay"));
            }
            Err(_) => {}
        }
    }
}

async fn follow_url(
    url: &str,
    keys: &KeyRing,
    sources: SourceSettings,
    worker: &Worker,
    failed: impl Fn(&str),
) {
    let Some((fetcher, url)) = fetcher(url, sources) else {
        failed(&format!("the URL of the key set names no host: {url}"));
        return;
    };
    loop {
        let started = Instant::now();
        let period = match fetch(&fetcher, &url).await {
            Ok(read) => {
                keys.replace(read);
                worker.has_finished_round();
                URL_PERIOD
            }
            Err(error) => {
                failed(&format!("cannot fetch the keys of bearer tokens: {error}"));
                URL_PERIOD_MIN
            }
        };
        let missed = async {
            keys.missed().await;
            sleep_until(started + URL_PERIOD_MIN).await;
        };
        tokio::select! {
            () = missed => {}
            () = sleep_until(started + period) => {}
        }
    }
}

/// A fetcher that may read only from the host of the URL, which the operator has given, even if
/// that host redirects elsewhere.
fn fetcher(url: &str, sources: SourceSettings) -> Option<(Fetcher, SourceUrl)> {
    let url = SourceUrl::parse(url).ok()?;
    let host: HostPattern = url.authority().parse().ok()?;
    let sources = SourceSettings { hosts: [host].into_iter().collect(), ..sources };
    Some((Fetcher::new(&sources, STALL_TIMEOUT), url))
}

async fn fetch(fetcher: &Fetcher, url: &SourceUrl) -> Result<KeySet, String> {
    let fetched = fetcher.open(url, &Asked::default(), KEY_SET_BYTES_MAX).await;
    let mut fetched = fetched.map_err(|failure| failure.description())?;
    let mut text = Vec::new();
    while let Some(bytes) = fetched.bytes.next().await.map_err(|failure| failure.description())? {
        text.extend_from_slice(&bytes);
    }
    let text = String::from_utf8(text).map_err(|_| "the key set is not text".to_owned())?;
    KeySet::from_json(&text).map_err(|error| error.to_string())
}
