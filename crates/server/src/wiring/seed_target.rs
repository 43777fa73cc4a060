//! Seeding through the domain, as a client would through the front end.

use std::convert::Infallible;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_domain::Failure;
use holdfast_domain::access::PublicAccess;
use holdfast_domain::blob::{
    BlobPath, BlobRefusal, ContainerPath, ContainerRefusal, CreateContainer, NewBlob, PutBlob,
    ScopePolicy,
};
use holdfast_domain::content::{ByteSource, ContentHeaders, ReceiveFailure};
use holdfast_domain::metadata::Metadata;
use holdfast_domain::names::{
    AccountName, BlobName, ContainerName, FilePath, QueueName, ShareName, TableName, TrailingDots,
};
use holdfast_domain::queue::{
    CreateQueue, Created, PutMessage, QueuePath, QueueRefusal, TIME_TO_LIVE_DEFAULT,
};
use holdfast_domain::share::{
    CreateDirectory, CreateFile, CreateShare, FileHeaders, FileRefusal, NodeAddress,
    NodeProperties, Protocol, SharePath, ShareRefusal, ShareSettings,
};
use holdfast_domain::table::{Change, EntityChange, EntityRefusal, TablePath, TableRefusal};
use md5::{Digest, Md5};
use serde_json::{Map, Value};

use super::Node;
use crate::seed::{self, SeedTarget, Seeded};

/// A content that is in memory already.
struct Whole(Option<Bytes>);

#[async_trait]
impl ByteSource for Whole {
    type Refusal = Infallible;

    async fn next(&mut self) -> Result<Option<Bytes>, Infallible> {
        Ok(self.0.take().filter(|bytes| !bytes.is_empty()))
    }
}

impl SeedTarget for Node {
    async fn create_container(
        &self,
        account: &str,
        container: &seed::Container,
    ) -> Result<Seeded, String> {
        let command = CreateContainer {
            path: container_path(account, &container.name)?,
            metadata: Metadata::new(container.metadata.clone()).map_err(told)?,
            public_access: match container.public_access {
                seed::PublicAccess::None => PublicAccess::None,
                seed::PublicAccess::Blob => PublicAccess::Blob,
                seed::PublicAccess::Container => PublicAccess::Container,
            },
            scope: ScopePolicy::default(),
        };
        match self.domain.create_container(command).await {
            Ok(_) => Ok(Seeded::Created),
            Err(Failure::Refused(ContainerRefusal::AlreadyExists)) => Ok(Seeded::AlreadyThere),
            Err(failure) => Err(in_words(failure)),
        }
    }

    async fn put_blob(
        &self,
        account: &str,
        container: &str,
        blob: &seed::Blob,
        content: Bytes,
    ) -> Result<Seeded, String> {
        let received = match self.domain.receive(&mut Whole(Some(content.clone()))).await {
            Ok(received) => received,
            Err(ReceiveFailure::Source(never)) => match never {},
            Err(ReceiveFailure::Fault(fault)) => return Err(format!("{fault:?}")),
        };
        let path = BlobPath {
            container: container_path(account, container)?,
            blob: BlobName::new(&blob.name).map_err(told)?,
        };
        let command = PutBlob {
            headers: ContentHeaders {
                content_type: blob.content_type.clone(),
                content_md5: Some(<[u8; 16]>::from(Md5::digest(&content)).into()),
                ..ContentHeaders::default()
            },
            metadata: Metadata::new(blob.metadata.clone()).map_err(told)?,
            create_only: true,
            ..PutBlob::new(path, NewBlob::Block(received))
        };
        match self.domain.put_blob(command).await {
            Ok(_) => Ok(Seeded::Created),
            Err(Failure::Refused(BlobRefusal::OverwriteNotPermitted)) => Ok(Seeded::AlreadyThere),
            Err(failure) => Err(in_words(failure)),
        }
    }

    async fn create_queue(&self, account: &str, queue: &seed::Queue) -> Result<Seeded, String> {
        let path = queue_path(account, &queue.name)?;
        let metadata = Metadata::new(queue.metadata.clone()).map_err(told)?;
        match self.domain.create_queue(CreateQueue { path, metadata }).await {
            Ok(Created::New) => Ok(Seeded::Created),
            Ok(Created::AlreadyThere) | Err(Failure::Refused(QueueRefusal::AlreadyExists)) => {
                Ok(Seeded::AlreadyThere)
            }
            Err(failure) => Err(in_words(failure)),
        }
    }

    async fn put_message(&self, account: &str, queue: &str, message: &str) -> Result<(), String> {
        let command = PutMessage {
            path: queue_path(account, queue)?,
            text: message.to_owned(),
            delay: Duration::ZERO,
            time_to_live: Some(TIME_TO_LIVE_DEFAULT),
        };
        self.domain.put_message(command).await.map(drop).map_err(in_words)
    }

    async fn create_table(&self, account: &str, table: &seed::Table) -> Result<Seeded, String> {
        match self.domain.create_table(&table_path(account, &table.name)?).await {
            Ok(()) => Ok(Seeded::Created),
            Err(Failure::Refused(TableRefusal::AlreadyExists)) => Ok(Seeded::AlreadyThere),
            Err(failure) => Err(in_words(failure)),
        }
    }

    async fn insert_entity(
        &self,
        account: &str,
        table: &str,
        entity: &Map<String, Value>,
    ) -> Result<Seeded, String> {
        let mut entity = seed::read_entity(entity)?;
        let key = entity.key().map_err(told)?;
        let change = EntityChange { key, change: Change::Insert(entity.properties) };
        match self.domain.change_entity(&table_path(account, table)?, &change).await {
            Ok(_) => Ok(Seeded::Created),
            Err(Failure::Refused(EntityRefusal::AlreadyExists)) => Ok(Seeded::AlreadyThere),
            Err(failure) => Err(in_words(failure)),
        }
    }

    async fn create_share(&self, account: &str, share: &seed::Share) -> Result<Seeded, String> {
        let quota_gib = share.quota_gib.map(u32::try_from).transpose().map_err(told)?;
        let command = CreateShare {
            path: share_path(account, &share.name)?,
            metadata: Metadata::new(share.metadata.clone()).map_err(told)?,
            protocol: Protocol::Smb,
            settings: ShareSettings { quota_gib, ..ShareSettings::default() },
        };
        match self.domain.create_share(command).await {
            Ok(_) => Ok(Seeded::Created),
            Err(Failure::Refused(ShareRefusal::AlreadyExists)) => Ok(Seeded::AlreadyThere),
            Err(failure) => Err(in_words(failure)),
        }
    }

    async fn create_directory(
        &self,
        account: &str,
        share: &str,
        path: &str,
    ) -> Result<Seeded, String> {
        let share = share_path(account, share)?;
        let mut seeded = Seeded::AlreadyThere;
        let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
        for end in ends {
            let path = FilePath::directory(&path[..end], TrailingDots::Removed).map_err(told)?;
            let command = CreateDirectory {
                address: NodeAddress::path(share.clone(), path),
                id: None,
                metadata: Metadata::default(),
                properties: NodeProperties::default(),
            };
            match self.domain.seed_directory(&command).await {
                Ok(_) => seeded = Seeded::Created,
                Err(Failure::Refused(FileRefusal::AlreadyExists)) => {}
                Err(failure) => return Err(in_words(failure)),
            }
        }
        Ok(seeded)
    }

    async fn put_file(
        &self,
        account: &str,
        share: &str,
        file: &seed::ShareFile,
        content: Bytes,
    ) -> Result<Seeded, String> {
        if let Some((above, _)) = file.path.rsplit_once('/') {
            self.create_directory(account, share, above).await?;
        }
        let path = FilePath::file(&file.path, TrailingDots::Removed).map_err(told)?;
        let length = content.len() as u64;
        let received = match self.domain.receive(&mut Whole(Some(content))).await {
            Ok(received) => received,
            Err(ReceiveFailure::Source(never)) => match never {},
            Err(ReceiveFailure::Fault(fault)) => return Err(format!("{fault:?}")),
        };
        let command = CreateFile {
            address: NodeAddress::path(share_path(account, share)?, path),
            id: None,
            length,
            content: (length > 0).then_some(received),
            headers: FileHeaders {
                content_type: file.content_type.clone(),
                ..FileHeaders::default()
            },
            metadata: Metadata::new(file.metadata.clone()).map_err(told)?,
            properties: NodeProperties::default(),
            overwrite: false,
            lease_id: None,
        };
        match self.domain.seed_file(command).await {
            Ok(_) => Ok(Seeded::Created),
            Err(Failure::Refused(FileRefusal::AlreadyExists)) => Ok(Seeded::AlreadyThere),
            Err(failure) => Err(in_words(failure)),
        }
    }
}

fn share_path(account: &str, share: &str) -> Result<SharePath, String> {
    Ok(SharePath {
        account: AccountName::new(account).map_err(told)?,
        share: ShareName::new(share).map_err(told)?,
    })
}

fn container_path(account: &str, container: &str) -> Result<ContainerPath, String> {
    Ok(ContainerPath {
        account: AccountName::new(account).map_err(told)?,
        container: ContainerName::new(container).map_err(told)?,
    })
}

fn queue_path(account: &str, queue: &str) -> Result<QueuePath, String> {
    Ok(QueuePath {
        account: AccountName::new(account).map_err(told)?,
        queue: QueueName::new(queue).map_err(told)?,
    })
}

fn table_path(account: &str, table: &str) -> Result<TablePath, String> {
    Ok(TablePath {
        account: AccountName::new(account).map_err(told)?,
        table: TableName::new(table).map_err(told)?,
    })
}

fn told(refusal: impl std::fmt::Display) -> String {
    refusal.to_string()
}

fn in_words<R: std::fmt::Debug>(failure: Failure<R>) -> String {
    match failure {
        Failure::Refused(refusal) => format!("refused: {refusal:?}"),
        Failure::Busy => "the store is busy".to_owned(),
        Failure::OutcomeUnknown(fault) => format!("it is not known whether it is done: {fault:?}"),
        Failure::Fault(fault) => format!("{fault:?}"),
    }
}
