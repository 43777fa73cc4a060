//! Compares every file of the row store with its checksums, without opening the store: so it can list all
//! damage where opening would only fail. Contents are checked by the domain, which knows the rows that name
//! them.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3Default;

use super::DataFolder;
use super::engine::LOG_FOLDER;
use super::log::Checkpoint;
use super::recovery::FoundLog;
use super::tree::TABLES_FOLDER;
use super::tree::manifest::{self, Manifest, Named, lsm_tree_files};
use super::trees::{APART_FOLDER, ROWS_FOLDER};
use crate::engine::Fault;

const CHUNK_BYTES: usize = 1024 * 1024;

/// Something on disk that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub file: PathBuf,
    /// Where in the file, if that is known.
    pub offset: Option<u64>,
    pub what: String,
}

/// Everything that is damaged in the log, the manifest and the tables.
pub fn scrub_rows(folder: &DataFolder) -> Result<Vec<Damage>, Fault> {
    let mut found = scrub_log(&folder.subfolder(LOG_FOLDER)?);
    for name in [ROWS_FOLDER, APART_FOLDER] {
        found.extend(scrub_tables(&folder.path().join(name)));
    }
    Ok(found)
}

fn scrub_log(folder: &Path) -> Vec<Damage> {
    if let Err(why) = Checkpoint::load(folder) {
        let file = folder.join("checkpoint");
        return vec![Damage { file, offset: None, what: why.to_string() }];
    }
    match FoundLog::look(folder) {
        Ok(log) => log.damages(),
        Err(why) => {
            vec![Damage { file: folder.to_path_buf(), offset: None, what: format!("{why:?}") }]
        }
    }
}

fn scrub_tables(folder: &Path) -> Vec<Damage> {
    let (file, manifest) = match Manifest::load(folder) {
        // A folder of an older format has its manifest in the older form.
        Ok(None) => (lsm_tree_files::CURRENT, lsm_tree_files::load(folder)),
        loaded => (manifest::FILE, loaded),
    };
    let manifest = match manifest {
        Ok(manifest) => manifest.unwrap_or_default(),
        Err(why) => {
            let file = folder.join(file);
            return vec![Damage { file, offset: None, what: format!("{why:?}") }];
        }
    };
    let mut found = Vec::new();
    for Named { id, checksum: expected } in manifest.tables() {
        let file = folder.join(TABLES_FOLDER).join(id.to_string());
        let what = match checksum(&file) {
            Ok(actual) if actual == *expected => continue,
            Ok(_) => "a table of rows is not what was written".to_owned(),
            Err(why) => format!("a table of rows cannot be read: {why}"),
        };
        found.push(Damage { file, offset: None, what });
    }
    found
}

fn checksum(path: &Path) -> io::Result<u128> {
    let mut file = File::open(path)?;
    let (mut hasher, mut chunk) = (Xxh3Default::new(), vec![0; CHUNK_BYTES]);
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(hasher.digest128()),
            read => hasher.update(&chunk[..read]),
        }
    }
}
