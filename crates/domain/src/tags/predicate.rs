//! The predicate of `x-ms-if-tags`: comparisons joined by AND, OR and parentheses.

use super::lexer::{Comparator, Lexer, Token};
use super::{TagSet, has_tag_characters};

/// What the reference promises. The service is said to accept more (Azurite,
/// tests/blob/apis/blob.test.ts, long ifTags condition), but how many is not known.
pub const LOGICAL_OPERATORS_MAX: usize = 10;
/// Ten operators need no more than eleven levels; the rest is for redundant parentheses. Without a
/// maximum a header of parentheses alone could exhaust the stack.
const DEPTH_MAX: usize = 32;

/// A condition on the tags of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagPredicate(Expression);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TagPredicateInvalid {
    #[error("the tag expression is empty")]
    Empty,
    #[error("the tag expression is not well-formed")]
    Syntax,
    #[error("the tag expression has more than {LOGICAL_OPERATORS_MAX} logical operators")]
    TooManyOperators,
    #[error("the tag expression is nested too deeply")]
    TooDeep,
    #[error("the tag expression uses an operator that is not allowed here")]
    OperatorNotAllowed,
    #[error("the tag expression restricts one tag more than once without defining a range")]
    NotARange,
    #[error("the tag expression has a character that tags cannot have")]
    Characters,
    #[error("the tag expression has a name or a value that is longer than that of any tag")]
    TooLong,
    #[error("the container is named by the address and by the tag expression")]
    TwoContainers,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Expression {
    Compare { name: String, comparator: Comparator, value: String },
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
}

impl TagPredicate {
    pub fn parse(text: &str) -> Result<Self, TagPredicateInvalid> {
        let mut parser = Parser { lexer: Lexer::new(text)?, operators: 0, depth: 0 };
        if parser.lexer.peek().is_none() {
            return Err(TagPredicateInvalid::Empty);
        }
        let expression = parser.alternatives()?;
        match parser.lexer.peek() {
            None => Ok(Self(expression)),
            Some(_) => Err(TagPredicateInvalid::Syntax),
        }
    }

    pub fn matches(&self, tags: &TagSet) -> bool {
        self.0.matches(tags)
    }
}

impl Expression {
    fn matches(&self, tags: &TagSet) -> bool {
        match self {
            Self::Compare { name, comparator, value } => comparator.holds(tags.get(name), value),
            Self::And(left, right) => left.matches(tags) && right.matches(tags),
            Self::Or(left, right) => left.matches(tags) || right.matches(tags),
        }
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    operators: usize,
    depth: usize,
}

impl Parser<'_> {
    fn alternatives(&mut self) -> Result<Expression, TagPredicateInvalid> {
        let mut left = self.conjunction()?;
        while self.operator("OR")? {
            left = Expression::Or(Box::new(left), Box::new(self.conjunction()?));
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Result<Expression, TagPredicateInvalid> {
        let mut left = self.operand()?;
        while self.operator("AND")? {
            left = Expression::And(Box::new(left), Box::new(self.operand()?));
        }
        Ok(left)
    }

    fn operator(&mut self, keyword: &str) -> Result<bool, TagPredicateInvalid> {
        let found = self.lexer.keyword(keyword)?;
        self.operators += usize::from(found);
        if self.operators > LOGICAL_OPERATORS_MAX {
            return Err(TagPredicateInvalid::TooManyOperators);
        }
        Ok(found)
    }

    fn operand(&mut self) -> Result<Expression, TagPredicateInvalid> {
        match self.lexer.advance()? {
            Some(Token::Open) => {
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    return Err(TagPredicateInvalid::TooDeep);
                }
                let inner = self.alternatives()?;
                self.depth -= 1;
                match self.lexer.advance()? {
                    Some(Token::Close) => Ok(inner),
                    _ => Err(TagPredicateInvalid::Syntax),
                }
            }
            Some(Token::Name { text: name, .. }) => {
                let (comparator, value) = (self.lexer.comparator()?, self.lexer.value()?);
                // The service does not limit their length here: no tag equals them then (Azurite,
                // tests/blob/apis/blob.test.ts, invalid ifTags condition string).
                if !has_tag_characters(&name) || !has_tag_characters(&value) {
                    return Err(TagPredicateInvalid::Characters);
                }
                Ok(Expression::Compare { name, comparator, value })
            }
            Some(Token::Container) => Err(TagPredicateInvalid::OperatorNotAllowed),
            Some(Token::Value(_) | Token::Compare(_) | Token::Close) | None => {
                Err(TagPredicateInvalid::Syntax)
            }
        }
    }
}
