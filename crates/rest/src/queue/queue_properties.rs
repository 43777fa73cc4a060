//! Create, read, change and delete a queue.

use holdfast_domain::queue::{CreateQueue, Created, SetQueueAcl, SetQueueMetadata};
use hyper::StatusCode;

use super::queue_of;
use crate::answer::Answer;
use crate::body::RequestBody;
use crate::error::Error;
use crate::request::Call;
use crate::service::Service;
use crate::service::signed_identifiers;

pub async fn create(call: &Call<'_>) -> Result<Answer, Error> {
    let command = CreateQueue { path: queue_of(call)?, metadata: call.metadata()? };
    let status = match call.frontend.domain().create_queue(command).await? {
        Created::New => StatusCode::CREATED,
        Created::AlreadyThere => StatusCode::NO_CONTENT,
    };
    Ok(Answer::new(status))
}

pub async fn delete(call: &Call<'_>) -> Result<Answer, Error> {
    call.frontend.domain().delete_queue(&queue_of(call)?).await?;
    Ok(Answer::new(StatusCode::NO_CONTENT))
}

pub async fn get_metadata(call: &Call<'_>) -> Result<Answer, Error> {
    let (queue, count) = call.frontend.domain().get_queue_and_count(&queue_of(call)?).await?;
    let mut answer = Answer::new(StatusCode::OK);
    answer.show("x-ms-approximate-messages-count", count);
    for (name, value) in queue.metadata.iter() {
        answer.metadata_header(name, value);
    }
    Ok(answer)
}

pub async fn set_metadata(call: &Call<'_>) -> Result<Answer, Error> {
    let command = SetQueueMetadata { path: queue_of(call)?, metadata: call.metadata()? };
    call.frontend.domain().set_queue_metadata(command).await?;
    Ok(Answer::new(StatusCode::NO_CONTENT))
}

pub async fn get_acl(call: &Call<'_>) -> Result<Answer, Error> {
    let queue = call.frontend.domain().get_queue(&queue_of(call)?).await?;
    Ok(Answer::xml(StatusCode::OK, signed_identifiers::write(&queue.policies)))
}

pub async fn set_acl(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    let document = body.document(call).await?;
    let path = queue_of(call)?;
    let command =
        SetQueueAcl { path, policies: signed_identifiers::parse(Service::Queue, &document)? };
    call.frontend.domain().set_queue_acl(command).await?;
    Ok(Answer::new(StatusCode::NO_CONTENT))
}
