//! Which directory or file a request addresses, and in which state of its share.

use holdfast_domain::names::{FilePath, TrailingDots};
use holdfast_domain::share::{GetNode, NodeAddress, ShareState, Wanted};
use holdfast_domain::time::Timestamp;

use super::parameters;
use crate::address::Resource;
use crate::error::{Code, Error};
use crate::request::Call;
use crate::url_query::QueryRefusal;
use crate::version::Version;

const ALLOW_TRAILING_DOT: &str = "x-ms-allow-trailing-dot";

/// The file or link that is to be changed.
pub fn file(call: &Call<'_>) -> Result<NodeAddress, Error> {
    Ok(NodeAddress::path(call.share_path()?, file_path(call)?))
}

/// The directory that is to be changed.
pub fn directory(call: &Call<'_>) -> Result<NodeAddress, Error> {
    Ok(NodeAddress::path(call.share_path()?, directory_path(call)?))
}

/// The file that is to be read.
pub fn read_file(call: &Call<'_>) -> Result<GetNode, Error> {
    let address = file(call)?;
    let (state, lease_id) = (state(call)?, call.lease_id()?);
    Ok(GetNode { address, state, wanted: Wanted::File, lease_id })
}

/// The directory that is to be read.
pub fn read_directory(call: &Call<'_>) -> Result<GetNode, Error> {
    let address = directory(call)?;
    Ok(GetNode { address, state: state(call)?, wanted: Wanted::Directory, lease_id: None })
}

/// A directory or a file, for operations that take either at the same address.
pub fn either(call: &Call<'_>) -> Result<GetNode, Error> {
    Ok(GetNode { wanted: Wanted::Any, ..read_directory(call)? })
}

pub fn state(call: &Call<'_>) -> Result<ShareState, Error> {
    Ok(parameters::snapshot(call)?.map_or(ShareState::Current, ShareState::Snapshot))
}

/// The snapshot that another one is compared with.
pub fn previous_snapshot(call: &Call<'_>) -> Result<Option<Timestamp>, Error> {
    const NAME: &str = "prevsharesnapshot";
    let Some(value) = call.query.get_nonempty(NAME) else { return Ok(None) };
    let moment = Timestamp::parse_iso8601(value);
    let invalid = || QueryRefusal::InvalidValue { name: NAME, value: value.to_owned() };
    Ok(Some(moment.ok_or_else(invalid)?))
}

pub fn file_path(call: &Call<'_>) -> Result<FilePath, Error> {
    let Resource::Path { path, trailing_slash, .. } = &call.address.resource else {
        return Err(Code::InvalidUri.into());
    };
    if *trailing_slash {
        return Err(Code::InvalidUri.into());
    }
    FilePath::file(path, dots(call)?).map_err(|_| Code::InvalidFileOrDirectoryPathName.into())
}

pub fn directory_path(call: &Call<'_>) -> Result<FilePath, Error> {
    let path = call.address.resource.object().ok_or(Code::InvalidUri)?;
    FilePath::directory(path, dots(call)?).map_err(|_| Code::InvalidFileOrDirectoryPathName.into())
}

/// What happens to dots at the end of names.
pub fn dots(call: &Call<'_>) -> Result<TrailingDots, Error> {
    if call.version < Version::V2022_11_02 {
        return Ok(TrailingDots::Removed);
    }
    let kept = parameters::boolean(call, ALLOW_TRAILING_DOT)?.unwrap_or(false);
    Ok(if kept { TrailingDots::Kept } else { TrailingDots::Removed })
}
