//! Checks of Thrift's compact encoding that are needed before the decoder of Parquet gets it.
//!
//! The decoder skips an unknown field element by element, and booleans of a list take no bytes: seven
//! bytes make it count to two billion. Parquet has no such lists here, so any is refused; and so is a
//! field of another kind than expected, since the decoder would interpret its bytes differently from
//! this check.

/// The nesting depth of the decoder.
const DEPTH_MAX: u8 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Incomplete: more bytes could make it valid.
    Cut,
    Wrong,
}

/// The expected kind of a value. Fields that are not named may be anything.
pub enum Shape {
    Bool,
    Byte,
    I16,
    I32,
    I64,
    Double,
    Binary,
    List(&'static Shape),
    Struct(&'static [(i16, &'static Shape)]),
}

impl Shape {
    fn has_kind(&self, kind: u8) -> bool {
        match self {
            Self::Bool => matches!(kind, TRUE | FALSE),
            Self::Byte => kind == BYTE,
            Self::I16 => kind == I16,
            Self::I32 => kind == I32,
            Self::I64 => kind == I64,
            Self::Double => kind == DOUBLE,
            Self::Binary => kind == BINARY,
            Self::List(_) => kind == LIST,
            Self::Struct(_) => kind == STRUCT,
        }
    }

    fn field(&self, id: i16) -> Option<&'static Self> {
        let Self::Struct(fields) = self else { return None };
        fields.iter().find(|(known, _)| *known == id).map(|(_, shape)| *shape)
    }

    fn element(&self) -> Option<&'static Self> {
        if let Self::List(element) = self { Some(element) } else { None }
    }
}

/// Checks the struct at the start of `bytes`.
pub fn check_struct(bytes: &[u8], shape: &Shape) -> Result<(), Flaw> {
    Cursor { rest: bytes }.skip_struct(Some(shape), DEPTH_MAX)
}

/// The number at a path of fields in a checked struct, if it is present.
pub fn number_at(bytes: &[u8], path: &[i16]) -> Option<i64> {
    Cursor { rest: bytes }.find(path).ok().flatten()
}

struct Cursor<'a> {
    rest: &'a [u8],
}

/// The numbers of field and element types; a boolean has two.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

impl Cursor<'_> {
    fn byte(&mut self) -> Result<u8, Flaw> {
        let (first, rest) = self.rest.split_first().ok_or(Flaw::Cut)?;
        self.rest = rest;
        Ok(*first)
    }

    fn number(&mut self) -> Result<u64, Flaw> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Flaw::Wrong)
    }

    /// The decoder would truncate it to its kind.
    fn number_up_to(&mut self, max: u64) -> Result<(), Flaw> {
        if self.number()? <= max { Ok(()) } else { Err(Flaw::Wrong) }
    }

    fn skip_bytes(&mut self, count: u64) -> Result<(), Flaw> {
        let count = usize::try_from(count).map_err(|_| Flaw::Wrong)?;
        self.rest = self.rest.get(count..).ok_or(Flaw::Cut)?;
        Ok(())
    }

    /// The number of the next field of a struct after `last`, and its kind; `None` at the end.
    fn field(&mut self, last: i16) -> Result<Option<(i16, u8)>, Flaw> {
        let head = self.byte()?;
        let (delta, kind) = (head >> 4, head & 0x0F);
        if kind == 0 {
            return Ok(None);
        }
        // The difference to the last one, or the whole number.
        let id = if delta > 0 {
            last.checked_add(delta.into())
        } else {
            i16::try_from(signed(self.number()?)).ok()
        };
        Ok(Some((id.ok_or(Flaw::Wrong)?, kind)))
    }

    fn skip_struct(&mut self, shape: Option<&Shape>, depth: u8) -> Result<(), Flaw> {
        let below = depth.checked_sub(1).ok_or(Flaw::Wrong)?;
        let mut last = 0;
        while let Some((id, kind)) = self.field(last)? {
            let shape = shape.and_then(|shape| shape.field(id));
            if shape.is_some_and(|shape| !shape.has_kind(kind)) {
                return Err(Flaw::Wrong);
            }
            self.skip_value(kind, shape, below)?;
            last = id;
        }
        Ok(())
    }

    fn find(&mut self, path: &[i16]) -> Result<Option<i64>, Flaw> {
        let Some((wanted, further)) = path.split_first() else { return Ok(None) };
        let mut last = 0;
        while let Some((id, kind)) = self.field(last)? {
            match kind {
                STRUCT if id == *wanted => return self.find(further),
                I16 | I32 | I64 if id == *wanted => return self.number().map(signed).map(Some),
                _ => self.skip_value(kind, None, DEPTH_MAX)?,
            }
            last = id;
        }
        Ok(None)
    }

    /// The value of a boolean field is in its header.
    fn skip_value(&mut self, kind: u8, shape: Option<&Shape>, depth: u8) -> Result<(), Flaw> {
        if matches!(kind, TRUE | FALSE) { Ok(()) } else { self.skip_element(kind, shape, depth) }
    }

    /// Every element takes at least one byte, so this ends.
    fn skip_element(&mut self, kind: u8, shape: Option<&Shape>, depth: u8) -> Result<(), Flaw> {
        let below = depth.checked_sub(1).ok_or(Flaw::Wrong)?;
        match kind {
            BYTE => self.skip_bytes(1),
            I16 => self.number_up_to(u16::MAX.into()),
            I32 => self.number_up_to(u32::MAX.into()),
            I64 => self.number().map(drop),
            DOUBLE => self.skip_bytes(8),
            BINARY => {
                let length = self.number()?;
                self.skip_bytes(length)
            }
            UUID => self.skip_bytes(16),
            STRUCT => self.skip_struct(shape, below),
            LIST | SET => {
                let head = self.byte()?;
                let (kind, short) = (head & 0x0F, head >> 4);
                let count = if short == 0x0F { self.number()? } else { short.into() };
                let shape = shape.and_then(Shape::element);
                if count > 0 && shape.is_some_and(|shape| !shape.has_kind(kind)) {
                    return Err(Flaw::Wrong);
                }
                (0..count).try_for_each(|_| self.skip_element(kind, shape, below))
            }
            MAP => {
                let count = self.number()?;
                let kinds = if count > 0 { self.byte()? } else { 0 };
                (0..count).try_for_each(|_| {
                    self.skip_element(kinds >> 4, None, below)?;
                    self.skip_element(kinds & 0x0F, None, below)
                })
            }
            _ => Err(Flaw::Wrong),
        }
    }
}

/// The sign is in the lowest bit.
fn signed(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_their_path() {
        let bytes = [0x15, 0x06, 0x11, 0x5C, 0x18, 1, b'a', 0x15, 0x07, 0, 0];
        assert_eq!(number_at(&bytes, &[1]), Some(3));
        assert_eq!(number_at(&bytes, &[7, 2]), Some(-4));
        for missing in [&[2][..], &[3], &[7], &[7, 1], &[7, 3], &[]] {
            assert_eq!(number_at(&bytes, missing), None, "{missing:?}");
        }
    }

    #[test]
    fn structs_end_are_cut_or_are_wrong() {
        let deep = [0x1C].repeat(100);
        for (what, bytes, outcome) in [
            ("nothing in it", &[0][..], Ok(())),
            ("numbers and what follows", &[0x15, 0x80, 0x01, 0x16, 0x02, 0, 9, 9], Ok(())),
            ("a number of a field written out", &[0x05, 0x2A, 0x02, 0], Ok(())),
            ("booleans, which are in their heads", &[0x11, 0x12, 0], Ok(())),
            ("text", &[0x18, 2, b'a', b'b', 0], Ok(())),
            ("a list of two structs", &[0x19, 0x2C, 0, 0x15, 2, 0, 0], Ok(())),
            ("a map from numbers to text", &[0x1B, 1, 0x58, 2, 1, b'a', 0], Ok(())),
            ("a map of nothing", &[0x1B, 0, 0], Ok(())),
            ("an empty list", &[0x19, 0x00, 0], Ok(())),
            ("no end", &[0x15, 0x02], Err(Flaw::Cut)),
            ("text that ends too soon", &[0x18, 3, b'a'], Err(Flaw::Cut)),
            ("a list that is too long", &[0x19, 0xF7, 0xFF, 0xFF, 0xFF, 0xFF, 7], Err(Flaw::Cut)),
            ("a list of booleans", &[0x19, 0x21, 1, 1, 0], Err(Flaw::Wrong)),
            ("a map of booleans", &[0x1B, 2, 0x12, 0], Err(Flaw::Wrong)),
            ("a number too great", &[0x15, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F, 0], Err(Flaw::Wrong)),
            ("a kind that there is not", &[0x1F, 0], Err(Flaw::Wrong)),
            ("a number without end", &[[0x15].as_slice(), &[0xFF; 11]].concat(), Err(Flaw::Wrong)),
            ("structs in structs", &deep, Err(Flaw::Wrong)),
            ("a number that should be text", &[0x05, 0x3C, 0x02, 0], Err(Flaw::Wrong)),
            ("numbers that should be text", &[0x09, 0x3E, 0x15, 0x02, 0], Err(Flaw::Wrong)),
            ("texts", &[0x09, 0x3E, 0x18, 1, b'a', 0], Ok(())),
        ] {
            let shape = Shape::Struct(&[(30, &Shape::Binary), (31, &Shape::List(&Shape::Binary))]);
            assert_eq!(check_struct(bytes, &shape), outcome, "{what}");
        }
    }
}
