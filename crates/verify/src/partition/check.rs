//! Whether transactions and queries can be ordered, each between its call and its return: strict
//! serializability, checked by adya from what was read.

use adya::history::{Interner, Mop, Op, OpType, ReadValue, Scalar};
use adya::{History, Opts, Valid, Workload};

use super::{Answer, Request};
use crate::history::Record;
use crate::report::{Verdict, Violation};

type Recorded = Record<Request, Answer>;

pub fn check(history: &[Recorded]) -> Verdict {
    if let Some(violation) = history.iter().find_map(unexpected) {
        return vec![violation].into();
    }
    let (transactions, records) = transactions(history);
    let report = adya::check(&transactions, Workload::ListAppend, &Opts::default());
    match report.valid {
        Valid::True => Verdict::default(),
        // Without writes there are no dependencies.
        Valid::Unknown if report.anomaly_types == ["empty-transaction-graph"] => Verdict::default(),
        Valid::Unknown => Verdict { violations: Vec::new(), is_unjudged: true },
        Valid::False => {
            // The anomaly with the fewest operations is the clearest.
            let anomalies = report.anomalies.values().flatten();
            let told = anomalies.min_by_key(|anomaly| (anomaly.ops.is_empty(), anomaly.ops.len()));
            let violation = told.map(|anomaly| Violation {
                checker: "isolation",
                what: format!("{}: {}", anomaly.kind, anomaly.explanation.trim()),
                history: anomaly
                    .ops
                    .iter()
                    .filter_map(|event| records.get(usize::try_from(*event).ok()?))
                    .map(|record| record.to_string())
                    .collect(),
            });
            violation.into_iter().collect::<Vec<_>>().into()
        }
    }
}

/// Answers that no order explains.
fn unexpected(record: &Recorded) -> Option<Violation> {
    let what = match (&record.request, record.answer.as_ref()?) {
        (Request::Batch { has_stale_etag: true, .. }, Answer::Committed) => {
            "a transaction with an ETag of no entity was committed"
        }
        (Request::Query { .. }, Answer::Refused { .. }) => "a query was refused",
        (_, Answer::Refused { status, code }) => match (*status, code.as_str()) {
            (409, "EntityAlreadyExists")
            | (412, "UpdateConditionNotSatisfied" | "ConditionNotMet")
            | (404, "ResourceNotFound") => return None,
            _ => "a transaction was refused for no reason there is",
        },
        (_, Answer::Nonsense(_)) => "an answer that no table gives",
        (_, Answer::Rows(_) | Answer::Committed) => return None,
    };
    Some(Violation {
        checker: "isolation",
        what: what.to_owned(),
        history: vec![record.to_string()],
    })
}

/// The history in adya's form, and the record of each of its events. The reads of a transaction are
/// those that its ETags prove unchanged at its commit.
fn transactions(history: &[Recorded]) -> (History, Vec<&Recorded>) {
    let mut events: Vec<(i64, bool, usize)> = Vec::new();
    for (number, record) in history.iter().enumerate() {
        events.push((record.call.0, false, number));
        events.push((record.end.0, true, number));
    }
    // At one instant calls come first: then the operations count as concurrent.
    events.sort_unstable();
    let mut names = Interner::default();
    let mut operations = Vec::with_capacity(events.len());
    let mut records = Vec::with_capacity(events.len());
    for (index, (_, is_end, number)) in events.iter().enumerate() {
        let record = &history[*number];
        let kind = match (is_end, &record.answer) {
            (false, _) => OpType::Invoke,
            (true, Some(Answer::Rows(_) | Answer::Committed)) => OpType::Ok,
            (true, Some(Answer::Refused { .. } | Answer::Nonsense(_))) => OpType::Fail,
            (true, None) => OpType::Info,
        };
        operations.push(Op {
            index: index as u64,
            kind,
            // Each is its own process: the order in real time implies that of a client.
            process: i64::try_from(*number).ok(),
            value: steps(record, kind, &mut names),
            time: None,
        });
        records.push(record);
    }
    (History::from_ops(operations, names), records)
}

fn steps(record: &Recorded, kind: OpType, names: &mut Interner) -> Vec<Mop> {
    let key = |names: &mut Interner, row| names.intern(Scalar::Str(format!("row {row}")));
    let element = |names: &mut Interner, element: u64| {
        names.intern(Scalar::Int(i64::try_from(element).unwrap_or(i64::MAX)))
    };
    let list = |names: &mut Interner, list: &[u64]| {
        ReadValue::List(list.iter().map(|it| element(names, *it)).collect())
    };
    let mut steps = Vec::new();
    match &record.request {
        Request::Query { rows } => {
            for row in rows.clone() {
                let value = match (kind, &record.answer) {
                    (OpType::Ok, Some(Answer::Rows(read))) => {
                        let read = read.get(&row).map_or(&[][..], |(list, _)| list);
                        list(names, read)
                    }
                    _ => ReadValue::Nil,
                };
                steps.push(Mop::Read { key: key(names, row), value });
            }
        }
        Request::Batch { changes, .. } => {
            for change in changes {
                let key = key(names, change.row);
                if kind == OpType::Ok {
                    steps.push(Mop::Read { key, value: list(names, &change.before) });
                }
                let value =
                    names.intern(Scalar::Int(i64::try_from(change.element).unwrap_or(i64::MAX)));
                steps.push(Mop::Append { key, value });
            }
        }
    }
    steps
}

#[cfg(test)]
mod tests;
