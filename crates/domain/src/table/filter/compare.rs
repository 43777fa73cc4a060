//! Whether a value and a constant compare as a filter asks.

use std::cmp::Ordering;

use super::step::Operator;
use crate::table::{Value, ValueRef, compare_ordinal};

impl Operator {
    /// A value of another type than the constant's is neither equal to it nor different from it,
    /// nor is a missing property (github.com/Azure/Azurite/issues/1929). A constant that is an
    /// Int32 is any number: `5` is how clients write 5.0 and the 5 of an Int64. An Int64 or a
    /// Double finds only its own type (github.com/microsoft/AzureStorageExplorer/issues/5346).
    pub(super) fn holds(self, value: Option<ValueRef<'_>>, constant: &Value) -> bool {
        let order = match (value, constant) {
            (Some(ValueRef::String(value)), Value::String(constant)) => {
                Some(compare_ordinal(value, constant))
            }
            (Some(ValueRef::Int32(value)), Value::Int32(constant)) => Some(value.cmp(constant)),
            (Some(ValueRef::Int64(value)), Value::Int32(constant)) => {
                Some(value.cmp(&i64::from(*constant)))
            }
            (Some(ValueRef::Double(value)), Value::Int32(constant)) => {
                value.partial_cmp(&f64::from(*constant))
            }
            (Some(ValueRef::Int64(value)), Value::Int64(constant)) => Some(value.cmp(constant)),
            (Some(ValueRef::Double(value)), Value::Double(constant)) => value.partial_cmp(constant),
            (Some(ValueRef::DateTime(value)), Value::DateTime(constant)) => {
                Some(value.cmp(constant))
            }
            (Some(ValueRef::Guid(value)), Value::Guid(constant)) => Some(value.cmp(constant)),
            (Some(ValueRef::Boolean(value)), Value::Boolean(constant)) => Some(value.cmp(constant)),
            (Some(ValueRef::Binary(value)), Value::Binary(constant)) => {
                Some(value.cmp(constant.as_ref()))
            }
            _ => return false,
        };
        // NaN differs from every number and is not ordered.
        match self {
            Self::Equal => order == Some(Ordering::Equal),
            Self::NotEqual => order != Some(Ordering::Equal),
            Self::Greater => order == Some(Ordering::Greater),
            Self::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
            Self::Less => order == Some(Ordering::Less),
            Self::LessOrEqual => order.is_some_and(Ordering::is_le),
        }
    }
}
