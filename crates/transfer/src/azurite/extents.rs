//! The files in which Azurite keeps contents. Their names come from a database, so they are checked
//! before they become part of a path.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use crate::model::Chunk;

/// The name by which Azurite says that there is nothing but zeros.
pub const ZEROS: &str = "*ZERO*";
const NAME_BYTES_MAX: usize = 64;

#[derive(Clone, Debug)]
pub struct Extents {
    folder: PathBuf,
}

impl Extents {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn open(&self, name: &str) -> Result<File, String> {
        if !is_name(name) {
            return Err(format!("{name:?} is no name of an extent"));
        }
        let opened = File::open(self.folder.join(name)).and_then(|file| {
            let is_file = file.metadata()?.is_file();
            if is_file { Ok(file) } else { Err(io::Error::other("it is no file")) }
        });
        opened.map_err(|error| format!("the extent {name}: {error}"))
    }

    /// Why these chunks cannot be read, if the files or the databases are damaged.
    pub fn check(&self, chunks: &[Chunk]) -> Result<(), String> {
        let mut last: Option<(&str, u64)> = None;
        for chunk in chunks.iter().filter(|chunk| &*chunk.extent != ZEROS && chunk.length > 0) {
            let length = match last {
                Some((name, length)) if name == &*chunk.extent => length,
                _ => {
                    let metadata = self.open(&chunk.extent)?.metadata();
                    metadata.map_err(|error| error.to_string())?.len()
                }
            };
            last = Some((&chunk.extent, length));
            if chunk.offset.checked_add(chunk.length).is_none_or(|end| end > length) {
                return Err(format!(
                    "the extent {} has {length} bytes, and {} at {} are wanted",
                    chunk.extent, chunk.length, chunk.offset
                ));
            }
        }
        Ok(())
    }

    /// The bytes of a content at `offset`; where no chunk is, zeros.
    pub fn read(&self, chunks: &[Chunk], offset: u64, length: usize) -> Result<Vec<u8>, String> {
        let end = offset + length as u64;
        let mut bytes = vec![0; length];
        let first = chunks.partition_point(|chunk| chunk.position + chunk.length <= offset);
        for chunk in &chunks[first..] {
            let from = chunk.position.max(offset);
            let to = (chunk.position + chunk.length).min(end);
            if from >= to {
                break;
            }
            if &*chunk.extent == ZEROS {
                continue;
            }
            let part = usize::try_from(from - offset)
                .and_then(|from| Ok(from..usize::try_from(to - offset)?));
            let part = part.map_err(|_| "it is too long".to_owned())?;
            self.open(&chunk.extent)?
                .read_exact_at(&mut bytes[part], chunk.offset + (from - chunk.position))
                .map_err(|error| format!("the extent {}: {error}", chunk.extent))?;
        }
        Ok(bytes)
    }
}

/// Azurite names extents by UUIDs; nothing that could lead out of the folder is one.
fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(position: u64, length: u64, extent: &str, offset: u64) -> Chunk {
        Chunk { position, length, extent: extent.into(), offset }
    }

    fn extents() -> (tempfile::TempDir, Extents) {
        let folder = tempfile::tempdir().expect("there is room");
        std::fs::write(folder.path().join("a-1"), b"0123456789").expect("written");
        std::fs::write(folder.path().join("b-2"), b"abcdef").expect("written");
        std::fs::create_dir(folder.path().join("c-3")).expect("made");
        let extents = Extents::new(folder.path().to_owned());
        (folder, extents)
    }

    #[test]
    fn parts_are_put_together_across_chunks_and_gaps() {
        let (_folder, extents) = extents();
        let chunks = [
            chunk(0, 3, "a-1", 2),
            chunk(3, 2, "b-2", 4),
            chunk(7, 2, ZEROS, 0),
            chunk(9, 1, "a-1", 9),
        ];
        assert_eq!(extents.read(&chunks, 0, 10), Ok(b"234ef\0\0\0\x009".to_vec()));
        assert_eq!(extents.read(&chunks, 2, 3), Ok(b"4ef".to_vec()));
        assert_eq!(extents.read(&chunks, 8, 4), Ok(b"\x009\0\0".to_vec()));
        assert_eq!(extents.read(&[], 0, 2), Ok(vec![0, 0]));
        assert_eq!(extents.check(&chunks), Ok(()));
    }

    #[test]
    fn names_that_are_none_of_azurite_open_nothing() {
        let (folder, extents) = extents();
        std::fs::write(folder.path().with_extension("secret"), b"secret").expect("written");
        for name in ["", ".", "..", "../a-1", "/etc/passwd", "a/../a-1", "a-1\0", &"a".repeat(65)] {
            let chunks = [chunk(0, 1, name, 0)];
            assert!(extents.check(&chunks).is_err(), "{name:?}");
            assert!(extents.read(&chunks, 0, 1).is_err(), "{name:?}");
        }
        std::fs::remove_file(folder.path().with_extension("secret")).expect("removed");
    }

    #[test]
    fn damage_is_found_before_anything_is_read() {
        let (_folder, extents) = extents();
        for (damaged, why) in [
            (chunk(0, 1, "gone", 0), "No such file"),
            (chunk(0, 1, "c-3", 0), "it is no file"),
            (chunk(0, 11, "a-1", 0), "has 10 bytes, and 11 at 0 are wanted"),
            (chunk(0, 1, "a-1", 10), "has 10 bytes"),
            (chunk(0, 2, "a-1", u64::MAX), "has 10 bytes"),
        ] {
            let error = extents.check(std::slice::from_ref(&damaged)).expect_err("it is damaged");
            assert!(error.contains(why), "{error}");
        }
    }
}
