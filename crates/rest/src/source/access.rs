//! Whether a request may use a source on this server. Only this module gives out what the URL of a
//! source names, after its authorization.

use holdfast_domain::blob::{BlobPath, Which};
use holdfast_domain::names::FilePath;
use holdfast_domain::share::{GetNode, SharePath};
use holdfast_domain::time::Timestamp;

use super::location::{LocalFile, LocalSource, LocalUrl};
use super::{SourceFailure, SourceRequest};
use crate::address::Address;
use crate::auth::{Granted, Identity, Presented};
use crate::error::{Code, Error};
use crate::headers::RequestHeaders;
use crate::operation::{BlobOperation, FileOperation, Need, Operation, Second, SourceCredentials};
use crate::request::Call;
use crate::url_query::UrlQuery;

/// A blob that the request may read.
pub struct ReadableBlob {
    pub path: BlobPath,
    pub which: Which,
    pub may_read_tags: bool,
}

/// A file that the request may read.
pub struct ReadableFile {
    pub read: GetNode,
}

/// A file or directory that the request may move.
pub struct MovableFile {
    pub share: SharePath,
    pub path: FilePath,
    pub snapshot: Option<Timestamp>,
}

impl SourceRequest {
    pub async fn readable_blob(
        &self,
        call: &Call<'_>,
        source: LocalSource,
    ) -> Result<ReadableBlob, SourceFailure> {
        let granted =
            self.authorize_read(call, &source.url, Operation::Blob(BlobOperation::GetBlob)).await?;
        let LocalSource { path, which, .. } = source;
        Ok(ReadableBlob { path, which, may_read_tags: granted.may_read_tags })
    }

    pub async fn readable_file(
        &self,
        call: &Call<'_>,
        source: LocalFile,
    ) -> Result<ReadableFile, SourceFailure> {
        self.authorize_read(call, &source.url, Operation::File(FileOperation::GetFile)).await?;
        Ok(ReadableFile { read: source.read() })
    }

    pub async fn movable_file(
        &self,
        call: &Call<'_>,
        source: LocalFile,
    ) -> Result<MovableFile, Error> {
        let url = &source.url;
        let query = UrlQuery::parse(&url.raw_query)?;
        let address = address(call, url, &query)?;
        if query.get("sig").is_some() {
            let Second::Use(need) = call.operation.row().second else {
                return Err(Code::AuthorizationFailure.into());
            };
            self.authorize_as(call, url, &query, &address, &need).await?;
        } else {
            call.authorize_second(&address.named_resource(url.service))?;
        }
        let LocalFile { share, path, snapshot, .. } = source;
        Ok(MovableFile { share, path, snapshot })
    }

    /// As if the source were requested by `read`, over the connection of the request.
    async fn authorize_read(
        &self,
        call: &Call<'_>,
        url: &LocalUrl,
        read: Operation,
    ) -> Result<Granted, SourceFailure> {
        let query = UrlQuery::parse(&url.raw_query).map_err(Error::from)?;
        let address = address(call, url, &query)?;
        let need = read.need(&query);
        let has_credentials = query.get("sig").is_some() || self.token.is_some();
        let by_caller = if !has_credentials && callers_count(call) {
            call.authorize_second_for(&need, &address.named_resource(url.service)).ok()
        } else {
            None
        };
        let granted = match by_caller {
            Some(granted) => granted,
            None => self.authorize_as(call, url, &query, &address, &need).await?,
        };
        if self.conditions.here.if_tags.is_some() && !granted.may_read_tags {
            return Err(Error::from(Code::AuthorizationPermissionMismatch).into());
        }
        Ok(granted)
    }

    /// With the credentials for the source; without any, as an anonymous caller.
    async fn authorize_as(
        &self,
        call: &Call<'_>,
        url: &LocalUrl,
        query: &UrlQuery<'_>,
        address: &Address<'_>,
        need: &Need,
    ) -> Result<Granted, Error> {
        let pairs = query.to_pairs();
        let mut headers = RequestHeaders::default();
        if let Some(token) = &self.token {
            headers
                .append("authorization", format!("Bearer {token}").as_bytes())
                .ok_or(Code::InvalidAuthenticationInfo)?;
        }
        let presented = Presented {
            method: "GET",
            path: &url.raw_path,
            path_style: address.path_style,
            query: &pairs,
            headers: &headers,
            version: call.version,
            tls: call.peer.tls,
            client_ip: call.peer.ip,
            resource: address.named_resource(url.service),
        };
        let (_, granted) = call.frontend.authorize(&presented, call.version, address, need).await?;
        Ok(granted)
    }
}

fn address<'a>(
    call: &Call<'_>,
    url: &'a LocalUrl,
    query: &UrlQuery<'_>,
) -> Result<Address<'a>, Error> {
    let host_style = call.frontend.settings().host_style;
    Ok(Address::parse(url.service, Some(url.host.as_str()), host_style, &url.raw_path, query)?)
}

/// Whether the caller's own credentials open sources of this request.
fn callers_count(call: &Call<'_>) -> bool {
    let by = match call.operation.row().second {
        Second::Read(by) => by,
        Second::None | Second::Use(_) | Second::Parts => return false,
    };
    let of_account = match by {
        SourceCredentials::OwnOrOfAccount => true,
        SourceCredentials::Own => {
            call.operation == Operation::Blob(BlobOperation::CopyBlobFromUrl)
                && call.frontend.settings().sources.key_opens_copy_from_url
        }
    };
    of_account && matches!(call.caller, Identity::Owner | Identity::Bearer(_))
}
