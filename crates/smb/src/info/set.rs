//! The changes by SET_INFO of a file or directory, [MS-FSCC] 2.4.

use holdfast_domain::time::Timestamp;

use super::file::class;
use super::time;
use crate::status::Status;
use crate::wire::cursor::size;
use crate::wire::{Cursor, Malformed, text};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Basic(Basic),
    Rename(Rename),
    /// Whether the file is deleted with its last handle.
    Disposition {
        delete: bool,
        despite_read_only: bool,
    },
    Position(u64),
    Mode(u32),
    Allocation(u64),
    EndOfFile(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Basic {
    pub created: TimeSetting,
    pub accessed: TimeSetting,
    pub written: TimeSetting,
    pub changed: TimeSetting,
    /// As on the wire; `None` leaves them unchanged.
    pub attributes: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeSetting {
    Leave,
    At(Timestamp),
    /// Operations through this open no longer change it.
    Freeze,
    /// As before [`TimeSetting::Freeze`].
    Thaw,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    pub replace: bool,
    /// As on the wire.
    pub target: String,
}

pub fn decode(class: u8, data: &[u8]) -> Result<Change, Status> {
    let mut fields = Cursor::new(data);
    let change = match class {
        class::BASIC => basic(&mut fields).map_err(mismatch)??,
        class::RENAME | class::RENAME_EX => rename(&mut fields)?,
        class::DISPOSITION => {
            let delete = fields.u8().map_err(mismatch)? != 0;
            Change::Disposition { delete, despite_read_only: false }
        }
        class::DISPOSITION_EX => {
            const DELETE: u32 = 1;
            const IGNORE_READ_ONLY: u32 = 0x10;
            let flags = fields.u32().map_err(mismatch)?;
            let despite_read_only = flags & IGNORE_READ_ONLY != 0;
            Change::Disposition { delete: flags & DELETE != 0, despite_read_only }
        }
        class::POSITION => Change::Position(fields.u64().map_err(mismatch)?),
        class::MODE => Change::Mode(fields.u32().map_err(mismatch)?),
        class::ALLOCATION => Change::Allocation(length(&mut fields)?),
        class::END_OF_FILE => Change::EndOfFile(length(&mut fields)?),
        class::FULL_EA => return Err(Status::EAS_NOT_SUPPORTED),
        class::LINK | class::SHORT_NAME | class::VALID_DATA_LENGTH => {
            return Err(Status::NOT_SUPPORTED);
        }
        _ => return Err(Status::INVALID_INFO_CLASS),
    };
    Ok(change)
}

fn mismatch(_: Malformed) -> Status {
    Status::INFO_LENGTH_MISMATCH
}

/// Lengths are signed on the wire.
fn length(fields: &mut Cursor<'_>) -> Result<u64, Status> {
    let length = fields.u64().map_err(mismatch)?;
    i64::try_from(length).map(|_| length).map_err(|_| Status::INVALID_PARAMETER)
}

fn basic(fields: &mut Cursor<'_>) -> Result<Result<Change, Status>, Malformed> {
    let (created, accessed) = (fields.u64()?, fields.u64()?);
    let (written, changed) = (fields.u64()?, fields.u64()?);
    let attributes = fields.u32()?;
    fields.skip(4)?;
    let attributes = (attributes != 0).then_some(attributes);
    let all = || {
        Ok(Change::Basic(Basic {
            created: setting(created)?,
            accessed: setting(accessed)?,
            written: setting(written)?,
            changed: setting(changed)?,
            attributes,
        }))
    };
    Ok(all())
}

fn setting(ticks: u64) -> Result<TimeSetting, Status> {
    match ticks as i64 {
        0 => Ok(TimeSetting::Leave),
        -1 => Ok(TimeSetting::Freeze),
        -2 => Ok(TimeSetting::Thaw),
        ..=-3 => Err(Status::INVALID_PARAMETER),
        1.. => time::from_wire(ticks).map(TimeSetting::At).ok_or(Status::INVALID_PARAMETER),
    }
}

/// The form of SMB 2: the handle of a directory for relative names must be 0.
fn rename(fields: &mut Cursor<'_>) -> Result<Change, Status> {
    let mut head = || -> Result<_, Malformed> {
        let flags = fields.u8()?;
        fields.skip(7)?;
        Ok((flags & 1 != 0, fields.u64()?, size(fields.u32()?)))
    };
    let (replace, root, length) = head().map_err(mismatch)?;
    let name = fields.bytes(length).map_err(|_| Status::INVALID_PARAMETER)?;
    if root != 0 || name.is_empty() {
        return Err(Status::INVALID_PARAMETER);
    }
    let target = text::decode(name).map_err(|_| Status::OBJECT_NAME_INVALID)?;
    Ok(Change::Rename(Rename { replace, target }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BufMut as _;

    #[test]
    fn times_are_set_left_or_kept_from_changing() {
        let mut data = Vec::new();
        data.put_u64_le(0);
        data.put_i64_le(-1);
        data.put_i64_le(-2);
        data.put_u64_le(116_444_736_000_000_000);
        data.put_u32_le(0x20);
        data.put_u32_le(0);
        let at = Timestamp::parse_iso8601("1970-01-01").expect("a time");
        let expected = Basic {
            created: TimeSetting::Leave,
            accessed: TimeSetting::Freeze,
            written: TimeSetting::Thaw,
            changed: TimeSetting::At(at),
            attributes: Some(0x20),
        };
        assert_eq!(decode(class::BASIC, &data), Ok(Change::Basic(expected)));
        assert_eq!(decode(class::BASIC, &data[..39]), Err(Status::INFO_LENGTH_MISMATCH));
        data[..8].copy_from_slice(&(-3_i64).to_le_bytes());
        assert_eq!(decode(class::BASIC, &data), Err(Status::INVALID_PARAMETER));
    }

    #[test]
    fn a_rename_names_its_target_from_the_share() {
        let mut data = vec![1, 0, 0, 0, 0, 0, 0, 0];
        data.put_u64_le(0);
        data.put_u32_le(6);
        text::append("a\\b", &mut data);
        let rename = Rename { replace: true, target: "a\\b".to_owned() };
        assert_eq!(decode(class::RENAME, &data), Ok(Change::Rename(rename)));
        assert_eq!(decode(class::RENAME, &data[..25]), Err(Status::INVALID_PARAMETER));
        assert_eq!(decode(class::RENAME, &data[..19]), Err(Status::INFO_LENGTH_MISMATCH));
        data[8] = 1;
        assert_eq!(decode(class::RENAME, &data), Err(Status::INVALID_PARAMETER));
    }

    #[test]
    fn the_rest_are_numbers() {
        let eight = 9_u64.to_le_bytes();
        let delete = |despite_read_only| Change::Disposition { delete: true, despite_read_only };
        for (class, data, expected) in [
            (class::DISPOSITION, &[1][..], Ok(delete(false))),
            (class::DISPOSITION, &[], Err(Status::INFO_LENGTH_MISMATCH)),
            (class::DISPOSITION_EX, &[0x11, 0, 0, 0], Ok(delete(true))),
            (class::POSITION, &eight, Ok(Change::Position(9))),
            (class::ALLOCATION, &eight, Ok(Change::Allocation(9))),
            (class::END_OF_FILE, &eight, Ok(Change::EndOfFile(9))),
            (class::END_OF_FILE, &[0xFF; 8], Err(Status::INVALID_PARAMETER)),
            (class::END_OF_FILE, &eight[..7], Err(Status::INFO_LENGTH_MISMATCH)),
            (class::FULL_EA, &[], Err(Status::EAS_NOT_SUPPORTED)),
            (class::LINK, &[], Err(Status::NOT_SUPPORTED)),
            (200, &[], Err(Status::INVALID_INFO_CLASS)),
        ] {
            assert_eq!(decode(class, data), expected, "{class}");
        }
    }
}
