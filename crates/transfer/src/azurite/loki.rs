//! The files of LokiJS, in which Azurite keeps everything but contents: one JSON document with a list
//! of collections, each a list of rows. Rows are read into what is needed of them, and a row that
//! cannot be read is reported and does not hinder the others.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Node holds no longer text in one piece, so Azurite has written none.
const DATABASE_BYTES_MAX: u64 = 1 << 30;

#[derive(Debug, thiserror::Error)]
pub enum InvalidDatabase {
    #[error("{0}: {1}")]
    Unreadable(String, std::io::Error),
    #[error("{0} is longer than {DATABASE_BYTES_MAX} bytes")]
    TooLong(String),
    #[error("{0} is no LokiJS database: {1}")]
    Malformed(String, serde_json::Error),
}

#[derive(Deserialize)]
struct Document<'text> {
    #[serde(borrow)]
    collections: Vec<Collection<'text>>,
}

#[derive(Deserialize)]
struct Collection<'text> {
    name: String,
    #[serde(borrow)]
    data: Vec<&'text RawValue>,
}

/// One file, read whole.
pub struct Database {
    name: String,
    text: String,
}

impl Database {
    /// None if there is no such file: Azurite makes one for each service that was started.
    pub fn open(path: &Path) -> Result<Option<Self>, InvalidDatabase> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let unreadable = |error| InvalidDatabase::Unreadable(name.clone(), error);
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(error)),
        };
        let mut text = String::new();
        file.take(DATABASE_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > DATABASE_BYTES_MAX {
            return Err(InvalidDatabase::TooLong(name));
        }
        Ok(Some(Self { name, text }))
    }

    /// Hands over each row with the name of its collection, as JSON.
    pub fn rows(&self, mut take: impl FnMut(&str, &str)) -> Result<(), InvalidDatabase> {
        let document: Document<'_> = serde_json::from_str(&self.text)
            .map_err(|error| InvalidDatabase::Malformed(self.name.clone(), error))?;
        for collection in &document.collections {
            for row in &collection.data {
                take(&collection.name, row.get());
            }
        }
        Ok(())
    }
}

pub fn parse<Row: DeserializeOwned>(row: &str) -> Result<Row, String> {
    serde_json::from_str(row).map_err(|error| error.to_string())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerRow {
    pub account_name: String,
    pub name: String,
    pub metadata: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub properties: ContainerProperties,
    #[serde(alias = "queueAcl")]
    pub container_acl: Option<Vec<PolicyRow>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerProperties {
    pub public_access: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRow {
    pub id: String,
    pub access_policy: Option<PolicyTerms>,
}

#[derive(Deserialize)]
pub struct PolicyTerms {
    pub start: Option<String>,
    pub expiry: Option<String>,
    pub permission: Option<String>,
}

#[derive(Clone, Deserialize)]
pub struct ChunkRow {
    pub id: String,
    pub offset: u64,
    pub count: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlobRow {
    pub account_name: String,
    pub container_name: String,
    pub name: String,
    #[serde(default)]
    pub snapshot: String,
    #[serde(default)]
    pub deleted: bool,
    #[serde(default = "committed")]
    pub is_committed: bool,
    pub properties: BlobProperties,
    pub metadata: Option<BTreeMap<String, String>>,
    pub blob_tags: Option<TagsRow>,
    pub persistency: Option<ChunkRow>,
    pub committed_blocks_in_order: Option<Vec<BlockRow>>,
    pub page_ranges_in_order: Option<Vec<PageRangeRow>>,
}

fn committed() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlobProperties {
    pub blob_type: String,
    #[serde(default)]
    pub content_length: u64,
    #[serde(default)]
    pub last_modified: String,
    pub content_type: Option<String>,
    pub content_encoding: Option<String>,
    pub content_language: Option<String>,
    pub content_disposition: Option<String>,
    pub cache_control: Option<String>,
    #[serde(rename = "contentMD5")]
    pub content_md5: Option<Value>,
    pub access_tier: Option<String>,
    pub access_tier_inferred: Option<bool>,
    pub blob_sequence_number: Option<u64>,
    pub is_sealed: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TagsRow {
    pub blob_tag_set: Vec<TagRow>,
}

#[derive(Deserialize)]
pub struct TagRow {
    pub key: String,
    pub value: String,
}

#[derive(Deserialize)]
pub struct BlockRow {
    pub persistency: ChunkRow,
}

#[derive(Deserialize)]
pub struct PageRangeRow {
    pub start: u64,
    /// Included.
    pub end: u64,
    pub persistency: ChunkRow,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageRow {
    pub account_name: String,
    pub queue_name: String,
    pub message_id: String,
    /// Milliseconds since 1970.
    pub time_next_visible: Value,
    pub persistency: ChunkRow,
    pub expiration_time: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TableRow {
    pub account: String,
    pub table: String,
    pub table_acl: Option<Vec<PolicyRow>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EntityRow {
    pub properties: Map<String, Value>,
    #[serde(rename = "PartitionKey")]
    pub partition_key: String,
    #[serde(rename = "RowKey")]
    pub row_key: String,
}

/// In Base64. JavaScript writes bytes in three ways, by the class they had.
pub fn read_md5(value: &Value) -> Option<String> {
    let numbers: Vec<u8> = match value {
        Value::String(text) => return Some(text.clone()),
        Value::Object(fields) => match fields.get("data") {
            Some(Value::Array(list)) => list.iter().map(byte).collect::<Option<_>>()?,
            Some(_) => return None,
            None => {
                let at = |index: usize| byte(fields.get(&index.to_string())?);
                (0..fields.len()).map(at).collect::<Option<_>>()?
            }
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => return None,
    };
    (numbers.len() == 16).then(|| STANDARD.encode(numbers))
}

fn byte(value: &Value) -> Option<u8> {
    u8::try_from(value.as_u64()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Result<Vec<(String, String)>, InvalidDatabase> {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("db.json");
        std::fs::write(&path, text).expect("it can be written");
        let mut found = Vec::new();
        let database = Database::open(&path)?.expect("it is there");
        database.rows(|collection, row| found.push((collection.to_owned(), row.to_owned())))?;
        Ok(found)
    }

    #[test]
    fn rows_are_handed_over_with_their_collection() {
        let text = r#"{"filename":"x","collections":[{"name":"A","data":[{"a":1},2],"maxId":1},
            {"name":"B","data":[]}],"databaseVersion":1.5}"#;
        let expected = [("A", r#"{"a":1}"#), ("A", "2")];
        let expected = expected.map(|(name, row)| (name.to_owned(), row.to_owned()));
        assert_eq!(rows(text).expect("it is a database"), expected);
    }

    #[test]
    fn what_is_no_database_is_refused_and_a_missing_one_is_none() {
        let deep = format!("{{\"collections\":{}", "[".repeat(100_000));
        for text in ["", "{", r#"{"collections":[{"name":"A","data":[{"#, "[]", &deep] {
            let error = rows(text).expect_err("it is none").to_string();
            assert!(error.starts_with("db.json is no LokiJS database: "), "{error}");
        }
        let nowhere = Path::new("/nowhere/__azurite_db_blob__.json");
        assert!(Database::open(nowhere).expect("that is allowed").is_none());
    }

    #[test]
    fn md5_is_read_in_each_form_of_javascript() {
        let text = "AAECAwQFBgcICQoLDA0ODw==";
        let numbered = (0..16).map(|at| format!("\"{at}\":{at}")).collect::<Vec<_>>().join(",");
        let listed = (0..16).map(|at| at.to_string()).collect::<Vec<_>>().join(",");
        for json in [
            format!("\"{text}\""),
            format!("{{{numbered}}}"),
            format!("{{\"type\":\"Buffer\",\"data\":[{listed}]}}"),
        ] {
            let value = serde_json::from_str(&json).expect("it is JSON");
            assert_eq!(read_md5(&value).as_deref(), Some(text), "{json}");
        }
        for json in ["{}", r#"{"0":256}"#, r#"{"data":7}"#, "null", r#"{"1":1}"#] {
            let value = serde_json::from_str(json).expect("it is JSON");
            assert_eq!(read_md5(&value), None, "{json}");
        }
    }
}
