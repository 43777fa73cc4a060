//! Rename File and Rename Directory, which are sent to the new name.

use holdfast_domain::names::FilePath;
use holdfast_domain::share::{Expected, NodeAddress, RenameNode, SharePath, Wanted};
use hyper::StatusCode;

use super::property_headers::Purpose;
use super::{node_address, node_headers, parameters, requested_properties, rest_call};
use crate::answer::Answer;
use crate::error::Error;
use crate::operation::{FileOperation, Operation};
use crate::request::Call;
use crate::source::{Located, SourceRequest};

const SOURCE: &str = "x-ms-file-rename-source";
const REPLACE: &str = "x-ms-file-rename-replace-if-exists";
const IGNORE_READ_ONLY: &str = "x-ms-file-rename-ignore-readonly";

pub async fn rename(call: &Call<'_>) -> Result<Answer, Error> {
    let is_directory = call.operation == Operation::File(FileOperation::RenameDirectory);
    let (share, wanted) =
        (call.share_path()?, if is_directory { Wanted::Directory } else { Wanted::File });
    let destination = if is_directory {
        node_address::directory_path(call)?
    } else {
        node_address::file_path(call)?
    };
    let replace = parameters::boolean(call, REPLACE)?.unwrap_or(false);
    let ignore_read_only = parameters::boolean(call, IGNORE_READ_ONLY)?.unwrap_or(false);
    if ignore_read_only && !replace {
        return Err(Error::invalid_header(IGNORE_READ_ONLY, "true"));
    }
    let source = source(call, &share).await?;
    let properties =
        requested_properties::changed(call, &share, Purpose::Rename, is_directory).await?;
    let metadata = Some(call.metadata()?).filter(|metadata| !metadata.is_empty());
    let content_type = match is_directory {
        true => None,
        false => call.header("x-ms-content-type")?.map(str::to_owned),
    };
    let command = RenameNode {
        source: NodeAddress::path(share, source),
        destination,
        destination_expected: Expected::Anything,
        wanted,
        // A permission to create does not allow replacing.
        replace: replace && !call.granted.create_only,
        ignore_read_only,
        by_handle: false,
        source_lease_id: call.lease_id_header("x-ms-source-lease-id")?,
        destination_lease_id: call.lease_id_header("x-ms-destination-lease-id")?,
        properties,
        metadata,
        content_type,
    };
    let domain = call.frontend.domain();
    let renamed = domain.rest_rename(command, rest_call::patience(call)).await?;
    let mut answer = Answer::new(StatusCode::OK);
    node_headers::node(&mut answer, call, &renamed.located);
    answer.header("x-ms-request-server-encrypted", "true");
    Ok(answer)
}

/// The node to rename is in the same share, and the caller may move it: by the signature of its
/// URL, or by the credentials of this request, if they cover it, too.
async fn source(call: &Call<'_>, share: &SharePath) -> Result<FilePath, Error> {
    let request = SourceRequest::parse_named(call, SOURCE)?;
    let Located::File(local) = request.locate(call)? else {
        return Err(Error::invalid_header(SOURCE, ""));
    };
    let source = request.movable_file(call, local).await?;
    if source.share != *share || source.snapshot.is_some() {
        return Err(Error::invalid_header(SOURCE, ""));
    }
    Ok(source.path)
}
