//! The support matrix of the documentation, written from the table.

use std::fmt::Write;

use super::rows;
use crate::service::Service;

/// Markdown: for each service every operation, the version it appeared in, and whether it is
/// served.
pub fn support_matrix() -> String {
    let mut text = String::from(
        "# Support matrix\n\n\
         Written from the operation table; do not edit. An operation that is not served yet is \
         answered with 501 `NotImplemented`.\n",
    );
    for service in Service::ALL {
        let rows = rows(service);
        let served = rows.iter().filter(|row| row.built).count();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n## {}\n\n{served} of {} operations are served.\n\n\
             | Operation | Since | |\n|---|---|---|\n",
            title(service),
            rows.len(),
        );
        for row in rows {
            let answer = if row.built { "served" } else { "501 `NotImplemented`" };
            let _ = writeln!(text, "| {} | {} | {answer} |", row.name, row.since);
        }
    }
    text
}

/// Markdown: how many operations of each service are served.
pub fn support_summary() -> String {
    let mut text = String::from("| Service | Operations served | of |\n|---|---|---|\n");
    for service in Service::ALL {
        let rows = rows(service);
        let served = rows.iter().filter(|row| row.built).count();
        let _ = writeln!(text, "| {} | {served} | {} |", title(service), rows.len());
    }
    text
}

const fn title(service: Service) -> &'static str {
    match service {
        Service::Blob => "Blob",
        Service::Queue => "Queue",
        Service::Table => "Table",
        Service::File => "File",
    }
}
