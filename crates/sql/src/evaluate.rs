//! Evaluates expressions for one record.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashSet;

use crate::like::{PATTERN_BYTES_MAX, Pattern};
use crate::sql::{Comparison, Expression, Function, LikePattern, TrimSide};
use crate::timestamp::{self, Timestamp};
use crate::value::{Number, Problem, Value, calculate, compare};
use crate::work::Work;

/// One record of an input.
pub trait Record {
    /// The value of the reference with this number.
    fn column(&self, reference: usize) -> Result<Value<'_>, Problem>;

    /// How many steps it may take to find it.
    fn column_steps(&self) -> u64 {
        1
    }
}

type Evaluated<'r> = Result<Value<'r>, Problem>;

pub struct Evaluator {
    /// The value of UTCNOW for the whole query.
    pub now: Timestamp,
    pub work: Work,
}

impl Evaluator {
    /// Whether a record passes the filter; NULL does not.
    pub fn passes(&self, filter: &Expression, record: &impl Record) -> Result<bool, Problem> {
        Ok(self.condition(filter, record)? == Some(true))
    }

    pub fn evaluate<'r>(
        &self,
        expression: &'r Expression,
        record: &'r impl Record,
    ) -> Evaluated<'r> {
        let value = self.value_of(expression, record)?;
        self.work.spend(1 + value.bytes())?;
        Ok(value)
    }

    fn value_of<'r>(&self, expression: &'r Expression, record: &'r impl Record) -> Evaluated<'r> {
        match expression {
            Expression::Null => Ok(Value::Null),
            Expression::Boolean(value) => Ok(Value::Boolean(*value)),
            Expression::Integer(number) => Ok(Value::Integer(*number)),
            Expression::Float(number) => Ok(Value::Float(*number)),
            Expression::Text(text) => Ok(Value::Text(Cow::Borrowed(text.as_bytes()))),
            Expression::Column(reference) => {
                self.work.spend(record.column_steps())?;
                record.column(*reference)
            }
            Expression::And(_)
            | Expression::Or(_)
            | Expression::Not(_)
            | Expression::Compare(..)
            | Expression::Between(_)
            | Expression::In(..)
            | Expression::Like(..)
            | Expression::IsNull(_)
            | Expression::IsMissing(_) => {
                Ok(self.condition(expression, record)?.map_or(Value::Null, Value::Boolean))
            }
            Expression::Negate(value) => calculate(
                crate::sql::Arithmetic::Subtract,
                &Value::Integer(0),
                &self.evaluate(value, record)?,
            ),
            Expression::Calculate(arithmetic, sides) => calculate(
                *arithmetic,
                &self.evaluate(&sides.0, record)?,
                &self.evaluate(&sides.1, record)?,
            ),
            Expression::Cast(value, kind) => self.evaluate(value, record)?.cast(*kind),
            Expression::Case(branches, otherwise) => {
                for (condition, value) in branches {
                    if self.condition(condition, record)? == Some(true) {
                        return self.evaluate(value, record);
                    }
                }
                self.evaluate(otherwise, record)
            }
            Expression::Call(function, arguments) => self.call(*function, arguments, record),
        }
    }

    /// True, false or unknown.
    fn condition(
        &self,
        expression: &Expression,
        record: &impl Record,
    ) -> Result<Option<bool>, Problem> {
        match expression {
            Expression::And(terms) => self.all(terms, true, record),
            Expression::Or(terms) => self.all(terms, false, record),
            Expression::Not(term) => Ok(self.condition(term, record)?.map(|holds| !holds)),
            Expression::Compare(comparison, sides) => {
                let left = self.evaluate(&sides.0, record)?;
                let right = self.evaluate(&sides.1, record)?;
                let order = compare(&left, &right)?;
                Ok(order.map(|order| holds(*comparison, order)))
            }
            Expression::Between(parts) => {
                let value = self.evaluate(&parts.0, record)?;
                let lowest = compare(&value, &self.evaluate(&parts.1, record)?)?;
                let highest = compare(&value, &self.evaluate(&parts.2, record)?)?;
                Ok(lowest.zip(highest).map(|(lowest, highest)| lowest.is_ge() && highest.is_le()))
            }
            Expression::In(value, list) => {
                let value = self.evaluate(value, record)?;
                let mut unknown = false;
                for candidate in list {
                    match compare(&value, &self.evaluate(candidate, record)?)? {
                        Some(Ordering::Equal) => return Ok(Some(true)),
                        Some(Ordering::Less | Ordering::Greater) => {}
                        None => unknown = true,
                    }
                }
                Ok((!unknown).then_some(false))
            }
            Expression::Like(value, LikePattern::Constant(pattern)) => {
                let value = self.evaluate(value, record)?;
                if value.is_null() { Ok(None) } else { self.like(&value, pattern).map(Some) }
            }
            Expression::Like(value, LikePattern::Each(pattern, escape)) => {
                let value = self.evaluate(value, record)?;
                let pattern = self.evaluate(pattern, record)?;
                if value.is_null() || pattern.is_null() {
                    return Ok(None);
                }
                let pattern = pattern.to_text();
                if pattern.len() > PATTERN_BYTES_MAX {
                    return Err(Problem::InvalidTypeConversion);
                }
                let pattern = Pattern::new(&String::from_utf8_lossy(&pattern), *escape);
                self.like(&value, &pattern).map(Some)
            }
            Expression::IsNull(value) => Ok(Some(self.evaluate(value, record)?.is_null())),
            Expression::IsMissing(value) => {
                Ok(Some(self.evaluate(value, record)? == Value::Missing))
            }
            Expression::Null
            | Expression::Boolean(_)
            | Expression::Integer(_)
            | Expression::Float(_)
            | Expression::Text(_)
            | Expression::Column(_)
            | Expression::Negate(_)
            | Expression::Calculate(..)
            | Expression::Cast(..)
            | Expression::Case(..)
            | Expression::Call(..) => {
                let value = self.evaluate(expression, record)?;
                if value.is_null() { Ok(None) } else { value.to_boolean().map(Some) }
            }
        }
    }

    fn like(&self, value: &Value<'_>, pattern: &Pattern) -> Result<bool, Problem> {
        let text = value.to_text();
        self.work.spend(text.len() as u64 * pattern.steps_for_each_character())?;
        Ok(pattern.matches(&String::from_utf8_lossy(&text)))
    }

    /// AND if `all`, otherwise OR: one term of the other value decides.
    fn all(
        &self,
        terms: &[Expression],
        all: bool,
        record: &impl Record,
    ) -> Result<Option<bool>, Problem> {
        let mut known = Some(all);
        for term in terms {
            match self.condition(term, record)? {
                Some(holds) if holds != all => return Ok(Some(holds)),
                Some(_) => {}
                None => known = None,
            }
        }
        Ok(known)
    }

    fn call<'r>(
        &self,
        function: Function,
        arguments: &'r [Expression],
        record: &'r impl Record,
    ) -> Evaluated<'r> {
        match function {
            Function::UtcNow => return Ok(Value::Timestamp(self.now)),
            Function::Coalesce => {
                for argument in arguments {
                    let value = self.evaluate(argument, record)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                return Ok(Value::Null);
            }
            Function::NullIf => {
                let value = self.evaluate(&arguments[0], record)?;
                let other = self.evaluate(&arguments[1], record)?;
                let equal = compare(&value, &other)? == Some(Ordering::Equal);
                return Ok(if equal { Value::Null } else { value });
            }
            Function::CharacterLength
            | Function::Lower
            | Function::Upper
            | Function::Substring
            | Function::Trim(_)
            | Function::DateAdd(_)
            | Function::DateDifference(_)
            | Function::Extract(_)
            | Function::ToString
            | Function::ToTimestamp => {}
        }
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let value = self.evaluate(argument, record)?;
            if value.is_null() {
                return Ok(Value::Null);
            }
            values.push(value);
        }
        apply(function, &values)
    }
}

fn holds(comparison: Comparison, order: Ordering) -> bool {
    match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }
}

/// Applies a function to values, none of which is NULL; the parser has checked their number.
fn apply(function: Function, values: &[Value<'_>]) -> Result<Value<'static>, Problem> {
    let text = |at: usize| String::from_utf8_lossy(&values[at].to_text()).into_owned();
    Ok(match function {
        Function::CharacterLength => {
            Value::Integer(i64::try_from(text(0).chars().count()).unwrap_or(i64::MAX))
        }
        Function::Lower => Value::text(text(0).to_lowercase()),
        Function::Upper => Value::text(text(0).to_uppercase()),
        Function::Substring => {
            let length = values.get(2).map(Value::to_integer).transpose()?;
            Value::text(substring(&text(0), values[1].to_integer()?, length))
        }
        Function::Trim(side) => {
            let characters = if values.len() > 1 { text(1) } else { " ".to_owned() };
            Value::text(trim(&text(0), &characters, side).to_owned())
        }
        Function::DateAdd(part) => {
            let quantity = match values[0].to_number()? {
                Number::Integer(quantity) => quantity,
                Number::Float(_) => return Err(Problem::InvalidTypeConversion),
            };
            timestamp::add(part, quantity, values[1].to_timestamp()?)
                .map(Value::Timestamp)
                .ok_or(Problem::ArithmeticOverflow)?
        }
        Function::DateDifference(part) => Value::Integer(timestamp::difference(
            part,
            values[0].to_timestamp()?,
            values[1].to_timestamp()?,
        )),
        Function::Extract(part) => {
            Value::Integer(timestamp::extract(part, values[0].to_timestamp()?))
        }
        Function::ToString => timestamp::format(values[0].to_timestamp()?, &text(1))
            .map(Value::text)
            .ok_or(Problem::InvalidTypeConversion)?,
        Function::ToTimestamp => Value::Timestamp(values[0].to_timestamp()?),
        Function::UtcNow | Function::Coalesce | Function::NullIf => Value::Null,
    })
}

/// The first character is number 0, as in the example of the language reference:
/// `SUBSTRING('123456789', 1, 5)` is `23456`.
fn substring(text: &str, start: i64, length: Option<i64>) -> String {
    let end = length.map_or(i64::MAX, |length| start.saturating_add(length));
    let clamp = |number: i64| usize::try_from(number.max(0)).unwrap_or(usize::MAX);
    let (start, end) = (clamp(start), clamp(end));
    text.chars().skip(start).take(end.saturating_sub(start)).collect()
}

fn trim<'a>(text: &'a str, characters: &str, side: TrimSide) -> &'a str {
    // Not the text itself, which may be as long as the statement.
    let characters: HashSet<char> = characters.chars().collect();
    let cut = |letter: char| characters.contains(&letter);
    match side {
        TrimSide::Both => text.trim_matches(cut),
        TrimSide::Leading => text.trim_start_matches(cut),
        TrimSide::Trailing => text.trim_end_matches(cut),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{Projection, Statement, parse};
    use crate::work::GivenUp;

    /// `_1` is 7, `_2` a text, `_3` NULL, and more are missing.
    struct Sample(Statement);

    impl Record for Sample {
        fn column(&self, reference: usize) -> Result<Value<'_>, Problem> {
            match self.0.references[reference].ordinal() {
                Some(0) => Ok(Value::Text(Cow::Borrowed(b"7"))),
                Some(1) => Ok(Value::Text(Cow::Borrowed("Grün ".as_bytes()))),
                Some(2) => Ok(Value::Null),
                Some(8) => Err(Problem::InvalidColumnOrdinal),
                _ => Ok(Value::Missing),
            }
        }
    }

    fn evaluate(expression: &str) -> Result<String, Problem> {
        let statement = parse(&format!("SELECT {expression} FROM BlobStorage"))
            .unwrap_or_else(|error| panic!("{expression}: {error}"));
        let sample = Sample(statement.clone());
        let Projection::Columns(columns) = &statement.projection else { panic!("columns") };
        let now = timestamp::parse("2020-02-03T04:05:06Z").expect("a time");
        let value = Evaluator { now, work: Work::new(GivenUp::default(), 1 << 20) }
            .evaluate(&columns[0].expression, &sample)?
            .into_owned();
        Ok(if value.is_null() {
            "NULL".to_owned()
        } else {
            String::from_utf8_lossy(&value.to_text()).into_owned()
        })
    }

    #[test]
    fn the_examples_of_the_language_reference_hold() {
        for (expression, expected) in [
            ("CHARACTER_LENGTH('abcdefg')", "7"),
            ("CHAR_LENGTH(_1)", "1"),
            ("LOWER('AbCdEfG')", "abcdefg"),
            ("UPPER('AbCdEfG')", "ABCDEFG"),
            ("SUBSTRING('123456789', 1, 5)", "23456"),
            ("TRIM(BOTH '123' FROM '1112211Microsoft22211122')", "Microsoft"),
            (
                "DATE_ADD('minute', 1, CAST('2017-01-02T03:04:05.006Z' AS TIMESTAMP))",
                "2017-01-02T03:05:05.006Z",
            ),
            ("EXTRACT(YEAR FROM '2010-01-01T')", "2010"),
            ("TO_STRING(CAST('1969-07-20T20:18Z' AS TIMESTAMP),  'MMMM d, y')", "July 20, 1969"),
            ("TO_TIMESTAMP('2007T')", "2007-01-01T00:00:00Z"),
            ("UTCNOW()", "2020-02-03T04:05:06Z"),
        ] {
            assert_eq!(evaluate(expression).as_deref(), Ok(expected), "{expression}");
        }
    }

    #[test]
    fn functions_take_characters_not_bytes() {
        for (expression, expected) in [
            ("CHAR_LENGTH(_2)", "5"),
            ("UPPER(_2)", "GRÜN "),
            ("TRIM(_2)", "Grün"),
            ("SUBSTRING(_2, 2)", "ün "),
            ("SUBSTRING(_2 FROM -1 FOR 2)", "G"),
            ("SUBSTRING(_2, 9, 9)", ""),
            ("TRIM(TRAILING 'n ' FROM _2)", "Grü"),
            ("TRIM(LEADING 'G' FROM _2)", "rün "),
        ] {
            assert_eq!(evaluate(expression).as_deref(), Ok(expected), "{expression}");
        }
    }

    #[test]
    fn conditions_know_true_false_and_unknown() {
        for (expression, expected) in [
            ("_1 > 6 AND _1 < 8", "true"),
            ("_1 > 6 AND _3 = 1", "NULL"),
            ("_1 < 6 AND _3 = 1", "false"),
            ("_1 > 6 OR _3 = 1", "true"),
            ("_1 < 6 OR _3 = 1", "NULL"),
            ("NOT _3 = 1", "NULL"),
            ("NOT _1 = 7", "false"),
            ("_1 BETWEEN 7 AND 8", "true"),
            ("_1 NOT BETWEEN 7 AND 8", "false"),
            ("_1 IN (1, '7')", "true"),
            ("_1 IN (1, 2)", "false"),
            ("_1 IN (1, NULL)", "NULL"),
            ("_2 LIKE 'Gr_n%'", "true"),
            ("_3 LIKE '%'", "NULL"),
            ("_3 IS NULL", "true"),
            ("_4 IS NULL", "true"),
            ("_3 IS MISSING", "false"),
            ("_4 IS MISSING", "true"),
            ("_4 IS NOT MISSING", "false"),
            ("_1 <> 7", "false"),
        ] {
            assert_eq!(evaluate(expression).as_deref(), Ok(expected), "{expression}");
        }
    }

    #[test]
    fn the_first_value_that_fits_is_taken() {
        for (expression, expected) in [
            ("COALESCE(_3, _4, _1)", "7"),
            ("COALESCE(_3, NULL)", "NULL"),
            ("NULLIF(_1, 7)", "NULL"),
            ("NULLIF(_1, 8)", "7"),
            ("CASE WHEN _1 = 1 THEN 'a' WHEN _1 = 7 THEN 'b' ELSE 'c' END", "b"),
            ("CASE _1 WHEN 1 THEN 'a' END", "NULL"),
            ("-_1 + 2 * 3 - 10 % 4", "-3"),
            ("LOWER(_3)", "NULL"),
        ] {
            assert_eq!(evaluate(expression).as_deref(), Ok(expected), "{expression}");
        }
    }

    #[test]
    fn a_problem_of_a_part_is_one_of_the_whole() {
        for (expression, problem) in [
            ("_2 > 1", Problem::InvalidTypeConversion),
            ("CAST(_2 AS INT)", Problem::InvalidTypeConversion),
            ("_9", Problem::InvalidColumnOrdinal),
            ("1 / 0", Problem::DivideByZero),
            ("DATE_ADD(year, 1000000, UTCNOW())", Problem::ArithmeticOverflow),
            ("TO_STRING(UTCNOW(), 'q')", Problem::InvalidTypeConversion),
        ] {
            assert_eq!(evaluate(expression), Err(problem), "{expression}");
        }
    }
}
