//! Converts the properties that a request sends to those of the domain.

use holdfast_domain::share::{
    Attributes, CopiedProperties, FromSource, NodeProperties, PermissionKey, SharePath, TimeChange,
};

use super::permission;
use super::posix_headers::{self, SentPosix};
use super::property_headers::{self, Permission, Purpose, Semantics, Sent, SentProperties, Time};
use crate::error::Error;
use crate::request::Call;

/// The properties of a new node.
pub async fn new(
    call: &Call<'_>,
    share: &SharePath,
    is_directory: bool,
) -> Result<NodeProperties, Error> {
    let semantics = property_headers::semantics(call)?;
    let mut given = changed(call, share, Purpose::Create, is_directory).await?;
    // A new file gets the archive attribute.
    if !is_directory && semantics == Semantics::New {
        let attributes = given.attributes.unwrap_or_default();
        given.attributes = Some(attributes.union(Attributes::ARCHIVE));
    }
    Ok(given)
}

/// The properties sent for an existing node.
pub async fn changed(
    call: &Call<'_>,
    share: &SharePath,
    purpose: Purpose,
    is_directory: bool,
) -> Result<NodeProperties, Error> {
    let SentProperties { attributes, created, written, changed, permission } =
        property_headers::read(call, purpose, is_directory)?;
    let SentPosix { mode, owner, group } = posix_headers::read(call)?;
    let permission = match permission {
        Some(Sent::Value(permission)) => key_of(call, share, permission).await?,
        Some(Sent::Preserved | Sent::OfSource) | None => None,
    };
    Ok(NodeProperties {
        attributes: attributes.and_then(|sent| match sent {
            Sent::Value(attributes) => Some(attributes),
            Sent::Preserved | Sent::OfSource => None,
        }),
        created: created.and_then(time_change),
        written: written.and_then(time_change),
        changed: changed.and_then(time_change),
        permission,
        mode,
        owner,
        group,
    })
}

/// Those of a copy.
pub async fn copied(call: &Call<'_>, share: &SharePath) -> Result<CopiedProperties, Error> {
    let SentProperties { attributes, created, written, changed, permission } =
        property_headers::read(call, Purpose::Copy, false)?;
    let posix = posix_headers::read(call)?;
    const OWNERS: &str = "x-ms-file-owner-copy-mode";
    let mode = posix_headers::copied(call, "x-ms-file-mode-copy-mode", posix.mode)?;
    Ok(CopiedProperties {
        attributes: of_source(attributes, Some),
        created: of_source(created, given_time),
        written: of_source(written, given_time),
        changed: of_source(changed, given_time),
        permission: copied_permission(call, share, permission).await?,
        mode,
        owner: posix_headers::copied(call, OWNERS, posix.owner)?,
        group: posix_headers::copied(call, OWNERS, posix.group)?,
    })
}

/// `x-ms-file-permission-copy-mode`: `override` needs a permission, and `source` forbids one.
async fn copied_permission(
    call: &Call<'_>,
    share: &SharePath,
    sent: Option<Sent<Permission>>,
) -> Result<FromSource<PermissionKey>, Error> {
    const MODE: &str = "x-ms-file-permission-copy-mode";
    let mode = call.header(MODE)?;
    let is = |word: &str| mode.is_some_and(|mode| mode.eq_ignore_ascii_case(word));
    let of_source = matches!(sent, Some(Sent::OfSource)) || (is("source") && sent.is_none());
    match (mode, sent) {
        (Some(mode), _) if !is("source") && !is("override") => {
            Err(Error::invalid_header(MODE, mode))
        }
        _ if of_source => Ok(FromSource::Source),
        (Some(_), Some(_)) if is("source") => Err(Error::invalid_header(MODE, "source")),
        (Some(_), None) => Err(Error::missing_header("x-ms-file-permission")),
        (_, Some(Sent::Value(permission))) => {
            let key = key_of(call, share, permission).await?;
            Ok(key.map_or(FromSource::New, FromSource::Given))
        }
        (_, Some(Sent::Preserved | Sent::OfSource) | None) => Ok(FromSource::New),
    }
}

fn of_source<T, U>(sent: Option<Sent<T>>, given: impl Fn(T) -> Option<U>) -> FromSource<U> {
    match sent {
        Some(Sent::OfSource) => FromSource::Source,
        Some(Sent::Value(value)) => given(value).map_or(FromSource::New, FromSource::Given),
        Some(Sent::Preserved) | None => FromSource::New,
    }
}

fn given_time(time: Time) -> Option<TimeChange> {
    time_change(Sent::Value(time))
}

fn time_change(sent: Sent<Time>) -> Option<TimeChange> {
    match sent {
        Sent::Value(Time::Now) => Some(TimeChange::Now),
        Sent::Value(Time::At(moment)) => Some(TimeChange::At(moment)),
        Sent::Preserved => Some(TimeChange::Preserve),
        Sent::OfSource => None,
    }
}

/// The key of a permission in the share; `None` if it is inherited.
async fn key_of(
    call: &Call<'_>,
    share: &SharePath,
    sent: Permission,
) -> Result<Option<PermissionKey>, Error> {
    let descriptor = match sent {
        Permission::Inherited => return Ok(None),
        Permission::Key(text) => return permission::parse_key(&text).map(Some),
        Permission::Described(text, format) => permission::parse(&text, format)?,
    };
    Ok(Some(call.frontend.domain().permission_key(share, &descriptor).await?))
}
