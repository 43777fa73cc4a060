//! Small changes to valid inputs, so that most of them get past the first check.

use holdfast_random::Random;

/// Values at which lengths and offsets go wrong.
const EDGES: [u8; 8] = [0, 1, 0x10, 0x40, 0x7F, 0x80, 0xFE, 0xFF];
/// Characters of text formats.
const MARKS: &[u8] = b"()'\"<>&;:,=%/?-*[]{}\r\n \t\\0";
/// Longer inputs only take longer.
const BYTES_MAX: usize = 16 * 1024;

/// One to four changes of `input`, some of which take a piece of `other`.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    for _ in 0..=random.within(0..4) {
        let place = random.within(0..input.len() + 1);
        let magnitude = random.within(0..8);
        let length = 1 + random.within(0..1 << magnitude);
        let end = input.len().min(place + length);
        match random.within(0..11) {
            0 => input.truncate(place),
            1 => drop(input.drain(place..end)),
            2 => input[place..end].fill(random.number() as u8),
            3 => input[place..end].fill(EDGES[random.within(0..EDGES.len())]),
            4 if place < input.len() => input[place] ^= 1 << random.within(0..8),
            5 => input.insert(place, MARKS[random.within(0..MARKS.len())]),
            6 => insert(input, place, &random.number().to_le_bytes()),
            7 => {
                let piece = input[place..end].to_vec();
                insert(input, place, &piece);
            }
            8 => {
                let piece = input[place..end].repeat(1 + random.within(0..64));
                insert(input, place, &piece);
            }
            9 => {
                let from = random.within(0..other.len().max(1));
                let to = other.len().min(from + length);
                insert(input, place, &other[from..to]);
            }
            _ => {
                if let Some(byte) = input.get_mut(place) {
                    *byte = byte.wrapping_add(if random.number() & 1 == 0 { 1 } else { 255 });
                }
            }
        }
    }
    input.truncate(BYTES_MAX);
}

fn insert(input: &mut Vec<u8>, place: usize, piece: &[u8]) {
    if input.len() + piece.len() <= BYTES_MAX {
        input.splice(place..place, piece.iter().copied());
    }
}
