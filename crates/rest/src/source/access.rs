//! Whether a request may read a source that is on this server.

use super::locate::LocalUrl;
use super::{SourceFailure, SourceRequest};
use crate::address::Address;
use crate::auth::{Granted, Presented};
use crate::error::{Code, Error};
use crate::operation::{Need, Operation};
use crate::query::Query;
use crate::request::Call;
use crate::request_headers::RequestHeaders;
use crate::service::Service;

const READ_BLOB: &str = "blobServices/containers/blobs/read";
const READ_FILE: &str = "fileServices/fileshares/files/read";

impl SourceRequest {
    /// What the source's own credentials (its signature, or `x-ms-copy-source-authorization`) allow;
    /// without any, what the caller may do if the source is in the caller's account, and else what
    /// everybody may.
    ///
    /// The caller's own signature never counts: it is for the destination.
    pub async fn authorize(
        &self,
        call: &Call<'_>,
        source: &LocalUrl,
    ) -> Result<Granted, SourceFailure> {
        let query = Query::parse(&source.raw_query).map_err(Error::from)?;
        let has_credentials = query.get("sig").is_some() || self.token.is_some();
        let same_account = source.account.as_str() == call.address.account;
        let action = if source.service == Service::File { READ_FILE } else { READ_BLOB };
        let granted = if !has_credentials && same_account && call.granted.may_in_account(action) {
            call.granted.clone()
        } else {
            self.authorize_as_read(call, source, &query).await?
        };
        if self.conditions.here.if_tags.is_some() && !granted.may_read_tags {
            return Err(Error::from(Code::AuthorizationPermissionMismatch).into());
        }
        Ok(granted)
    }

    /// Whether the caller may take a source on this server away: with the signature of its URL, or
    /// by what the caller may do in the account.
    pub async fn authorize_move(
        &self,
        call: &Call<'_>,
        source: &LocalUrl,
        taking: Operation,
    ) -> Result<(), Error> {
        let query = Query::parse(&source.raw_query)?;
        let need = taking.need(&query);
        if query.get("sig").is_some() {
            self.authorize_as(call, source, &query, &need).await.map(drop)
        } else {
            Ok(call.granted.check(&need, call.version)?)
        }
    }

    /// As if the source were asked for by Get Blob or Get File, over the connection of the request.
    async fn authorize_as_read(
        &self,
        call: &Call<'_>,
        source: &LocalUrl,
        query: &Query<'_>,
    ) -> Result<Granted, Error> {
        let read = match source.service {
            Service::File => Operation::GetFile,
            Service::Blob | Service::Queue | Service::Table => Operation::GetBlob,
        };
        self.authorize_as(call, source, query, &read.need(query)).await
    }

    async fn authorize_as(
        &self,
        call: &Call<'_>,
        source: &LocalUrl,
        query: &Query<'_>,
        need: &Need,
    ) -> Result<Granted, Error> {
        let service = source.service;
        let host_style = call.frontend.settings().host_style;
        let host = Some(source.host.as_str());
        let address = Address::parse(service, host, host_style, &source.raw_path, query)?;
        let pairs = query.to_pairs();
        let mut headers = RequestHeaders::default();
        if let Some(token) = &self.token {
            headers
                .append("authorization", format!("Bearer {token}").as_bytes())
                .ok_or(Code::InvalidAuthenticationInfo)?;
        }
        let presented = Presented {
            method: "GET",
            path: &source.raw_path,
            path_style: address.path_style,
            account: address.account,
            query: &pairs,
            headers: &headers,
            service,
            version: call.version,
            tls: call.peer.tls,
            client_ip: call.peer.ip,
            target: address.target(),
        };
        call.frontend.authorize(&presented, call.version, &address, need).await
    }
}
