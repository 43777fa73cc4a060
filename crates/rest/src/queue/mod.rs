//! The Queue service on HTTP: each operation is parse, call, respond.

mod list_queues;
mod message;
mod parameters;
mod queue_properties;
mod refusals;

use std::future::ready;

use bytes::Bytes;
use holdfast_domain::access::StoredPolicy;
use holdfast_domain::names::{AccountName, QueueName};
use holdfast_domain::queue::{QueuePath, QueueRefusal};
use holdfast_domain::{Domain, Failure};

use crate::answer::Answering;
use crate::body::RequestBody;
use crate::error::{Code, Error};
use crate::operation::QueueOperation;
use crate::request::Call;
use crate::service::service_operations;
use crate::version::Version;

/// Whether the bytes are a message that can be put.
pub(crate) fn can_be_message(bytes: &Bytes) -> bool {
    message::parse_text(bytes, Version::V2027_03_07).is_ok()
}

/// Runs an operation of the Queue service that is marked as built. Each is boxed: otherwise the largest
/// future would set the size of every request.
pub fn dispatch<'a>(
    call: &'a Call<'_>,
    operation: QueueOperation,
    body: RequestBody,
) -> Answering<'a> {
    match operation {
        QueueOperation::GetQueueServiceProperties => {
            Box::pin(service_operations::get_properties(call))
        }
        QueueOperation::SetQueueServiceProperties => {
            Box::pin(service_operations::set_properties(call, body))
        }
        QueueOperation::GetQueueServiceStats => {
            Box::pin(ready(service_operations::statistics(call)))
        }
        QueueOperation::GetQueueUserDelegationKey => {
            Box::pin(service_operations::user_delegation_key(call, body))
        }
        QueueOperation::ListQueues => Box::pin(list_queues::queues(call)),
        QueueOperation::CreateQueue => Box::pin(queue_properties::create(call)),
        QueueOperation::DeleteQueue => Box::pin(queue_properties::delete(call)),
        QueueOperation::GetQueueMetadata => Box::pin(queue_properties::get_metadata(call)),
        QueueOperation::SetQueueMetadata => Box::pin(queue_properties::set_metadata(call)),
        QueueOperation::GetQueueAcl => Box::pin(queue_properties::get_acl(call)),
        QueueOperation::SetQueueAcl => Box::pin(queue_properties::set_acl(call, body)),
        QueueOperation::PutMessage => Box::pin(message::put(call, body)),
        QueueOperation::GetMessages => Box::pin(message::get(call)),
        QueueOperation::PeekMessages => Box::pin(message::peek(call)),
        QueueOperation::ClearMessages => Box::pin(message::clear(call)),
        QueueOperation::UpdateMessage => Box::pin(message::update(call, body)),
        QueueOperation::DeleteMessage => Box::pin(message::delete(call)),
        // The front end answers it before authentication.
        QueueOperation::PreflightQueueRequest => Box::pin(ready(Err(Code::NotImplemented.into()))),
    }
}

/// The stored access policies of a queue; none if it does not exist.
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
