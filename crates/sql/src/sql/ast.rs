//! A parsed statement. References to columns are numbered, so that an input resolves each of them
//! once.

use crate::like::{PATTERN_BYTES_MAX, Pattern};

#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    pub projection: Projection,
    /// The path after `BlobStorage` and its optional `[*]`; empty for delimited text and Parquet.
    pub from: Vec<Segment>,
    pub filter: Option<Expression>,
    pub limit: Option<u64>,
    pub references: Vec<Reference>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Projection {
    Star,
    Columns(Vec<Output>),
    Aggregate {
        function: Aggregate,
        /// `None` for `COUNT(*)`.
        argument: Option<Expression>,
        alias: Option<String>,
    },
    /// `sys.split(bytes)`
    Split(u64),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    pub expression: Expression,
    pub alias: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    Count,
    Average,
    Minimum,
    Maximum,
    Sum,
}

/// A path as written: `name`, `"Name"`, `_2`, `warehouses[0].longitude`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    pub path: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// An unquoted name matches in any case.
    Key {
        name: String,
        quoted: bool,
    },
    Index(usize),
    /// `[*]`, in FROM only.
    Each,
}

impl Segment {
    pub fn matches(&self, key: &[u8]) -> bool {
        match self {
            Self::Key { name, quoted: true } => name.as_bytes() == key,
            Self::Key { name, quoted: false } => name.as_bytes() == key || same_letters(name, key),
            Self::Index(_) | Self::Each => false,
        }
    }
}

fn same_letters(name: &str, key: &[u8]) -> bool {
    if name.is_ascii() {
        return name.as_bytes().eq_ignore_ascii_case(key);
    }
    std::str::from_utf8(key).is_ok_and(|key| name.to_lowercase() == key.to_lowercase())
}

impl Reference {
    /// `_1` is the first column.
    pub fn ordinal(&self) -> Option<usize> {
        let [Segment::Key { name, quoted: false }] = self.path.as_slice() else { return None };
        let digits = name.strip_prefix('_')?;
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        digits.parse::<usize>().ok()?.checked_sub(1)
    }

    /// The name of a column of the answer that is selected by this reference alone.
    pub fn name(&self) -> Option<&str> {
        match self.path.last() {
            Some(Segment::Key { name, .. }) if self.ordinal().is_none() => Some(name),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    Null,
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    /// The number of a reference of the statement.
    Column(usize),
    And(Vec<Self>),
    Or(Vec<Self>),
    Not(Box<Self>),
    Negate(Box<Self>),
    Compare(Comparison, Box<(Self, Self)>),
    Calculate(Arithmetic, Box<(Self, Self)>),
    /// Value, lowest, highest.
    Between(Box<(Self, Self, Self)>),
    In(Box<Self>, Vec<Self>),
    Like(Box<Self>, LikePattern),
    IsNull(Box<Self>),
    IsMissing(Box<Self>),
    Cast(Box<Self>, Kind),
    /// Pairs of a condition and a result, and the result of ELSE.
    Case(Vec<(Self, Self)>, Box<Self>),
    Call(Function, Vec<Self>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum LikePattern {
    /// A constant pattern, parsed once.
    Constant(Box<Pattern>),
    /// A pattern computed for each record, with its escape character.
    Each(Box<Expression>, Option<char>),
}

impl LikePattern {
    pub fn new(pattern: Expression, escape: Option<char>) -> Self {
        if let Expression::Text(text) = &pattern
            && text.len() <= PATTERN_BYTES_MAX
        {
            return Self::Constant(Box::new(Pattern::new(text, escape)));
        }
        Self::Each(Box::new(pattern), escape)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// The data types that CAST knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Integer,
    Float,
    Text,
    Timestamp,
    Boolean,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    CharacterLength,
    Lower,
    Upper,
    Substring,
    Trim(TrimSide),
    DateAdd(DatePart),
    DateDifference(DatePart),
    Extract(DatePart),
    ToString,
    ToTimestamp,
    UtcNow,
    Coalesce,
    NullIf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimSide {
    Both,
    Leading,
    Trailing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatePart {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    TimezoneHour,
    TimezoneMinute,
}
