//! The operations of the File service over REST.

use super::need::{
    Actions, CREATE, DELETE, LIST, Letters, NO_SAS, Need, READ, READ_AND_WRITE, WRITE,
    WRITE_OR_DELETE,
};
use super::row::{Comp, Restype, Row, Scope, Selector, Verbs};
use super::{Conditions, LeaseHeaders, Operation, SourceCredentials};
use crate::service::Service;
use crate::version::Version;

const READ_SERVICE: Actions = &[&["fileServices/read"]];
const WRITE_SERVICE: Actions = &[&["fileServices/write"]];
const READ_SHARE: Actions = &[&["fileServices/shares/read"]];
const WRITE_SHARE: Actions = &[&["fileServices/shares/write"]];
const DELETE_SHARE: Actions = &[&["fileServices/shares/delete"]];
// A token acts with the intent of a backup, which goes past the permissions of files.
const READ_FILE: Actions =
    &[&["fileServices/fileshares/files/read", "fileServices/readFileBackupSemantics/action"]];
const WRITE_FILE: Actions =
    &[&["fileServices/fileshares/files/write", "fileServices/writeFileBackupSemantics/action"]];
const DELETE_FILE: Actions =
    &[&["fileServices/fileshares/files/delete", "fileServices/writeFileBackupSemantics/action"]];

const TAKE_FILE: Actions = &[WRITE_FILE[0], DELETE_FILE[0]];
const LINK_FILE: Actions = &[&[
    "fileServices/fileshares/files/read",
    "fileServices/fileshares/files/write",
    "fileServices/readFileBackupSemantics/action",
    "fileServices/writeFileBackupSemantics/action",
]];

const SHARE_READ: Need = share_need(READ, READ_SHARE);
const SHARE_WRITE: Need = share_need(WRITE, WRITE_SHARE);
/// Handles and leases of shares are for the owner of the account.
const SHARE_OWNER: Need = share_need(NO_SAS, WRITE_SHARE);
const FILE_READ: Need = file_need(READ, READ_FILE);
const FILE_WRITE: Need = file_need(WRITE, WRITE_FILE);
const FILE_CREATE: Need = file_need(CREATE, WRITE_FILE);
const FILE_DELETE: Need = file_need(DELETE, DELETE_FILE);

/// It goes from where it is.
const RENAME_SOURCE: Need = file_need(WRITE_OR_DELETE, TAKE_FILE);
/// Whoever has the new name reads and writes the file by it.
const LINK_TARGET: Need = file_need(READ_AND_WRITE, LINK_FILE);

const ACQUIRE: &[Selector] = &[Selector::HeaderIs("x-ms-lease-action", &["acquire"])];
const RELEASE: &[Selector] = &[Selector::HeaderIs("x-ms-lease-action", &["release"])];
const RENEW: &[Selector] = &[Selector::HeaderIs("x-ms-lease-action", &["renew"])];
const BREAK: &[Selector] = &[Selector::HeaderIs("x-ms-lease-action", &["break"])];
const CHANGE: &[Selector] = &[Selector::HeaderIs("x-ms-lease-action", &["change"])];
const COPY_SOURCE: Selector = Selector::Header("x-ms-copy-source");

const fn share_need(letters: Letters, actions: Actions) -> Need {
    Need::container(letters, actions).role_since(Version::V2024_11_04)
}

const fn file_need(letters: Letters, actions: Actions) -> Need {
    Need::object(letters, actions).role_since(Version::V2022_11_02)
}

const fn service(operation: Operation, name: &'static str, verbs: Verbs, need: Need) -> Row {
    let need = need.role_since(Version::V2024_11_04);
    Row::new(operation, Service::File, name, verbs, Scope::Service, need)
        .since(Version::V2015_02_21)
        .built()
}

const fn share(operation: Operation, name: &'static str, verbs: Verbs, need: Need) -> Row {
    Row::new(operation, Service::File, name, verbs, Scope::Share, need)
        .restype(Restype::Share)
        .since(Version::V2014_02_14)
        .built()
}

const fn share_lease(operation: Operation, name: &'static str) -> Row {
    share(operation, name, Verbs::PUT, SHARE_OWNER).comp(Comp::Lease).since(Version::V2020_02_10)
}

const fn directory(operation: Operation, name: &'static str, verbs: Verbs, need: Need) -> Row {
    Row::new(operation, Service::File, name, verbs, Scope::Path, need)
        .restype(Restype::Directory)
        .since(Version::V2014_02_14)
        .built()
}

const fn file(operation: Operation, name: &'static str, verbs: Verbs, need: Need) -> Row {
    Row::new(operation, Service::File, name, verbs, Scope::Path, need)
        .since(Version::V2014_02_14)
        .built()
}

const fn file_lease(operation: Operation, name: &'static str, need: Need) -> Row {
    file(operation, name, Verbs::PUT, need).comp(Comp::Lease).since(Version::V2019_02_02)
}

pub(super) const ROWS: &[Row] = &[
    service(
        Operation::SetFileServiceProperties,
        "Set File Service Properties",
        Verbs::PUT,
        Need::service(WRITE, WRITE_SERVICE),
    )
    .restype(Restype::Service)
    .comp(Comp::Properties)
    .success(&[202]),
    service(
        Operation::GetFileServiceProperties,
        "Get File Service Properties",
        Verbs::GET,
        Need::service(READ, READ_SERVICE),
    )
    .restype(Restype::Service)
    .comp(Comp::Properties),
    service(Operation::ListShares, "List Shares", Verbs::GET, Need::service(LIST, READ_SHARE))
        .comp(Comp::List)
        .since(Version::V2014_02_14),
    share(Operation::CreateShare, "Create Share", Verbs::PUT, share_need(CREATE, WRITE_SHARE))
        .success(&[201]),
    share(Operation::GetShareProperties, "Get Share Properties", Verbs::GET_OR_HEAD, SHARE_READ)
        .lease(LeaseHeaders::Id),
    share(Operation::DeleteShare, "Delete Share", Verbs::DELETE, share_need(DELETE, DELETE_SHARE))
        .success(&[202])
        .lease(LeaseHeaders::Id),
    share_lease(Operation::AcquireShareLease, "Lease Share: acquire")
        .when(ACQUIRE)
        .success(&[201])
        .lease(LeaseHeaders::ProposedId),
    share_lease(Operation::ReleaseShareLease, "Lease Share: release")
        .when(RELEASE)
        .lease(LeaseHeaders::IdRequired),
    share_lease(Operation::ChangeShareLease, "Lease Share: change")
        .when(CHANGE)
        .lease(LeaseHeaders::IdRequiredAndProposedId),
    share_lease(Operation::RenewShareLease, "Lease Share: renew")
        .when(RENEW)
        .lease(LeaseHeaders::IdRequired),
    share_lease(Operation::BreakShareLease, "Lease Share: break")
        .when(BREAK)
        .success(&[202])
        .lease(LeaseHeaders::Id),
    share(Operation::SnapshotShare, "Snapshot Share", Verbs::PUT, share_need(CREATE, WRITE_SHARE))
        .comp(Comp::Snapshot)
        .since(Version::V2017_04_17)
        .success(&[201]),
    share(
        Operation::CreatePermission,
        "Create Permission",
        Verbs::PUT,
        share_need(&["wd"], WRITE_FILE).with_service_sas(),
    )
    .comp(Comp::FilePermission)
    .since(Version::V2019_02_02)
    .success(&[201]),
    share(
        Operation::GetPermission,
        "Get Permission",
        Verbs::GET,
        share_need(READ, READ_FILE).with_service_sas(),
    )
    .comp(Comp::FilePermission)
    .since(Version::V2019_02_02),
    share(Operation::SetShareProperties, "Set Share Properties", Verbs::PUT, SHARE_WRITE)
        .comp(Comp::Properties)
        .since(Version::V2015_02_21)
        .lease(LeaseHeaders::Id),
    share(Operation::SetShareMetadata, "Set Share Metadata", Verbs::PUT, SHARE_WRITE)
        .comp(Comp::Metadata)
        .lease(LeaseHeaders::Id),
    share(
        Operation::GetShareAcl,
        "Get Share ACL",
        Verbs::GET_OR_HEAD,
        share_need(NO_SAS, READ_SHARE),
    )
    .comp(Comp::Acl)
    .since(Version::V2015_02_21)
    .lease(LeaseHeaders::Id),
    share(Operation::SetShareAcl, "Set Share ACL", Verbs::PUT, SHARE_OWNER)
        .comp(Comp::Acl)
        .since(Version::V2015_02_21)
        .lease(LeaseHeaders::Id),
    share(Operation::GetShareStats, "Get Share Stats", Verbs::GET, SHARE_READ)
        .comp(Comp::Stats)
        .since(Version::V2015_02_21)
        .lease(LeaseHeaders::Id),
    share(Operation::RestoreShare, "Restore Share", Verbs::PUT, SHARE_WRITE)
        .comp(Comp::Undelete)
        .since(Version::V2019_12_12)
        .success(&[201]),
    directory(Operation::CreateDirectory, "Create Directory", Verbs::PUT, FILE_CREATE)
        .success(&[201]),
    directory(
        Operation::GetDirectoryProperties,
        "Get Directory Properties",
        Verbs::GET_OR_HEAD,
        FILE_READ,
    ),
    directory(Operation::DeleteDirectory, "Delete Directory", Verbs::DELETE, FILE_DELETE)
        .success(&[202]),
    directory(
        Operation::SetDirectoryProperties,
        "Set Directory Properties",
        Verbs::PUT,
        FILE_WRITE,
    )
    .comp(Comp::Properties)
    .since(Version::V2019_02_02),
    directory(Operation::SetDirectoryMetadata, "Set Directory Metadata", Verbs::PUT, FILE_WRITE)
        .comp(Comp::Metadata)
        .since(Version::V2015_02_21),
    directory(
        Operation::ListDirectoriesAndFiles,
        "List Directories and Files",
        Verbs::GET,
        Need::container(LIST, READ_FILE).with_service_sas().role_since(Version::V2022_11_02),
    )
    .comp(Comp::List),
    file(Operation::ListHandles, "List Handles", Verbs::GET, file_need(NO_SAS, READ_FILE))
        .comp(Comp::ListHandles)
        .since(Version::V2018_11_09),
    file(
        Operation::ForceCloseHandles,
        "Force Close Handles",
        Verbs::PUT,
        file_need(NO_SAS, WRITE_FILE),
    )
    .comp(Comp::ForceCloseHandles)
    .since(Version::V2018_11_09),
    directory(Operation::RenameDirectory, "Rename Directory", Verbs::PUT, FILE_CREATE)
        .uses(RENAME_SOURCE)
        .comp(Comp::Rename)
        .since(Version::V2021_04_10)
        .lease(LeaseHeaders::SourceIdAndDestinationId),
    file(Operation::CreateFile, "Create File", Verbs::PUT, FILE_CREATE)
        .when(&[Selector::HeaderIs("x-ms-type", &["file"])])
        .success(&[201])
        .lease(LeaseHeaders::Id),
    file(Operation::GetFile, "Get File", Verbs::GET, FILE_READ)
        .success(&[200, 206])
        .lease(LeaseHeaders::Id),
    file(Operation::GetFileProperties, "Get File Properties", Verbs::HEAD, FILE_READ)
        .lease(LeaseHeaders::Id),
    file(Operation::DeleteFile, "Delete File", Verbs::DELETE, FILE_DELETE)
        .success(&[202])
        .lease(LeaseHeaders::Id),
    file(Operation::SetFileProperties, "Set File Properties", Verbs::PUT, FILE_WRITE)
        .comp(Comp::Properties)
        .lease(LeaseHeaders::Id),
    file(Operation::SetFileMetadata, "Set File Metadata", Verbs::PUT, FILE_WRITE)
        .comp(Comp::Metadata)
        .lease(LeaseHeaders::Id),
    file_lease(Operation::AcquireFileLease, "Lease File: acquire", FILE_WRITE)
        .when(ACQUIRE)
        .success(&[201])
        .lease(LeaseHeaders::ProposedId),
    file_lease(Operation::ReleaseFileLease, "Lease File: release", FILE_WRITE)
        .when(RELEASE)
        .lease(LeaseHeaders::IdRequired),
    file_lease(Operation::ChangeFileLease, "Lease File: change", FILE_WRITE)
        .when(CHANGE)
        .lease(LeaseHeaders::IdRequiredAndProposedId),
    file_lease(Operation::BreakFileLease, "Lease File: break", FILE_WRITE)
        .when(BREAK)
        .success(&[202])
        .lease(LeaseHeaders::Id),
    file(Operation::PutRange, "Put Range (update or clear)", Verbs::PUT, FILE_WRITE)
        .comp(Comp::Range)
        .when(&[Selector::HeaderIs("x-ms-write", &["update", "clear"])])
        .success(&[201])
        .lease(LeaseHeaders::Id),
    file(Operation::PutRangeFromUrl, "Put Range From URL", Verbs::PUT, FILE_WRITE)
        .reads(SourceCredentials::Own)
        .comp(Comp::Range)
        .when(&[Selector::HeaderIs("x-ms-write", &["update"]), COPY_SOURCE])
        .since(Version::V2019_02_02)
        .success(&[201])
        .conditions(Conditions::SOURCE_CRC64)
        .lease(LeaseHeaders::Id),
    file(Operation::ListRanges, "List Ranges", Verbs::GET, FILE_READ)
        .comp(Comp::RangeList)
        .lease(LeaseHeaders::Id),
    file(Operation::CopyFile, "Copy File", Verbs::PUT, FILE_WRITE)
        .reads(SourceCredentials::OwnOrOfAccount)
        .when(&[COPY_SOURCE])
        .since(Version::V2015_02_21)
        .success(&[202])
        .lease(LeaseHeaders::Id),
    file(Operation::AbortCopyFile, "Abort Copy File", Verbs::PUT, FILE_WRITE)
        .comp(Comp::Copy)
        .when(&[Selector::HeaderIs("x-ms-copy-action", &["abort"])])
        .since(Version::V2015_02_21)
        .success(&[204])
        .lease(LeaseHeaders::Id),
    file(Operation::RenameFile, "Rename File", Verbs::PUT, FILE_CREATE)
        .uses(RENAME_SOURCE)
        .comp(Comp::Rename)
        .since(Version::V2021_04_10)
        .lease(LeaseHeaders::SourceIdAndDestinationId),
    file(Operation::CreateSymbolicLink, "Create Symbolic Link (NFS)", Verbs::PUT, FILE_CREATE)
        .restype(Restype::SymbolicLink)
        .since(Version::V2025_05_05)
        .success(&[201])
        .lease(LeaseHeaders::Id),
    file(Operation::GetSymbolicLink, "Get Symbolic Link (NFS)", Verbs::GET, FILE_READ)
        .restype(Restype::SymbolicLink)
        .since(Version::V2025_05_05),
    file(Operation::CreateHardLink, "Create Hard Link (NFS)", Verbs::PUT, FILE_CREATE)
        .uses(LINK_TARGET)
        .restype(Restype::HardLink)
        .since(Version::V2025_05_05)
        .success(&[201])
        .lease(LeaseHeaders::Id),
    service(
        Operation::GetFileUserDelegationKey,
        "Get User Delegation Key (file)",
        Verbs::POST,
        Need::service(NO_SAS, &[&["fileServices/generateUserDelegationKey/action"]]).token_only(),
    )
    .restype(Restype::Service)
    .comp(Comp::UserDelegationKey)
    .since(Version::V2026_02_06),
    share(Operation::GetShareMetadata, "Get Share Metadata", Verbs::GET_OR_HEAD, SHARE_READ)
        .comp(Comp::Metadata)
        .lease(LeaseHeaders::Id),
    directory(
        Operation::GetDirectoryMetadata,
        "Get Directory Metadata",
        Verbs::GET_OR_HEAD,
        FILE_READ,
    )
    .comp(Comp::Metadata)
    .since(Version::V2015_02_21),
    file(Operation::GetFileMetadata, "Get File Metadata", Verbs::GET_OR_HEAD, FILE_READ)
        .comp(Comp::Metadata)
        .lease(LeaseHeaders::Id),
    Row::new(
        Operation::PreflightFileRequest,
        Service::File,
        "Preflight File Request",
        Verbs::OPTIONS,
        Scope::Any,
        Need::NOTHING,
    )
    .since(Version::V2015_02_21)
    .built(),
];
