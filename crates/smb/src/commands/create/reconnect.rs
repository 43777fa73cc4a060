//! Reconnects to a durable open whose connection was lost: DHnC and DH2C.

use holdfast_domain::names::FilePath;
use holdfast_domain::share::handles::{Opened, Reconnect};
use holdfast_domain::share::opens::Durability;

use super::contexts;
use crate::call::Call;
use crate::commands::Result;
use crate::info::path;
use crate::refusals;
use crate::status::Status;
use crate::wire::create::Request;

pub async fn reconnect(call: &Call, request: &Request) -> Result<Opened> {
    let asked = &request.contexts;
    let reconnects = (asked.durable_reconnect, asked.durable_reconnect_v2);
    let (file_id, durability, persistent) = match reconnects {
        (_, Some(second)) => {
            let guid = u128::from_le_bytes(second.create_guid);
            (second.file_id, Durability::Second(guid), second.persistent)
        }
        (Some(file_id), None) => (file_id, Durability::First, false),
        (None, None) => return Err(Status::INVALID_PARAMETER),
    };
    let lease = contexts::lease_wanted(request, call.dialect()?);
    // Without a lease the name is ignored.
    let path = match path::parse(&request.name) {
        Err(_) if lease.is_none() => FilePath::default(),
        path => path?,
    };
    let command = Reconnect {
        share: call.share()?.path.clone(),
        opener: call.opener()?,
        handle: file_id.persistent,
        durability,
        persistent,
        lease,
        path,
    };
    let domain = &call.connection.frontend.domain;
    domain.reconnect_handle(&command).await.map_err(refusals::of_handle)
}
