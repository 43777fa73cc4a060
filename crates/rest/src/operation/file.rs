//! The operations of the File service over REST.

use super::need::{
    Actions, CREATE, DELETE, LIST, Letters, NO_SAS, Need, READ, READ_AND_WRITE, WRITE,
    WRITE_OR_DELETE,
};
use super::row::{Comp, Restype, Row, Scope, Selector, Verbs};
use super::{Conditions, FileOperation, LeaseHeaders, Operation, SourceCredentials};
use crate::version::Version;

const READ_SERVICE: Actions = &[&["fileServices/read"]];
const WRITE_SERVICE: Actions = &[&["fileServices/write"]];
const READ_SHARE: Actions = &[&["fileServices/shares/read"]];
const WRITE_SHARE: Actions = &[&["fileServices/shares/write"]];
const DELETE_SHARE: Actions = &[&["fileServices/shares/delete"]];
// Requests with a token have the backup intent, which bypasses the permissions of files.
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
/// Handles and leases of shares need the account key or a role.
const SHARE_OWNER: Need = share_need(NO_SAS, WRITE_SHARE);
const FILE_READ: Need = file_need(READ, READ_FILE);
const FILE_WRITE: Need = file_need(WRITE, WRITE_FILE);
const FILE_CREATE: Need = file_need(CREATE, WRITE_FILE);
const FILE_DELETE: Need = file_need(DELETE, DELETE_FILE);

/// The source is removed from its place.
const RENAME_SOURCE: Need = file_need(WRITE_OR_DELETE, TAKE_FILE);
/// The new name allows reading and writing the file.
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

const fn service(operation: FileOperation, name: &'static str, verbs: Verbs, need: Need) -> Row {
    let need = need.role_since(Version::V2024_11_04);
    Row::new(Operation::File(operation), name, verbs, Scope::Service, need)
        .since(Version::V2015_02_21)
        .built()
}

const fn share(operation: FileOperation, name: &'static str, verbs: Verbs, need: Need) -> Row {
    Row::new(Operation::File(operation), name, verbs, Scope::Share, need)
        .restype(Restype::Share)
        .since(Version::V2014_02_14)
        .built()
}

const fn share_lease(operation: FileOperation, name: &'static str) -> Row {
    share(operation, name, Verbs::PUT, SHARE_OWNER).comp(Comp::Lease).since(Version::V2020_02_10)
}

const fn directory(operation: FileOperation, name: &'static str, verbs: Verbs, need: Need) -> Row {
    Row::new(Operation::File(operation), name, verbs, Scope::Path, need)
        .restype(Restype::Directory)
        .since(Version::V2014_02_14)
        .built()
}

const fn file(operation: FileOperation, name: &'static str, verbs: Verbs, need: Need) -> Row {
    Row::new(Operation::File(operation), name, verbs, Scope::Path, need)
        .since(Version::V2014_02_14)
        .built()
}

const fn file_lease(operation: FileOperation, name: &'static str, need: Need) -> Row {
    file(operation, name, Verbs::PUT, need).comp(Comp::Lease).since(Version::V2019_02_02)
}

pub(super) const ROWS: &[Row] = &[
    service(
        FileOperation::SetFileServiceProperties,
        "Set File Service Properties",
        Verbs::PUT,
        Need::service(WRITE, WRITE_SERVICE),
    )
    .restype(Restype::Service)
    .comp(Comp::Properties)
    .success(&[202]),
    service(
        FileOperation::GetFileServiceProperties,
        "Get File Service Properties",
        Verbs::GET,
        Need::service(READ, READ_SERVICE),
    )
    .restype(Restype::Service)
    .comp(Comp::Properties),
    service(FileOperation::ListShares, "List Shares", Verbs::GET, Need::service(LIST, READ_SHARE))
        .comp(Comp::List)
        .since(Version::V2014_02_14),
    share(FileOperation::CreateShare, "Create Share", Verbs::PUT, share_need(CREATE, WRITE_SHARE))
        .success(&[201]),
    share(
        FileOperation::GetShareProperties,
        "Get Share Properties",
        Verbs::GET_OR_HEAD,
        SHARE_READ,
    )
    .lease(LeaseHeaders::Id),
    share(
        FileOperation::DeleteShare,
        "Delete Share",
        Verbs::DELETE,
        share_need(DELETE, DELETE_SHARE),
    )
    .success(&[202])
    .lease(LeaseHeaders::Id),
    share_lease(FileOperation::AcquireShareLease, "Lease Share: acquire")
        .when(ACQUIRE)
        .success(&[201])
        .lease(LeaseHeaders::ProposedId),
    share_lease(FileOperation::ReleaseShareLease, "Lease Share: release")
        .when(RELEASE)
        .lease(LeaseHeaders::IdRequired),
    share_lease(FileOperation::ChangeShareLease, "Lease Share: change")
        .when(CHANGE)
        .lease(LeaseHeaders::IdRequiredAndProposedId),
    share_lease(FileOperation::RenewShareLease, "Lease Share: renew")
        .when(RENEW)
        .lease(LeaseHeaders::IdRequired),
    share_lease(FileOperation::BreakShareLease, "Lease Share: break")
        .when(BREAK)
        .success(&[202])
        .lease(LeaseHeaders::Id),
    share(
        FileOperation::SnapshotShare,
        "Snapshot Share",
        Verbs::PUT,
        share_need(CREATE, WRITE_SHARE),
    )
    .comp(Comp::Snapshot)
    .since(Version::V2017_04_17)
    .success(&[201]),
    share(
        FileOperation::CreatePermission,
        "Create Permission",
        Verbs::PUT,
        share_need(&["wd"], WRITE_FILE).with_service_sas(),
    )
    .comp(Comp::FilePermission)
    .since(Version::V2019_02_02)
    .success(&[201]),
    share(
        FileOperation::GetPermission,
        "Get Permission",
        Verbs::GET,
        share_need(READ, READ_FILE).with_service_sas(),
    )
    .comp(Comp::FilePermission)
    .since(Version::V2019_02_02),
    share(FileOperation::SetShareProperties, "Set Share Properties", Verbs::PUT, SHARE_WRITE)
        .comp(Comp::Properties)
        .since(Version::V2015_02_21)
        .lease(LeaseHeaders::Id),
    share(FileOperation::SetShareMetadata, "Set Share Metadata", Verbs::PUT, SHARE_WRITE)
        .comp(Comp::Metadata)
        .lease(LeaseHeaders::Id),
    share(
        FileOperation::GetShareAcl,
        "Get Share ACL",
        Verbs::GET_OR_HEAD,
        share_need(NO_SAS, READ_SHARE),
    )
    .comp(Comp::Acl)
    .since(Version::V2015_02_21)
    .lease(LeaseHeaders::Id),
    share(FileOperation::SetShareAcl, "Set Share ACL", Verbs::PUT, SHARE_OWNER)
        .comp(Comp::Acl)
        .since(Version::V2015_02_21)
        .lease(LeaseHeaders::Id),
    share(FileOperation::GetShareStats, "Get Share Stats", Verbs::GET, SHARE_READ)
        .comp(Comp::Stats)
        .since(Version::V2015_02_21)
        .lease(LeaseHeaders::Id),
    share(FileOperation::RestoreShare, "Restore Share", Verbs::PUT, SHARE_WRITE)
        .comp(Comp::Undelete)
        .since(Version::V2019_12_12)
        .success(&[201]),
    directory(FileOperation::CreateDirectory, "Create Directory", Verbs::PUT, FILE_CREATE)
        .success(&[201]),
    directory(
        FileOperation::GetDirectoryProperties,
        "Get Directory Properties",
        Verbs::GET_OR_HEAD,
        FILE_READ,
    ),
    directory(FileOperation::DeleteDirectory, "Delete Directory", Verbs::DELETE, FILE_DELETE)
        .success(&[202]),
    directory(
        FileOperation::SetDirectoryProperties,
        "Set Directory Properties",
        Verbs::PUT,
        FILE_WRITE,
    )
    .comp(Comp::Properties)
    .since(Version::V2019_02_02),
    directory(
        FileOperation::SetDirectoryMetadata,
        "Set Directory Metadata",
        Verbs::PUT,
        FILE_WRITE,
    )
    .comp(Comp::Metadata)
    .since(Version::V2015_02_21),
    directory(
        FileOperation::ListDirectoriesAndFiles,
        "List Directories and Files",
        Verbs::GET,
        Need::container(LIST, READ_FILE).with_service_sas().role_since(Version::V2022_11_02),
    )
    .comp(Comp::List),
    file(FileOperation::ListHandles, "List Handles", Verbs::GET, file_need(NO_SAS, READ_FILE))
        .comp(Comp::ListHandles)
        .since(Version::V2018_11_09),
    file(
        FileOperation::ForceCloseHandles,
        "Force Close Handles",
        Verbs::PUT,
        file_need(NO_SAS, WRITE_FILE),
    )
    .comp(Comp::ForceCloseHandles)
    .since(Version::V2018_11_09),
    directory(FileOperation::RenameDirectory, "Rename Directory", Verbs::PUT, FILE_CREATE)
        .uses(RENAME_SOURCE)
        .comp(Comp::Rename)
        .since(Version::V2021_04_10)
        .lease(LeaseHeaders::SourceIdAndDestinationId),
    file(FileOperation::CreateFile, "Create File", Verbs::PUT, FILE_CREATE)
        .when(&[Selector::HeaderIs("x-ms-type", &["file"])])
        .success(&[201])
        .lease(LeaseHeaders::Id),
    file(FileOperation::GetFile, "Get File", Verbs::GET, FILE_READ)
        .success(&[200, 206])
        .lease(LeaseHeaders::Id),
    file(FileOperation::GetFileProperties, "Get File Properties", Verbs::HEAD, FILE_READ)
        .lease(LeaseHeaders::Id),
    file(FileOperation::DeleteFile, "Delete File", Verbs::DELETE, FILE_DELETE)
        .success(&[202])
        .lease(LeaseHeaders::Id),
    file(FileOperation::SetFileProperties, "Set File Properties", Verbs::PUT, FILE_WRITE)
        .comp(Comp::Properties)
        .lease(LeaseHeaders::Id),
    file(FileOperation::SetFileMetadata, "Set File Metadata", Verbs::PUT, FILE_WRITE)
        .comp(Comp::Metadata)
        .lease(LeaseHeaders::Id),
    file_lease(FileOperation::AcquireFileLease, "Lease File: acquire", FILE_WRITE)
        .when(ACQUIRE)
        .success(&[201])
        .lease(LeaseHeaders::ProposedId),
    file_lease(FileOperation::ReleaseFileLease, "Lease File: release", FILE_WRITE)
        .when(RELEASE)
        .lease(LeaseHeaders::IdRequired),
    file_lease(FileOperation::ChangeFileLease, "Lease File: change", FILE_WRITE)
        .when(CHANGE)
        .lease(LeaseHeaders::IdRequiredAndProposedId),
    file_lease(FileOperation::BreakFileLease, "Lease File: break", FILE_WRITE)
        .when(BREAK)
        .success(&[202])
        .lease(LeaseHeaders::Id),
    file(FileOperation::PutRange, "Put Range (update or clear)", Verbs::PUT, FILE_WRITE)
        .comp(Comp::Range)
        .when(&[Selector::HeaderIs("x-ms-write", &["update", "clear"])])
        .success(&[201])
        .lease(LeaseHeaders::Id),
    file(FileOperation::PutRangeFromUrl, "Put Range From URL", Verbs::PUT, FILE_WRITE)
        .reads(SourceCredentials::Own)
        .comp(Comp::Range)
        .when(&[Selector::HeaderIs("x-ms-write", &["update"]), COPY_SOURCE])
        .since(Version::V2019_02_02)
        .success(&[201])
        .conditions(Conditions::SOURCE_CRC64)
        .lease(LeaseHeaders::Id),
    file(FileOperation::ListRanges, "List Ranges", Verbs::GET, FILE_READ)
        .comp(Comp::RangeList)
        .lease(LeaseHeaders::Id),
    file(FileOperation::CopyFile, "Copy File", Verbs::PUT, FILE_WRITE)
        .reads(SourceCredentials::OwnOrOfAccount)
        .when(&[COPY_SOURCE])
        .since(Version::V2015_02_21)
        .success(&[202])
        .lease(LeaseHeaders::Id),
    file(FileOperation::AbortCopyFile, "Abort Copy File", Verbs::PUT, FILE_WRITE)
        .comp(Comp::Copy)
        .when(&[Selector::HeaderIs("x-ms-copy-action", &["abort"])])
        .since(Version::V2015_02_21)
        .success(&[204])
        .lease(LeaseHeaders::Id),
    file(FileOperation::RenameFile, "Rename File", Verbs::PUT, FILE_CREATE)
        .uses(RENAME_SOURCE)
        .comp(Comp::Rename)
        .since(Version::V2021_04_10)
        .lease(LeaseHeaders::SourceIdAndDestinationId),
    file(FileOperation::CreateSymbolicLink, "Create Symbolic Link (NFS)", Verbs::PUT, FILE_CREATE)
        .restype(Restype::SymbolicLink)
        .since(Version::V2025_05_05)
        .success(&[201])
        .lease(LeaseHeaders::Id),
    file(FileOperation::GetSymbolicLink, "Get Symbolic Link (NFS)", Verbs::GET, FILE_READ)
        .restype(Restype::SymbolicLink)
        .since(Version::V2025_05_05),
    file(FileOperation::CreateHardLink, "Create Hard Link (NFS)", Verbs::PUT, FILE_CREATE)
        .uses(LINK_TARGET)
        .restype(Restype::HardLink)
        .since(Version::V2025_05_05)
        .success(&[201])
        .lease(LeaseHeaders::Id),
    service(
        FileOperation::GetFileUserDelegationKey,
        "Get User Delegation Key (file)",
        Verbs::POST,
        Need::service(NO_SAS, &[&["fileServices/generateUserDelegationKey/action"]]).token_only(),
    )
    .restype(Restype::Service)
    .comp(Comp::UserDelegationKey)
    .since(Version::V2026_02_06),
    share(FileOperation::GetShareMetadata, "Get Share Metadata", Verbs::GET_OR_HEAD, SHARE_READ)
        .comp(Comp::Metadata)
        .lease(LeaseHeaders::Id),
    directory(
        FileOperation::GetDirectoryMetadata,
        "Get Directory Metadata",
        Verbs::GET_OR_HEAD,
        FILE_READ,
    )
    .comp(Comp::Metadata)
    .since(Version::V2015_02_21),
    file(FileOperation::GetFileMetadata, "Get File Metadata", Verbs::GET_OR_HEAD, FILE_READ)
        .comp(Comp::Metadata)
        .lease(LeaseHeaders::Id),
    Row::new(
        Operation::File(FileOperation::PreflightFileRequest),
        "Preflight File Request",
        Verbs::OPTIONS,
        Scope::Any,
        Need::NOTHING,
    )
    .since(Version::V2015_02_21)
    .built(),
];
