//! The meaning of a LOCK request, [MS-SMB2] 3.3.5.14.

use crate::status::Status;
use crate::wire::lock::{EXCLUSIVE, Element, FAIL_IMMEDIATELY, SHARED, UNLOCK};

/// More than any client sends.
const ELEMENTS_MAX: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    Lock {
        ranges: Vec<LockedRange>,
        waits: bool,
    },
    /// One after the other, up to the first that is not locked.
    Unlock {
        ranges: Vec<(u64, u64)>,
        and_then: Option<Status>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockedRange {
    pub offset: u64,
    pub length: u64,
    pub is_exclusive: bool,
}

/// The first element decides whether the request locks or unlocks, and all others must agree.
/// Ranges unlocked before one that does not agree stay unlocked.
pub fn decide(elements: &[Element]) -> Result<Asked, Status> {
    let invalid = Err(Status::INVALID_PARAMETER);
    let Some(first) = elements.first() else { return invalid };
    if elements.len() > ELEMENTS_MAX {
        return invalid;
    }
    if first.flags == UNLOCK {
        let unlocks = elements.iter().take_while(|element| element.flags == UNLOCK);
        let ranges: Vec<_> = unlocks.map(|element| (element.offset, element.length)).collect();
        let agree = ranges.len() == elements.len();
        let and_then = (!agree).then_some(Status::INVALID_PARAMETER);
        return Ok(Asked::Unlock { ranges, and_then });
    }
    let waits = first.flags & FAIL_IMMEDIATELY == 0;
    // Only a single lock may wait.
    if elements.len() > 1 && elements.iter().any(|it| it.flags & FAIL_IMMEDIATELY == 0) {
        return invalid;
    }
    let ranges = elements.iter().map(locked).collect::<Result<_, _>>()?;
    Ok(Asked::Lock { ranges, waits })
}

fn locked(element: &Element) -> Result<LockedRange, Status> {
    let is_exclusive = match element.flags & !FAIL_IMMEDIATELY {
        SHARED => false,
        EXCLUSIVE => true,
        _ => return Err(Status::INVALID_PARAMETER),
    };
    let (offset, length) = (element.offset, element.length);
    if length > 0 && offset.checked_add(length - 1).is_none() {
        return Err(Status::INVALID_LOCK_RANGE);
    }
    Ok(LockedRange { offset, length, is_exclusive })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(flags: u32) -> Element {
        Element { offset: 1, length: 2, flags }
    }

    fn lock(is_exclusive: bool, waits: bool) -> Result<Asked, Status> {
        Ok(Asked::Lock { ranges: vec![LockedRange { offset: 1, length: 2, is_exclusive }], waits })
    }

    fn unlock(count: usize, and_then: Option<Status>) -> Result<Asked, Status> {
        Ok(Asked::Unlock { ranges: vec![(1, 2); count], and_then })
    }

    #[test]
    fn flags_say_what_is_asked_for() {
        let invalid = Err(Status::INVALID_PARAMETER);
        for (flags, expected) in [
            (&[SHARED][..], lock(false, true)),
            (&[EXCLUSIVE], lock(true, true)),
            (&[SHARED | FAIL_IMMEDIATELY], lock(false, false)),
            (&[EXCLUSIVE | FAIL_IMMEDIATELY], lock(true, false)),
            (&[UNLOCK], unlock(1, None)),
            (&[UNLOCK, UNLOCK], unlock(2, None)),
            (&[UNLOCK, SHARED], unlock(1, Some(Status::INVALID_PARAMETER))),
            (&[], invalid.clone()),
            (&[0], invalid.clone()),
            (&[SHARED | EXCLUSIVE], invalid.clone()),
            (&[UNLOCK | FAIL_IMMEDIATELY], invalid.clone()),
            (&[SHARED, SHARED], invalid.clone()),
            (&[SHARED | FAIL_IMMEDIATELY, SHARED], invalid.clone()),
            (&[SHARED | FAIL_IMMEDIATELY, UNLOCK], invalid.clone()),
        ] {
            let elements: Vec<Element> = flags.iter().map(|flags| element(*flags)).collect();
            assert_eq!(decide(&elements), expected, "{flags:?}");
        }
    }

    #[test]
    fn a_lock_ends_at_the_last_byte_that_can_be_named() {
        let at = |offset, length| [Element { offset, length, flags: EXCLUSIVE }];
        assert!(decide(&at(u64::MAX, 1)).is_ok());
        assert!(decide(&at(u64::MAX, 0)).is_ok());
        assert_eq!(decide(&at(u64::MAX, 2)), Err(Status::INVALID_LOCK_RANGE));
    }
}
