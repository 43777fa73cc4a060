//! The manifest of the tree, checked before the tree reads it. The tree notes its checksum in `current`
//! but does not compare: of a manifest with a flipped bit it would take what it finds, which may be
//! fewer tables, or rows of another age.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_128;

use super::folder::OpenFolder;
use crate::engine::Fault;

const CURRENT: &str = "current";
/// As the tree's own drafts begin, so that it is removed as they are if a crash leaves it.
const CURRENT_DRAFT: &str = ".tmp-current";
/// The number of the manifest, its checksum, and the kind of checksum.
const CURRENT_BYTES: usize = 8 + 16 + 1;
const XXH3: u8 = 0;

/// Refuses a manifest that is not the one which was written. A tree that is new has none.
pub(super) fn check(folder: &Path) -> Result<(), Fault> {
    let path = folder.join(CURRENT);
    let current = match fs::read(&path) {
        Ok(current) => current,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(Fault::because(format!("read {}", path.display()), why)),
    };
    let damaged = |path: &Path| Fault::new(format!("{} is damaged", path.display()));
    let current: [u8; CURRENT_BYTES] = current.try_into().map_err(|_| damaged(&path))?;
    let (number, rest) = current.split_first_chunk().ok_or_else(|| damaged(&path))?;
    let (checksum, kind) = rest.split_first_chunk().ok_or_else(|| damaged(&path))?;
    let manifest = folder.join(file_name(u64::from_le_bytes(*number)));
    let content = fs::read(&manifest).map_err(|why| {
        let what = format!("{} names {}, which cannot be read", path.display(), manifest.display());
        Fault::because(what, why)
    })?;
    if kind != [XXH3] || xxh3_128(&content) != u128::from_le_bytes(*checksum) {
        return Err(Fault::new(format!(
            "{} is not what {} says: one of them is damaged",
            manifest.display(),
            path.display()
        )));
    }
    Ok(())
}

/// The content of `current` while this manifest is the one that counts; none while it is another.
pub(super) fn naming(folder: &Path, number: u64) -> io::Result<Option<Vec<u8>>> {
    let current = fs::read(folder.join(CURRENT))?;
    let named = current.first_chunk().map(|number| u64::from_le_bytes(*number));
    Ok((named == Some(number) && current.len() == CURRENT_BYTES).then_some(current))
}

/// Takes back the manifest after the one that `naming` is for, which the tree has begun and not made
/// known to itself: it would write it once more, over one that may be in force.
pub(super) fn take_back_next(folder: &OpenFolder, number: u64, naming: &[u8]) -> io::Result<()> {
    let current = fs::read(folder.path().join(CURRENT))?;
    if current != naming {
        folder.replace_file(CURRENT, CURRENT_DRAFT, naming)?;
    }
    match fs::remove_file(folder.path().join(file_name(number + 1))) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

pub(super) fn file_name(number: u64) -> String {
    format!("v{number}")
}

/// The tables that the current manifest names, each with the checksum of its whole file. The manifest
/// is to be checked before.
pub(super) fn tables(folder: &Path) -> Result<Vec<(u64, u128)>, Fault> {
    let read = || -> io::Result<Vec<(u64, u128)>> {
        let Some(current) = fs::read(folder.join(CURRENT)).ok() else { return Ok(Vec::new()) };
        let number = current.first_chunk().map_or(0, |number| u64::from_le_bytes(*number));
        let path = folder.join(file_name(number));
        let unreadable = |why: sfa::Error| io::Error::other(format!("{why:?}"));
        let reader = sfa::Reader::new(&path).map_err(unreadable)?;
        let section = reader.toc().section(b"tables");
        let section = section.ok_or_else(|| io::Error::other("it has no list of tables"))?;
        parse_tables(&mut section.buf_reader(&path)?)
    };
    read().map_err(|why| Fault::because(format!("read the manifest of {}", folder.display()), why))
}

/// Levels of runs of tables: number, kind of checksum, checksum, and a sequence.
fn parse_tables(reader: &mut impl Read) -> io::Result<Vec<(u64, u128)>> {
    fn bytes<const N: usize>(reader: &mut impl Read) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        reader.read_exact(&mut bytes)?;
        Ok(bytes)
    }
    let mut tables = Vec::new();
    let [levels] = bytes(reader)?;
    for _ in 0..levels {
        let [runs] = bytes(reader)?;
        for _ in 0..runs {
            for _ in 0..u32::from_le_bytes(bytes(reader)?) {
                let number = u64::from_le_bytes(bytes(reader)?);
                let [_kind] = bytes(reader)?;
                let checksum = u128::from_le_bytes(bytes(reader)?);
                let _sequence: [u8; 8] = bytes(reader)?;
                tables.push((number, checksum));
            }
        }
    }
    Ok(tables)
}
