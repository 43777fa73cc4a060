//! The languages that the domain reads: filters of tables, predicates on tags, security descriptors.

use holdfast_domain::share::security::Descriptor;
use holdfast_domain::table::ValueRef;
use holdfast_domain::table::filter::{Filter, NamedTable, PropertyLookup};
use holdfast_domain::tags::{QueryScope, TagPredicate, TagQuery, TagSet};

/// An entity that has a property of every name, of a kind that depends on the name.
struct AnyEntity;

impl PropertyLookup for AnyEntity {
    fn property(&self, name: &str) -> Option<ValueRef<'_>> {
        match name.len() % 5 {
            0 => None,
            1 => Some(ValueRef::String("b")),
            2 => Some(ValueRef::Int32(7)),
            3 => Some(ValueRef::Boolean(true)),
            _ => Some(ValueRef::Double(0.5)),
        }
    }
}

pub fn odata_filter(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let Ok(filter) = Filter::parse(text) else { return false };
    filter.matches(&AnyEntity);
    filter.matches(&NamedTable("customers"));
    filter.key_spans();
    true
}

pub fn tag_predicate(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let tags = [("project", "alpha"), ("stage", "2"), ("owner", "")];
    let tags = tags.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let Ok(tags) = TagSet::new(tags) else { return false };
    let mut read = TagSet::parse_header(text).is_ok();
    if let Ok(predicate) = TagPredicate::parse(text) {
        predicate.matches(&tags);
        read = true;
    }
    for scope in [QueryScope::Account, QueryScope::Container] {
        if let Ok(query) = TagQuery::parse(text, scope) {
            // The ranges of the index must contain everything that the query matches.
            assert!(!query.matches("container", &tags) || query.ranges().len() <= tags.len());
            query.named(&tags);
            read = true;
        }
    }
    read
}

/// As bytes and as text. What was read and written must be read again as the same.
pub fn security_descriptor(bytes: &[u8]) -> bool {
    let from_text = std::str::from_utf8(bytes).ok().and_then(|t| Descriptor::parse_sddl(t).ok());
    let descriptors = [Descriptor::from_bytes(bytes), from_text];
    for descriptor in descriptors.iter().flatten() {
        let again = Descriptor::from_bytes(&descriptor.to_bytes());
        assert_eq!(again.as_ref(), Some(descriptor));
        if let Ok(text) = descriptor.to_sddl() {
            // Some control bits have no text, so the descriptors may differ in them.
            let again = Descriptor::parse_sddl(&text).ok().and_then(|again| again.to_sddl().ok());
            assert_eq!(again.as_ref(), Some(&text));
        }
    }
    descriptors.iter().any(Option::is_some)
}
