//! Get and Set Container ACL: public access and stored access policies.

use holdfast_domain::blob::SetContainerAcl;
use hyper::StatusCode;

use super::{container, headers};
use crate::answer::Answer;
use crate::body::RequestBody;
use crate::error::Error;
use crate::request::Call;
use crate::service::Service;
use crate::service::signed_identifiers;

pub async fn get(call: &Call<'_>) -> Result<Answer, Error> {
    let path = call.container_path()?;
    let (container, _) = call.frontend.domain().get_container(&path, call.lease_id()?).await?;
    let mut answer = Answer::xml(StatusCode::OK, signed_identifiers::write(&container.policies));
    headers::identity(&mut answer, container.etag, container.last_modified, call.version);
    answer.optional_header(
        "x-ms-blob-public-access",
        container::public_access(container.public_access),
    );
    Ok(answer)
}

pub async fn set(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    let document = body.document(call).await?;
    let command = SetContainerAcl {
        path: call.container_path()?,
        public_access: container::public_access_header(call)?,
        policies: signed_identifiers::parse(Service::Blob, &document)?,
        conditions: headers::date_conditions(call)?,
        lease_id: call.lease_id()?,
    };
    let container = call.frontend.domain().set_container_acl(command).await?;
    let mut answer = Answer::new(StatusCode::OK);
    headers::identity(&mut answer, container.etag, container.last_modified, call.version);
    Ok(answer)
}
