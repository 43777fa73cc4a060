//! Snapshot Blob.

use holdfast_domain::blob::SnapshotBlob;
use hyper::StatusCode;

use super::encryption::{self, Chosen};
use super::headers;
use crate::answer::Answer;
use crate::error::Error;
use crate::request::Call;
use crate::version::Version;

pub async fn create(call: &Call<'_>) -> Result<Answer, Error> {
    let command = SnapshotBlob {
        path: call.blob_path()?,
        metadata: call.metadata()?,
        conditions: headers::write_conditions(call)?,
        lease_id: call.lease_id()?,
        encryption: Chosen::read(call)?.encryption(),
    };
    let made = call.frontend.domain().snapshot_blob(command).await?;
    let mut answer = Answer::new(StatusCode::CREATED);
    let snapshot = &made.snapshot;
    headers::identity(&mut answer, snapshot.etag, snapshot.last_modified, call.version);
    answer.show("x-ms-snapshot", made.moment.iso8601());
    if call.version >= Version::V2019_12_12 {
        let version = made.version.map(|version| version.iso8601().to_string());
        answer.optional_header("x-ms-version-id", version);
    }
    encryption::describe(&mut answer, &snapshot.encryption);
    answer.header("x-ms-request-server-encrypted", "true");
    Ok(answer)
}
