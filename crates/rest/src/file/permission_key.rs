//! The keys of security descriptors as headers write them, and the descriptors that headers carry.

use holdfast_domain::share::PermissionKey;
use holdfast_domain::share::security::Descriptor;

use crate::error::{Code, Error};

pub fn text(key: PermissionKey) -> String {
    key.0.to_string()
}

pub fn parse(text: &str) -> Result<PermissionKey, Error> {
    let key = text.parse().map(PermissionKey);
    key.map_err(|_| Code::FileInvalidPermissionKey.into())
}

pub fn parse_sddl(_text: &str) -> Result<Descriptor, Error> {
    Err(Code::FileInvalidPermission.into())
}

pub fn parse_binary(bytes: &[u8]) -> Result<Descriptor, Error> {
    Descriptor::from_bytes(bytes).ok_or_else(|| Code::FileInvalidPermission.into())
}
