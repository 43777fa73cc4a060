//! The only way in which REST reaches files and directories: among the opens of SMB clients. A call
//! looks up its node, enters it as an open, and does its work on what it has entered. If the place has
//! another node meanwhile, it looks again.
//!
//! The functions that change the rows are not public, so that no caller bypasses the share modes,
//! the byte-range locks and the caches of SMB clients.

use std::time::Duration;

use super::change_events::{self, ChangedNode};
use super::node::Lookup;
use super::opens::handle::NodeKey;
use super::opens::rest_operation::REST_BREAK_WAIT_MAX;
use super::opens::watch::ChangeEvent;
use super::opens::{EnterRefusal, Entered, HandleScope, RestOperation};
use super::tree::{Answer, Located};
use super::{
    AbortFileCopy, At, CopyFile, CreateDirectory, CreateFile, CreateHardLink, CreateSymbolicLink,
    DeleteNode, DeletedNode, DirectoryPage, Expected, FileCopyRefusal, FileCopySource,
    FileDownload, FileRanges, FileRefusal, GetNode, LeaseFile, ListDirectory, ListRanges,
    NodeAddress, PutRange, RenameNode, Renamed, SetNodeMetadata, SetNodeProperties, ShareState,
    Wanted,
};
use crate::content::ReadRange;
use crate::domain::Domain;
use crate::failure::Failure;
use crate::lease::{LeaseAction, LeaseOutcome};

/// How often a call looks again for a node that is moved meanwhile.
const LOOKS_MAX: usize = 16;

/// Get File.
pub struct GetFile {
    pub file: GetNode,
    pub range: Option<ReadRange>,
}

/// The handles that a request names.
pub struct FoundHandles {
    /// `None` in a snapshot, whose handles conflict with nothing.
    pub scope: Option<HandleScope>,
    pub is_directory: bool,
}

/// A request of a REST client.
pub trait RestCall: Send + Sync + Sized {
    type Output: Send;
    type Refusal: From<FileRefusal> + PartialEq + Send;

    /// What this is to other opens of the node; `None` if it does not affect them, as in a snapshot.
    fn operation(&self) -> Option<RestOperation>;

    fn address(&mut self) -> &mut NodeAddress;

    /// The notifications to watchers when it is done; none for reads.
    fn change_events(&self, _: &ChangedNode<'_>, _: &Self::Output) -> Vec<ChangeEvent> {
        Vec::new()
    }

    fn run(
        &self,
        entered: EnteredDomain<'_>,
    ) -> impl Future<Output = Result<Self::Output, Failure<Self::Refusal>>> + Send;

    /// Keeps or frees the bytes that came with it.
    fn conclude(
        self,
        done: Result<Self::Output, Failure<Self::Refusal>>,
    ) -> Result<Self::Output, Failure<Self::Refusal>> {
        done
    }
}

/// Where a call does its work. Only [`Domain::rest_call`] makes one, so no call runs without
/// entering the opens first.
pub struct EnteredDomain<'a>(&'a Domain);

/// A node that a call has entered, or an empty place.
struct Entry<'a> {
    expected: Expected,
    entered: Option<Entered<'a>>,
}

impl Domain {
    /// Runs a call as soon as the other opens of the node allow it, waiting up to `patience`.
    pub async fn rest_call<C: RestCall>(
        &self,
        mut command: C,
        patience: Duration,
    ) -> Result<C::Output, Failure<C::Refusal>> {
        let done = self.look_and_run(&mut command, patience).await;
        command.conclude(done)
    }

    async fn look_and_run<C: RestCall>(
        &self,
        command: &mut C,
        patience: Duration,
    ) -> Result<C::Output, Failure<C::Refusal>> {
        let Some(operation) = command.operation() else {
            return command.run(EnteredDomain(self)).await;
        };
        let asked = command.address().clone();
        for _ in 0..LOOKS_MAX {
            let found = self.find_node(&asked, ShareState::Current).await;
            let found = found.map_err(|failure| failure.map(C::Refusal::from))?;
            let entry = self.enter(&found, operation, patience).await;
            let entry = entry.map_err(|failure| failure.map(C::Refusal::from))?;
            *command.address() = asked.clone().expecting(entry.expected);
            let done = command.run(EnteredDomain(self)).await;
            drop(entry.entered);
            match done {
                Err(Failure::Refused(refusal)) if refusal == FileRefusal::Moved.into() => {}
                Ok(output) => {
                    self.tell_of(command, &asked, &found, &output);
                    return Ok(output);
                }
                failed => return failed,
            }
        }
        Err(Failure::Busy)
    }

    fn tell_of<C: RestCall>(
        &self,
        command: &C,
        asked: &NodeAddress,
        found: &Lookup,
        output: &C::Output,
    ) {
        let share = found.place.share();
        if self.opens.is_watched(share) {
            let before = found.node.as_ref();
            let name = before.and_then(|node| node.name.as_ref());
            if let Some(changed) = ChangedNode::of(asked, before, name) {
                self.tell(share, &command.change_events(&changed, output));
            }
        }
    }

    async fn enter(
        &self,
        found: &Lookup,
        operation: RestOperation,
        patience: Duration,
    ) -> Answer<Entry<'_>> {
        let Some(node) = &found.node else {
            return Ok(Entry { expected: Expected::Nothing, entered: None });
        };
        // An operation for files on a directory is refused as that, not because of other opens.
        let of_both = [RestOperation::DeleteDirectory, RestOperation::RenameSource];
        let operation = match node.is_directory() && !of_both.contains(&operation) {
            true => RestOperation::Directory,
            false => operation,
        };
        let key = NodeKey { share: found.place.share(), node: node.id };
        let entered = self.opens.enter(key, operation, patience).await;
        let entered = entered.map_err(|refusal| Failure::Refused(FileRefusal::Opens(refusal)))?;
        self.remove_rows_of_closed().await?;
        Ok(Entry { expected: Expected::Node(node.id), entered: Some(entered) })
    }

    /// Enters the destination of a copy from another host that ends. Other opens, and caches not
    /// given up in time, do not prevent the end of the copy.
    pub(super) async fn enter_copy_end(
        &self,
        address: &NodeAddress,
    ) -> Answer<Option<Entered<'_>>> {
        let found = self.find_node(address, ShareState::Current).await?;
        let Some(node) = &found.node else { return Ok(None) };
        let key = NodeKey { share: found.place.share(), node: node.id };
        let entered = self.opens.enter(key, RestOperation::CopyEnd, REST_BREAK_WAIT_MAX).await;
        self.remove_rows_of_closed().await?;
        Ok(entered.ok())
    }

    /// Enters another node that a call uses, such as the source of a copy, for the time of its use.
    async fn enter_second(
        &self,
        address: &NodeAddress,
        operation: RestOperation,
    ) -> Answer<Entry<'_>> {
        let found = self.find_node(address, ShareState::Current).await?;
        self.enter(&found, operation, REST_BREAK_WAIT_MAX).await
    }

    /// As [`Domain::rest_call`], for two places at once.
    pub async fn rest_rename(
        &self,
        mut command: RenameNode,
        patience: Duration,
    ) -> Answer<Renamed> {
        let asked = command.source.clone();
        let path = command.destination.clone();
        let destination = NodeAddress::path(asked.share.clone(), path.clone());
        for _ in 0..LOOKS_MAX {
            let source = self.find_node(&asked, ShareState::Current).await?;
            self.check_nothing_open_below(&asked, &source)?;
            let from = self.enter(&source, RestOperation::RenameSource, patience).await?;
            let target = self.find_node(&destination, ShareState::Current).await?;
            let same = target.node.as_ref().map(|node| node.id)
                == source.node.as_ref().map(|node| node.id);
            let to = match &target.node {
                // The node itself in another case, or one that will not be replaced.
                Some(node) if same || !command.replace => {
                    Entry { expected: Expected::Node(node.id), entered: None }
                }
                Some(_) | None => {
                    self.enter(&target, RestOperation::RenameTarget, patience).await?
                }
            };
            command.source = asked.clone().expecting(from.expected);
            command.destination_expected = to.expected;
            match self.rename_node(&command).await {
                Err(Failure::Refused(FileRefusal::Moved)) => {}
                Ok(renamed) => {
                    if let Some(entered) = &from.entered {
                        entered.moved(renamed.located.place.clone(), path);
                        // The rename itself has written the rows; later changes write them again.
                        // It has happened, whether this fails or not.
                        drop(self.keep_moved(&renamed.located).await);
                    }
                    self.tell_of_rename(&command, &asked, &source, &renamed);
                    return Ok(renamed);
                }
                refused => return refused,
            }
        }
        Err(Failure::Busy)
    }

    fn tell_of_rename(
        &self,
        command: &RenameNode,
        asked: &NodeAddress,
        source: &Lookup,
        renamed: &Renamed,
    ) {
        let (At::Path(from), Some(node)) = (&asked.at, &source.node) else { return };
        let (from, to) = (from.with_last(node.name.as_ref()), &command.destination);
        let (is_directory, replaced) = (node.is_directory(), renamed.replaced.is_some());
        let mut happened = change_events::renamed(&from, to, is_directory, replaced);
        happened.extend(change_events::set_by_rename(command));
        self.tell(source.place.share(), &happened);
    }

    /// The handles that a request about a file or directory names. It is not an open itself:
    /// handles that block other calls must still be listed and closed.
    pub async fn find_handles(&self, command: GetNode, recursive: bool) -> Answer<FoundHandles> {
        let located = self.get_node(&command).await?;
        let is_directory = located.node.is_directory();
        let below = match command.address.at {
            At::Path(path) if recursive && is_directory => Some(path),
            At::Path(_) | At::Place(_) => None,
        };
        let key = NodeKey { share: located.place.share(), node: located.node.id };
        let is_current = command.state == ShareState::Current;
        Ok(FoundHandles { scope: is_current.then_some(HandleScope { key, below }), is_directory })
    }

    /// A directory with something open below it is not renamed: opens keep their paths.
    fn check_nothing_open_below(&self, address: &NodeAddress, found: &Lookup) -> Answer<()> {
        let (Some(node), At::Path(path)) = (&found.node, &address.at) else { return Ok(()) };
        if node.is_directory() && self.opens.is_open_below(found.place.share(), path) {
            let refusal = FileRefusal::Opens(EnterRefusal::SharingViolation);
            return Err(Failure::Refused(refusal));
        }
        Ok(())
    }
}

/// The commands on one node that run without further steps.
macro_rules! rest_calls {
    ($(
        $command:ty, $field:ident -> $output:ty = $run:ident, $operation:expr, $change_events:expr;
    )*) => { $(
        impl RestCall for $command {
            type Output = $output;
            type Refusal = FileRefusal;

            fn operation(&self) -> Option<RestOperation> {
                #[allow(clippy::redundant_closure_call, reason = "each has its own rule")]
                ($operation)(self)
            }

            fn address(&mut self) -> &mut NodeAddress {
                &mut self.$field
            }

            fn change_events(&self, changed: &ChangedNode<'_>, done: &$output) -> Vec<ChangeEvent> {
                #[allow(clippy::redundant_closure_call, reason = "each has its own rule")]
                ($change_events)(self, changed, done)
            }

            async fn run(&self, EnteredDomain(domain): EnteredDomain<'_>) -> Answer<$output> {
                domain.$run(self).await
            }
        }
    )* };
}

rest_calls! {
    CreateDirectory, address -> Located = create_directory,
        |_| Some(RestOperation::Directory),
        |_, changed: &ChangedNode<'_>, _| changed.created_directory();
    GetNode, address -> Located = get_node,
        |get: &Self| match (get.state, get.wanted) {
            (ShareState::Snapshot(_), _) => None,
            (ShareState::Current, Wanted::Directory) => Some(RestOperation::Directory),
            (
                ShareState::Current,
                Wanted::File | Wanted::SymbolicLink | Wanted::FileOrLink | Wanted::Any,
            ) => Some(RestOperation::GetFileProperties),
        },
        |_, _, _| Vec::new();
    SetNodeProperties, address -> Located = set_node_properties,
        |_| Some(RestOperation::SetFileProperties),
        |set, changed: &ChangedNode<'_>, done: &Located| changed.set(set, &done.node);
    SetNodeMetadata, address -> Located = set_node_metadata,
        |_| Some(RestOperation::SetFileMetadata),
        |_, changed: &ChangedNode<'_>, _| changed.set_metadata();
    DeleteNode, address -> DeletedNode = delete_node,
        |delete: &Self| match delete.wanted {
            Wanted::Directory => Some(RestOperation::DeleteDirectory),
            Wanted::File | Wanted::SymbolicLink | Wanted::FileOrLink | Wanted::Any => {
                Some(RestOperation::DeleteFile)
            }
        },
        |_, changed: &ChangedNode<'_>, _| changed.deleted();
    CreateSymbolicLink, address -> Located = create_symbolic_link,
        |_| Some(RestOperation::Directory),
        |_, changed: &ChangedNode<'_>, _| changed.created_link();
    AbortFileCopy, address -> () = abort_file_copy,
        |_| Some(RestOperation::CopyEnd),
        |_, changed: &ChangedNode<'_>, _| changed.written();
    LeaseFile, address -> (Located, LeaseOutcome) = lease_file,
        |lease: &Self| match lease.action {
            LeaseAction::Acquire { .. } => Some(RestOperation::LeaseFile),
            LeaseAction::Renew { .. }
            | LeaseAction::Change { .. }
            | LeaseAction::Release { .. }
            | LeaseAction::Break { .. }
            | LeaseAction::BreakOnce => Some(RestOperation::Directory),
        },
        |_, _, _| Vec::new();
}

impl RestCall for GetFile {
    type Output = FileDownload;
    type Refusal = FileRefusal;

    fn operation(&self) -> Option<RestOperation> {
        self.file.operation().map(|_| RestOperation::GetFile)
    }

    fn address(&mut self) -> &mut NodeAddress {
        &mut self.file.address
    }

    async fn run(&self, EnteredDomain(domain): EnteredDomain<'_>) -> Answer<FileDownload> {
        domain.get_file(&self.file, self.range).await
    }
}

impl RestCall for ListRanges {
    type Output = FileRanges;
    type Refusal = FileRefusal;

    fn operation(&self) -> Option<RestOperation> {
        self.file.operation().map(|_| RestOperation::ListRanges)
    }

    fn address(&mut self) -> &mut NodeAddress {
        &mut self.file.address
    }

    async fn run(&self, EnteredDomain(domain): EnteredDomain<'_>) -> Answer<FileRanges> {
        domain.list_ranges(self).await
    }
}

/// Nodes about to be deleted are not listed.
impl RestCall for ListDirectory {
    type Output = DirectoryPage;
    type Refusal = FileRefusal;

    fn operation(&self) -> Option<RestOperation> {
        (self.state == ShareState::Current).then_some(RestOperation::Directory)
    }

    fn address(&mut self) -> &mut NodeAddress {
        &mut self.address
    }

    async fn run(&self, EnteredDomain(domain): EnteredDomain<'_>) -> Answer<DirectoryPage> {
        let mut page = domain.list_directory(self).await?;
        if self.state == ShareState::Current {
            let share = page.directory.place.share();
            page.entries.retain(|node| domain.is_listed(share, node.id));
        }
        Ok(page)
    }
}

impl RestCall for CreateFile {
    type Output = Located;
    type Refusal = FileRefusal;

    fn operation(&self) -> Option<RestOperation> {
        Some(RestOperation::CreateFile)
    }

    fn address(&mut self) -> &mut NodeAddress {
        &mut self.address
    }

    fn change_events(&self, changed: &ChangedNode<'_>, done: &Located) -> Vec<ChangeEvent> {
        changed.created_file(&done.node)
    }

    async fn run(&self, EnteredDomain(domain): EnteredDomain<'_>) -> Answer<Located> {
        domain.try_create_file(self).await
    }

    fn conclude(self, done: Answer<Located>) -> Answer<Located> {
        self.conclude_create(done)
    }
}

/// The file that gets another name only has to exist: its opens keep what was granted.
impl RestCall for CreateHardLink {
    type Output = Located;
    type Refusal = FileRefusal;

    fn operation(&self) -> Option<RestOperation> {
        Some(RestOperation::Directory)
    }

    fn address(&mut self) -> &mut NodeAddress {
        &mut self.address
    }

    fn change_events(&self, changed: &ChangedNode<'_>, _: &Located) -> Vec<ChangeEvent> {
        changed.created_link()
    }

    async fn run(&self, EnteredDomain(domain): EnteredDomain<'_>) -> Answer<Located> {
        let entry = domain.enter_second(&self.target, RestOperation::LinkTarget).await?;
        let target = self.target.clone().expecting(entry.expected);
        let linked = domain.create_hard_link(self, &target).await;
        drop(entry.entered);
        linked
    }
}

impl RestCall for PutRange {
    type Output = Located;
    type Refusal = FileRefusal;

    fn operation(&self) -> Option<RestOperation> {
        Some(RestOperation::PutRange)
    }

    fn address(&mut self) -> &mut NodeAddress {
        &mut self.address
    }

    fn change_events(&self, changed: &ChangedNode<'_>, _: &Located) -> Vec<ChangeEvent> {
        changed.written()
    }

    async fn run(&self, EnteredDomain(domain): EnteredDomain<'_>) -> Answer<Located> {
        domain.try_put_range(self).await
    }

    fn conclude(self, done: Answer<Located>) -> Answer<Located> {
        self.conclude_put(done)
    }
}

impl RestCall for CopyFile {
    type Output = Located;
    type Refusal = FileCopyRefusal;

    fn operation(&self) -> Option<RestOperation> {
        Some(RestOperation::CreateFile)
    }

    fn address(&mut self) -> &mut NodeAddress {
        &mut self.address
    }

    fn change_events(&self, changed: &ChangedNode<'_>, done: &Located) -> Vec<ChangeEvent> {
        changed.created_file(&done.node)
    }

    /// The source is read as if by Get File. If another one has taken its place meanwhile, both are
    /// looked for again.
    async fn run(
        &self,
        EnteredDomain(domain): EnteredDomain<'_>,
    ) -> Result<Located, Failure<FileCopyRefusal>> {
        let source = match &self.source {
            FileCopySource::File(source) if source.state == ShareState::Current => source,
            FileCopySource::File(_)
            | FileCopySource::Blob(_)
            | FileCopySource::Fetched(..)
            | FileCopySource::Awaited(_) => {
                return domain.try_copy_file(self, &self.source).await;
            }
        };
        let entry = domain.enter_second(&source.address, RestOperation::GetFile).await;
        let entry = entry.map_err(|failure| failure.map(FileCopyRefusal::SourceFile))?;
        let address = source.address.clone().expecting(entry.expected);
        let source = FileCopySource::File(GetNode { address, ..source.clone() });
        let copied = domain.try_copy_file(self, &source).await;
        drop(entry.entered);
        match copied {
            Err(Failure::Refused(FileCopyRefusal::SourceFile(FileRefusal::Moved))) => {
                Err(Failure::Refused(FileRefusal::Moved.into()))
            }
            copied => copied,
        }
    }

    fn conclude(
        self,
        done: Result<Located, Failure<FileCopyRefusal>>,
    ) -> Result<Located, Failure<FileCopyRefusal>> {
        self.conclude_copy(done)
    }
}
