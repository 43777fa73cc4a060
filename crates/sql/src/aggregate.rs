//! Aggregates over all records.

use std::cmp::Ordering;

use crate::sql::Aggregate;
use crate::value::{Number, Problem, Value, calculate, compare};

pub struct Accumulator {
    function: Aggregate,
    count: u64,
    total: Number,
    extreme: Option<Value<'static>>,
}

impl Accumulator {
    pub fn new(function: Aggregate) -> Self {
        Self { function, count: 0, total: Number::Integer(0), extreme: None }
    }

    /// Adds the argument for one record, or any value for `COUNT(*)`. NULL is not counted.
    pub fn add(&mut self, value: &Value<'_>) -> Result<(), Problem> {
        if value.is_null() {
            return Ok(());
        }
        match self.function {
            Aggregate::Count => {}
            Aggregate::Sum | Aggregate::Average => {
                let total = Value::from(self.total);
                self.total = calculate(crate::sql::Arithmetic::Add, &total, value)?.to_number()?;
            }
            Aggregate::Minimum => self.keep(value, Ordering::Less)?,
            Aggregate::Maximum => self.keep(value, Ordering::Greater)?,
        }
        self.count += 1;
        Ok(())
    }

    fn keep(&mut self, value: &Value<'_>, wanted: Ordering) -> Result<(), Problem> {
        let replaces = match &self.extreme {
            Some(extreme) => compare(value, extreme)? == Some(wanted),
            None => true,
        };
        if replaces {
            self.extreme = Some(value.clone().into_owned());
        }
        Ok(())
    }

    /// Without values, a count is 0 and everything else NULL.
    #[allow(clippy::cast_precision_loss, reason = "an average is a float")]
    pub fn finish(self) -> Value<'static> {
        match self.function {
            Aggregate::Count => Value::Integer(i64::try_from(self.count).unwrap_or(i64::MAX)),
            _ if self.count == 0 => Value::Null,
            Aggregate::Sum => self.total.into(),
            Aggregate::Average => Value::Float(self.total.float() / self.count as f64),
            Aggregate::Minimum | Aggregate::Maximum => self.extreme.unwrap_or(Value::Null),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    fn of(function: Aggregate, texts: &[&'static str]) -> Value<'static> {
        let mut accumulator = Accumulator::new(function);
        accumulator.add(&Value::Null).expect("NULL is no problem");
        for text in texts {
            let value = Value::Text(Cow::Borrowed(text.as_bytes()));
            accumulator.add(&value).expect("a value of the right kind");
        }
        accumulator.finish()
    }

    #[test]
    fn each_aggregate_is_of_the_values_that_are_not_null() {
        let text = |text: &'static str| Value::Text(Cow::Borrowed(text.as_bytes()));
        assert_eq!(of(Aggregate::Count, &["1", "2"]), Value::Integer(2));
        assert_eq!(of(Aggregate::Sum, &["1", "2"]), Value::Integer(3));
        assert_eq!(of(Aggregate::Sum, &["1", "2.5"]), Value::Float(3.5));
        assert_eq!(of(Aggregate::Average, &["1", "2"]), Value::Float(1.5));
        assert_eq!(of(Aggregate::Minimum, &["b", "a", "c"]), text("a"));
        assert_eq!(of(Aggregate::Maximum, &["b", "c", "a"]), text("c"));
    }

    #[test]
    fn an_aggregate_of_nothing_is_null_but_a_count() {
        assert_eq!(of(Aggregate::Count, &[]), Value::Integer(0));
        for function in [Aggregate::Sum, Aggregate::Average, Aggregate::Minimum, Aggregate::Maximum]
        {
            assert_eq!(of(function, &[]), Value::Null);
        }
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_left_out() {
        let mut accumulator = Accumulator::new(Aggregate::Sum);
        let pizza = Value::Text(Cow::Borrowed(b"pizza"));
        assert_eq!(accumulator.add(&pizza), Err(Problem::InvalidTypeConversion));
        assert_eq!(accumulator.add(&Value::Integer(1)), Ok(()));
        assert_eq!(accumulator.finish(), Value::Integer(1));
    }
}
