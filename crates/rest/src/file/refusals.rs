//! The answers to refusals of the File service.

use holdfast_domain::lease::AccessRefusal;
use holdfast_domain::share::security::SddlRefusal;
use holdfast_domain::share::{PermissionRefusal, ShareRefusal};

use crate::error::refusals::lease_code;
use crate::error::{Code, Error};

impl From<ShareRefusal> for Error {
    fn from(refusal: ShareRefusal) -> Self {
        let code = match refusal {
            ShareRefusal::NotFound | ShareRefusal::DeletedNotFound => Code::ShareNotFound,
            ShareRefusal::SnapshotNotFound => Code::ShareSnapshotNotFound,
            ShareRefusal::AlreadyExists => Code::ShareAlreadyExists,
            ShareRefusal::BeingDeleted => Code::ShareBeingDeleted,
            ShareRefusal::HasSnapshots => Code::ShareHasSnapshots,
            ShareRefusal::SnapshotLeased => Code::DeleteShareWhenSnapshotLeased,
            ShareRefusal::TooManySnapshots => Code::ShareSnapshotCountExceeded,
            ShareRefusal::NotOfNfs => {
                return Self::from(Code::InvalidHeaderValue)
                    .detail("Reason", "Only shares of NFS have this property.");
            }
            ShareRefusal::Permission(refusal) => return refusal.into(),
            ShareRefusal::LeaseAccess(refusal) => match refusal {
                AccessRefusal::IdMissing => Code::LeaseIdMissing,
                AccessRefusal::IdMismatch => Code::LeaseIdMismatchWithShareOperation,
                AccessRefusal::NotPresent => Code::LeaseNotPresentWithShareOperation,
                AccessRefusal::Lost => Code::LeaseLost,
                AccessRefusal::InfiniteDurationRequired => Code::InfiniteLeaseDurationRequired,
            },
            ShareRefusal::LeaseAction(refusal) => lease_code(refusal),
        };
        Self::from(code).about("file share")
    }
}

impl From<PermissionRefusal> for Error {
    fn from(refusal: PermissionRefusal) -> Self {
        match refusal {
            PermissionRefusal::UnknownKey => Code::FileInvalidPermissionKey,
        }
        .into()
    }
}

impl From<SddlRefusal> for Error {
    fn from(refusal: SddlRefusal) -> Self {
        let why = match refusal {
            SddlRefusal::Malformed => "It cannot be read.",
            SddlRefusal::DomainRelative => "It names somebody relative to a domain.",
            SddlRefusal::Incomplete => "Owner, group or discretionary list is missing.",
        };
        Self::from(Code::FileInvalidPermission).detail("Reason", why)
    }
}
