//! OPLOCK_BREAK: a client acknowledges a break.

use std::sync::Arc;

use holdfast_domain::share::opens::{Caching, ClientId, LeaseKey, OplockLevel as DomainLevel};

use super::Result;
use crate::answer::Answer;
use crate::call::Call;
use crate::refusals;
use crate::status::Status;
use crate::wire::create::OplockLevel;
use crate::wire::oplock_break::Acknowledgement;

pub async fn handle(call: &mut Call) -> Result {
    let acknowledgement = Acknowledgement::decode(&call.message)?;
    let domain = Arc::clone(&call.connection.frontend.domain);
    let answer = match acknowledgement {
        Acknowledgement::Oplock { level, file_id } => {
            let level = match OplockLevel::from_code(level) {
                OplockLevel::None => DomainLevel::None,
                OplockLevel::LevelTwo => DomainLevel::Two,
                OplockLevel::Exclusive => DomainLevel::Exclusive,
                OplockLevel::Batch => DomainLevel::Batch,
                OplockLevel::Lease => return Err(Status::INVALID_PARAMETER),
            };
            let open = call.session()?.opens.get(file_id).ok_or(Status::FILE_CLOSED)?;
            call.use_open(&open)?;
            let kept = domain.acknowledge_oplock(&open.file()?.handle, level);
            let kept = kept.map_err(refusals::of_oplock)?;
            domain.keep_oplock(&open.file()?.handle).await.map_err(refusals::of_handle)?;
            let level = super::create::level_to_wire(kept) as u8;
            Acknowledgement::Oplock { level, file_id }
        }
        Acknowledgement::Lease { key, state } => {
            let client = ClientId(u128::from_le_bytes(call.negotiated()?.client_guid));
            let lease = LeaseKey(u128::from_le_bytes(key));
            let kept = domain.acknowledge_lease(client, lease, Caching::from_bits_truncate(state));
            let kept = kept.ok_or(Status::OBJECT_NAME_NOT_FOUND)?;
            let state = kept.map_err(refusals::of_lease)?.bits();
            domain.keep_lease(client, lease).await.map_err(refusals::of_handle)?;
            Acknowledgement::Lease { key, state }
        }
    };
    Ok(Answer::success(|out| answer.encode_response(out)))
}
