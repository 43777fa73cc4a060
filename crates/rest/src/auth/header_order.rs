//! The order in which the service sorts header names before it signs them.
//!
//! It is the order of the .NET culture comparison, not of the bytes: hyphens and apostrophes are
//! ignored unless everything else is equal, and punctuation comes before digits. So `x-ms-meta-a_b`
//! comes before `x-ms-meta-a1`, and `x-ms-metab` before `x-ms-meta-c`. Official clients rebuild
//! this order; older ones and most others sort by bytes.

use std::cmp::Ordering;

/// Every character of header names, except the two that are ignored, in ascending order.
const BY_WEIGHT: &[u8] = b"!#$%&*.^_`|~+0123456789abcdefghijklmnopqrstuvwxyz";

const WEIGHTS: [u8; 256] = {
    let mut weights = [0; 256];
    let mut at = 0;
    while at < BY_WEIGHT.len() {
        weights[BY_WEIGHT[at] as usize] = at as u8 + 1;
        at += 1;
    }
    weights
};

/// Compares two lower-case header names.
pub fn culture_order(left: &[u8], right: &[u8]) -> Ordering {
    weighed(left).cmp(weighed(right)).then_with(|| hyphens_late(left, right))
}

fn weighed(name: &[u8]) -> impl Iterator<Item = u8> {
    name.iter().map(|byte| WEIGHTS[*byte as usize]).filter(|weight| *weight != 0)
}

/// For names that differ only in ignored characters: at the first difference the name with such a
/// character is greater, and a hyphen is greater than an apostrophe.
fn hyphens_late(left: &[u8], right: &[u8]) -> Ordering {
    let rank = |byte: u8| match byte {
        b'-' => 2,
        b'\'' => 1,
        _ => 0,
    };
    let differ = left.iter().zip(right).find(|(left, right)| left != right);
    match differ {
        Some((&left, &right)) => rank(left).cmp(&rank(right)),
        None => left.len().cmp(&right.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_as_the_service_sorts_them() {
        let sorted = [
            "x-ms-blob-type",
            "x-ms-date",
            "x-ms-meta-_a",
            "x-ms-meta-0a",
            "x-ms-metaa",
            "x-ms-meta-a",
            "x-ms-meta-a_b",
            "x-ms-meta-a1",
            "x-ms-metab",
            "x-ms-meta-ba",
            "x-ms-meta-b-a",
            "x-ms-meta-c",
            "x-ms-version",
        ];
        for (left_at, left) in sorted.iter().enumerate() {
            for (right_at, right) in sorted.iter().enumerate() {
                let order = culture_order(left.as_bytes(), right.as_bytes());
                assert_eq!(order, left_at.cmp(&right_at), "{left} {right}");
            }
        }
    }
}
