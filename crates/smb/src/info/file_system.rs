//! The answers of QUERY_INFO about a share as a file system, [MS-FSCC] 2.5.

use bytes::BufMut as _;

use super::facts::CLUSTER_BYTES;
use super::file::VOLUME_SERIAL;
use super::{Output, fitted};
use crate::status::Status;
use crate::wire::text;

mod class {
    pub const VOLUME: u8 = 1;
    pub const SIZE: u8 = 3;
    pub const DEVICE: u8 = 4;
    pub const ATTRIBUTE: u8 = 5;
    pub const CONTROL: u8 = 6;
    pub const FULL_SIZE: u8 = 7;
    pub const OBJECT_ID: u8 = 8;
    pub const SECTOR_SIZE: u8 = 11;
}

const SECTOR_BYTES: u32 = 512;
const SECTORS_PER_CLUSTER: u32 = CLUSTER_BYTES as u32 / SECTOR_BYTES;
const NAME_UNITS_MAX: u32 = 255;
/// Shown by Windows, which expects it of a file system with sparse files and security descriptors.
const FILE_SYSTEM_NAME: &str = "NTFS";

/// Bits of FILE_FS_ATTRIBUTE_INFORMATION.
const CASE_SENSITIVE_SEARCH: u32 = 0x1;
const CASE_PRESERVED_NAMES: u32 = 0x2;
const UNICODE_ON_DISK: u32 = 0x4;
const PERSISTENT_ACLS: u32 = 0x8;
const SPARSE_FILES: u32 = 0x40;

#[derive(Clone, Debug)]
pub struct ShareFacts {
    pub name: String,
    pub id: u64,
    /// When it was created.
    pub created: u64,
    pub bytes_total: u64,
    pub bytes_free: u64,
}

pub fn query(class: u8, share: &ShareFacts, limit: usize) -> Result<Output, Status> {
    let mut out = Vec::with_capacity(64);
    let (total, free) = (share.bytes_total / CLUSTER_BYTES, share.bytes_free / CLUSTER_BYTES);
    let fixed = match class {
        class::VOLUME => {
            out.put_u64_le(share.created);
            out.put_u32_le(VOLUME_SERIAL);
            out.put_u32_le(text::encoded_length(&share.name) as u32);
            out.put_u16_le(0);
            text::append(&share.name, &mut out);
            24
        }
        class::SIZE => {
            out.put_u64_le(total);
            out.put_u64_le(free);
            out.put_u32_le(SECTORS_PER_CLUSTER);
            out.put_u32_le(SECTOR_BYTES);
            out.len()
        }
        class::DEVICE => {
            const DISK: u32 = 7;
            const IS_MOUNTED: u32 = 0x20;
            out.put_u32_le(DISK);
            out.put_u32_le(IS_MOUNTED);
            out.len()
        }
        class::ATTRIBUTE => {
            let names = CASE_SENSITIVE_SEARCH | CASE_PRESERVED_NAMES | UNICODE_ON_DISK;
            out.put_u32_le(names | PERSISTENT_ACLS | SPARSE_FILES);
            out.put_u32_le(NAME_UNITS_MAX);
            out.put_u32_le(text::encoded_length(FILE_SYSTEM_NAME) as u32);
            text::append(FILE_SYSTEM_NAME, &mut out);
            16
        }
        class::CONTROL => {
            // There are no user quotas: no limit.
            out.put_bytes(0, 24);
            out.put_u64_le(u64::MAX);
            out.put_u64_le(u64::MAX);
            out.put_u64_le(0);
            out.len()
        }
        class::FULL_SIZE => {
            out.put_u64_le(total);
            out.put_u64_le(free);
            out.put_u64_le(free);
            out.put_u32_le(SECTORS_PER_CLUSTER);
            out.put_u32_le(SECTOR_BYTES);
            out.len()
        }
        class::OBJECT_ID => {
            out.put_u64_le(share.id);
            out.put_bytes(0, 56);
            out.len()
        }
        class::SECTOR_SIZE => {
            const ALIGNED: u32 = 0x3;
            out.put_u32_le(SECTOR_BYTES);
            for _ in 0..3 {
                out.put_u32_le(CLUSTER_BYTES as u32);
            }
            out.put_u32_le(ALIGNED);
            out.put_u64_le(0);
            out.len()
        }
        _ => return Err(Status::INVALID_INFO_CLASS),
    };
    fitted(out, fixed, limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_the_lengths_that_clients_rely_on() {
        let share = ShareFacts {
            name: "photos".to_owned(),
            id: 3,
            created: 5,
            bytes_total: 1 << 40,
            bytes_free: 1 << 30,
        };
        for (class, fixed, length) in [
            (class::VOLUME, 24, 18 + 12),
            (class::SIZE, 24, 24),
            (class::DEVICE, 8, 8),
            (class::ATTRIBUTE, 16, 12 + 8),
            (class::CONTROL, 48, 48),
            (class::FULL_SIZE, 32, 32),
            (class::OBJECT_ID, 64, 64),
            (class::SECTOR_SIZE, 28, 28),
        ] {
            let whole = query(class, &share, 1000).expect("answered");
            assert_eq!((whole.status, whole.bytes.len()), (Status::SUCCESS, length), "{class}");
            let short = query(class, &share, fixed - 1);
            assert_eq!(short, Err(Status::INFO_LENGTH_MISMATCH), "{class}");
            let cut = query(class, &share, fixed).expect("answered");
            assert_eq!(cut.bytes.len(), fixed, "{class}");
        }
        assert_eq!(query(99, &share, 1000), Err(Status::INVALID_INFO_CLASS));
    }
}
