//! What becomes of each object: pure rules of what is read at the source and what is there at the
//! destination.

use std::collections::BTreeMap;

use holdfast_domain::time::Timestamp;

use crate::endpoint::is_header_value;
use crate::model::{
    BlobKind, Container, ContentHeaders, Entity, Message, Metadata, Node, Policy, Version,
};

/// Says in the metadata of an object that it is not there as a whole yet.
pub const MARK: &str = "holdfast_moving";

/// Piece of a content that is in memory at once, unless the blob has more pieces than are allowed.
pub const PIECE_BYTES: u64 = 4 * 1024 * 1024;
const BLOCKS_MAX: u64 = 50_000;
const MEBIBYTE: u64 = 1024 * 1024;

/// How contents are compared if their hashes do not say it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Compare {
    /// They are read on both sides.
    #[default]
    Content,
    /// They are the same if the destination is not older.
    Time,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    pub overwrite: bool,
    pub compare: Compare,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Send,
    /// It is there.
    Same,
    /// It is there if the contents are the same.
    CompareContents,
    /// What is there is from an interrupted run, or may be overwritten.
    Replace,
    /// The same, if the snapshots that are there have the contents of the oldest versions, and the blob
    /// that of the version at this index.
    ReplaceIfBegun(usize),
    /// Something else is there.
    Conflict(&'static str),
}

/// What the rules make of something that differs.
pub fn differs(rules: Rules, what: &'static str) -> Decision {
    if rules.overwrite { Decision::Replace } else { Decision::Conflict(what) }
}

/// Without case in names, and without the mark.
fn comparable(metadata: &Metadata) -> BTreeMap<String, &str> {
    let lower = metadata.iter().map(|(name, value)| (name.to_lowercase(), value.as_str()));
    lower.collect()
}

pub fn is_marked(metadata: &Metadata) -> bool {
    metadata.keys().any(|name| name.eq_ignore_ascii_case(MARK))
}

/// The metadata that headers can carry, and the names of the rest.
pub fn sendable(metadata: &Metadata) -> (Metadata, Vec<String>) {
    let is_name = |name: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        !name.is_empty() && name.bytes().all(is_plain)
    };
    let (good, bad): (Metadata, Metadata) = metadata
        .clone()
        .into_iter()
        .partition(|(name, value)| is_name(name) && is_header_value(value) && !value.is_empty());
    (good, bad.into_keys().collect())
}

fn headers_difference(source: &ContentHeaders, there: &ContentHeaders) -> Option<&'static str> {
    let content_type = |headers: &ContentHeaders| match headers.content_type.as_str() {
        "" => "application/octet-stream".to_owned(),
        other => other.to_owned(),
    };
    let others = |it: &ContentHeaders| {
        let it = it.clone();
        (it.encoding, it.language, it.disposition, it.cache_control)
    };
    if content_type(source) != content_type(there) || others(source) != others(there) {
        return Some("its content headers differ");
    }
    let both = !source.md5.is_empty() && !there.md5.is_empty();
    (both && source.md5 != there.md5).then_some("its content differs")
}

/// What can be seen without reading the contents.
fn difference(source: &Version, there: &Version) -> Option<&'static str> {
    if source.kind != there.kind {
        return Some("it is of another kind");
    }
    if source.length != there.length {
        return Some("its length differs");
    }
    if let Some(what) = headers_difference(&source.headers, &there.headers) {
        return Some(what);
    }
    let (metadata, _) = sendable(&source.metadata);
    if comparable(&metadata) != comparable(&there.metadata) {
        return Some("its metadata differs");
    }
    if source.tags != there.tags {
        return Some("its tags differ");
    }
    if source.kind == BlobKind::Block && !source.tier.is_empty() && source.tier != there.tier {
        return Some("its tier differs");
    }
    if source.sequence_number != there.sequence_number {
        return Some("its sequence number differs");
    }
    (source.is_sealed != there.is_sealed).then_some("one of both is sealed")
}

/// Whether nothing differs, and the contents are known to be the same without reading them.
fn is_surely(source: &Version, there: &Version) -> bool {
    let is_known = !source.headers.md5.is_empty() && !there.headers.md5.is_empty();
    difference(source, there).is_none() && (is_known || source.length == 0)
}

/// Both lists have the oldest snapshot first and the blob itself at the end.
pub fn decide_blob(source: &[Version], there: &[Version], rules: Rules) -> Decision {
    let Some((base, snapshots)) = there.split_last() else { return Decision::Send };
    if is_marked(&base.metadata) {
        return Decision::Replace;
    }
    let different = if source.len() == there.len() {
        source.iter().zip(there).find_map(|(source, there)| difference(source, there))
    } else {
        Some("it has other snapshots")
    };
    if let Some(what) = different {
        // A run that was broken off leaves the older versions, and the next one where the blob is.
        let is_begun = |at: &usize| {
            (snapshots.len() == *at || snapshots.len() == at + 1)
                && difference(&source[*at], base).is_none()
                && source.iter().zip(snapshots).all(|(one, two)| difference(one, two).is_none())
        };
        return match (0..source.len() - 1).find(is_begun) {
            Some(at) => Decision::ReplaceIfBegun(at),
            None => differs(rules, what),
        };
    }
    let mut must_read = false;
    for (source, there) in source.iter().zip(there) {
        if is_surely(source, there) {
            continue;
        }
        match rules.compare {
            Compare::Content => must_read = true,
            Compare::Time if there.last_modified >= source.last_modified => {}
            Compare::Time => return differs(rules, "it is older"),
        }
    }
    if must_read { Decision::CompareContents } else { Decision::Same }
}

/// The lengths of the blocks of a block blob: all but the last are as long as the first.
pub fn block_bytes(length: u64) -> u64 {
    length.div_ceil(BLOCKS_MAX).next_multiple_of(MEBIBYTE).max(PIECE_BYTES)
}

/// First byte and length of each piece.
pub fn pieces(offset: u64, length: u64, piece: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..length.div_ceil(piece)).map(move |index| {
        let first = index * piece;
        (offset + first, piece.min(length - first))
    })
}

pub fn decide_container(source: &Container, there: &Container, rules: Rules) -> Decision {
    let (metadata, _) = sendable(&source.metadata);
    if comparable(&metadata) != comparable(&there.metadata) {
        return differs(rules, "its metadata differs");
    }
    if source.public_access != there.public_access {
        return differs(rules, "its public access differs");
    }
    if !same_policies(&source.policies, &there.policies) {
        return differs(rules, "its stored access policies differ");
    }
    Decision::Same
}

fn same_policies(one: &[Policy], two: &[Policy]) -> bool {
    let time = |text: &str| Timestamp::parse_iso8601(text).map(Timestamp::unix_seconds);
    let terms = |policies: &[Policy]| {
        let terms = policies.iter().map(|it| {
            let mut permission: Vec<char> = it.permission.chars().collect();
            permission.sort_unstable();
            (it.id.clone(), (time(&it.start), time(&it.expiry), permission))
        });
        terms.collect::<BTreeMap<_, _>>()
    };
    terms(one) == terms(two)
}

/// The longest that a message can stay invisible.
const INVISIBLE_SECONDS_MAX: i64 = 7 * 24 * 3600;
/// Where the expiration is as far away as this, there is none.
const NEVER_SECONDS: i64 = 1000 * 365 * 24 * 3600;

/// What remains of a message: none if it has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remaining {
    /// In seconds; -1 is forever.
    pub time_to_live: i64,
    /// In seconds.
    pub invisible: i64,
}

pub fn remaining(message: &Message, now: i64) -> Option<Remaining> {
    let left = message.expires - now;
    if left <= 0 {
        return None;
    }
    let time_to_live = if left > NEVER_SECONDS { -1 } else { left };
    let mut invisible = (message.visible - now).clamp(0, INVISIBLE_SECONDS_MAX);
    if time_to_live != -1 {
        // The service refuses a message that would expire before it is seen.
        invisible = invisible.min(time_to_live - 1);
    }
    Some(Remaining { time_to_live, invisible })
}

/// What is at the destination of a queue: its metadata and about how many messages it has.
pub struct QueueThere<'queue> {
    pub queue: &'queue Container,
    pub messages: u64,
}

/// `messages`: how many would be sent.
pub fn decide_messages(messages: u64, there: &QueueThere<'_>, rules: Rules) -> Decision {
    if is_marked(&there.queue.metadata) {
        Decision::Replace
    } else if messages == 0 || there.messages >= messages {
        Decision::Same
    } else {
        differs(rules, "it was there before and has fewer messages")
    }
}

/// Messages have no names, so that those of a queue which was there are not told apart.
pub fn decide_entity(source: &Entity, there: Option<&Entity>, rules: Rules) -> Decision {
    match there {
        None => Decision::Send,
        Some(there) if there.properties == source.properties => Decision::Same,
        Some(_) => differs(rules, "its properties differ"),
    }
}

/// A file, or a directory.
pub fn decide_node(source: &Node, there: Option<&Node>, rules: Rules) -> Decision {
    let Some(there) = there else { return Decision::Send };
    if is_marked(&there.metadata) {
        return Decision::Replace;
    }
    if source.is_directory != there.is_directory {
        return Decision::Conflict("one of both is a directory");
    }
    let (metadata, _) = sendable(&source.metadata);
    if comparable(&metadata) != comparable(&there.metadata) {
        return differs(rules, "its metadata differs");
    }
    let smb = |node: &Node| {
        let mut attributes: Vec<_> = node.attributes.split(" | ").map(str::to_owned).collect();
        attributes.sort_unstable();
        (attributes, node.created.clone())
    };
    if smb(source) != smb(there) {
        return differs(rules, "its attributes differ");
    }
    if source.is_directory {
        return Decision::Same;
    }
    if source.length != there.length {
        return differs(rules, "its length differs");
    }
    if let Some(what) = headers_difference(&source.headers, &there.headers) {
        return differs(rules, what);
    }
    if source.written != there.written {
        return differs(rules, "its last write time differs");
    }
    let is_known = !source.headers.md5.is_empty() && !there.headers.md5.is_empty();
    match rules.compare {
        // A write would have changed the time, which is that of the source here.
        Compare::Time => Decision::Same,
        Compare::Content if is_known || source.length == 0 => Decision::Same,
        Compare::Content => Decision::CompareContents,
    }
}

#[cfg(test)]
mod tests;
