//! Opening a node.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use holdfast_sync::Mutex;

use super::command::{Action, CachingWanted, NodeInformation, OpenNode, Opened, Reconnect};
use super::open_rules::{self, Decided};
use super::refusal::{HandleRefusal, refused};
use super::{Answer, change_events};
use crate::domain::Domain;
use crate::failure::Failure;
use crate::metadata::Metadata;
use crate::names::PathComponent;
use crate::share::opens::handle::{HandleState, Position};
use crate::share::opens::node::{Obstacle, Wish};
use crate::share::opens::reconnection::Claimed;
use crate::share::opens::registry::AdmitRefusal;
use crate::share::opens::replay::Created;
use crate::share::opens::watch::ChangeAction;
use crate::share::opens::{CachingGranted, Claim, Handle, NodeKey, Opens, OplockLevel};
use crate::share::security::{Descriptor, assigned_to_new};
use crate::share::{
    Attributes, CreateDirectory, CreateFile, Expected, FileHeaders, FileRefusal, Located, Node,
    NodeAddress, NodeProperties, PermissionKey, Place, ShareState, TimeChange,
};

/// How often a path is looked up again because its node has changed meanwhile.
const LOOKS_MAX: usize = 16;

impl Domain {
    /// Opens or creates a node. Waits for others to give up their caches of it; dropping the future ends
    /// the wait.
    pub async fn open_handle(&self, command: &OpenNode) -> Answer<Opened> {
        let Some(id) = command.create_id() else { return self.look_and_open(command).await };
        let creating = match self.opens.begin_create(id) {
            Ok(creating) => creating,
            Err(earlier) => return self.open_again(command, earlier).await,
        };
        let opened = self.look_and_open(command).await?;
        creating.done(Created { handle: Arc::clone(&opened.handle), path: command.path.clone() });
        Ok(opened)
    }

    async fn look_and_open(&self, command: &OpenNode) -> Answer<Opened> {
        open_rules::check_request(command).map_err(Failure::Refused)?;
        for _ in 0..LOOKS_MAX {
            if let Some(opened) = self.try_open(command).await? {
                return Ok(opened);
            }
        }
        Err(Failure::Busy)
    }

    /// `None` if it has to be looked up again.
    async fn try_open(&self, command: &OpenNode) -> Answer<Option<Opened>> {
        let address = command.address();
        let state = command.snapshot.map_or(ShareState::Current, ShareState::Snapshot);
        let found =
            self.find_node(&address, state).await.map_err(|failure| failure.map(refused))?;
        let Some(node) = found.node else {
            let allowed = match &found.parent {
                Some(directory) => self.allowed(command, directory, None).await?,
                None => command.allowed,
            };
            let decided = open_rules::decide_absent(command, allowed).map_err(Failure::Refused)?;
            return self.open_new(command, &found.place, decided).await;
        };
        let key = NodeKey { share: found.place.share(), node: node.id };
        if self.opens.is_delete_pending(key) {
            if self.opens.removed(key).await || self.remove_left_behind().await {
                return Ok(None);
            }
            return Err(Failure::Refused(HandleRefusal::DeletePending));
        }
        let allowed = self.allowed(command, &node, found.parent.as_ref()).await?;
        let decided = open_rules::decide_existing(command, &node, allowed, found.now);
        let decided = decided.map_err(Failure::Refused)?;
        // Keeps the directory empty until it is marked for deletion.
        let mut sealed = None;
        if command.options.delete_on_close && node.is_directory() {
            sealed = Some(self.opens.seal(key).await);
            self.check_empty(&command.share, &found.place, node.id).await?;
        }
        let wish = wish(command, decided, node.is_directory());
        if let Err(refusal) = self.opens.approach(key, &wish).await {
            // The deletion may be under way, or left over from an expired handle.
            let pending = refusal == AdmitRefusal::Obstacle(Obstacle::DeletePending);
            if pending && (self.opens.removed(key).await || self.remove_left_behind().await) {
                return Ok(None);
            }
            return Err(not_admitted(refusal));
        }
        let admitted = self.admit(command, decided, &wish, key, &found.place, node.name.as_ref());
        drop(sealed);
        let Some((tentative, caching)) = admitted else { return Ok(None) };
        // What was found before the wait may be deleted by now; from here on it cannot be.
        let now_there = if decided.overwrites() {
            self.overwrite(command, &tentative.handle, &node, decided.action).await
        } else {
            let address = NodeAddress::place(command.share.clone(), found.place, node.id);
            self.find_node(&address, state).await.map(|found| found.node)
        };
        match now_there {
            Ok(Some(node)) => {
                self.opened(command, tentative, decided, caching, &node).await.map(Some)
            }
            Ok(None) | Err(Failure::Refused(FileRefusal::Moved)) => Ok(None),
            Err(failure) => Err(failure.map(refused)),
        }
    }

    /// The node is opened before it is created: no other open can come between, so that a refused
    /// open leaves no new node behind.
    async fn open_new(
        &self,
        command: &OpenNode,
        place: &Place,
        decided: Decided,
    ) -> Answer<Option<Opened>> {
        let is_directory = command.options.directory;
        let wish = wish(command, decided, is_directory);
        self.opens.check_lease(&wish, None).map_err(not_admitted)?;
        let key = NodeKey { share: place.share(), node: self.fresh_id() };
        let name = command.path.components().last();
        let admitted = self.admit(command, decided, &wish, key, place, name);
        let Some((tentative, caching)) = admitted else { return Ok(None) };
        let located = match self.create(command, key.node).await {
            Ok(located) => located,
            Err(Failure::Refused(FileRefusal::Moved | FileRefusal::AlreadyExists)) => {
                return Ok(None);
            }
            Err(failure) => return Err(failure.map(refused)),
        };
        if located.place != *place {
            // The path now leads to another directory.
            self.opens.moved(key, located.place, command.path.clone());
        }
        self.tell(
            key.share,
            &[change_events::named(&command.path, is_directory, ChangeAction::Added)],
        );
        if command.allocation > 0 && !is_directory {
            self.opens.set_allocation(key, command.allocation);
        }
        let maximal_access = self.allowed(command, &located.node, None).await?;
        let decided = Decided { maximal_access, ..decided };
        self.opened(command, tentative, decided, caching, &located.node).await.map(Some)
    }

    async fn create(&self, command: &OpenNode, id: u64) -> Result<Located, Failure<FileRefusal>> {
        let id = Some(id);
        let address = command.address().expecting(Expected::Nothing);
        let permission = self.new_permission(command).await?;
        let attributes = command.settable_attributes();
        let metadata = Metadata::default();
        if command.options.directory {
            let attributes = attributes.difference(Attributes::ARCHIVE);
            let properties =
                NodeProperties { attributes: Some(attributes), permission, ..Default::default() };
            let create = CreateDirectory { address, id, metadata, properties };
            return self.create_directory(&create).await;
        }
        let attributes = Some(attributes.union(Attributes::ARCHIVE));
        let properties = NodeProperties { attributes, permission, ..Default::default() };
        self.create_file(CreateFile {
            address,
            id,
            length: 0,
            content: None,
            headers: FileHeaders::default(),
            metadata,
            properties,
            overwrite: false,
            lease_id: None,
        })
        .await
    }

    async fn new_permission(
        &self,
        command: &OpenNode,
    ) -> Result<Option<PermissionKey>, Failure<FileRefusal>> {
        let Some(bytes) = &command.descriptor else { return Ok(None) };
        let unknown = || Failure::Refused(FileRefusal::PermissionNotFound);
        let descriptor = assigned_to_new(Descriptor::from_bytes(bytes).ok_or_else(unknown)?);
        let key = self.permission_key(&command.share, &descriptor).await;
        key.map(Some).map_err(|failure| failure.map(|_| FileRefusal::ShareNotFound))
    }

    /// Replaces the content of a file that is open already.
    async fn overwrite(
        &self,
        command: &OpenNode,
        handle: &Handle,
        node: &Node,
        action: Action,
    ) -> Result<Option<Node>, Failure<FileRefusal>> {
        let created = match action {
            Action::Superseded => None,
            Action::Overwritten | Action::Opened | Action::Created => {
                Some(TimeChange::At(node.times.created))
            }
        };
        let address = NodeAddress::place(command.share.clone(), handle.place(), node.id);
        let attributes = Some(command.settable_attributes().union(Attributes::ARCHIVE));
        let permission = Some(node.permission);
        let overwritten = self
            .create_file(CreateFile {
                address,
                id: None,
                length: 0,
                content: None,
                headers: FileHeaders::default(),
                metadata: node.metadata.clone(),
                properties: NodeProperties {
                    attributes,
                    created,
                    permission,
                    ..Default::default()
                },
                overwrite: true,
                lease_id: None,
            })
            .await?;
        self.opens.set_allocation(handle.key, command.allocation);
        self.opens.reveal_written(handle.key);
        self.tell(handle.key.share, &[change_events::written(&handle.path())]);
        Ok(Some(overwritten.node))
    }

    fn admit(
        &self,
        command: &OpenNode,
        decided: Decided,
        wish: &Wish,
        key: NodeKey,
        place: &Place,
        name: Option<&PathComponent>,
    ) -> Option<(Tentative<'_>, CachingGranted)> {
        let path = command.path.with_last(name);
        let position = Position { place: place.clone(), path };
        let make = |position| {
            Arc::new(Handle {
                id: self.fresh_id(),
                share: command.share.clone(),
                key,
                access: decided.access,
                sharing: command.sharing,
                is_directory: wish.is_directory,
                snapshot: command.snapshot,
                write_through: command.options.write_through,
                opened: self.now(),
                lease: wish.lease.filter(|_| !wish.is_directory).map(|(_, lease)| lease.key),
                create: command.create_id(),
                is_replayable: AtomicBool::new(false),
                position,
                state: Mutex::new(HandleState::new(command.opener.clone())),
            })
        };
        let delete_on_close = command.options.delete_on_close;
        let (handle, caching) = self.opens.admit(make, key, position, wish, delete_on_close)?;
        Some((Tentative { opens: &self.opens, handle, is_kept: false }, caching))
    }

    /// Completes an open; a persistent one is stored first.
    async fn opened(
        &self,
        command: &OpenNode,
        tentative: Tentative<'_>,
        decided: Decided,
        caching: CachingGranted,
        node: &Node,
    ) -> Answer<Opened> {
        let handle = &tentative.handle;
        let Decided { action, maximal_access, .. } = decided;
        {
            let mut state = handle.state.lock();
            (state.action, state.maximal_access) = (action, maximal_access);
        }
        if let Some(wanted) = command.durable {
            self.opens.make_durable(handle, wanted);
        }
        self.remove_rows_of_closed().await?;
        self.keep_opens(handle.key).await?;
        let durable = handle.durable_timeout();
        self.opens.know_written(handle.key, node.times.written);
        let information = self.information(&handle.place(), handle.key, node);
        let handle = tentative.keep();
        Ok(Opened { handle, action, information, caching, durable, maximal_access })
    }

    pub(super) fn information(&self, place: &Place, key: NodeKey, node: &Node) -> NodeInformation {
        NodeInformation::of(node, place.directory(), self.opens.seen(key, node.times.written))
    }

    /// Gives a handle back to a client whose connection was lost.
    pub async fn reconnect_handle(&self, command: &Reconnect) -> Answer<Opened> {
        let not_found = || Failure::Refused(HandleRefusal::NotFound);
        let mut claimed = Claimed {
            handle: command.handle,
            durability: command.durability,
            persistent: command.persistent,
            lease: command.lease.map(|lease| lease.key),
        };
        let known = self.opens.claimed(&claimed, command.opener.client);
        let known = known.filter(|handle| handle.share == command.share).ok_or_else(not_found)?;
        claimed.handle = known.id;
        let same_lease = claimed.lease.is_some() && known.lease == claimed.lease;
        if same_lease && known.path() != command.path {
            return Err(Failure::Refused(HandleRefusal::InvalidParameter));
        }
        let reclaimed = self.opens.reclaim(claimed, &command.opener, self.now());
        let (handle, caching) = reclaimed.ok_or_else(not_found)?;
        let information = self.query_handle(&handle).await?;
        let durable = handle.durable_timeout();
        let (action, maximal_access) = (Action::Opened, handle.access);
        Ok(Opened { handle, action, information, caching, durable, maximal_access })
    }
}

/// An open that may still fail: dropping this closes it without a trace.
struct Tentative<'a> {
    opens: &'a Opens,
    handle: Arc<Handle>,
    is_kept: bool,
}

impl Tentative<'_> {
    fn keep(mut self) -> Arc<Handle> {
        self.is_kept = true;
        Arc::clone(&self.handle)
    }
}

impl Drop for Tentative<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.opens.close_quietly(&self.handle);
        }
    }
}

fn wish(command: &OpenNode, decided: Decided, is_directory: bool) -> Wish {
    let (lease, oplock) = match command.caching {
        CachingWanted::None => (None, OplockLevel::None),
        CachingWanted::Oplock(level) => (None, level),
        CachingWanted::Lease(lease) => (Some((command.opener.client, lease)), OplockLevel::None),
    };
    Wish {
        claim: Claim { access: decided.access, share: command.sharing },
        overwrites: decided.overwrites(),
        lease,
        oplock,
        is_directory,
    }
}

fn not_admitted(refusal: AdmitRefusal) -> Failure<HandleRefusal> {
    Failure::Refused(match refusal {
        AdmitRefusal::Obstacle(Obstacle::DeletePending) => HandleRefusal::DeletePending,
        AdmitRefusal::Obstacle(Obstacle::SharingViolation) => HandleRefusal::SharingViolation,
        AdmitRefusal::Obstacle(Obstacle::LockConflict) => HandleRefusal::LockConflict,
        AdmitRefusal::LeaseElsewhere => HandleRefusal::InvalidParameter,
    })
}
