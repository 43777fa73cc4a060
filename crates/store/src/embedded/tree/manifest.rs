//! The file `levels`: which tables are valid, and their levels. It is replaced atomically, so that
//! after a crash the old or the new one is valid. Tables that it does not name are garbage.
//!
//! Folders of formats 1 and 2 have what the crate lsm-tree wrote instead; it is read here and replaced.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_128;

use super::levels::LEVELS;
use crate::embedded::disk_space::UpkeepError;
use crate::embedded::folder::{OpenFolder, own_file};
use crate::engine::Fault;

pub(in crate::embedded) const FILE: &str = "levels";
const DRAFT: &str = ".tmp-levels";
const MAGIC: &[u8; 8] = b"HFLEVEL1";
const CHECKSUM_BYTES: usize = 16;

/// A table as a manifest names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::embedded) struct Named {
    pub id: u64,
    /// Of the whole file.
    pub checksum: u128,
}

/// The numbers of the tables, where they lie.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::embedded) struct Manifest {
    /// No table has this number or a higher one.
    pub next_id: u64,
    /// Flushed tables in runs, the newest first.
    pub flushed: Vec<Vec<Named>>,
    pub levels: [Vec<Named>; LEVELS],
}

impl Manifest {
    pub fn tables(&self) -> impl Iterator<Item = &Named> {
        self.flushed.iter().chain(&self.levels).flatten()
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.next_id.to_le_bytes());
        bytes.extend((self.flushed.len() as u32).to_le_bytes());
        for run in self.flushed.iter().chain(&self.levels) {
            bytes.extend((run.len() as u32).to_le_bytes());
            for Named { id, checksum } in run {
                bytes.extend(id.to_le_bytes());
                bytes.extend(checksum.to_le_bytes());
            }
        }
        bytes.extend(xxh3_128(&bytes).to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (content, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>()?;
        if xxh3_128(content).to_le_bytes() != *checksum {
            return None;
        }
        let mut rest = content.strip_prefix(MAGIC)?;
        let next_id = u64::from_le_bytes(array(&mut rest).ok()?);
        let run = |rest: &mut &[u8]| -> Option<Vec<Named>> {
            let count = u32::from_le_bytes(array(rest).ok()?);
            let named = |_| {
                let id = u64::from_le_bytes(array(rest).ok()?);
                Some(Named { id, checksum: u128::from_le_bytes(array(rest).ok()?) })
            };
            (0..count).map(named).collect()
        };
        let flushed = u32::from_le_bytes(array(&mut rest).ok()?);
        let flushed = (0..flushed).map(|_| run(&mut rest)).collect::<Option<_>>()?;
        let mut levels = <[Vec<Named>; LEVELS]>::default();
        for level in &mut levels {
            *level = run(&mut rest)?;
        }
        rest.is_empty().then_some(Self { next_id, flushed, levels })
    }

    /// Makes it the valid one.
    pub fn store(&self, folder: &OpenFolder) -> Result<(), UpkeepError> {
        let draft = folder.path().join(DRAFT);
        let write = || {
            let mut file = own_file().write(true).create(true).truncate(true).open(&draft)?;
            io::Write::write_all(&mut file, &self.encode())?;
            file.sync_all()
        };
        // A failed draft is ignored, and the next one overwrites it.
        write().map_err(|why| UpkeepError::because("writing the list of tables failed", why))?;
        let replace = || {
            fs::rename(&draft, folder.path().join(FILE))?;
            folder.sync()
        };
        // Now it is unknown which of the two is on disk.
        let broken =
            |why| UpkeepError::Broken(Fault::because("replacing the list of tables failed", why));
        replace().map_err(broken)
    }

    /// The valid one; `None` if none was ever stored.
    pub fn load(folder: &Path) -> Result<Option<Self>, Fault> {
        let path = folder.join(FILE);
        let Some(bytes) = read_if_there(&path)? else { return Ok(None) };
        let damaged = || Fault::new(format!("{} is damaged", path.display()));
        Self::decode(&bytes).map(Some).ok_or_else(damaged)
    }
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, Fault> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(Fault::because(format!("read {}", path.display()), why)),
    }
}

fn array<const N: usize>(reader: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// What the crate lsm-tree wrote in folders of formats 1 and 2.
pub(in crate::embedded) mod lsm_tree_files {
    use super::*;

    pub const CURRENT: &str = "current";
    const OTHERS: [&str; 2] = [CURRENT, "manifest"];
    /// The number of the manifest, its checksum, and the kind of checksum.
    const CURRENT_BYTES: usize = 8 + 16 + 1;
    const XXH3: u8 = 0;

    /// The tables of a folder; none if it has none. A damaged manifest is refused.
    pub fn load(folder: &Path) -> Result<Option<Manifest>, Fault> {
        let path = folder.join(CURRENT);
        let Some(current) = read_if_there(&path)? else { return Ok(None) };
        let damaged = |path: &Path| Fault::new(format!("{} is damaged", path.display()));
        let current: [u8; CURRENT_BYTES] = current.try_into().map_err(|_| damaged(&path))?;
        let mut rest = current.as_slice();
        let mut parts = || Ok((array(&mut rest)?, array(&mut rest)?, array(&mut rest)?));
        let (number, checksum, kind) = parts().map_err(|_: io::Error| damaged(&path))?;
        let manifest = folder.join(format!("v{}", u64::from_le_bytes(number)));
        let content = fs::read(&manifest).map_err(|why| {
            let what =
                format!("{} names {}, which cannot be read", path.display(), manifest.display());
            Fault::because(what, why)
        })?;
        if kind != [XXH3] || xxh3_128(&content) != u128::from_le_bytes(checksum) {
            return Err(Fault::new(format!(
                "{} is not what {} says: one of them is damaged",
                manifest.display(),
                path.display()
            )));
        }
        let read = || -> io::Result<Manifest> {
            let unreadable = |why: sfa::Error| io::Error::other(format!("{why:?}"));
            let reader = sfa::Reader::new(&manifest).map_err(unreadable)?;
            let section = reader.toc().section(b"tables");
            let section = section.ok_or_else(|| io::Error::other("it has no list of tables"))?;
            parse(&mut section.buf_reader(&manifest)?)
        };
        let unread = |why| Fault::because(format!("read {}", manifest.display()), why);
        read().map(Some).map_err(unread)
    }

    /// Levels of runs of tables: number, kind of checksum, checksum, and a sequence that is always 0.
    fn parse(reader: &mut impl Read) -> io::Result<Manifest> {
        let mut manifest = Manifest::default();
        let [levels] = array(reader)?;
        for level in 0..usize::from(levels) {
            let [runs] = array(reader)?;
            let mut runs: Vec<_> =
                (0..runs).map(|_| parse_run(reader)).collect::<io::Result<_>>()?;
            let highest = runs.iter().flatten().map(|table| table.id).max();
            manifest.next_id = manifest.next_id.max(highest.map_or(0, |id| id + 1));
            match manifest.levels.get_mut(level) {
                Some(tables) if level > 0 && runs.len() <= 1 => {
                    *tables = runs.pop().unwrap_or_default()
                }
                // Tables of different runs overlap. They are taken as flushed runs in their order,
                // and so are those of the levels above.
                Some(_) => {
                    let above = manifest.levels[..level].iter_mut().map(std::mem::take);
                    manifest.flushed.extend(above.filter(|run| !run.is_empty()).chain(runs));
                }
                None => return Err(io::Error::other("it has more levels than there can be")),
            }
        }
        Ok(manifest)
    }

    fn parse_run(reader: &mut impl Read) -> io::Result<Vec<Named>> {
        let tables = u32::from_le_bytes(array(reader)?);
        let named = |_| {
            let id = u64::from_le_bytes(array(reader)?);
            let [_kind] = array(reader)?;
            let checksum = u128::from_le_bytes(array(reader)?);
            match u64::from_le_bytes(array(reader)?) {
                0 => Ok(Named { id, checksum }),
                _ => Err(io::Error::other("a table was brought in from elsewhere")),
            }
        };
        (0..tables).map(named).collect()
    }

    /// To be called when the folder has a valid manifest of the new format.
    pub fn remove(folder: &OpenFolder) -> io::Result<()> {
        for entry in fs::read_dir(folder.path())? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_manifest =
                name.strip_prefix('v').is_some_and(|rest| rest.parse::<u64>().is_ok());
            if is_manifest || OTHERS.contains(&name.as_str()) {
                fs::remove_file(entry.path())?;
            }
        }
        folder.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let named = |id| Named { id, checksum: u128::MAX - u128::from(id) };
        let mut manifest = Manifest { next_id: 9, ..Manifest::default() };
        manifest.flushed = vec![vec![named(8), named(7)], vec![named(5)]];
        manifest.levels[4] = vec![named(1)];
        manifest.levels[6] = vec![named(2), named(3)];
        manifest
    }

    #[test]
    fn what_was_stored_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Manifest::load(folder.path()).unwrap(), None);
        let opened = OpenFolder::open(folder.path()).unwrap();
        for stored in [Manifest::default(), manifest()] {
            stored.store(&opened).unwrap();
            assert_eq!(Manifest::load(folder.path()).unwrap(), Some(stored));
        }
        assert_eq!(manifest().tables().map(|it| it.id).collect::<Vec<_>>(), [8, 7, 5, 1, 2, 3]);
    }

    #[test]
    fn no_byte_can_change_unnoticed() {
        let encoded = manifest().encode();
        assert_eq!(Manifest::decode(&encoded), Some(manifest()));
        for at in 0..encoded.len() {
            let mut damaged = encoded.clone();
            damaged[at] ^= 1;
            assert_eq!(Manifest::decode(&damaged), None, "{at}");
            assert_eq!(Manifest::decode(&encoded[..at]), None, "{at}");
        }
    }
}
