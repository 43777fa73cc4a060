//! From rows of the databases to what each account has. Every row is checked here: the rest of the
//! program does not meet a length that does not fit or a blob without a container.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_domain::time::Timestamp;
use serde_json::Value;

use super::Holdings;
use super::extents::{Extents, ZEROS};
use super::loki::{
    BlobProperties, BlobRow, ChunkRow, ContainerRow, EntityRow, MessageRow, PolicyRow, TableRow,
    parse, read_md5,
};
use crate::edm::read_entity;
use crate::model::{
    Blob, BlobKind, Chunk, Container, ContentHeaders, Message, Place, Policy, Version,
};
use crate::source::Unusable;

const CONTAINERS: &str = "$CONTAINERS_COLLECTION$";
const BLOBS: &str = "$BLOBS_COLLECTION$";
const QUEUES: &str = "$QUEUES_COLLECTION$";
const MESSAGES: &str = "$MESSAGES_COLLECTION$";
const TABLES: &str = "$TABLES_COLLECTION$";
const SERVICES: &str = "$SERVICES_COLLECTION$";
/// A row that cannot be read is shown up to this length.
const SHOWN_CHARACTERS: usize = 200;
const LOST: &str = "what they are in is not there";

/// Name, and the snapshot with the blob itself behind all of them.
type VersionKey = (String, bool, String);

#[derive(Default)]
struct Account {
    holdings: Holdings,
    versions: BTreeMap<String, BTreeMap<VersionKey, Result<Version, Unusable>>>,
}

pub struct Reading {
    accounts: BTreeMap<String, Account>,
    queue_extents: Extents,
    uncommitted: u64,
    settings: u64,
}

impl Reading {
    pub fn new(queue_extents: Extents) -> Self {
        Self { accounts: BTreeMap::new(), queue_extents, uncommitted: 0, settings: 0 }
    }

    fn account(&mut self, name: String) -> &mut Account {
        self.accounts.entry(name).or_default()
    }

    pub fn blob_row(&mut self, collection: &str, row: &str) {
        match collection {
            CONTAINERS => match parse::<ContainerRow>(row) {
                Ok(row) => {
                    let (account, container) = container(row);
                    self.account(account).holdings.containers.push(Ok(container));
                }
                Err(why) => {
                    self.broken(row, "container", why, |holdings, it| holdings.containers.push(it));
                }
            },
            BLOBS => match parse::<BlobRow>(row) {
                Ok(row) => self.blob(row),
                Err(why) => {
                    self.broken(row, "blob", why, |holdings, it| holdings.containers.push(it));
                }
            },
            SERVICES => self.settings += 1,
            // Blocks that were not committed, and what later versions add.
            _ => {}
        }
    }

    fn blob(&mut self, row: BlobRow) {
        if !row.is_committed {
            self.uncommitted += 1;
        }
        if row.deleted || !row.is_committed {
            return;
        }
        let key = (row.name.clone(), row.snapshot.is_empty(), row.snapshot.clone());
        let what = format!("blob {}/{}", row.container_name, row.name);
        let (account, container) = (row.account_name.clone(), row.container_name.clone());
        let version = version(row).map_err(|why| Unusable { what, why });
        self.account(account).versions.entry(container).or_default().insert(key, version);
    }

    pub fn queue_row(&mut self, collection: &str, row: &str) {
        match collection {
            QUEUES => match parse::<ContainerRow>(row) {
                Ok(row) => {
                    let (account, queue) = container(row);
                    self.account(account).holdings.queues.push(Ok(queue));
                }
                Err(why) => self.broken(row, "queue", why, |holdings, it| holdings.queues.push(it)),
            },
            MESSAGES => match parse::<MessageRow>(row) {
                Ok(row) => self.message(row),
                Err(why) => {
                    self.broken(row, "message", why, |holdings, it| holdings.queues.push(it));
                }
            },
            SERVICES => self.settings += 1,
            _ => {}
        }
    }

    fn message(&mut self, row: MessageRow) {
        let (account, queue) = (row.account_name.clone(), row.queue_name.clone());
        match message(&row, &self.queue_extents) {
            Ok(message) => {
                self.account(account).holdings.messages.entry(queue).or_default().push(message);
            }
            Err(why) => {
                let what = format!("message {} of queue {queue}", row.message_id);
                self.account(account).holdings.queues.push(Err(Unusable { what, why }));
            }
        }
    }

    pub fn table_row(&mut self, collection: &str, row: &str) {
        match collection {
            TABLES => match parse::<TableRow>(row) {
                Ok(row) => {
                    let table = Container {
                        name: row.table,
                        policies: policies(row.table_acl),
                        ..Container::default()
                    };
                    self.account(row.account).holdings.tables.push(Ok(table));
                }
                Err(why) => self.broken(row, "table", why, |holdings, it| holdings.tables.push(it)),
            },
            SERVICES => self.settings += 1,
            _ => {
                if let Some((account, table)) = collection.split_once('$') {
                    let entity = entity(row).map_err(|why| Unusable {
                        what: format!("entity of table {table}: {}", shown(row)),
                        why,
                    });
                    let holdings = &mut self.account(account.to_owned()).holdings;
                    holdings.entities.entry(table.to_owned()).or_default().push(entity);
                }
            }
        }
    }

    /// A row that cannot be read belongs to an account if it says so, and to all otherwise.
    fn broken(
        &mut self,
        row: &str,
        kind: &str,
        why: String,
        put: impl Fn(&mut Holdings, Result<Container, Unusable>),
    ) {
        let fields: Option<Value> = serde_json::from_str(row).ok();
        let field = |name: &str| fields.as_ref()?.get(name)?.as_str().map(str::to_owned);
        let account = field("accountName").or_else(|| field("account")).unwrap_or_default();
        let what = match (field("containerName"), field("name")) {
            (Some(container), Some(name)) => format!("{kind} {container}/{name}"),
            (None, Some(name)) => format!("{kind} {name}"),
            (_, None) => format!("{kind} {}", shown(row)),
        };
        put(&mut self.account(account).holdings, Err(Unusable { what, why }));
    }

    /// What each account has, what is in no account, and notes for the user.
    pub fn finish(mut self) -> (BTreeMap<String, Holdings>, Vec<Unusable>, Vec<String>) {
        let nobodys = self.accounts.remove("").map(finish).unwrap_or_default();
        let nobodys = [nobodys.containers, nobodys.queues, nobodys.tables].into_iter().flatten();
        let nobodys = nobodys.filter_map(Result::err).collect();
        let accounts = self.accounts.into_iter().map(|(name, it)| (name, finish(it))).collect();
        let mut notes = Vec::new();
        if self.uncommitted > 0 {
            let count = self.uncommitted;
            notes.push(format!("{count} blobs have only uncommitted blocks, which are dropped"));
        }
        if self.settings > 0 {
            notes
                .push("the properties of the services (CORS, logging, …) are not taken".to_owned());
        }
        (accounts, nobodys, notes)
    }
}

fn finish(account: Account) -> Holdings {
    let Account { mut holdings, versions } = account;
    for (container, versions) in versions {
        let has_container = holdings.containers.iter().flatten().any(|it| it.name == container);
        let mut blobs = Vec::new();
        for (name, versions) in by_name(versions) {
            let what = format!("blob {container}/{name}");
            blobs.push(match versions {
                Ok(_) if !has_container => {
                    Err(Unusable { what, why: "its container is not there".to_owned() })
                }
                Ok(versions) if versions.last().is_none_or(|it| !it.snapshot.is_empty()) => {
                    Err(Unusable { what, why: "there are only snapshots of it".to_owned() })
                }
                Ok(versions) => Ok(Blob { versions }),
                Err(unusable) => Err(unusable),
            });
        }
        if has_container {
            holdings.blobs.insert(container, blobs);
        } else {
            let unusable = blobs.into_iter().filter_map(Result::err);
            holdings.containers.extend(unusable.map(Err));
        }
    }
    for entities in holdings.entities.values_mut() {
        entities.sort_by(|one, two| {
            let key = |it: &Result<crate::model::Entity, Unusable>| {
                let keys = it.as_ref().ok().map(|it| (&it.partition_key, &it.row_key));
                keys.map(|(partition, row)| (partition.clone(), row.clone()))
            };
            key(one).cmp(&key(two))
        });
    }
    let known = |all: &[Result<Container, Unusable>], name: &str| {
        all.iter().flatten().any(|container| container.name == name)
    };
    let without_table = |(table, entities): &(&String, &Vec<_>)| {
        !entities.is_empty() && !known(&holdings.tables, table)
    };
    let lost: Vec<Unusable> = holdings
        .entities
        .iter()
        .filter(without_table)
        .map(|(table, _)| Unusable {
            what: format!("the entities of table {table}"),
            why: LOST.to_owned(),
        })
        .collect();
    holdings.tables.extend(lost.into_iter().map(Err));
    let without_queue = |queue: &&String| !known(&holdings.queues, queue);
    let lost: Vec<Unusable> = holdings
        .messages
        .keys()
        .filter(without_queue)
        .map(|queue| Unusable {
            what: format!("the messages of queue {queue}"),
            why: LOST.to_owned(),
        })
        .collect();
    holdings.queues.extend(lost.into_iter().map(Err));
    holdings
}

/// All versions of each name; the first that is unusable stands for all of them.
fn by_name(
    versions: BTreeMap<VersionKey, Result<Version, Unusable>>,
) -> BTreeMap<String, Result<Vec<Version>, Unusable>> {
    let mut names: BTreeMap<String, Result<Vec<Version>, Unusable>> = BTreeMap::new();
    for ((name, _, _), version) in versions {
        let all = names.entry(name).or_insert_with(|| Ok(Vec::new()));
        match (all.as_mut(), version) {
            (Ok(versions), Ok(version)) => versions.push(version),
            (Ok(_), Err(unusable)) => *all = Err(unusable),
            (Err(_), _) => {}
        }
    }
    names
}

fn shown(row: &str) -> String {
    row.chars().take(SHOWN_CHARACTERS).collect()
}

fn container(row: ContainerRow) -> (String, Container) {
    let container = Container {
        name: row.name,
        metadata: row.metadata.unwrap_or_default(),
        policies: policies(row.container_acl),
        public_access: row.properties.public_access.unwrap_or_default(),
        quota: None,
    };
    (row.account_name, container)
}

fn policies(rows: Option<Vec<PolicyRow>>) -> Vec<Policy> {
    let policy = |row: PolicyRow| {
        let terms = row.access_policy;
        let terms = terms.map(|it| (it.start, it.expiry, it.permission)).unwrap_or_default();
        Policy {
            id: row.id,
            start: terms.0.unwrap_or_default(),
            expiry: terms.1.unwrap_or_default(),
            permission: terms.2.unwrap_or_default(),
        }
    };
    rows.unwrap_or_default().into_iter().map(policy).collect()
}

fn version(row: BlobRow) -> Result<Version, String> {
    let properties = row.properties;
    let kind = BlobKind::parse(&properties.blob_type)
        .ok_or_else(|| format!("{:?} is no kind of blob", properties.blob_type))?;
    let length = properties.content_length;
    let blocks = row.committed_blocks_in_order;
    let chunks = match (kind, blocks, row.persistency) {
        (BlobKind::Page, _, _) => pages(row.page_ranges_in_order.unwrap_or_default(), length)?,
        (BlobKind::Block | BlobKind::Append, Some(blocks), _) => {
            in_order(blocks.into_iter().map(|block| block.persistency), length)?
        }
        (BlobKind::Block | BlobKind::Append, None, whole) => in_order(whole.into_iter(), length)?,
    };
    let tier = properties.access_tier.clone().unwrap_or_default();
    let tags = row.blob_tags.map(|tags| tags.blob_tag_set).unwrap_or_default();
    Ok(Version {
        container: row.container_name.into(),
        name: row.name.into(),
        snapshot: row.snapshot,
        kind,
        length,
        headers: headers(&properties),
        metadata: row.metadata.unwrap_or_default(),
        tags: tags.into_iter().map(|tag| (tag.key, tag.value)).collect(),
        tier: if properties.access_tier_inferred == Some(true) { String::new() } else { tier },
        sequence_number: properties.blob_sequence_number.unwrap_or(0),
        is_sealed: properties.is_sealed == Some(true),
        last_modified: seconds(&properties.last_modified).unwrap_or(0),
        place: Place::Extents(chunks),
    })
}

fn headers(properties: &BlobProperties) -> ContentHeaders {
    let text = |header: &Option<String>| header.clone().unwrap_or_default();
    ContentHeaders {
        content_type: text(&properties.content_type),
        encoding: text(&properties.content_encoding),
        language: text(&properties.content_language),
        disposition: text(&properties.content_disposition),
        cache_control: text(&properties.cache_control),
        md5: properties.content_md5.as_ref().and_then(read_md5).unwrap_or_default(),
    }
}

fn in_order(rows: impl Iterator<Item = ChunkRow>, length: u64) -> Result<Arc<[Chunk]>, String> {
    let (mut chunks, mut position) = (Vec::new(), 0_u64);
    for row in rows {
        if row.id == ZEROS {
            return Err("only pages can be zeros without an extent".to_owned());
        }
        let chunk =
            Chunk { position, length: row.count, extent: row.id.into(), offset: row.offset };
        position = position.checked_add(row.count).ok_or("its parts are too long")?;
        chunks.push(chunk);
    }
    if position != length {
        return Err(format!("its length is {length} and its parts have {position} bytes"));
    }
    Ok(chunks.into())
}

fn pages(rows: Vec<super::loki::PageRangeRow>, length: u64) -> Result<Arc<[Chunk]>, String> {
    let (mut chunks, mut end) = (Vec::new(), 0);
    for row in rows {
        let is_right = row.start >= end
            && row.start <= row.end
            && row.end < length
            && row.end - row.start + 1 == row.persistency.count;
        if !is_right {
            return Err(format!("its range from {} to {} cannot be", row.start, row.end));
        }
        end = row.end + 1;
        chunks.push(Chunk {
            position: row.start,
            length: row.persistency.count,
            extent: row.persistency.id.into(),
            offset: row.persistency.offset,
        });
    }
    Ok(chunks.into())
}

/// The service takes no longer message.
const MESSAGE_BYTES_MAX: u64 = 64 * 1024;

fn message(row: &MessageRow, extents: &Extents) -> Result<Message, String> {
    let ChunkRow { id, offset, count } = row.persistency.clone();
    if count > MESSAGE_BYTES_MAX {
        return Err(format!("it has {count} bytes"));
    }
    let chunks = [Chunk { position: 0, length: count, extent: id.into(), offset }];
    extents.check(&chunks)?;
    let length = usize::try_from(count).map_err(|error| error.to_string())?;
    let text = String::from_utf8(extents.read(&chunks, 0, length)?);
    let visible = match row.time_next_visible.as_str() {
        Some(time) => seconds(time),
        None => row.time_next_visible.as_f64().map(|milliseconds| (milliseconds / 1000.0) as i64),
    };
    Ok(Message {
        id: row.message_id.clone(),
        receipt: String::new(),
        text: text.map_err(|_| "it is no text")?,
        expires: seconds(&row.expiration_time).ok_or("its time of expiration is none")?,
        visible: visible.ok_or("its time of visibility is none")?,
    })
}

fn entity(row: &str) -> Result<crate::model::Entity, String> {
    let EntityRow { mut properties, partition_key, row_key } = parse(row)?;
    properties.insert("PartitionKey".to_owned(), partition_key.into());
    properties.insert("RowKey".to_owned(), row_key.into());
    read_entity(&properties).map_err(|error| error.to_string())
}

fn seconds(time: &str) -> Option<i64> {
    Timestamp::parse_iso8601(time).map(Timestamp::unix_seconds)
}
