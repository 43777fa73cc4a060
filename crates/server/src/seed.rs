//! The contents of `--seed FILE`, created at start: containers with blobs, queues with messages,
//! tables with entities, shares with files. The whole file is checked before anything is created,
//! and every error names its entry.
//!
//! Existing resources are left unchanged, so a server can be restarted on its folder with the same
//! file.

mod apply;
mod check;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use holdfast_domain::names::with_slashes;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::command_line::SettingsError;

pub use apply::{SeedTarget, Seeded, apply};
pub use check::read_entity;

/// Test data, not a way to load an archive: contents are in memory until they are stored.
const CONTENT_BYTES_MAX: u64 = 64 * 1024 * 1024;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seed {
    #[serde(default)]
    pub containers: Vec<Container>,
    #[serde(default)]
    pub queues: Vec<Queue>,
    #[serde(default)]
    pub tables: Vec<Table>,
    #[serde(default)]
    pub shares: Vec<Share>,
}

pub type Pairs = BTreeMap<String, String>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Container {
    /// The first configured account if absent; so everywhere.
    pub account: Option<String>,
    pub name: String,
    #[serde(default)]
    pub public_access: PublicAccess,
    #[serde(default)]
    pub metadata: Pairs,
    #[serde(default)]
    pub blobs: Vec<Blob>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PublicAccess {
    #[default]
    None,
    Blob,
    Container,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Blob {
    #[serde(deserialize_with = "blob_name")]
    pub name: String,
    pub content_type: Option<String>,
    #[serde(default)]
    pub metadata: Pairs,
    pub text: Option<String>,
    pub base64: Option<String>,
    pub file: Option<PathBuf>,
}

/// Normalized to the name by which requests find it.
fn blob_name<'de, D: Deserializer<'de>>(name: D) -> Result<String, D::Error> {
    Ok(with_slashes(String::deserialize(name)?.into()).into_owned())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Queue {
    pub account: Option<String>,
    pub name: String,
    #[serde(default)]
    pub metadata: Pairs,
    /// Stored as written here; for a client that expects Base64 they must be so.
    #[serde(default)]
    pub messages: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Table {
    pub account: Option<String>,
    pub name: String,
    /// As for Insert Entity, with `Name@odata.type` for a property whose type JSON does not show.
    #[serde(default)]
    pub entities: Vec<Map<String, Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Share {
    pub account: Option<String>,
    pub name: String,
    pub quota_gib: Option<u64>,
    #[serde(default)]
    pub metadata: Pairs,
    /// Empty directories; those of files need not be listed.
    #[serde(default)]
    pub directories: Vec<String>,
    #[serde(default)]
    pub files: Vec<ShareFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ShareFile {
    pub path: String,
    pub content_type: Option<String>,
    #[serde(default)]
    pub metadata: Pairs,
    pub text: Option<String>,
    pub base64: Option<String>,
    pub file: Option<PathBuf>,
}

/// Exactly one of the three ways to give a content.
pub struct Content<'entry> {
    text: Option<&'entry str>,
    base64: Option<&'entry str>,
    file: Option<&'entry Path>,
}

impl Blob {
    pub fn content(&self) -> Content<'_> {
        let (text, base64) = (self.text.as_deref(), self.base64.as_deref());
        Content { text, base64, file: self.file.as_deref() }
    }
}

impl ShareFile {
    pub fn content(&self) -> Content<'_> {
        let (text, base64) = (self.text.as_deref(), self.base64.as_deref());
        Content { text, base64, file: self.file.as_deref() }
    }
}

impl Content<'_> {
    pub fn read(&self) -> Result<Bytes, String> {
        match (self.text, self.base64, self.file) {
            (Some(text), None, None) => Ok(Bytes::copy_from_slice(text.as_bytes())),
            (None, Some(base64), None) => match BASE64_STANDARD.decode(base64) {
                Ok(bytes) => Ok(bytes.into()),
                Err(error) => Err(format!("its base64 is not Base64: {error}")),
            },
            (None, None, Some(file)) => match std::fs::read(file) {
                Ok(bytes) => Ok(bytes.into()),
                Err(error) => Err(format!("cannot read {}: {error}", file.display())),
            },
            (_, _, _) => Err("it needs exactly one of text, base64 and file".to_owned()),
        }
    }

    fn check(&self) -> Result<(), String> {
        let Some(file) = self.file else { return self.read().map(drop) };
        if self.text.is_some() || self.base64.is_some() {
            return self.read().map(drop);
        }
        let metadata = std::fs::metadata(file)
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        if !metadata.is_file() {
            return Err(format!("{} is not a file", file.display()));
        }
        if metadata.len() > CONTENT_BYTES_MAX {
            return Err(format!("{} is longer than {CONTENT_BYTES_MAX} bytes", file.display()));
        }
        Ok(())
    }
}

/// Reads and checks a seed. `accounts` are the names it may use.
pub fn read(path: &Path, accounts: &[&str]) -> Result<Seed, SettingsError> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        SettingsError::rule(format!("cannot read seed file {}: {error}", path.display()))
    })?;
    let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let parsed = if is_json {
        serde_json::from_str(&text).map_err(|error| error.to_string())
    } else {
        toml::from_str(&text).map_err(|error| error.to_string())
    };
    parsed
        .and_then(|mut seed: Seed| {
            seed.resolve_files(path.parent().unwrap_or(Path::new("")));
            seed.check(accounts).map(|()| seed)
        })
        .map_err(|why| SettingsError::rule(format!("seed file {}: {why}", path.display())))
}

impl Seed {
    /// Files are named relative to the seed.
    fn resolve_files(&mut self, folder: &Path) {
        let blobs = self.containers.iter_mut().flat_map(|container| &mut container.blobs);
        let files = self.shares.iter_mut().flat_map(|share| &mut share.files);
        let blobs = blobs.filter_map(|blob| blob.file.as_mut());
        for file in blobs.chain(files.filter_map(|file| file.file.as_mut())) {
            *file = folder.join(&*file);
        }
    }
}

#[cfg(test)]
mod tests;
