//! Values, and conversions between kinds. Values of delimited text are texts; where an operator
//! needs another kind, they are converted by the precedence of kinds: timestamp, float, integer,
//! boolean, text.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::sql::{Arithmetic, Kind};
use crate::timestamp::{self, Timestamp};

#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// A field that a JSON record does not have; NULL to every operator but IS MISSING.
    Missing,
    Null,
    Boolean(bool),
    Integer(i64),
    Float(f64),
    /// As in the blob, in any encoding.
    Text(Cow<'a, [u8]>),
    Timestamp(Timestamp),
    /// The text of a number, an object or an array as in the JSON document.
    Json(Cow<'a, [u8]>),
}

/// Why a record is left out of the answer, which continues with the next one unless the query ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    InvalidTypeConversion,
    InvalidColumnOrdinal,
    ArithmeticOverflow,
    DivideByZero,
    /// Ends the query.
    TooMuchWork,
    /// Ends the query: its client is gone.
    GivenUp,
}

impl Problem {
    pub const fn ends_query(self) -> bool {
        match self {
            Self::TooMuchWork | Self::GivenUp => true,
            Self::InvalidTypeConversion
            | Self::InvalidColumnOrdinal
            | Self::ArithmeticOverflow
            | Self::DivideByZero => false,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidTypeConversion => "InvalidTypeConversion",
            Self::InvalidColumnOrdinal => "InvalidColumnOrdinal",
            Self::ArithmeticOverflow => "ArithmeticOverflow",
            Self::DivideByZero => "DivideByZero",
            Self::TooMuchWork => "QueryTooComplex",
            Self::GivenUp => "QueryGivenUp",
        }
    }

    pub const fn description(self) -> &'static str {
        match self {
            Self::InvalidTypeConversion => "Invalid type conversion.",
            Self::InvalidColumnOrdinal => "Invalid column ordinal.",
            Self::ArithmeticOverflow => "Arithmetic overflow.",
            Self::DivideByZero => "Division by zero.",
            Self::TooMuchWork => "The query takes too much work for its blob.",
            Self::GivenUp => "The query was given up.",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Integer(i64),
    Float(f64),
}

impl Number {
    #[allow(clippy::cast_precision_loss, reason = "a sum of both kinds is a float")]
    pub fn float(self) -> f64 {
        match self {
            Self::Integer(number) => number as f64,
            Self::Float(number) => number,
        }
    }
}

impl From<Number> for Value<'_> {
    fn from(number: Number) -> Self {
        match number {
            Number::Integer(number) => Self::Integer(number),
            Number::Float(number) => Self::Float(number),
        }
    }
}

impl<'a> Value<'a> {
    /// The length of its text, if it has one.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Text(text) | Self::Json(text) => text.len() as u64,
            Self::Missing
            | Self::Null
            | Self::Boolean(_)
            | Self::Integer(_)
            | Self::Float(_)
            | Self::Timestamp(_) => 0,
        }
    }

    pub fn text(text: String) -> Self {
        Self::Text(Cow::Owned(text.into_bytes()))
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Self::Missing | Self::Null)
    }

    pub fn into_owned(self) -> Value<'static> {
        match self {
            Self::Missing => Value::Missing,
            Self::Null => Value::Null,
            Self::Boolean(value) => Value::Boolean(value),
            Self::Integer(value) => Value::Integer(value),
            Self::Float(value) => Value::Float(value),
            Self::Timestamp(value) => Value::Timestamp(value),
            Self::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Self::Json(text) => Value::Json(Cow::Owned(text.into_owned())),
        }
    }

    /// As written in delimited text; empty for NULL.
    pub fn to_text(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Missing | Self::Null => Cow::Borrowed(b""),
            Self::Boolean(true) => Cow::Borrowed(b"true"),
            Self::Boolean(false) => Cow::Borrowed(b"false"),
            Self::Integer(number) => Cow::Owned(number.to_string().into_bytes()),
            Self::Float(number) => Cow::Owned(float_text(*number).into_bytes()),
            Self::Text(text) | Self::Json(text) => Cow::Borrowed(text),
            Self::Timestamp(time) => Cow::Owned(timestamp::text(*time).into_bytes()),
        }
    }

    pub fn to_number(&self) -> Result<Number, Problem> {
        match self {
            Self::Integer(number) => Ok(Number::Integer(*number)),
            Self::Float(number) => Ok(Number::Float(*number)),
            Self::Boolean(value) => Ok(Number::Integer(i64::from(*value))),
            Self::Text(text) | Self::Json(text) => {
                number(text).ok_or(Problem::InvalidTypeConversion)
            }
            Self::Missing | Self::Null | Self::Timestamp(_) => Err(Problem::InvalidTypeConversion),
        }
    }

    pub fn to_timestamp(&self) -> Result<Timestamp, Problem> {
        match self {
            Self::Timestamp(time) => Ok(*time),
            Self::Text(text) => std::str::from_utf8(text)
                .ok()
                .and_then(timestamp::parse)
                .ok_or(Problem::InvalidTypeConversion),
            Self::Missing
            | Self::Null
            | Self::Boolean(_)
            | Self::Integer(_)
            | Self::Float(_)
            | Self::Json(_) => Err(Problem::InvalidTypeConversion),
        }
    }

    pub fn to_boolean(&self) -> Result<bool, Problem> {
        match self {
            Self::Boolean(value) => Ok(*value),
            Self::Integer(number) => Ok(*number != 0),
            Self::Float(number) => Ok(*number != 0.0),
            Self::Text(text) => {
                let text = text.trim_ascii();
                if text.eq_ignore_ascii_case(b"true") || text == b"1" {
                    Ok(true)
                } else if text.eq_ignore_ascii_case(b"false") || text == b"0" {
                    Ok(false)
                } else {
                    Err(Problem::InvalidTypeConversion)
                }
            }
            Self::Json(_) => Ok(self.to_number()?.float() != 0.0),
            Self::Missing | Self::Null | Self::Timestamp(_) => Err(Problem::InvalidTypeConversion),
        }
    }

    /// CAST; NULL stays NULL.
    pub fn cast(self, kind: Kind) -> Result<Self, Problem> {
        if self.is_null() {
            return Ok(Self::Null);
        }
        match kind {
            Kind::Integer => self.to_integer().map(Self::Integer),
            Kind::Float => self.to_number().map(|number| Self::Float(number.float())),
            Kind::Timestamp => self.to_timestamp().map(Self::Timestamp),
            Kind::Boolean => self.to_boolean().map(Self::Boolean),
            Kind::Text if matches!(self, Self::Text(_)) => Ok(self),
            Kind::Text => Ok(Self::Text(Cow::Owned(self.to_text().into_owned()))),
        }
    }

    /// A float loses its fraction; a text must be an integer.
    pub fn to_integer(&self) -> Result<i64, Problem> {
        match (self, self.to_number()?) {
            (_, Number::Integer(number)) => Ok(number),
            (Self::Float(_) | Self::Json(_), Number::Float(number)) => integer(number),
            (_, Number::Float(_)) => Err(Problem::InvalidTypeConversion),
        }
    }
}

#[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
fn integer(number: f64) -> Result<i64, Problem> {
    const BOUND: f64 = 9_223_372_036_854_775_808.0;
    if (-BOUND..BOUND).contains(&number) {
        Ok(number as i64)
    } else {
        Err(Problem::InvalidTypeConversion)
    }
}

/// Shortest digits that read back as the same number; a whole one has no fraction.
pub fn float_text(number: f64) -> String {
    let mut text = format!("{number:?}");
    if text.ends_with(".0") {
        text.truncate(text.len() - 2);
    }
    text
}

/// Surrounding white space is ignored.
fn number(text: &[u8]) -> Option<Number> {
    let text = text.trim_ascii();
    if let Some(number) = short_integer(text) {
        return Some(Number::Integer(number));
    }
    let text = std::str::from_utf8(text).ok()?;
    if let Ok(number) = text.parse() {
        return Some(Number::Integer(number));
    }
    // Names of infinity and NaN are texts, not numbers.
    if !text.ends_with(|letter: char| letter.is_ascii_digit() || letter == '.') {
        return None;
    }
    text.parse().ok().map(Number::Float)
}

/// Up to 18 digits cannot overflow; most numbers are so short.
fn short_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut number = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number * 10 + i64::from(digit - b'0');
    }
    Some(if negative { -number } else { number })
}

/// `None` if either is NULL, or if they cannot be ordered.
pub fn compare(left: &Value<'_>, right: &Value<'_>) -> Result<Option<Ordering>, Problem> {
    match (left, right) {
        (Value::Missing | Value::Null, _) | (_, Value::Missing | Value::Null) => Ok(None),
        (Value::Text(left), Value::Text(right)) => Ok(Some(left.cmp(right))),
        (Value::Timestamp(_), _) | (_, Value::Timestamp(_)) => {
            Ok(Some(left.to_timestamp()?.cmp(&right.to_timestamp()?)))
        }
        (Value::Integer(_) | Value::Float(_) | Value::Json(_), _)
        | (_, Value::Integer(_) | Value::Float(_) | Value::Json(_)) => {
            Ok(match (left.to_number()?, right.to_number()?) {
                (Number::Integer(left), Number::Integer(right)) => Some(left.cmp(&right)),
                (left, right) => left.float().partial_cmp(&right.float()),
            })
        }
        (Value::Boolean(_), _) | (_, Value::Boolean(_)) => {
            Ok(Some(left.to_boolean()?.cmp(&right.to_boolean()?)))
        }
    }
}

/// NULL if either side is.
pub fn calculate(
    arithmetic: Arithmetic,
    left: &Value<'_>,
    right: &Value<'_>,
) -> Result<Value<'static>, Problem> {
    if left.is_null() || right.is_null() {
        return Ok(Value::Null);
    }
    if let Value::Timestamp(time) = left {
        return add_days(arithmetic, *time, right);
    }
    match (left.to_number()?, right.to_number()?) {
        (Number::Integer(left), Number::Integer(right)) => {
            integers(arithmetic, left, right).map(Value::Integer)
        }
        (left, right) => floats(arithmetic, left.float(), right.float()).map(Value::Float),
    }
}

/// A number added to a time is a number of days.
fn add_days(
    arithmetic: Arithmetic,
    time: Timestamp,
    days: &Value<'_>,
) -> Result<Value<'static>, Problem> {
    let days = days.to_integer()?;
    let days = match arithmetic {
        Arithmetic::Add => Some(days),
        Arithmetic::Subtract => days.checked_neg(),
        Arithmetic::Multiply | Arithmetic::Divide | Arithmetic::Remainder => {
            return Err(Problem::InvalidTypeConversion);
        }
    };
    days.and_then(|days| timestamp::add(crate::sql::DatePart::Day, days, time))
        .map(Value::Timestamp)
        .ok_or(Problem::ArithmeticOverflow)
}

fn integers(arithmetic: Arithmetic, left: i64, right: i64) -> Result<i64, Problem> {
    let divides = matches!(arithmetic, Arithmetic::Divide | Arithmetic::Remainder);
    if divides && right == 0 {
        return Err(Problem::DivideByZero);
    }
    match arithmetic {
        Arithmetic::Add => left.checked_add(right),
        Arithmetic::Subtract => left.checked_sub(right),
        Arithmetic::Multiply => left.checked_mul(right),
        Arithmetic::Divide => left.checked_div(right),
        Arithmetic::Remainder => left.checked_rem(right),
    }
    .ok_or(Problem::ArithmeticOverflow)
}

fn floats(arithmetic: Arithmetic, left: f64, right: f64) -> Result<f64, Problem> {
    let result = match arithmetic {
        Arithmetic::Add => left + right,
        Arithmetic::Subtract => left - right,
        Arithmetic::Multiply => left * right,
        Arithmetic::Divide | Arithmetic::Remainder if right == 0.0 => {
            return Err(Problem::DivideByZero);
        }
        Arithmetic::Divide => left / right,
        Arithmetic::Remainder => left % right,
    };
    if result.is_finite() { Ok(result) } else { Err(Problem::ArithmeticOverflow) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &'static str) -> Value<'static> {
        Value::Text(Cow::Borrowed(text.as_bytes()))
    }

    fn ordered(left: &Value<'_>, right: &Value<'_>) -> Result<Option<Ordering>, Problem> {
        compare(left, right)
    }

    #[test]
    fn a_text_is_compared_as_the_kind_of_the_other_side() {
        let instant = text("2020-01-02").to_timestamp().expect("a time");
        for (left, right, expected) in [
            (text("300"), Value::Integer(250), Ordering::Greater),
            (text(" 12.5 "), Value::Integer(12), Ordering::Greater),
            (text("9"), Value::Float(10.0), Ordering::Less),
            (text("9"), text("10"), Ordering::Greater),
            (text("TRUE"), Value::Boolean(true), Ordering::Equal),
            (Value::Boolean(true), Value::Integer(0), Ordering::Greater),
            (text("2020-01-02T01:00Z"), Value::Timestamp(instant), Ordering::Greater),
        ] {
            assert_eq!(ordered(&left, &right), Ok(Some(expected)), "{left:?} {right:?}");
        }
    }

    #[test]
    fn what_cannot_be_converted_is_a_problem_and_null_is_none() {
        let invalid = Err(Problem::InvalidTypeConversion);
        assert_eq!(ordered(&text("pizza"), &Value::Integer(250)), invalid);
        assert_eq!(ordered(&text(""), &Value::Integer(250)), invalid);
        assert_eq!(ordered(&text("inf"), &Value::Integer(250)), invalid);
        assert_eq!(ordered(&text("NaN"), &Value::Float(1.0)), invalid);
        assert_eq!(ordered(&Value::Json(Cow::Borrowed(b"{}")), &text("{}")), invalid);
        assert_eq!(ordered(&Value::Null, &Value::Integer(1)), Ok(None));
        assert_eq!(ordered(&Value::Missing, &Value::Missing), Ok(None));
    }

    #[test]
    fn casts_follow_the_table_of_kinds() {
        assert_eq!(text("12").cast(Kind::Integer), Ok(Value::Integer(12)));
        assert_eq!(text("12.5").cast(Kind::Integer), Err(Problem::InvalidTypeConversion));
        assert_eq!(Value::Float(12.9).cast(Kind::Integer), Ok(Value::Integer(12)));
        assert_eq!(Value::Float(1e30).cast(Kind::Integer), Err(Problem::InvalidTypeConversion));
        assert_eq!(text("1e3").cast(Kind::Float), Ok(Value::Float(1000.0)));
        assert_eq!(text("yes").cast(Kind::Boolean), Err(Problem::InvalidTypeConversion));
        assert_eq!(Value::Float(2.0).cast(Kind::Text), Ok(text("2")));
        assert_eq!(Value::Missing.cast(Kind::Integer), Ok(Value::Null));
    }

    #[test]
    fn arithmetic_is_checked() {
        use Arithmetic::{Add, Divide, Multiply, Remainder, Subtract};
        let run =
            |arithmetic, left: &Value<'_>, right: &Value<'_>| calculate(arithmetic, left, right);
        assert_eq!(run(Add, &text("1"), &text("2")), Ok(Value::Integer(3)));
        assert_eq!(run(Divide, &Value::Integer(7), &Value::Integer(2)), Ok(Value::Integer(3)));
        assert_eq!(run(Divide, &Value::Integer(7), &Value::Float(2.0)), Ok(Value::Float(3.5)));
        assert_eq!(run(Remainder, &Value::Integer(7), &text("0")), Err(Problem::DivideByZero));
        assert_eq!(run(Divide, &Value::Float(7.0), &text("0")), Err(Problem::DivideByZero));
        let most = Value::Integer(i64::MAX);
        assert_eq!(run(Multiply, &most, &most), Err(Problem::ArithmeticOverflow));
        assert_eq!(run(Subtract, &Value::Null, &most), Ok(Value::Null));
        let day = Value::Timestamp(text("2020-02-28").to_timestamp().expect("a time"));
        let next = run(Add, &day, &Value::Integer(2)).expect("a time");
        assert_eq!(&*next.to_text(), b"2020-03-01T00:00:00Z");
    }
}
