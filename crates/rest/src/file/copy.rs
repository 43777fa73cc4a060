//! Copy File and Abort Copy File.

use holdfast_domain::blob::SourceHere;
use holdfast_domain::copy::CopyDestination;
use holdfast_domain::failure::Failure;
use holdfast_domain::share::{
    AbortFileCopy, CopyFile, FileCopyRefusal, FileCopySource, Located, NodeAddress,
};
use hyper::StatusCode;

use super::{node_address, parameters, requested_properties, rest_call};
use crate::answer::Answer;
use crate::error::Error;
use crate::headers::copy_state;
use crate::headers::resource_headers;
use crate::request::Call;
use crate::source::background_copy;
use crate::source::{self, ReadableBlob, SourceFailure, SourceRequest};
use crate::version::Version;

pub async fn copy(call: &Call<'_>) -> Result<Answer, Error> {
    let source = SourceRequest::parse_whole(call)?;
    let address = node_address::file(call)?;
    let (copy_source, asked) = match source.locate(call)? {
        source::Located::File(local) => {
            let file = source.readable_file(call, local).await;
            let file = file.map_err(|failure| source.error(failure))?;
            (FileCopySource::File(file.read), None)
        }
        source::Located::Here(local) => {
            let blob = source.readable_blob(call, local).await;
            let ReadableBlob { path, which, .. } = blob.map_err(|failure| source.error(failure))?;
            let conditions = source.conditions.here.clone();
            (FileCopySource::Blob(SourceHere { path, which, conditions, etag: None }), None)
        }
        source::Located::Elsewhere => {
            let properties = source.head(call).await?;
            let asked = background_copy::unchanged(source.asked(), &properties);
            (FileCopySource::Awaited(background_copy::source_of(properties)), Some(asked))
        }
        source::Located::Unserved(_) => return Err(source.error(SourceFailure::unserved())),
    };
    let command = command(call, &source, address.clone(), copy_source).await?;
    let copy_id = command.copy_id.clone();
    let copied = rest_call::run(call, command).await;
    let located = copied.map_err(|failure| refused(&source, failure))?;
    if let Some(asked) = asked {
        let destination = CopyDestination::File(address);
        background_copy::begin(call.frontend, destination, copy_id, source.url.clone(), asked);
    }
    Ok(accepted(call, &located))
}

pub async fn abort(call: &Call<'_>) -> Result<Answer, Error> {
    let copy_id = call.query.required("copyid")?.to_owned();
    let command =
        AbortFileCopy { address: node_address::file(call)?, copy_id, lease_id: call.lease_id()? };
    rest_call::run(call, command).await?;
    Ok(Answer::new(StatusCode::NO_CONTENT))
}

async fn command(
    call: &Call<'_>,
    request: &SourceRequest,
    address: NodeAddress,
    source: FileCopySource,
) -> Result<CopyFile, Error> {
    let metadata = Some(call.metadata()?).filter(|metadata| !metadata.is_empty());
    let flag = |name: &'static str| -> Result<bool, Error> {
        if call.version < Version::V2019_07_07 {
            return Ok(false);
        }
        Ok(parameters::boolean(call, name)?.unwrap_or(false))
    };
    Ok(CopyFile {
        source,
        source_url: request.url.without_signature(),
        copy_id: uuid::Uuid::new_v4().to_string(),
        metadata,
        properties: requested_properties::copied(call, &address.share).await?,
        // Before 2021-04-10 its name had one more dash.
        ignore_read_only: flag("x-ms-file-copy-ignore-readonly")?
            || flag("x-ms-file-copy-ignore-read-only")?,
        set_archive: flag("x-ms-file-copy-set-archive")?,
        lease_id: call.lease_id()?,
        address,
    })
}

fn refused(source: &SourceRequest, failure: Failure<FileCopyRefusal>) -> Error {
    let of_source = |error: Error| source.error(SourceFailure::from(error));
    let told = failure.map(|refusal| match refusal {
        FileCopyRefusal::SourceFile(refusal) => of_source(refusal.into()),
        FileCopyRefusal::SourceBlob(refusal) => of_source(refusal.into()),
        FileCopyRefusal::Destination(refusal) => Error::from(refusal),
    });
    told.into()
}

fn accepted(call: &Call<'_>, located: &Located) -> Answer {
    let node = &located.node;
    let mut answer = Answer::new(StatusCode::ACCEPTED);
    resource_headers::identity(&mut answer, node.etag, node.last_modified, call.version);
    if let Some(copy) = node.file().and_then(|file| file.copy.as_ref()) {
        answer.header("x-ms-copy-id", &copy.id);
        answer.header("x-ms-copy-status", copy_state::copy_status(copy.status));
    }
    answer
}
