//! Create, read, change and delete a container.

use holdfast_domain::access::PublicAccess;
use holdfast_domain::blob::{
    Container, CreateContainer, DeleteContainer, RenameContainer, RestoreContainer,
    SetContainerMetadata,
};
use holdfast_domain::names::ContainerName;
use holdfast_domain::names::DeletedVersion;
use holdfast_domain::time::Timestamp;
use hyper::StatusCode;

use super::{encryption, headers};
use crate::answer::Answer;
use crate::auth::NamedResource;
use crate::error::{Code, Error};
use crate::request::Call;

pub async fn create(call: &Call<'_>) -> Result<Answer, Error> {
    let command = CreateContainer {
        path: call.container_path()?,
        metadata: call.metadata()?,
        public_access: public_access_header(call)?,
        scope: encryption::scope_policy(call)?,
    };
    let container = call.frontend.domain().create_container(command).await?;
    let mut answer = Answer::new(StatusCode::CREATED);
    headers::identity(&mut answer, container.etag, container.last_modified, call.version);
    Ok(answer)
}

pub async fn get_properties(call: &Call<'_>) -> Result<Answer, Error> {
    let (container, now) = find(call).await?;
    let mut answer = Answer::new(StatusCode::OK);
    describe(&mut answer, call, &container, now);
    Ok(answer)
}

pub async fn get_metadata(call: &Call<'_>) -> Result<Answer, Error> {
    let (container, _) = find(call).await?;
    let mut answer = Answer::new(StatusCode::OK);
    headers::identity(&mut answer, container.etag, container.last_modified, call.version);
    headers::metadata(&mut answer, &container.metadata);
    Ok(answer)
}

pub async fn set_metadata(call: &Call<'_>) -> Result<Answer, Error> {
    let command = SetContainerMetadata {
        path: call.container_path()?,
        metadata: call.metadata()?,
        conditions: headers::date_conditions(call)?,
        lease_id: call.lease_id()?,
    };
    let container = call.frontend.domain().set_container_metadata(command).await?;
    let mut answer = Answer::new(StatusCode::OK);
    headers::identity(&mut answer, container.etag, container.last_modified, call.version);
    Ok(answer)
}

pub async fn delete(call: &Call<'_>) -> Result<Answer, Error> {
    let command = DeleteContainer {
        path: call.container_path()?,
        conditions: headers::date_conditions(call)?,
        lease_id: call.lease_id()?,
    };
    call.frontend.domain().delete_container(command).await?;
    Ok(Answer::new(StatusCode::ACCEPTED))
}

/// Restore Container.
pub async fn restore(call: &Call<'_>) -> Result<Answer, Error> {
    let deleted_name = call.required_header("x-ms-deleted-container-name")?;
    call.authorize_second(&NamedResource {
        container: Some(deleted_name),
        ..call.named_resource()
    })?;
    let command = RestoreContainer {
        path: call.container_path()?,
        deleted_name: ContainerName::new(deleted_name)?,
        deleted_version: DeletedVersion::parse(
            call.required_header("x-ms-deleted-container-version")?,
        ),
    };
    let container = call.frontend.domain().restore_container(command).await?;
    let mut answer = Answer::new(StatusCode::CREATED);
    headers::identity(&mut answer, container.etag, container.last_modified, call.version);
    Ok(answer)
}

/// Rename Container.
pub async fn rename(call: &Call<'_>) -> Result<Answer, Error> {
    let source = call.required_header("x-ms-source-container-name")?;
    call.authorize_second(&NamedResource { container: Some(source), ..call.named_resource() })?;
    let command = RenameContainer {
        path: call.container_path()?,
        source: ContainerName::new(source)?,
        source_lease_id: call.lease_id_header("x-ms-source-lease-id")?,
    };
    // The service finds these by their names.
    if command.source.is_system() || command.path.container.is_system() {
        return Err(Code::InvalidResourceName.into());
    }
    let container = call.frontend.domain().rename_container(command).await?;
    let mut answer = Answer::new(StatusCode::OK);
    headers::identity(&mut answer, container.etag, container.last_modified, call.version);
    Ok(answer)
}

async fn find(call: &Call<'_>) -> Result<(Container, Timestamp), Error> {
    let path = call.container_path()?;
    Ok(call.frontend.domain().get_container(&path, call.lease_id()?).await?)
}

fn describe(answer: &mut Answer, call: &Call<'_>, container: &Container, now: Timestamp) {
    headers::identity(answer, container.etag, container.last_modified, call.version);
    headers::metadata(answer, &container.metadata);
    headers::lease(answer, &container.lease, now);
    answer.optional_header("x-ms-blob-public-access", public_access(container.public_access));
    answer.header("x-ms-has-immutability-policy", "false");
    answer.header("x-ms-has-legal-hold", "false");
    answer.header("x-ms-immutable-storage-with-versioning-enabled", "false");
    encryption::describe_policy(answer, &container.scope);
}

/// The name of a level of public access; a private container has none.
pub fn public_access(level: PublicAccess) -> Option<&'static str> {
    match level {
        PublicAccess::None => None,
        PublicAccess::Blob => Some("blob"),
        PublicAccess::Container => Some("container"),
    }
}

pub fn public_access_header(call: &Call<'_>) -> Result<PublicAccess, Error> {
    const NAME: &str = "x-ms-blob-public-access";
    match call.header(NAME)? {
        None => Ok(PublicAccess::None),
        // Versions before 2009-09-19 wrote `true` for `container`; clients still do.
        Some(text) if text.eq_ignore_ascii_case("container") || text == "true" => {
            Ok(PublicAccess::Container)
        }
        Some(text) if text.eq_ignore_ascii_case("blob") => Ok(PublicAccess::Blob),
        Some(text) => Err(Error::invalid_header(NAME, text)),
    }
}
