//! The Queue service on HTTP: each operation is parse, call, respond.

mod list;
mod message;
mod parameters;
mod refusals;
mod resource;

use bytes::Bytes;
use holdfast_domain::access::StoredPolicy;
use holdfast_domain::names::{AccountName, QueueName};
use holdfast_domain::queue::{QueuePath, QueueRefusal};
use holdfast_domain::{Domain, Failure};

use crate::answer::Answer;
use crate::error::{Code, Error};
use crate::operation::Operation;
use crate::request::Call;
use crate::request_body::RequestBody;
use crate::service_operations;
use crate::version::Version;

/// Whether bytes are a message that can be put.
pub(crate) fn can_be_message(bytes: &Bytes) -> bool {
    message::parse_text(bytes, Version::V2027_03_07).is_ok()
}

/// Runs an operation of the Queue service that the operation table calls built.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "most operations belong to other services; test_support_matrix.py calls all of this"
)]
pub async fn dispatch(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    match call.operation {
        Operation::GetQueueServiceProperties => service_operations::get_properties(call).await,
        Operation::SetQueueServiceProperties => {
            service_operations::set_properties(call, body).await
        }
        Operation::GetQueueServiceStats => service_operations::statistics(call),
        Operation::GetQueueUserDelegationKey => {
            service_operations::user_delegation_key(call, body).await
        }
        Operation::ListQueues => list::queues(call).await,
        Operation::CreateQueue => resource::create(call).await,
        Operation::DeleteQueue => resource::delete(call).await,
        Operation::GetQueueMetadata => resource::get_metadata(call).await,
        Operation::SetQueueMetadata => resource::set_metadata(call).await,
        Operation::GetQueueAcl => resource::get_acl(call).await,
        Operation::SetQueueAcl => resource::set_acl(call, body).await,
        Operation::PutMessage => message::put(call, body).await,
        Operation::GetMessages => message::get(call).await,
        Operation::PeekMessages => message::peek(call).await,
        Operation::ClearMessages => message::clear(call).await,
        Operation::UpdateMessage => message::update(call, body).await,
        Operation::DeleteMessage => message::delete(call).await,
        _ => Err(Code::NotImplemented.into()),
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
