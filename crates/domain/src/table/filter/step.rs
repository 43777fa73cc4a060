//! A filter in reverse Polish order: operands come before their operator.

use crate::table::Value;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Test(Test),
    Not,
    And,
    Or,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Test {
    /// `true` or `false` alone, which health checks send.
    Constant(bool),
    /// The property is on the left; a property alone is compared with `true`.
    Compare { property: String, operator: Operator, constant: Value },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl Operator {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "eq" => Self::Equal,
            "ne" => Self::NotEqual,
            "gt" => Self::Greater,
            "ge" => Self::GreaterOrEqual,
            "lt" => Self::Less,
            "le" => Self::LessOrEqual,
            _ => return None,
        })
    }

    /// The equivalent operator for exchanged operands.
    pub(super) fn mirrored(self) -> Self {
        match self {
            Self::Equal | Self::NotEqual => self,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
        }
    }

    /// The operator that is true for two ordered values exactly when this one is false.
    pub(super) fn opposite(self) -> Self {
        match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
        }
    }
}

/// For each step, whether it is inside an odd number of negations.
pub(super) fn negations(steps: &[Step]) -> Vec<bool> {
    let mut negated = vec![false; steps.len()];
    // Going backwards, an operator comes before its operands and passes its negation on to them.
    let mut told = vec![false];
    for (at, step) in steps.iter().enumerate().rev() {
        let here = told.pop().unwrap_or(false);
        negated[at] = here;
        match step {
            Step::Test(_) => {}
            Step::Not => told.push(!here),
            Step::And | Step::Or => told.extend([here, here]),
        }
    }
    negated
}
