//! What a filter says, in reverse Polish order: operands come before what joins them.

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

    /// The operator that says the same with its operands exchanged.
    pub(super) fn mirrored(self) -> Self {
        match self {
            Self::Equal | Self::NotEqual => self,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
        }
    }

    /// The operator that holds for two values of one order exactly when this one does not.
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

/// For each step, whether an odd number of negations stands around it.
pub(super) fn negations(steps: &[Step]) -> Vec<bool> {
    let mut negated = vec![false; steps.len()];
    // Backwards, an operator comes before its operands and tells them what it was told.
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
