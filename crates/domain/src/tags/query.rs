//! The `where` of Find Blobs by Tags: comparisons joined by AND, and the container.

use std::ops::Bound::{self, Excluded, Included, Unbounded};

use super::lexer::{Comparator, Lexer, Token};
use super::{TAGS_MAX, TagPredicateInvalid, TagSet, TagsRefusal, check_tag};

/// Where a query looks for blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryScope {
    /// All containers; only here may a query name one.
    Account,
    Container,
}

/// Which blobs a search by tags finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagQuery {
    container: Option<String>,
    comparisons: Vec<TagComparison>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct TagComparison {
    name: String,
    comparator: Comparator,
    value: String,
}

impl TagQuery {
    pub fn parse(text: &str, scope: QueryScope) -> Result<Self, TagPredicateInvalid> {
        let mut lexer = Lexer::new(text)?;
        if lexer.peek().is_none() {
            return Err(TagPredicateInvalid::Empty);
        }
        let mut query = Self { container: None, comparisons: Vec::new() };
        loop {
            match lexer.advance()? {
                Some(Token::Container) => query.restrict_container(&mut lexer, scope)?,
                Some(Token::Name { text: name, .. }) => query.restrict_tag(&mut lexer, name)?,
                Some(Token::Open) => return Err(TagPredicateInvalid::OperatorNotAllowed),
                Some(Token::Value(_) | Token::Compare(_) | Token::Close) | None => {
                    return Err(TagPredicateInvalid::Syntax);
                }
            }
            if lexer.peek().is_none() {
                return Ok(query);
            }
            if lexer.keyword("OR")? {
                return Err(TagPredicateInvalid::OperatorNotAllowed);
            }
            if !lexer.keyword("AND")? {
                return Err(TagPredicateInvalid::Syntax);
            }
        }
    }

    /// The one container that can hold a match, if the query names one.
    pub fn container(&self) -> Option<&str> {
        self.container.as_deref()
    }

    pub fn matches(&self, container: &str, tags: &TagSet) -> bool {
        self.container.as_deref().is_none_or(|only| only == container)
            && self.comparisons.iter().all(|TagComparison { name, comparator, value }| {
                comparator.holds(tags.get(name), value)
            })
    }

    /// The ranges to read from the index: one range of values for each tag that the query names.
    pub fn ranges(&self) -> Vec<TagRange<'_>> {
        let mut ranges: Vec<TagRange<'_>> = Vec::new();
        for TagComparison { name, comparator, value } in &self.comparisons {
            let (from, to) = bounds(*comparator, value);
            match ranges.iter_mut().find(|range| range.name == name) {
                None => ranges.push(TagRange { name, from, to }),
                Some(range) if range.from == Unbounded => range.from = from,
                Some(range) => range.to = to,
            }
        }
        ranges
    }

    /// Those of the tags that the query names.
    pub fn named<'tags>(&self, tags: &'tags TagSet) -> Vec<(&'tags str, &'tags str)> {
        let named = |tag: &str| self.comparisons.iter().any(|comparison| comparison.name == tag);
        tags.iter().filter(|(name, _)| named(name)).collect()
    }

    fn restrict_container(
        &mut self,
        lexer: &mut Lexer<'_>,
        scope: QueryScope,
    ) -> Result<(), TagPredicateInvalid> {
        let comparator = lexer.comparator()?;
        let name = lexer.value()?;
        if scope != QueryScope::Account {
            return Err(TagPredicateInvalid::TwoContainers);
        }
        if comparator != Comparator::Equal {
            return Err(TagPredicateInvalid::OperatorNotAllowed);
        }
        match self.container.replace(name) {
            None => Ok(()),
            Some(_) => Err(TagPredicateInvalid::NotARange),
        }
    }

    fn restrict_tag(
        &mut self,
        lexer: &mut Lexer<'_>,
        name: String,
    ) -> Result<(), TagPredicateInvalid> {
        let added = TagComparison { name, comparator: lexer.comparator()?, value: lexer.value()? };
        check_tag(&added.name, &added.value).map_err(|refusal| match refusal {
            TagsRefusal::TooLong => TagPredicateInvalid::TooLong,
            TagsRefusal::EmptyName
            | TagsRefusal::InvalidCharacter
            | TagsRefusal::TooMany
            | TagsRefusal::HeaderTooLarge
            | TagsRefusal::DuplicateName
            | TagsRefusal::Malformed => TagPredicateInvalid::Characters,
        })?;
        let mut names: Vec<_> = self.comparisons.iter().map(|earlier| &earlier.name).collect();
        names.push(&added.name);
        names.sort_unstable();
        names.dedup();
        // No blob has more tags than that, so no blob could match.
        if names.len() > TAGS_MAX {
            return Err(TagPredicateInvalid::TooManyOperators);
        }
        for earlier in self.comparisons.iter().filter(|earlier| earlier.name == added.name) {
            // One bound on each side at most: the index is read as one range for each tag.
            let range = matches!(
                (side(earlier.comparator)?, side(added.comparator)?),
                (Side::Lower, Side::Upper) | (Side::Upper, Side::Lower)
            );
            if !range {
                return Err(TagPredicateInvalid::NotARange);
            }
        }
        side(added.comparator)?;
        self.comparisons.push(added);
        Ok(())
    }
}

/// The values of one tag that a query asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagRange<'query> {
    pub name: &'query str,
    pub from: Bound<&'query str>,
    pub to: Bound<&'query str>,
}

impl TagRange<'_> {
    /// The value, if the range is a single value.
    pub fn value(&self) -> Option<&str> {
        match (self.from, self.to) {
            (Included(from), Included(to)) if from == to => Some(from),
            (Included(_) | Excluded(_) | Unbounded, _) => None,
        }
    }
}

fn bounds(comparator: Comparator, value: &str) -> (Bound<&str>, Bound<&str>) {
    match comparator {
        Comparator::Equal => (Included(value), Included(value)),
        Comparator::Greater => (Excluded(value), Unbounded),
        Comparator::GreaterOrEqual => (Included(value), Unbounded),
        Comparator::Less => (Unbounded, Excluded(value)),
        Comparator::LessOrEqual => (Unbounded, Included(value)),
        // Queries do not have this operator.
        Comparator::NotEqual => (Unbounded, Unbounded),
    }
}

enum Side {
    Exact,
    Lower,
    Upper,
}

fn side(comparator: Comparator) -> Result<Side, TagPredicateInvalid> {
    match comparator {
        Comparator::Equal => Ok(Side::Exact),
        Comparator::Greater | Comparator::GreaterOrEqual => Ok(Side::Lower),
        Comparator::Less | Comparator::LessOrEqual => Ok(Side::Upper),
        Comparator::NotEqual => Err(TagPredicateInvalid::OperatorNotAllowed),
    }
}
