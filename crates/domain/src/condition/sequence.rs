//! Sequence numbers of page blobs: the conditions on them and the three ways to change them.

use serde::{Deserialize, Serialize};

/// 0 to 2^63-1.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(try_from = "u64", into = "u64")]
pub struct SequenceNumber(u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a sequence number is at most 2^63-1")]
pub struct SequenceNumberTooLarge;

impl SequenceNumber {
    pub const MAX: Self = Self(i64::MAX as u64);

    pub fn parse(text: &str) -> Option<Self> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if digits { text.parse::<u64>().ok()?.try_into().ok() } else { None }
    }

    pub const fn get(self) -> u64 {
        self.0
    }
}

impl TryFrom<u64> for SequenceNumber {
    type Error = SequenceNumberTooLarge;

    fn try_from(number: u64) -> Result<Self, SequenceNumberTooLarge> {
        if number <= Self::MAX.0 { Ok(Self(number)) } else { Err(SequenceNumberTooLarge) }
    }
}

impl From<SequenceNumber> for u64 {
    fn from(number: SequenceNumber) -> Self {
        number.0
    }
}

/// `x-ms-if-sequence-number-le`, `-lt` and `-eq`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceConditions {
    pub at_most: Option<SequenceNumber>,
    pub below: Option<SequenceNumber>,
    pub equal: Option<SequenceNumber>,
}

/// `SequenceNumberConditionNotMet`
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the condition on the sequence number is not met")]
pub struct SequenceConditionNotMet;

impl SequenceConditions {
    pub fn check(&self, current: SequenceNumber) -> Result<(), SequenceConditionNotMet> {
        let met = self.at_most.is_none_or(|number| current <= number)
            && self.below.is_none_or(|number| current < number)
            && self.equal.is_none_or(|number| current == number);
        if met { Ok(()) } else { Err(SequenceConditionNotMet) }
    }
}

/// `x-ms-sequence-number-action` with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceAction {
    Max(SequenceNumber),
    Update(SequenceNumber),
    Increment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SequenceActionInvalid {
    #[error("there is no such action on a sequence number")]
    Unknown,
    #[error("this action on a sequence number needs a number")]
    NumberMissing,
    #[error("an increment of a sequence number takes no number")]
    NumberNotAllowed,
}

impl SequenceAction {
    pub fn new(
        action: &str,
        number: Option<SequenceNumber>,
    ) -> Result<Self, SequenceActionInvalid> {
        let needed = number.ok_or(SequenceActionInvalid::NumberMissing);
        match action.to_ascii_lowercase().as_str() {
            "max" => needed.map(Self::Max),
            "update" => needed.map(Self::Update),
            "increment" if number.is_some() => Err(SequenceActionInvalid::NumberNotAllowed),
            "increment" => Ok(Self::Increment),
            _ => Err(SequenceActionInvalid::Unknown),
        }
    }

    /// `SequenceNumberIncrementTooLarge` when there is no next number.
    pub fn apply(self, stored: SequenceNumber) -> Result<SequenceNumber, SequenceNumberTooLarge> {
        match self {
            Self::Max(number) => Ok(stored.max(number)),
            Self::Update(number) => Ok(number),
            Self::Increment => SequenceNumber::try_from(stored.0 + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn number(number: u64) -> SequenceNumber {
        SequenceNumber(number)
    }

    #[test]
    fn writes_go_on_only_at_the_sequence_numbers_asked_for() {
        let none = SequenceConditions::default();
        let le = SequenceConditions { at_most: Some(number(5)), ..none };
        let lt = SequenceConditions { below: Some(number(5)), ..none };
        let eq = SequenceConditions { equal: Some(number(5)), ..none };
        let le_and_eq = SequenceConditions { at_most: Some(number(9)), ..eq };
        for (cell, conditions, current, met) in [
            ("1.7 none sent", none, 5, true),
            ("1.7 le 5 / 4", le, 4, true),
            ("1.7 le 5 / 5", le, 5, true),
            ("1.7 le 5 / 6", le, 6, false),
            ("1.7 lt 5 / 4", lt, 4, true),
            ("1.7 lt 5 / 5", lt, 5, false),
            ("1.7 lt 5 / 6", lt, 6, false),
            ("1.7 eq 5 / 4", eq, 4, false),
            ("1.7 eq 5 / 5", eq, 5, true),
            ("1.7 eq 5 / 6", eq, 6, false),
            ("1.7 le 9 and eq 5 / 5", le_and_eq, 5, true),
            ("1.7 le 9 and eq 5 / 6", le_and_eq, 6, false),
        ] {
            let expected = if met { Ok(()) } else { Err(SequenceConditionNotMet) };
            assert_eq!(conditions.check(number(current)), expected, "{cell}");
        }
    }

    #[test]
    fn actions_change_the_number_as_they_say() {
        use SequenceActionInvalid::{NumberMissing, NumberNotAllowed, Unknown};
        for (cell, action, header, stored, expected) in [
            ("1.7 max / header above", "max", Some(9), 5, Ok(Ok(9))),
            ("1.7 max / header below", "max", Some(3), 5, Ok(Ok(5))),
            ("1.7 max / no header", "max", None, 5, Err(NumberMissing)),
            ("1.7 update / header below", "update", Some(3), 5, Ok(Ok(3))),
            ("1.7 update / header above", "Update", Some(9), 5, Ok(Ok(9))),
            ("1.7 update / no header", "update", None, 5, Err(NumberMissing)),
            ("1.7 increment", "increment", None, 5, Ok(Ok(6))),
            ("1.7 increment / header", "increment", Some(1), 5, Err(NumberNotAllowed)),
            (
                "1.7 increment / overflow",
                "increment",
                None,
                SequenceNumber::MAX.get(),
                Ok(Err(SequenceNumberTooLarge)),
            ),
            ("1.7 another action", "reset", None, 5, Err(Unknown)),
        ] {
            let applied = SequenceAction::new(action, header.map(number))
                .map(|action| action.apply(number(stored)).map(SequenceNumber::get));
            assert_eq!(applied, expected, "{cell}");
        }
    }

    #[test]
    fn sequence_numbers_reach_from_zero_to_the_greatest_signed_number() {
        for (cell, text, expected) in [
            ("1.7 range / 0", "0", Some(0)),
            ("1.7 range / 2^63-1", "9223372036854775807", Some(9_223_372_036_854_775_807)),
            ("1.7 range / 2^63", "9223372036854775808", None),
            ("1.7 range / 2^64", "18446744073709551616", None),
            ("1.7 range / -1", "-1", None),
            ("1.7 range / +1", "+1", None),
            ("1.7 range / empty", "", None),
        ] {
            assert_eq!(SequenceNumber::parse(text).map(SequenceNumber::get), expected, "{cell}");
        }
        assert_eq!(SequenceNumber::default().get(), 0, "1.7 default");
    }
}
