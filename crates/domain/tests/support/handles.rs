//! Shared by the tests of handles: SMB clients, and their default requests.

#![allow(dead_code, reason = "each test file uses some of it")]

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use holdfast_domain::Failure;
use holdfast_domain::metadata::Metadata;
use holdfast_domain::names::{AccountName, FilePath, ShareName, TrailingDots};
use holdfast_domain::share::handles::{
    CachingWanted, Disposition, HandleRefusal, OpenNode, Opened, Options, WriteAt,
};
use holdfast_domain::share::opens::{
    AccessMask, Caching, CachingEvent, CachingGranted, ClientId, Handle, LeaseKey, LeaseVersion,
    LeaseWanted, NodeKey, Opener, OplockLevel, ShareMode,
};
use holdfast_domain::share::{Attributes, CreateShare, Protocol, SharePath, ShareSettings};
use tokio::sync::mpsc;

use crate::support::{Body, Store};

pub fn share() -> SharePath {
    SharePath {
        account: AccountName::new("account1").expect("a name"),
        share: ShareName::new("share1").expect("a name"),
    }
}

pub fn path(text: &str) -> FilePath {
    FilePath::directory(text, TrailingDots::Kept).expect("a path")
}

pub async fn with_share() -> Store {
    with_share_of(Store::new().await).await
}

pub async fn with_share_of(store: Store) -> Store {
    let command = CreateShare {
        path: share(),
        metadata: Metadata::default(),
        protocol: Protocol::Smb,
        settings: ShareSettings::default(),
    };
    store.domain.create_share(command).await.expect("a new share");
    store
}

pub struct Client {
    pub opener: Opener,
    pub events: mpsc::UnboundedReceiver<CachingEvent>,
}

impl Client {
    pub fn new(number: u64) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        let opener = Opener {
            connection: number,
            session: number,
            tree: number,
            client: ClientId(number.into()),
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            client_name: Arc::from("machine"),
            user: Arc::from("account1"),
            events: sender,
        };
        Self { opener, events }
    }

    /// A CREATE with default options.
    pub fn wants(&self, name: &str) -> OpenNode {
        OpenNode {
            share: share(),
            share_number: None,
            path: path(name),
            snapshot: None,
            opener: self.opener.clone(),
            access: AccessMask::ALL,
            allowed: AccessMask::ALL,
            sharing: ShareMode::ALL,
            disposition: Disposition::OpenIf,
            options: Options::default(),
            attributes: Attributes::default(),
            allocation: 0,
            descriptor: None,
            caching: CachingWanted::None,
            durable: None,
            is_replay: false,
        }
    }

    pub fn wants_lease(&self, name: &str, key: u128, caching: &str) -> OpenNode {
        OpenNode { caching: lease_wanted(key, caching, 0), ..self.wants(name) }
    }

    pub fn wants_oplock(&self, name: &str, level: OplockLevel) -> OpenNode {
        OpenNode { caching: CachingWanted::Oplock(level), ..self.wants(name) }
    }

    /// What the client was told since the last call: `RWH->RH!` must be acknowledged.
    pub fn told(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            told.push(shown(event));
        }
        told
    }

    /// Waits for a break and acknowledges it.
    pub async fn answer(&mut self, store: &Store, handle: &Handle) -> String {
        let event = self.events.recv().await.expect("a break");
        match event {
            CachingEvent::OplockBreak { level, must_acknowledge: true, .. } => {
                store.domain.acknowledge_oplock(handle, level).expect("as asked");
            }
            CachingEvent::LeaseBreak { key, notice, .. } if notice.must_acknowledge => {
                let client = self.opener.client;
                let outcome = store.domain.acknowledge_lease(client, key, notice.to);
                outcome.expect("a lease").expect("as asked");
            }
            CachingEvent::OplockBreak { .. } | CachingEvent::LeaseBreak { .. } => {}
        }
        shown(event)
    }
}

pub fn shown(event: CachingEvent) -> String {
    match event {
        CachingEvent::OplockBreak { level, must_acknowledge, .. } => {
            format!("{level:?}{}", if must_acknowledge { "!" } else { "" })
        }
        CachingEvent::LeaseBreak { notice, .. } => {
            let mark = if notice.must_acknowledge { "!" } else { "" };
            format!("{:?}->{:?}{mark}", notice.from, notice.to)
        }
    }
}

pub fn caching(text: &str) -> Caching {
    let part = |letter, part| if text.contains(letter) { part } else { Caching::empty() };
    part('R', Caching::READ).union(part('W', Caching::WRITE)).union(part('H', Caching::HANDLE))
}

pub fn lease_wanted(key: u128, text: &str, epoch: u16) -> CachingWanted {
    CachingWanted::Lease(LeaseWanted {
        key: LeaseKey(key),
        caching: caching(text),
        version: LeaseVersion::Two,
        epoch,
        parent: None,
    })
}

pub fn granted(opened: &Opened) -> Caching {
    match opened.caching {
        CachingGranted::None => Caching::empty(),
        CachingGranted::Oplock(level) => level.caching(),
        CachingGranted::Lease(lease) => lease.caching,
    }
}

pub async fn open(store: &Store, command: &OpenNode) -> Opened {
    store.domain.open_handle(command).await.expect("it opens")
}

pub fn refusal<T: std::fmt::Debug>(outcome: Result<T, Failure<HandleRefusal>>) -> HandleRefusal {
    match outcome {
        Err(Failure::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

pub async fn write(
    store: &Store,
    handle: &Handle,
    at: WriteAt,
    bytes: &[u8],
) -> Result<(), Failure<HandleRefusal>> {
    let Ok(received) = store.domain.receive_part(&mut Body::of(bytes), None).await else {
        panic!("a body in memory arrives");
    };
    store.domain.write_handle(handle, at, received).await
}

pub async fn read(
    store: &Store,
    handle: &Handle,
    offset: u64,
    length: u64,
) -> Result<Vec<u8>, Failure<HandleRefusal>> {
    let mut reader = store.domain.read_handle(handle, offset, length).await?;
    let mut bytes = Vec::new();
    while let Some(piece) = reader.next().await.expect("memory is read") {
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

pub async fn close(store: &Store, handle: &Handle) {
    store.domain.close_handle(handle).await.expect("it closes");
}

pub fn key(handle: &Handle) -> NodeKey {
    handle.key
}
