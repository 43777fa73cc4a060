//! The `where` of Find Blobs by Tags: comparisons joined by AND, and the container.

use super::lexer::{Comparator, Lexer, Token};
use super::{TAGS_MAX, TagPredicateInvalid, TagSet};

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

    fn restrict_container(
        &mut self,
        lexer: &mut Lexer<'_>,
        scope: QueryScope,
    ) -> Result<(), TagPredicateInvalid> {
        let comparator = lexer.comparator()?;
        let name = lexer.value()?;
        if scope != QueryScope::Account || comparator != Comparator::Equal {
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
                (bound(earlier.comparator)?, bound(added.comparator)?),
                (Bound::Lower, Bound::Upper) | (Bound::Upper, Bound::Lower)
            );
            if !range {
                return Err(TagPredicateInvalid::NotARange);
            }
        }
        bound(added.comparator)?;
        self.comparisons.push(added);
        Ok(())
    }
}

enum Bound {
    Exact,
    Lower,
    Upper,
}

fn bound(comparator: Comparator) -> Result<Bound, TagPredicateInvalid> {
    match comparator {
        Comparator::Equal => Ok(Bound::Exact),
        Comparator::Greater | Comparator::GreaterOrEqual => Ok(Bound::Lower),
        Comparator::Less | Comparator::LessOrEqual => Ok(Bound::Upper),
        Comparator::NotEqual => Err(TagPredicateInvalid::OperatorNotAllowed),
    }
}
