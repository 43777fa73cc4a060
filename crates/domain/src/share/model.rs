//! What is stored of a share, and of the directories, files and links in it.

use std::time::Duration;

use bitflags::bitflags;
use serde::{Deserialize, Serialize};

use super::{Place, rows};
use crate::access::StoredPolicy;
use crate::content::{Content, ContentHeaders};
use crate::copy::{CopyState, CopyStatus};
use crate::etag::ETag;
use crate::lease::Lease;
use crate::metadata::Metadata;
use crate::names::{AccountName, PathComponent, ShareName};
use crate::rows::Stored;
use crate::time::Timestamp;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharePath {
    pub account: AccountName,
    pub share: ShareName,
}

impl SharePath {
    pub(crate) fn key(&self) -> bytes::Bytes {
        rows::share(self.account.as_str(), self.share.as_str())
    }

    pub(super) fn hold_key(&self) -> bytes::Bytes {
        rows::held_share_name(self.account.as_str(), self.share.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Part of the keys of its nodes; unique over all shares there ever were.
    pub(crate) id: u64,
    pub etag: ETag,
    pub last_modified: Timestamp,
    pub metadata: Metadata,
    pub quota_gib: u32,
    pub tier: AccessTier,
    #[serde(with = "stored_change")]
    pub tier_changed: Option<TierChange>,
    pub protocol: Protocol,
    pub root_squash: RootSquash,
    /// Whether snapshots are visible to NFS clients.
    pub snapshots_shown: bool,
    /// Whether SMB clients can get leases on directories.
    pub directory_leases: bool,
    pub provisioned: Provisioned,
    pub bursting: PaidBursting,
    pub policies: Vec<StoredPolicy>,
    pub lease: Lease,
    /// How many snapshots were taken of it; each has as its number the value after the increment.
    pub(crate) generation: u64,
    /// The number of the newest snapshot that is still there; zero if there is none.
    pub(crate) newest_snapshot: u64,
}

impl Share {
    /// The root directory has the number of its share.
    pub fn root(&self) -> u64 {
        self.id
    }

    /// The generation under which to keep this state of a node as a past node when it changes or is
    /// removed, if a snapshot sees it.
    pub(crate) fn leaves_behind(&self, node: &Node) -> Option<u64> {
        (node.generation < self.newest_snapshot).then_some(self.newest_snapshot)
    }
}

impl Stored for Share {
    const FORMAT: u8 = 1;
    const WHAT: &'static str = "a share";
}

/// Throughput paid for in advance; only stored and returned, as is [`PaidBursting`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provisioned {
    pub iops: Option<u64>,
    pub bandwidth_mibps: Option<u64>,
}

/// Throughput beyond it, up to which an account is ready to pay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaidBursting {
    pub enabled: Option<bool>,
    pub iops_max: Option<u64>,
    pub bandwidth_mibps_max: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccessTier {
    #[default]
    TransactionOptimized,
    Hot,
    Cool,
    Premium,
}

/// When a share got its tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierChange {
    pub at: Timestamp,
    /// The tier before; `None` if it was created in its tier, or if an earlier version has moved
    /// it.
    pub from: Option<AccessTier>,
}

/// How long a change of tier is reported as pending. Nothing is really moved; clients expect to see
/// it pending, and some wait until it ends.
const TIER_CHANGE_PENDING: Duration = Duration::from_secs(60);

impl TierChange {
    /// The tier that the share is still being moved from.
    pub fn pending_from(&self, now: Timestamp) -> Option<AccessTier> {
        self.from.filter(|_| now < self.at.plus(TIER_CHANGE_PENDING))
    }
}

/// In rows, `None` and a change without `from` are encoded as an optional time.
mod stored_change {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{AccessTier, TierChange};
    use crate::time::Timestamp;

    #[derive(Serialize, Deserialize)]
    enum Row {
        None,
        At(Timestamp),
        From(Timestamp, AccessTier),
    }

    pub fn serialize<S: Serializer>(
        change: &Option<TierChange>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let row = match *change {
            None => Row::None,
            Some(TierChange { at, from: None }) => Row::At(at),
            Some(TierChange { at, from: Some(from) }) => Row::From(at, from),
        };
        row.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<TierChange>, D::Error> {
        Ok(match Row::deserialize(deserializer)? {
            Row::None => None,
            Row::At(at) => Some(TierChange { at, from: None }),
            Row::From(at, from) => Some(TierChange { at, from: Some(from) }),
        })
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    #[default]
    Smb,
    Nfs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RootSquash {
    #[default]
    NoRootSquash,
    RootSquash,
    AllSquash,
}

/// A directory, a file or a symbolic link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Unique over all nodes there ever were, and unchanged by renames. Part of the keys of the
    /// children of a directory. The root has the number of its share.
    pub id: u64,
    /// As it was last written; none for the root.
    pub name: Option<PathComponent>,
    pub etag: ETag,
    pub last_modified: Timestamp,
    pub metadata: Metadata,
    pub times: FileTimes,
    pub attributes: Attributes,
    pub permission: PermissionKey,
    /// For NFS shares.
    pub posix: Option<PosixProperties>,
    /// The generation of the share when this state was written: only later snapshots see it.
    pub(crate) generation: u64,
    /// The generation of the share when it came to its place.
    pub(crate) placed: u64,
    /// Its earlier places, where older snapshots see it; oldest first.
    pub(crate) moves: Vec<Move>,
    pub(crate) names: Names,
    pub kind: NodeKind,
}

/// An earlier place of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Move {
    /// The last snapshot that sees it there.
    pub generation: u64,
    pub directory: u64,
    pub folded_name: String,
}

/// How a node is found by its names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Names {
    /// Under the only one it has.
    #[default]
    One,
    /// In a row of its own, since it has several names.
    Many,
    /// This row is only a name, as an empty file: the node has a row of its own.
    Of,
}

impl Node {
    pub fn is_directory(&self) -> bool {
        matches!(self.kind, NodeKind::Directory(_))
    }

    pub fn file(&self) -> Option<&File> {
        match &self.kind {
            NodeKind::File(file) => Some(file),
            NodeKind::Directory(_) | NodeKind::SymbolicLink(_) => None,
        }
    }

    pub(crate) fn file_mut(&mut self) -> Option<&mut File> {
        match &mut self.kind {
            NodeKind::File(file) => Some(file),
            NodeKind::Directory(_) | NodeKind::SymbolicLink(_) => None,
        }
    }

    /// Whether the snapshot of this number sees this state.
    pub(crate) fn is_seen_by(&self, snapshot: u64) -> bool {
        self.generation < snapshot
    }

    /// Where a snapshot sees the node that is at `place` now.
    pub(crate) fn place_at(&self, place: &Place, snapshot: u64) -> Place {
        let earlier = self.moves.iter().find(|earlier| earlier.generation >= snapshot);
        earlier.map_or_else(
            || place.clone(),
            |earlier| Place::folded(place.share(), earlier.directory, earlier.folded_name.clone()),
        )
    }

    /// Whether removing the name that it was found by removes the node.
    pub(crate) fn is_last_name(&self) -> bool {
        let links = self.posix.as_ref().map_or(1, |posix| posix.links);
        self.names != Names::Many || links <= 1
    }

    /// Whether the bytes of a copy are still to come.
    pub fn is_copy_pending(&self) -> bool {
        let copy = self.file().and_then(|file| file.copy.as_ref());
        copy.is_some_and(|copy| copy.status == CopyStatus::Pending)
    }

    /// The length of a file; 0 for other nodes.
    pub fn length(&self) -> u64 {
        self.file().map_or(0, |file| file.length)
    }
}

impl Stored for Node {
    const FORMAT: u8 = 1;
    const WHAT: &'static str = "a directory or file";
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "most nodes are files")]
pub enum NodeKind {
    Directory(Directory),
    File(File),
    SymbolicLink(LinkTarget),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directory {}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    pub length: u64,
    /// New whenever the file is created again: two states of one lineage can be compared.
    pub(crate) lineage: u64,
    /// Empty or a map, written in place.
    pub(crate) content: Content,
    pub headers: FileHeaders,
    pub lease: Lease,
    pub copy: Option<FileCopy>,
}

pub type FileHeaders = ContentHeaders;
pub type FileCopy = CopyState;

/// Where a symbolic link leads, as the client wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkTarget(pub String);

/// The times that SMB clients see and set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTimes {
    pub created: Timestamp,
    pub written: Timestamp,
    pub changed: Timestamp,
    pub accessed: Timestamp,
}

impl FileTimes {
    pub fn all(now: Timestamp) -> Self {
        Self { created: now, written: now, changed: now, accessed: now }
    }
}

bitflags! {
    /// The bits of [MS-FSCC] 2.6, without that of a directory, which follows from the kind of the
    /// node. Rows store them as a number.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(from = "u32", into = "u32")]
    pub struct Attributes: u32 {
        const READ_ONLY = 0x1;
        const HIDDEN = 0x2;
        const SYSTEM = 0x4;
        const ARCHIVE = 0x20;
        const TEMPORARY = 0x100;
        /// Only set and read by SMB clients: any file can have holes.
        const SPARSE = 0x200;
        const OFFLINE = 0x1000;
        const NOT_CONTENT_INDEXED = 0x2000;
        const NO_SCRUB_DATA = 0x2_0000;
    }
}

impl From<u32> for Attributes {
    fn from(bits: u32) -> Self {
        Self::from_bits_retain(bits)
    }
}

impl From<Attributes> for u32 {
    fn from(attributes: Attributes) -> Self {
        attributes.bits()
    }
}

/// Names a security descriptor of the share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PermissionKey(pub u64);

impl PermissionKey {
    /// As clients are given it; `None` for a text that never was one.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, check) = text.split_once('*')?;
        let digits =
            |text: &str| text.len() == 20 && text.bytes().all(|byte| byte.is_ascii_digit());
        let key = Self(number.parse().ok()?);
        let sound = digits(number) && digits(check) && check.parse() == Ok(key.check());
        sound.then_some(key)
    }

    /// The second of the two numbers that clients expect a key to be made of.
    const fn check(self) -> u64 {
        self.0.rotate_left(32) ^ 0x5DEE_CE66_D8A3_91B7
    }
}

impl std::fmt::Display for PermissionKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:020}*{:020}", self.0, self.check())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PosixProperties {
    pub mode: u16,
    pub owner: u32,
    pub group: u32,
    /// How many names the node has.
    pub links: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
    struct Changed(#[serde(with = "stored_change")] Option<TierChange>);

    #[test]
    fn a_change_from_nowhere_is_stored_as_ever_and_its_tier_is_stored_too() {
        let at = Timestamp::from_ticks(7);
        let change = |from| Some(TierChange { at, from });
        for (case, changed, row) in [
            ("none", None, &[0][..]),
            ("a time", change(None), &[1, 7]),
            ("a time and a tier", change(Some(AccessTier::Cool)), &[2, 7, 2]),
        ] {
            let changed = Changed(changed);
            let encoded = postcard::to_allocvec(&changed).expect("encoded");
            assert_eq!(encoded, row, "{case}");
            let read: Changed = postcard::from_bytes(row).expect("decoded");
            assert_eq!(read, changed, "{case}");
        }
    }

    #[test]
    fn a_change_of_tier_is_pending_for_a_minute() {
        let at = Timestamp::from_ticks(7);
        let moved = TierChange { at, from: Some(AccessTier::Hot) };
        for (after, expected) in [(0, Some(AccessTier::Hot)), (59, moved.from), (60, None)] {
            let now = at.plus(Duration::from_secs(after));
            assert_eq!(moved.pending_from(now), expected, "{after}");
            assert_eq!(TierChange { at, from: None }.pending_from(now), None, "{after}");
        }
    }
}
