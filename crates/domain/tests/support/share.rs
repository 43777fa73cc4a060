//! Shared by the tests of the File service: a share in memory, and commands with default options.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::content::Difference;
use holdfast_domain::content::ReadRange;
use holdfast_domain::features::Features;
use holdfast_domain::lease::LeaseId;
use holdfast_domain::metadata::Metadata;
use holdfast_domain::names::{AccountName, FilePath, ShareName, TrailingDots};
use holdfast_domain::share::{
    CreateDirectory, CreateFile, CreateShare, DeleteNode, DeleteShare, Expected, FileHeaders,
    FileRefusal, GetFile, GetNode, ListDirectory, ListRanges, Located, NodeAddress, NodeProperties,
    PastEnd, Protocol, PutRange, RangeChange, RenameNode, Renamed, RestCall, SetNodeProperties,
    SharePath, ShareSettings, ShareState, SnapshotShare, Wanted, WithSnapshots, WriteAt,
};
use holdfast_domain::time::Timestamp;
use holdfast_domain::{Domain, Failure};
use holdfast_store::Engine;
use holdfast_store::memory::MemoryEngine;

use super::{Body, Store};

pub type Answer<T> = Result<T, FileRefusal>;

pub struct Files {
    pub store: Store,
    pub engine: Arc<dyn Engine>,
}

impl Files {
    pub async fn new() -> Self {
        Self::of(Protocol::Smb).await
    }

    pub async fn of(protocol: Protocol) -> Self {
        let files = Self::on(Arc::new(MemoryEngine::default())).await;
        files.create_share(protocol).await;
        files
    }

    pub async fn on(engine: Arc<dyn Engine>) -> Self {
        Self { store: Store::on(Arc::clone(&engine), Features::default()).await, engine }
    }

    pub async fn create_share(&self, protocol: Protocol) {
        let command = CreateShare {
            path: share(),
            metadata: Metadata::default(),
            protocol,
            settings: ShareSettings::default(),
        };
        self.store.domain.create_share(command).await.expect("a new share");
    }

    pub async fn create_directory(&self, path: &str) -> Answer<Located> {
        refusal(self.store.domain.at_once(new_directory(path)).await)
    }

    pub async fn create_file(&self, path: &str, length: u64) -> Answer<Located> {
        refusal(self.store.domain.at_once(new_file(path, length)).await)
    }

    pub async fn delete(&self, path: &str) -> Answer<()> {
        let command = DeleteNode { address: at(path), wanted: Wanted::Any, lease_id: None };
        refusal(self.store.domain.at_once(command).await.map(drop))
    }

    pub async fn write(&self, path: &str, offset: u64, bytes: &[u8]) -> Answer<Located> {
        let received = self.receive(bytes).await;
        self.put(path, offset, RangeChange::Write(received)).await
    }

    pub async fn clear(&self, path: &str, range: Range<u64>) -> Answer<Located> {
        self.put(path, range.start, RangeChange::Clear(range.end - range.start)).await
    }

    pub async fn put(&self, path: &str, offset: u64, change: RangeChange) -> Answer<Located> {
        refusal(self.store.domain.at_once(put_range(path, offset, change)).await)
    }

    pub async fn receive(&self, bytes: &[u8]) -> holdfast_domain::content::Received {
        match self.store.domain.receive_part(&mut Body::of(bytes), None).await {
            Ok(received) => received,
            Err(_) => panic!("a body in memory arrives"),
        }
    }

    pub async fn resize(&self, path: &str, length: u64) -> Answer<Located> {
        let command = SetNodeProperties { length: Some(length), ..set(path) };
        refusal(self.store.domain.at_once(command).await)
    }

    pub async fn read(&self, path: &str, state: ShareState) -> Answer<Vec<u8>> {
        self.read_range(path, state, None).await
    }

    pub async fn read_range(
        &self,
        path: &str,
        state: ShareState,
        range: Option<ReadRange>,
    ) -> Answer<Vec<u8>> {
        let command = GetNode { state, wanted: Wanted::File, ..get(path) };
        let mut reader =
            refusal(self.store.domain.at_once(GetFile { file: command, range }).await)?.reader;
        let mut content = Vec::new();
        while let Some(bytes) = reader.next().await.expect("memory reads") {
            content.extend_from_slice(&bytes);
        }
        Ok(content)
    }

    pub async fn get(&self, path: &str, state: ShareState) -> Answer<Located> {
        refusal(self.store.domain.at_once(GetNode { state, ..get(path) }).await)
    }

    /// Names as they were written, over as many pages as it takes.
    pub async fn list(&self, path: &str, state: ShareState, limit: usize) -> Answer<Vec<String>> {
        let (mut names, mut after) = (Vec::new(), None);
        loop {
            let command = ListDirectory { after, state, limit, ..list(path) };
            let page = refusal(self.store.domain.at_once(command).await)?;
            assert!(page.entries.len() <= limit, "a page is no longer than was asked for");
            names.extend(
                page.entries.iter().filter_map(|node| Some(node.name.as_ref()?.to_string())),
            );
            after = page.next;
            if after.is_none() {
                return Ok(names);
            }
        }
    }

    pub async fn ranges(&self, command: ListRanges) -> Answer<Vec<(Difference, Range<u64>)>> {
        let mut ranges = refusal(self.store.domain.at_once(command).await)?;
        let mut all = Vec::new();
        while let Some(range) = ranges.next().await.expect("memory reads") {
            all.push(range);
        }
        Ok(all)
    }

    pub async fn rename(&self, from: &str, to: &str, replace: bool) -> Answer<Renamed> {
        let command = RenameNode { replace, ..rename(from, to) };
        refusal(self.store.domain.rename_at_once(command).await)
    }

    pub async fn snapshot(&self) -> ShareState {
        let command = SnapshotShare { path: share(), metadata: Metadata::default() };
        let (_, moment) = self.store.domain.snapshot_share(command).await.expect("a snapshot");
        ShareState::Snapshot(moment)
    }

    pub async fn delete_snapshot(&self, state: ShareState) {
        let ShareState::Snapshot(moment) = state else { panic!("no snapshot") };
        self.delete_share_or(Some(moment)).await;
    }

    pub async fn delete_share(&self) {
        self.delete_share_or(None).await;
    }

    async fn delete_share_or(&self, snapshot: Option<Timestamp>) {
        let with_snapshots = match snapshot {
            Some(_) => WithSnapshots::No,
            None => WithSnapshots::Include,
        };
        let command = DeleteShare { path: share(), snapshot, with_snapshots, lease_id: None };
        self.store.domain.delete_share(command).await.expect("deleted");
    }

    pub fn rows(&self) -> u64 {
        self.engine.statistics().rows
    }
}

pub fn share() -> SharePath {
    SharePath {
        account: AccountName::new("account1").expect("a name"),
        share: ShareName::new("documents").expect("a name"),
    }
}

pub fn path(path: &str) -> FilePath {
    FilePath::directory(path, TrailingDots::Kept).expect("a path")
}

pub fn at(text: &str) -> NodeAddress {
    NodeAddress::path(share(), path(text))
}

pub fn new_directory(path: &str) -> CreateDirectory {
    CreateDirectory {
        address: at(path),
        id: None,
        metadata: Metadata::default(),
        properties: NodeProperties::default(),
    }
}

pub fn new_file(path: &str, length: u64) -> CreateFile {
    CreateFile {
        address: at(path),
        id: None,
        length,
        content: None,
        headers: FileHeaders::default(),
        metadata: Metadata::default(),
        properties: NodeProperties::default(),
        overwrite: true,
        lease_id: None,
    }
}

pub fn get(path: &str) -> GetNode {
    GetNode { address: at(path), state: ShareState::Current, wanted: Wanted::Any, lease_id: None }
}

pub fn set(path: &str) -> SetNodeProperties {
    SetNodeProperties {
        address: at(path),
        wanted: Wanted::Any,
        properties: NodeProperties::default(),
        headers: None,
        length: None,
        by_handle: false,
        lease_id: None,
    }
}

pub fn list(path: &str) -> ListDirectory {
    ListDirectory {
        address: at(path),
        state: ShareState::Current,
        prefix: String::new(),
        after: None,
        limit: 5000,
    }
}

pub fn put_range(path: &str, offset: u64, change: RangeChange) -> PutRange {
    PutRange {
        address: at(path),
        at: WriteAt::Offset(offset),
        change,
        past_end: PastEnd::Refused,
        written: None,
        by_handle: false,
        lease_id: None,
    }
}

pub fn list_ranges(path: &str, previous: Option<ShareState>) -> ListRanges {
    let previous = previous.map(|state| match state {
        ShareState::Current => panic!("no snapshot"),
        ShareState::Snapshot(moment) => moment,
    });
    ListRanges { file: get(path), previous, follow_rename: false, range: None, start_from: 0 }
}

pub fn rename(from: &str, to: &str) -> RenameNode {
    RenameNode {
        source: at(from),
        destination: path(to),
        destination_expected: Expected::Anything,
        wanted: Wanted::Any,
        replace: false,
        ignore_read_only: false,
        by_handle: false,
        source_lease_id: None,
        destination_lease_id: None,
        properties: NodeProperties::default(),
        metadata: None,
        content_type: None,
    }
}

pub fn lease_id(number: u8) -> LeaseId {
    LeaseId::parse(&format!("00000000-0000-0000-0000-0000000000{number:02}")).expect("an id")
}

/// Runs REST calls that need not wait for SMB clients.
pub trait AtOnce {
    async fn at_once<C: RestCall>(&self, command: C) -> Result<C::Output, Failure<C::Refusal>>;

    async fn rename_at_once(&self, command: RenameNode) -> Result<Renamed, Failure<FileRefusal>>;
}

impl AtOnce for Domain {
    async fn at_once<C: RestCall>(&self, command: C) -> Result<C::Output, Failure<C::Refusal>> {
        self.rest_call(command, Duration::ZERO).await
    }

    async fn rename_at_once(&self, command: RenameNode) -> Result<Renamed, Failure<FileRefusal>> {
        self.rest_rename(command, Duration::ZERO).await
    }
}

pub fn refusal<T>(answer: Result<T, Failure<FileRefusal>>) -> Answer<T> {
    match answer {
        Ok(answer) => Ok(answer),
        Err(Failure::Refused(refusal)) => Err(refusal),
        Err(failure) => panic!("{failure:?}"),
    }
}
