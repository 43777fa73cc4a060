//! What a queue promises about each message, as a function of a history: nothing is lost, nothing
//! is delivered while it is hidden, each further delivery is explained by a timeout, and an
//! outdated receipt is refused.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::{Answer, DRAIN_VISIBILITY_SECONDS, Delivery, Held, Request, Word};
use crate::history::{Instant, Record};
use crate::report::Violation;

/// The clock of a server may have coarse ticks: a message may be visible so much early.
const EARLY: Duration = Duration::from_millis(20);

type Recorded = Record<Request, Answer>;

/// At most this many are reported; the others are of the same kind.
const VIOLATIONS_MAX: usize = 3;

pub fn check(history: &[Recorded]) -> Vec<Violation> {
    let mut violations = unexpected(history);
    let unknown_gets: Vec<&Recorded> = history
        .iter()
        .filter(|it| it.is_maybe() && matches!(it.request, Request::Get { .. }))
        .collect();
    for message in messages(history, &mut violations).values() {
        violations.extend(message.judge(history, &unknown_gets));
        if violations.len() >= VIOLATIONS_MAX {
            break;
        }
    }
    violations.truncate(VIOLATIONS_MAX);
    violations
}

fn violation(what: impl Into<String>, records: &[&Recorded]) -> Violation {
    let mut records = records.to_vec();
    records.sort_by_key(|record| record.call);
    records.dedup_by_key(|record| (record.call, record.client));
    Violation {
        checker: "queue",
        what: what.into(),
        history: records.iter().map(ToString::to_string).collect(),
    }
}

/// Answers that no state of a queue explains.
fn unexpected(history: &[Recorded]) -> Vec<Violation> {
    let wrong = history.iter().filter(|record| match (&record.request, &record.answer) {
        (Request::Put { .. } | Request::Get { .. }, Some(Answer::Refused { .. })) => true,
        (_, Some(Answer::Nonsense(_))) => true,
        (_, Some(Answer::Refused { status, code })) => !matches!(
            (*status, code.as_str()),
            (404, "MessageNotFound") | (400, "PopReceiptMismatch")
        ),
        _ => false,
    });
    wrong.take(1).map(|record| violation("an answer that no queue gives", &[record])).collect()
}

/// Everything about one message.
#[derive(Default)]
struct Message<'history> {
    put: Option<&'history Recorded>,
    /// Deliveries by their count.
    deliveries: Vec<(&'history Delivery, &'history Recorded)>,
    /// Deletions and updates attempted with any of its receipts.
    uses: Vec<&'history Recorded>,
}

fn messages<'history>(
    history: &'history [Recorded],
    violations: &mut Vec<Violation>,
) -> BTreeMap<Word, Message<'history>> {
    let mut messages: BTreeMap<Word, Message<'history>> = BTreeMap::new();
    let puts: HashMap<u64, &Recorded> = history
        .iter()
        .filter_map(|record| match &record.request {
            Request::Put { value, .. } => Some((*value, record)),
            Request::Get { .. } | Request::Delete(_) | Request::Update { .. } => None,
        })
        .collect();
    for record in history {
        match (&record.request, &record.answer) {
            (_, Some(Answer::Put(held))) => {
                messages.entry(held.message.clone()).or_default().put = Some(record);
            }
            (_, Some(Answer::Got(deliveries))) => {
                for delivery in deliveries {
                    let message = messages.entry(delivery.held.message.clone()).or_default();
                    message.deliveries.push((delivery, record));
                    match puts.get(&delivery.value) {
                        Some(put) => message.put = message.put.or(Some(put)),
                        None => violations.push(violation("a message that nobody put", &[record])),
                    }
                }
            }
            (Request::Delete(held) | Request::Update { held, .. }, _) => {
                messages.entry(held.message.clone()).or_default().uses.push(record);
            }
            _ => {}
        }
    }
    for message in messages.values_mut() {
        message.deliveries.sort_by_key(|(delivery, record)| (delivery.count, record.call));
    }
    messages
}

fn receipt_used(record: &Recorded) -> Option<&Word> {
    match &record.request {
        Request::Delete(Held { receipt, .. })
        | Request::Update { held: Held { receipt, .. }, .. } => Some(receipt),
        Request::Put { .. } | Request::Get { .. } => None,
    }
}

fn is_delete(record: &Recorded) -> bool {
    matches!(record.request, Request::Delete(_))
}

fn succeeded(record: &Recorded) -> bool {
    matches!(record.answer, Some(Answer::Deleted | Answer::Updated { .. }))
}

/// The earliest time at which an update makes a message visible again.
fn visible_after(update: &Recorded) -> Instant {
    let Request::Update { visibility_seconds, .. } = update.request else { return update.call };
    update.call.plus(seconds(visibility_seconds))
}

fn seconds(seconds: u32) -> Duration {
    Duration::from_secs(seconds.into())
}

impl Message<'_> {
    fn judge(&self, history: &[Recorded], unknown_gets: &[&Recorded]) -> Option<Violation> {
        self.mixed()
            .or_else(|| self.handed_out_while_hidden())
            .or_else(|| self.handed_out_after_deletion())
            .or_else(|| self.stale_receipt_accepted())
            .or_else(|| self.current_receipt_refused(unknown_gets))
            .or_else(|| self.lost(history))
    }

    fn mixed(&self) -> Option<Violation> {
        let (first, record) = self.deliveries.first()?;
        let other = self.deliveries.iter().find(|(other, _)| other.value != first.value);
        if let Some((_, other)) = other {
            return Some(violation("a message changed its content", &[record, other]));
        }
        let mut pairs = self.deliveries.windows(2);
        let twice = pairs.find(|pair| pair[0].0.count == pair[1].0.count);
        twice.map(|pair| {
            violation("a message was handed out twice at once", &[pair[0].1, pair[1].1])
        })
    }

    fn handed_out_while_hidden(&self) -> Option<Violation> {
        if let (Some(put), Some((_, first))) = (self.put, self.deliveries.first())
            && let Request::Put { delay_seconds, .. } = put.request
            && let Some(Answer::Put(held)) = &put.answer
        {
            let delayed = (put.call.plus(seconds(delay_seconds)), put);
            let (until, by) = self.hidden_until(&held.receipt, delayed);
            if first.end < until.minus(EARLY) {
                let what = "a message was handed out before its delay was over";
                return Some(violation(what, &[put, by, first]));
            }
        }
        for pair in self.deliveries.windows(2) {
            let [(delivery, record), (_, next)] = pair else { continue };
            let Request::Get { visibility_seconds, .. } = record.request else { continue };
            let hidden = (record.call.plus(seconds(visibility_seconds)), *record);
            let (until, by) = self.hidden_until(&delivery.held.receipt, hidden);
            if next.end < until.minus(EARLY) {
                let what = "a message was handed out again although it was still hidden";
                return Some(violation(what, &[record, by, next]));
            }
        }
        None
    }

    /// The earliest time at which a hidden message can be visible again, and the cause: the request
    /// that hid it, or an update with its receipt.
    fn hidden_until<'record>(
        &'record self,
        mut receipt: &'record Word,
        mut hidden: (Instant, &'record Recorded),
    ) -> (Instant, &'record Recorded) {
        // Updates are chained by their receipts. One that succeeded shows that no other with its
        // receipt has happened; any with an unknown outcome may have.
        while let Some(update) = self.updates(receipt).find(|it| succeeded(it))
            && let Some(Answer::Updated { receipt: newer }) = &update.answer
            && newer != receipt
        {
            hidden = (visible_after(update), update);
            receipt = newer;
        }
        let unknown = self.updates(receipt).filter(|it| it.is_maybe());
        unknown
            .map(|it| (visible_after(it), it))
            .chain([hidden])
            .min_by_key(|it| it.0)
            .unwrap_or(hidden)
    }

    fn updates<'record>(
        &'record self,
        receipt: &'record Word,
    ) -> impl Iterator<Item = &'record Recorded> {
        let uses = self.uses.iter().copied();
        uses.filter(move |it| receipt_used(it) == Some(receipt) && !is_delete(it))
    }

    fn handed_out_after_deletion(&self) -> Option<Violation> {
        let mut deletions = self.uses.iter().filter(|it| is_delete(it) && succeeded(it));
        let deletion = deletions.next()?;
        if let Some(second) = deletions.next() {
            return Some(violation("a message was deleted twice", &[deletion, second]));
        }
        let late = self.deliveries.iter().find(|(_, record)| record.call > deletion.end);
        late.map(|(_, record)| {
            violation("a message was handed out after it was deleted", &[deletion, record])
        })
    }

    /// What made this receipt outdated, if something certainly did before `then`, or may have with
    /// `possibly`.
    fn replaced_by(&self, receipt: &Word, then: Instant, possibly: bool) -> Option<&Recorded> {
        let count = self.count_of(receipt)?;
        let is_before = |record: &Recorded| {
            if possibly { record.call < then } else { record.end < then }
        };
        let delivered = self
            .deliveries
            .iter()
            .find(|(delivery, record)| delivery.count > count && is_before(record));
        let used = self.uses.iter().find(|it| {
            let ends_it = receipt_used(it) == Some(receipt) || is_delete(it);
            ends_it && is_before(it) && (succeeded(it) || (possibly && it.is_maybe()))
        });
        delivered.map(|(_, record)| *record).or(used.copied())
    }

    /// The delivery that made a receipt; 0 is Put Message.
    fn count_of(&self, receipt: &Word) -> Option<u32> {
        if let Some(Recorded { answer: Some(Answer::Put(held)), .. }) = self.put
            && held.receipt == *receipt
        {
            return Some(0);
        }
        if let Some((delivery, _)) = self.deliveries.iter().find(|it| it.0.held.receipt == *receipt)
        {
            return Some(delivery.count);
        }
        let made_by = self.uses.iter().find(
            |it| matches!(&it.answer, Some(Answer::Updated { receipt: newer }) if newer == receipt),
        )?;
        let used = receipt_used(made_by).filter(|used| *used != receipt)?;
        self.count_of(used)
    }

    fn stale_receipt_accepted(&self) -> Option<Violation> {
        self.uses.iter().filter(|it| succeeded(it)).find_map(|accepted| {
            let receipt = receipt_used(accepted)?;
            let by = self.replaced_by(receipt, accepted.call, false)?;
            let what = "a receipt was accepted although the message had a newer one, or was gone";
            Some(violation(what, &[by, accepted]))
        })
    }

    fn current_receipt_refused(&self, unknown_gets: &[&Recorded]) -> Option<Violation> {
        let refused =
            self.uses.iter().filter(|it| matches!(it.answer, Some(Answer::Refused { .. })));
        refused.into_iter().find_map(|refused| {
            let receipt = receipt_used(refused)?;
            // Only receipts whose origin was seen are known to be valid.
            self.count_of(receipt)?;
            let may_be_replaced = self.replaced_by(receipt, refused.end, true).is_some()
                || unknown_gets.iter().any(|get| get.call < refused.end);
            let what = "a receipt was refused although it was the message's newest";
            (!may_be_replaced).then(|| violation(what, &[refused]))
        })
    }

    fn lost(&self, history: &[Recorded]) -> Option<Violation> {
        let put = self.put.filter(|put| !put.is_maybe())?;
        let may_be_deleted =
            self.uses.iter().any(|it| is_delete(it) && (it.is_maybe() || succeeded(it)));
        let is_drain = |record: &Recorded| {
            matches!(record.request, Request::Get { visibility_seconds, .. }
                if visibility_seconds == DRAIN_VISIBILITY_SECONDS)
        };
        let mut drain = history.iter().filter(|record| is_drain(record)).peekable();
        // Without a drain, or if its answers may be lost, nothing is known.
        if may_be_deleted || drain.peek().is_none() || drain.any(Recorded::is_maybe) {
            return None;
        }
        let is_left = self.deliveries.iter().any(|(_, record)| is_drain(record));
        let mut told = vec![put];
        told.extend(self.deliveries.iter().map(|(_, record)| *record));
        told.extend(&self.uses);
        (!is_left).then(|| violation("a message was lost", &told))
    }
}

#[cfg(test)]
mod tests;
