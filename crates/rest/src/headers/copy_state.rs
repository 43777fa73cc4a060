//! Headers about the copy that a blob or file came from.

use holdfast_domain::copy::{CopyState, CopyStatus};

use crate::answer::Answer;
use crate::source::copy_status_description;

/// The copy that made a blob, or that is pending.
pub fn copy_state(answer: &mut Answer, copy: &CopyState) {
    answer.header("x-ms-copy-id", &copy.id);
    answer.header("x-ms-copy-status", copy_status(copy.status));
    answer.header("x-ms-copy-source", &copy.source);
    answer.header("x-ms-copy-progress", copy_progress(copy));
    let completed = copy.completed.map(|completed| completed.rfc1123().to_string());
    answer.optional_header("x-ms-copy-completion-time", completed);
    let description = copy.failure.as_ref().map(copy_status_description);
    answer.optional_header("x-ms-copy-status-description", description);
    if let Some(incremental) = copy.incremental {
        answer.header("x-ms-incremental-copy", "true");
        let snapshot = incremental.destination_snapshot.map(|moment| moment.iso8601().to_string());
        answer.optional_header("x-ms-copy-destination-snapshot", snapshot);
    }
}

pub fn copy_status(status: CopyStatus) -> &'static str {
    match status {
        CopyStatus::Pending => "pending",
        CopyStatus::Success => "success",
        CopyStatus::Aborted => "aborted",
        CopyStatus::Failed => "failed",
    }
}

pub fn copy_progress(copy: &CopyState) -> String {
    format!("{}/{}", copy.bytes_copied, copy.bytes_total)
}
