//! The background work as shown by the admin listener.

use holdfast_domain::workers::{WorkerState, WorkerStatus, WorkerTotals, Workers};
use holdfast_rest::metrics::{family, sample};
use serde_json::{Value, json};

/// `/background`: one entry for each worker that has not ended, and for the last that failed.
pub fn page(workers: &Workers) -> String {
    let workers: Vec<Value> = workers.list().iter().map(entry).collect();
    format!("{:#}\n", json!({ "workers": workers }))
}

fn entry(worker: &WorkerStatus) -> Value {
    let progress = worker.progress.map(
        |progress| json!({ "bytes_done": progress.bytes_done, "bytes_total": progress.bytes_total }),
    );
    let error = worker
        .last_error
        .as_ref()
        .map(|error| json!({ "at": error.at.iso8601().to_string(), "text": error.text }));
    json!({
        "name": worker.name,
        "subject": worker.subject,
        "state": state_name(worker.state),
        "rounds": worker.rounds,
        "progress": progress,
        "last_error": error,
    })
}

fn state_name(state: WorkerState) -> &'static str {
    match state {
        WorkerState::Waiting => "waiting",
        WorkerState::Working => "working",
        WorkerState::Stopping => "stopping",
        WorkerState::Failed => "failed",
    }
}

/// For `/metrics`.
pub fn metrics(text: &mut String, workers: &Workers) {
    let totals = workers.totals();
    let mut show = |name, kind, help, value: fn(&WorkerTotals) -> u64| {
        family(text, name, kind, help);
        for (worker, totals) in &totals {
            sample(text, name, &format!("worker=\"{worker}\""), value(totals));
        }
    };
    let help = "Background workers that have not ended.";
    show("holdfast_background_workers", "gauge", help, |totals| totals.at_work);
    let help = "Pieces of background work that were finished.";
    show("holdfast_background_rounds_total", "counter", help, |totals| totals.rounds);
    let help = "Pieces of background work that failed.";
    show("holdfast_background_errors_total", "counter", help, |totals| totals.errors);
}

#[cfg(test)]
mod tests {
    use holdfast_domain::time::Timestamp;
    use holdfast_domain::workers::Progress;

    use super::*;

    #[test]
    fn a_copy_is_shown_with_its_progress_and_its_last_error() {
        let workers = Workers::default();
        let copy = workers.start("copy", Some("an id".to_owned()));
        copy.works();
        copy.has_progressed(Progress { bytes_done: 3, bytes_total: Some(9) });
        let shown: Value = serde_json::from_str(&page(&workers)).expect("JSON");
        let expected = json!({ "workers": [{
            "name": "copy",
            "subject": "an id",
            "state": "working",
            "rounds": 0,
            "progress": { "bytes_done": 3, "bytes_total": 9 },
            "last_error": null,
        }] });
        assert_eq!(shown, expected);
        copy.has_failed(Timestamp::default(), &"no room");
        let shown: Value = serde_json::from_str(&page(&workers)).expect("JSON");
        assert_eq!(shown["workers"][0]["last_error"]["text"], "\"no room\"");
    }

    #[test]
    fn metrics_count_what_has_ended_too() {
        let workers = Workers::default();
        let copy = workers.start("copy", None);
        copy.has_finished_round();
        drop(copy);
        let _garbage = workers.start("garbage", None);
        let mut text = String::new();
        metrics(&mut text, &workers);
        for line in [
            "holdfast_background_workers{worker=\"copy\"} 0",
            "holdfast_background_workers{worker=\"garbage\"} 1",
            "holdfast_background_rounds_total{worker=\"copy\"} 1",
            "holdfast_background_errors_total{worker=\"copy\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }
}
