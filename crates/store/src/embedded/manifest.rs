//! The manifest of the tree, checked before the tree reads it. The tree notes its checksum in `current`
//! but does not compare: of a manifest with a flipped bit it would take what it finds, which may be
//! fewer tables, or rows of another age.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_128;

use crate::engine::Fault;

const CURRENT: &str = "current";
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
    let manifest = folder.join(format!("v{}", u64::from_le_bytes(*number)));
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

/// The tables that the current manifest names, each with the checksum of its whole file. The manifest
/// is to be checked before.
pub(super) fn tables(folder: &Path) -> Result<Vec<(u64, u128)>, Fault> {
    let read = || -> io::Result<Vec<(u64, u128)>> {
        let Some(current) = fs::read(folder.join(CURRENT)).ok() else { return Ok(Vec::new()) };
        let number = current.first_chunk().map_or(0, |number| u64::from_le_bytes(*number));
        let path = folder.join(format!("v{number}"));
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
