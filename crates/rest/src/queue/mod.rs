//! The Queue service on HTTP: each operation is parse, call, respond.

mod list;
mod message;
mod parameters;
mod refusals;
mod resource;

use std::future::ready;

use bytes::Bytes;
use holdfast_domain::access::StoredPolicy;
use holdfast_domain::names::{AccountName, QueueName};
use holdfast_domain::queue::{QueuePath, QueueRefusal};
use holdfast_domain::{Domain, Failure};

use crate::answer::Answering;
use crate::body::RequestBody;
use crate::error::{Code, Error};
use crate::operation::Operation;
use crate::request::Call;
use crate::service::service_operations;
use crate::version::Version;

/// Whether bytes are a message that can be put.
pub(crate) fn can_be_message(bytes: &Bytes) -> bool {
    message::parse_text(bytes, Version::V2027_03_07).is_ok()
}

/// Runs an operation of the Queue service that the operation table calls built. Each is in a box of its
/// own: in one future the largest of them would decide what every request takes and moves.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "most operations belong to other services; test_support_matrix.py calls all of this"
)]
pub fn dispatch<'a>(call: &'a Call<'_>, body: RequestBody) -> Answering<'a> {
    match call.operation {
        Operation::GetQueueServiceProperties => Box::pin(service_operations::get_properties(call)),
        Operation::SetQueueServiceProperties => {
            Box::pin(service_operations::set_properties(call, body))
        }
        Operation::GetQueueServiceStats => Box::pin(ready(service_operations::statistics(call))),
        Operation::GetQueueUserDelegationKey => {
            Box::pin(service_operations::user_delegation_key(call, body))
        }
        Operation::ListQueues => Box::pin(list::queues(call)),
        Operation::CreateQueue => Box::pin(resource::create(call)),
        Operation::DeleteQueue => Box::pin(resource::delete(call)),
        Operation::GetQueueMetadata => Box::pin(resource::get_metadata(call)),
        Operation::SetQueueMetadata => Box::pin(resource::set_metadata(call)),
        Operation::GetQueueAcl => Box::pin(resource::get_acl(call)),
        Operation::SetQueueAcl => Box::pin(resource::set_acl(call, body)),
        Operation::PutMessage => Box::pin(message::put(call, body)),
        Operation::GetMessages => Box::pin(message::get(call)),
        Operation::PeekMessages => Box::pin(message::peek(call)),
        Operation::ClearMessages => Box::pin(message::clear(call)),
        Operation::UpdateMessage => Box::pin(message::update(call, body)),
        Operation::DeleteMessage => Box::pin(message::delete(call)),
        _ => Box::pin(ready(Err(Code::NotImplemented.into()))),
    }
}

/// The stored access policies of a queue; none if it is not there.
pub async fn stored_policies(
    domain: &Domain,
    account: &str,
    queue: &str,
) -> Result<Vec<StoredPolicy>, Error> {
    match domain.get_queue(&queue_path(account, queue)?).await {
        Ok(queue) => Ok(queue.policies),
        Err(Failure::Refused(QueueRefusal::NotFound)) => Ok(Vec::new()),
        Err(failure) => Err(failure.into()),
    }
}

fn queue_path(account: &str, queue: &str) -> Result<QueuePath, Error> {
    Ok(QueuePath { account: AccountName::new(account)?, queue: QueueName::new(queue)? })
}

/// The queue of an operation on it or on its messages.
fn queue_of(call: &Call<'_>) -> Result<QueuePath, Error> {
    let queue = call.address.resource.container().ok_or(Code::InvalidUri)?;
    queue_path(call.address.account, queue)
}
