//! The two conditions of an append: its offset and the maximum length of the blob.

/// `x-ms-blob-condition-appendpos` and `x-ms-blob-condition-maxsize`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppendConditions {
    pub position: Option<u64>,
    pub size_bytes_max: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendRefusal {
    #[error("the blob does not end where the append is to begin")]
    PositionNotMet,
    #[error("the append would make the blob longer than the request allows")]
    SizeNotMet,
}

impl AppendConditions {
    /// `block_length` is zero for a seal, which adds nothing.
    pub fn check(&self, blob_length: u64, block_length: u64) -> Result<(), AppendRefusal> {
        if self.position.is_some_and(|position| position != blob_length) {
            return Err(AppendRefusal::PositionNotMet);
        }
        let length_after = blob_length.saturating_add(block_length);
        if self.size_bytes_max.is_some_and(|size_bytes_max| length_after > size_bytes_max) {
            return Err(AppendRefusal::SizeNotMet);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appends_go_on_only_at_their_position_and_below_their_size() {
        let position =
            |position| AppendConditions { position: Some(position), ..Default::default() };
        let size = |size| AppendConditions { size_bytes_max: Some(size), ..Default::default() };
        let both = AppendConditions { position: Some(0), size_bytes_max: Some(1) };
        use AppendRefusal::{PositionNotMet, SizeNotMet};
        for (cell, conditions, length, block, expected) in [
            ("1.8 none sent", AppendConditions::default(), 100, 50, Ok(())),
            ("1.8 appendpos / length equal", position(100), 100, 50, Ok(())),
            ("1.8 appendpos / length above", position(100), 101, 50, Err(PositionNotMet)),
            ("1.8 appendpos / length below", position(100), 99, 50, Err(PositionNotMet)),
            ("1.8 appendpos 0 / empty blob", position(0), 0, 50, Ok(())),
            ("1.8 maxsize / length + block below", size(200), 100, 50, Ok(())),
            ("1.8 maxsize / length + block equal", size(150), 100, 50, Ok(())),
            ("1.8 maxsize / length + block above", size(149), 100, 50, Err(SizeNotMet)),
            ("1.8 maxsize / length already above", size(99), 100, 0, Err(SizeNotMet)),
            ("1.8 maxsize / sum above every number", size(9), u64::MAX, 9, Err(SizeNotMet)),
            ("1.8 both fail: the position is told", both, 100, 50, Err(PositionNotMet)),
        ] {
            assert_eq!(conditions.check(length, block), expected, "{cell}");
        }
    }
}
