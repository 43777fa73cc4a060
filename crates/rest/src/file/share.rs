//! Create, read, change, snapshot, delete and restore a share.

use holdfast_domain::names::{DeletedVersion, ShareName};
use holdfast_domain::share::{
    CreateShare, DeleteShare, RestoreShare, SetShareAcl, SetShareMetadata, SetShareProperties,
    Share, SnapshotShare, WithSnapshots,
};
use holdfast_domain::time::Timestamp;
use hyper::StatusCode;

use super::{parameters, share_headers};
use crate::answer::Answer;
use crate::body::RequestBody;
use crate::error::Error;
use crate::headers::resource_headers;
use crate::request::Call;
use crate::service::Service;
use crate::service::signed_identifiers;
use crate::version::Version;
use crate::xml::Writer;

pub async fn create(call: &Call<'_>) -> Result<Answer, Error> {
    let command = CreateShare {
        path: call.share_path()?,
        metadata: call.metadata()?,
        protocol: share_headers::protocol(call)?,
        settings: share_headers::settings(call)?,
    };
    let share = call.frontend.domain().create_share(command).await?;
    let mut answer = described(StatusCode::CREATED, call, &share);
    share_headers::provisioned(&mut answer, &share, call.version);
    Ok(answer)
}

pub async fn get_properties(call: &Call<'_>) -> Result<Answer, Error> {
    let (share, now) = find(call).await?;
    let mut answer = described(StatusCode::OK, call, &share);
    resource_headers::metadata(&mut answer, &share.metadata);
    for property in share_headers::shown_properties(&share, call.version, now) {
        answer.header(property.header, property.value);
    }
    Ok(answer)
}

pub async fn set_properties(call: &Call<'_>) -> Result<Answer, Error> {
    let (path, settings) = (call.share_path()?, share_headers::settings(call)?);
    let command = SetShareProperties { path, settings, lease_id: call.lease_id()? };
    let share = call.frontend.domain().set_share_properties(command).await?;
    let mut answer = described(StatusCode::OK, call, &share);
    share_headers::provisioned(&mut answer, &share, call.version);
    Ok(answer)
}

pub async fn get_metadata(call: &Call<'_>) -> Result<Answer, Error> {
    let (share, _) = find(call).await?;
    let mut answer = described(StatusCode::OK, call, &share);
    resource_headers::metadata(&mut answer, &share.metadata);
    Ok(answer)
}

pub async fn set_metadata(call: &Call<'_>) -> Result<Answer, Error> {
    let (path, metadata) = (call.share_path()?, call.metadata()?);
    let command = SetShareMetadata { path, metadata, lease_id: call.lease_id()? };
    let share = call.frontend.domain().set_share_metadata(command).await?;
    Ok(described(StatusCode::OK, call, &share))
}

pub async fn get_acl(call: &Call<'_>) -> Result<Answer, Error> {
    let (share, _) = find(call).await?;
    let mut answer = Answer::xml(StatusCode::OK, signed_identifiers::write(&share.policies));
    resource_headers::identity(&mut answer, share.etag, share.last_modified, call.version);
    Ok(answer)
}

pub async fn set_acl(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    let document = body.document(call).await?;
    let command = SetShareAcl {
        path: call.share_path()?,
        policies: signed_identifiers::parse(Service::File, &document)?,
        lease_id: call.lease_id()?,
    };
    let share = call.frontend.domain().set_share_acl(command).await?;
    Ok(described(StatusCode::OK, call, &share))
}

/// The size of its files: in bytes, and before 2018-11-09 in GiB, rounded up.
pub async fn get_stats(call: &Call<'_>) -> Result<Answer, Error> {
    const GIB: u64 = 1 << 30;
    let path = call.share_path()?;
    let domain = call.frontend.domain();
    domain.get_share(&path, None, call.lease_id()?).await?;
    let (share, bytes) = domain.share_usage(&path).await?;
    let mut xml = Writer::document();
    xml.open("ShareStats");
    if call.version >= Version::V2018_11_09 {
        xml.element("ShareUsageBytes", &bytes.to_string());
    } else {
        xml.element("ShareUsage", &bytes.div_ceil(GIB).to_string());
    }
    xml.close("ShareStats");
    let mut answer = Answer::xml(StatusCode::OK, xml.finish());
    resource_headers::identity(&mut answer, share.etag, share.last_modified, call.version);
    Ok(answer)
}

pub async fn snapshot(call: &Call<'_>) -> Result<Answer, Error> {
    let command = SnapshotShare { path: call.share_path()?, metadata: call.metadata()? };
    let (share, moment) = call.frontend.domain().snapshot_share(command).await?;
    let mut answer = described(StatusCode::CREATED, call, &share);
    answer.show("x-ms-snapshot", moment.iso8601());
    Ok(answer)
}

pub async fn delete(call: &Call<'_>) -> Result<Answer, Error> {
    const SNAPSHOTS: &str = "x-ms-delete-snapshots";
    const CHOICES: [(&str, WithSnapshots); 2] =
        [("include", WithSnapshots::Include), ("include-leased", WithSnapshots::IncludeLeased)];
    let with_snapshots = parameters::choice(call, SNAPSHOTS, &CHOICES)?;
    let snapshot = parameters::snapshot(call)?;
    if let (Some(text), true) = (call.header(SNAPSHOTS)?, snapshot.is_some()) {
        return Err(Error::invalid_header(SNAPSHOTS, text));
    }
    let command = DeleteShare {
        path: call.share_path()?,
        snapshot,
        with_snapshots: with_snapshots.unwrap_or_default(),
        lease_id: call.lease_id()?,
    };
    call.frontend.domain().delete_share(command).await?;
    Ok(Answer::new(StatusCode::ACCEPTED))
}

pub async fn restore(call: &Call<'_>) -> Result<Answer, Error> {
    const NAME: &str = "x-ms-deleted-share-name";
    let command = RestoreShare {
        path: call.share_path()?,
        deleted_name: ShareName::new(call.required_header(NAME)?)?,
        deleted_version: DeletedVersion::parse(call.required_header("x-ms-deleted-share-version")?),
    };
    // A share can be restored only under its own name.
    if command.deleted_name != command.path.share {
        return Err(Error::invalid_header(NAME, command.deleted_name.as_str()));
    }
    let share = call.frontend.domain().restore_share(command).await?;
    let mut answer = described(StatusCode::CREATED, call, &share);
    share_headers::provisioned(&mut answer, &share, call.version);
    Ok(answer)
}

async fn find(call: &Call<'_>) -> Result<(Share, Timestamp), Error> {
    let (path, snapshot) = (call.share_path()?, parameters::snapshot(call)?);
    Ok(call.frontend.domain().get_share(&path, snapshot, call.lease_id()?).await?)
}

fn described(status: StatusCode, call: &Call<'_>, share: &Share) -> Answer {
    let mut answer = Answer::new(status);
    resource_headers::identity(&mut answer, share.etag, share.last_modified, call.version);
    answer
}
