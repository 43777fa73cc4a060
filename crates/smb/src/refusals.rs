//! Every refusal of the domain as a status. A new refusal does not compile until it has one.

use holdfast_domain::failure::{Failure, Fault};
use holdfast_domain::share::handles::HandleRefusal;
use holdfast_domain::share::opens::AcknowledgeRefusal;

use crate::status::Status;

pub fn of_handle(failure: Failure<HandleRefusal>) -> Status {
    match failure {
        Failure::Refused(refusal) => of_refusal(refusal),
        Failure::Busy => Status::INSUFF_SERVER_RESOURCES,
        Failure::OutcomeUnknown(fault) | Failure::Fault(fault) => of_fault(&fault),
    }
}

pub fn of_fault(fault: &Fault) -> Status {
    tracing::error!(?fault, "an SMB command failed");
    if fault.is_no_room() {
        Status::DISK_FULL
    } else if fault.is_no_descriptors() {
        Status::INSUFFICIENT_RESOURCES
    } else {
        Status::INTERNAL_ERROR
    }
}

fn of_refusal(refusal: HandleRefusal) -> Status {
    match refusal {
        HandleRefusal::Closed => Status::FILE_CLOSED,
        HandleRefusal::ShareNotFound => Status::NETWORK_NAME_DELETED,
        HandleRefusal::PathNotFound => Status::OBJECT_PATH_NOT_FOUND,
        HandleRefusal::NotFound => Status::OBJECT_NAME_NOT_FOUND,
        HandleRefusal::AlreadyExists => Status::OBJECT_NAME_COLLISION,
        HandleRefusal::IsDirectory => Status::FILE_IS_A_DIRECTORY,
        HandleRefusal::NotDirectory => Status::NOT_A_DIRECTORY,
        HandleRefusal::AccessDenied => Status::ACCESS_DENIED,
        HandleRefusal::SharingViolation => Status::SHARING_VIOLATION,
        HandleRefusal::DeletePending => Status::DELETE_PENDING,
        HandleRefusal::CannotDelete => Status::CANNOT_DELETE,
        HandleRefusal::DirectoryNotEmpty => Status::DIRECTORY_NOT_EMPTY,
        HandleRefusal::LockConflict => Status::FILE_LOCK_CONFLICT,
        HandleRefusal::LockNotGranted => Status::LOCK_NOT_GRANTED,
        HandleRefusal::RangeNotLocked => Status::RANGE_NOT_LOCKED,
        HandleRefusal::TooManyLocks => Status::INSUFFICIENT_RESOURCES,
        HandleRefusal::InvalidParameter => Status::INVALID_PARAMETER,
        HandleRefusal::InvalidRequest => Status::INVALID_DEVICE_REQUEST,
        HandleRefusal::EndOfFile => Status::END_OF_FILE,
        HandleRefusal::DiskFull | HandleRefusal::TooLong => Status::DISK_FULL,
        HandleRefusal::WriteProtected => Status::MEDIA_WRITE_PROTECTED,
        HandleRefusal::NoMoreFiles => Status::NO_MORE_FILES,
        HandleRefusal::NoSuchFile => Status::NO_SUCH_FILE,
        HandleRefusal::InvalidPattern => Status::OBJECT_NAME_INVALID,
        HandleRefusal::InvalidDescriptor => Status::INVALID_SECURITY_DESCR,
        HandleRefusal::StillPending => Status::FILE_NOT_AVAILABLE,
        HandleRefusal::AlreadyCreated => Status::DUPLICATE_OBJECTID,
    }
}

/// [MS-SMB2] 3.3.5.22.1
pub fn of_oplock(refusal: AcknowledgeRefusal) -> Status {
    match refusal {
        AcknowledgeRefusal::NotBreaking | AcknowledgeRefusal::TooMuch => {
            Status::INVALID_OPLOCK_PROTOCOL
        }
    }
}

/// [MS-SMB2] 3.3.5.22.2
pub fn of_lease(refusal: AcknowledgeRefusal) -> Status {
    match refusal {
        AcknowledgeRefusal::NotBreaking => Status::UNSUCCESSFUL,
        AcknowledgeRefusal::TooMuch => Status::REQUEST_NOT_ACCEPTED,
    }
}
