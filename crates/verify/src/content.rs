//! Contents that name their write in every piece, so that a read that mixes two writes is detected.

/// One value in hexadecimal digits.
pub const PIECE_BYTES: usize = 16;

pub fn encode(value: u64, pieces: usize) -> Vec<u8> {
    format!("{value:016x}").into_bytes().repeat(pieces)
}

/// The values of consecutive pieces.
pub fn decode_pieces(bytes: &[u8]) -> Option<Vec<u64>> {
    if !bytes.len().is_multiple_of(PIECE_BYTES) {
        return None;
    }
    let values = bytes.chunks(PIECE_BYTES).map(|piece| {
        let text = std::str::from_utf8(piece).ok()?;
        u64::from_str_radix(text, 16).ok()
    });
    values.collect()
}

/// The one value that all pieces have, if there are as many as there should be.
pub fn decode(bytes: &[u8], pieces: impl Fn(u64) -> usize) -> Option<u64> {
    let values = decode_pieces(bytes)?;
    let first = *values.first()?;
    (values.iter().all(|value| *value == first) && values.len() == pieces(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_is_read_back_and_a_mixed_or_short_one_is_not() {
        assert_eq!(decode(&encode(77, 3), |_| 3), Some(77));
        assert_eq!(decode(&encode(77, 3), |_| 4), None);
        let mixed = [encode(1, 2), encode(2, 1)].concat();
        assert_eq!(decode(&mixed, |_| 3), None);
        assert_eq!(decode_pieces(&mixed), Some(vec![1, 1, 2]));
        assert_eq!(decode(&encode(1, 2)[1..], |_| 2), None);
    }
}
