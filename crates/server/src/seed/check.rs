//! The rules a seed must keep, found before anything is created.

use std::collections::HashSet;

use holdfast_domain::metadata::Metadata;
use holdfast_domain::names::{
    BlobName, ContainerName, FilePath, NameRefusal, QueueName, ShareName, TableName, TrailingDots,
};
use holdfast_rest::table::{self, EntityBody};
use serde_json::{Map, Value};

use super::{Container, Pairs, Queue, Seed, Share, Table};

const MESSAGE_BYTES_MAX: usize = 64 * 1024;
const SHARE_QUOTA_GIB_MAX: u64 = holdfast_domain::share::QUOTA_GIB_MAX as u64;

impl Seed {
    pub(super) fn check(&self, accounts: &[&str]) -> Result<(), String> {
        for container in &self.containers {
            container.check().map_err(|why| format!("container {:?}: {why}", container.name))?;
        }
        for queue in &self.queues {
            queue.check().map_err(|why| format!("queue {:?}: {why}", queue.name))?;
        }
        for table in &self.tables {
            table.check().map_err(|why| format!("table {:?}: {why}", table.name))?;
        }
        for share in &self.shares {
            share.check().map_err(|why| format!("share {:?}: {why}", share.name))?;
        }
        self.check_identities(accounts)
    }

    fn check_identities(&self, accounts: &[&str]) -> Result<(), String> {
        let containers = self.containers.iter().map(|c| ("container", &c.account, &c.name));
        let queues = self.queues.iter().map(|queue| ("queue", &queue.account, &queue.name));
        let tables = self.tables.iter().map(|table| ("table", &table.account, &table.name));
        let shares = self.shares.iter().map(|share| ("share", &share.account, &share.name));
        let mut seen = HashSet::new();
        for (kind, account, name) in containers.chain(queues).chain(tables).chain(shares) {
            let account = account.as_deref().or(accounts.first().copied()).unwrap_or_default();
            if !accounts.contains(&account) {
                let known = accounts.join(", ");
                return Err(format!("{kind} {name:?}: no account {account:?}; there are: {known}"));
            }
            // Names of tables are compared without case.
            if !seen.insert((kind, account, name.to_ascii_lowercase())) {
                return Err(format!("{kind} {name:?} is listed twice"));
            }
        }
        Ok(())
    }
}

impl Container {
    fn check(&self) -> Result<(), String> {
        let name = checked(ContainerName::new(&self.name))?;
        check_metadata(&self.metadata)?;
        let mut seen = HashSet::new();
        for blob in &self.blobs {
            let in_blob = |why: String| format!("blob {:?}: {why}", blob.name);
            let blob_name = checked(BlobName::new(&blob.name)).map_err(in_blob)?;
            checked(blob_name.check_in(&name)).map_err(in_blob)?;
            check_metadata(&blob.metadata).map_err(in_blob)?;
            blob.content().check().map_err(in_blob)?;
            if !seen.insert(&blob.name) {
                return Err(in_blob("it is listed twice".to_owned()));
            }
        }
        Ok(())
    }
}

impl Queue {
    fn check(&self) -> Result<(), String> {
        checked(QueueName::new(&self.name))?;
        check_metadata(&self.metadata)?;
        let long = self.messages.iter().position(|message| message.len() > MESSAGE_BYTES_MAX);
        match long {
            Some(index) => {
                Err(format!("message {} is longer than {MESSAGE_BYTES_MAX} bytes", index + 1))
            }
            None => Ok(()),
        }
    }
}

impl Table {
    fn check(&self) -> Result<(), String> {
        checked(TableName::new(&self.name))?;
        let mut seen = HashSet::new();
        for (index, entity) in self.entities.iter().enumerate() {
            let in_entity = |why: String| format!("entity {}: {why}", index + 1);
            for (property, value) in entity {
                check_plain(property, value).map_err(in_entity)?;
            }
            let key = read_entity(entity)
                .and_then(|mut entity| entity.key().map_err(|refusal| refusal.to_string()))
                .map_err(in_entity)?;
            if !seen.insert(key) {
                return Err(in_entity("its PartitionKey and RowKey are listed twice".to_owned()));
            }
        }
        Ok(())
    }
}

/// Adds the name of the property, which the front end does not report.
fn check_plain(property: &str, value: &Value) -> Result<(), String> {
    match value {
        Value::String(_) | Value::Number(_) | Value::Bool(_) => Ok(()),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(format!("property {property:?} must be a text, a number or a boolean"))
        }
    }
}

/// The entity as Insert Entity would read it.
pub fn read_entity(entity: &Map<String, Value>) -> Result<EntityBody, String> {
    let json = serde_json::to_vec(entity).map_err(|error| error.to_string())?;
    table::read_entity(&json).map_err(|refusal| refusal.to_string())
}

impl Share {
    fn check(&self) -> Result<(), String> {
        checked(ShareName::new(&self.name))?;
        check_metadata(&self.metadata)?;
        if self.quota_gib.is_some_and(|quota| !(1..=SHARE_QUOTA_GIB_MAX).contains(&quota)) {
            return Err(format!("quota-gib must be from 1 to {SHARE_QUOTA_GIB_MAX}"));
        }
        for directory in &self.directories {
            checked(FilePath::directory(directory, TrailingDots::Removed))
                .map_err(|why| format!("directory {directory:?}: {why}"))?;
        }
        let mut seen = HashSet::new();
        for file in &self.files {
            let in_file = |why: String| format!("file {:?}: {why}", file.path);
            checked(FilePath::file(&file.path, TrailingDots::Removed)).map_err(in_file)?;
            check_metadata(&file.metadata).map_err(in_file)?;
            file.content().check().map_err(in_file)?;
            // Names of files are compared without case.
            if !seen.insert(file.path.to_lowercase()) {
                return Err(in_file("it is listed twice".to_owned()));
            }
        }
        Ok(())
    }
}

fn checked<T>(name: Result<T, NameRefusal>) -> Result<T, String> {
    name.map_err(|refusal| refusal.to_string())
}

fn check_metadata(pairs: &Pairs) -> Result<(), String> {
    match Metadata::new(pairs.clone()) {
        Ok(_) => Ok(()),
        Err(refusal) => Err(format!("metadata: {refusal}")),
    }
}
