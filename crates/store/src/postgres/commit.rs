//! One commit: a round trip that checks and writes, and one that commits.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::future::try_join;
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::types::ToSql;

use super::schema::BEGIN_COMMIT;
use super::sessions::{LentSession, Unanswered};
use super::snapshot::{first_of, past_of};
use super::text_of;
use crate::engine::{Batch, CommitError, Fault, Write};

/// A batch as the arrays that its statement takes.
pub struct Parameters<'batch> {
    moment: Option<&'batch str>,
    keys: Vec<&'batch [u8]>,
    values: Vec<Option<&'batch [u8]>>,
    expected_rows: Vec<&'batch [u8]>,
    expected_first: Vec<Bytes>,
    expected_past: Vec<Bytes>,
}

/// How an attempt ended, if that is known.
pub enum Attempt {
    Committed,
    /// Something expected has changed.
    Changed,
    /// Another commit in flight stood in the way; nothing was applied.
    Lost,
}

impl<'batch> Parameters<'batch> {
    pub fn of(batch: &'batch Batch) -> Result<Self, Fault> {
        // In the order of keys, so that commits that write the same rows line up and do not
        // deadlock; and one value for each key, the last.
        let mut last = BTreeMap::new();
        for write in &batch.writes {
            match write {
                Write::Put { key, value } => last.insert(key.as_ref(), Some(value.as_ref())),
                Write::Delete { key } => last.insert(key.as_ref(), None),
            };
        }
        let (keys, values) = last.into_iter().unzip();
        let ranges = || batch.expected_ranges.iter().filter(|range| !range.is_empty());
        Ok(Self {
            moment: batch.since.as_ref().map(text_of).transpose()?,
            keys,
            values,
            expected_rows: batch.expected_rows.iter().map(AsRef::as_ref).collect(),
            expected_first: ranges().map(first_of).collect(),
            expected_past: ranges().map(past_of).collect(),
        })
    }
}

pub async fn attempt(
    session: &mut LentSession,
    parameters: &Parameters<'_>,
) -> Result<Attempt, CommitError> {
    match check_and_write(session, parameters).await {
        Ok(true) => {}
        Ok(false) => return Ok(Attempt::Changed),
        Err(Unanswered::Failed(error)) if lost_to_another(&error) => return Ok(Attempt::Lost),
        Err(unanswered) => return Err(CommitError::Fault(unanswered.into())),
    }
    match session.wait(session.client().batch_execute("COMMIT")).await {
        Ok(()) => {
            session.set_in_transaction(false);
            Ok(Attempt::Committed)
        }
        Err(Unanswered::Failed(error)) if lost_to_another(&error) => Ok(Attempt::Lost),
        Err(Unanswered::Failed(error)) if was_rolled_back(&error) => {
            Err(CommitError::Fault(Unanswered::Failed(error).into()))
        }
        Err(unanswered) => Err(CommitError::OutcomeUnknown(unanswered.into())),
    }
}

/// Whether everything expected was unchanged, and so everything was written.
async fn check_and_write(
    session: &LentSession,
    parameters: &Parameters<'_>,
) -> Result<bool, Unanswered> {
    let expected_first: Vec<&[u8]> = parameters.expected_first.iter().map(AsRef::as_ref).collect();
    let expected_past: Vec<&[u8]> = parameters.expected_past.iter().map(AsRef::as_ref).collect();
    session.set_in_transaction(true);
    let client = session.client();
    let begin = client.batch_execute(BEGIN_COMMIT);
    let arguments: [&(dyn ToSql + Sync); 6] = [
        &parameters.keys,
        &parameters.values,
        &parameters.moment,
        &parameters.expected_rows,
        &expected_first,
        &expected_past,
    ];
    let verdict = client.query_one(&session.statements().commit_batch, &arguments);
    let ((), verdict) = session.wait(try_join(begin, verdict)).await?;
    verdict.try_get(0).map_err(Unanswered::Failed)
}

fn lost_to_another(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| {
        *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED
    })
}

/// An error is answered only after the rollback. A session that is being ended is not: it may be
/// ended while it waits for a standby, with its transaction already committed here.
fn was_rolled_back(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_some_and(|answer| answer.parsed_severity() == Some(Severity::Error))
}
