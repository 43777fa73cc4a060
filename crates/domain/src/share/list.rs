//! The nodes of a directory, a page at a time, in the order of their folded names.
//!
//! What a snapshot sees is in two ranges, nodes and past nodes, which are merged.

use std::collections::VecDeque;

use bytes::Bytes;
use holdfast_store::{Fault, KeyRange};

use super::tree::{NodeRows, Tree, View};
use super::{Node, Place, rows};
use crate::rows::Stored;
use crate::yield_budget::{ROWS_IN_TURN, YieldBudget};

/// Rows read at a time from each of the two ranges.
const ROWS_PER_SCAN: usize = ROWS_IN_TURN;
/// Rows that a page of a snapshot skips at most: where most were created later, the page is short.
const ROWS_PER_PAGE_MAX: usize = 64 * 1024;

/// Which part of a directory is listed; both are folded.
pub(super) struct ListFrom {
    pub prefix: String,
    /// Names up to this one are skipped.
    pub after: Option<String>,
}

impl Tree {
    /// At most `limit` nodes, and the name to continue after if there may be more.
    pub async fn list(
        &self,
        source: &mut impl NodeRows,
        directory: u64,
        from: &ListFrom,
        limit: usize,
    ) -> Result<(Vec<Node>, Option<String>), Fault> {
        let mut names = match self.view {
            View::Current => Names::current(self.share.id, directory, from),
            View::Snapshot(_) => Names::past_too(self.share.id, directory, from),
        };
        let mut entries: Vec<Node> = Vec::new();
        let mut last = None;
        while let Some((name, states)) = names.next(source).await? {
            if entries.len() == limit || names.read > ROWS_PER_PAGE_MAX {
                return Ok((entries, last));
            }
            if let Some(node) = self.seen(source, directory, &name, states).await? {
                entries.push(node);
            }
            last = Some(name);
        }
        Ok((entries, None))
    }

    async fn seen(
        &self,
        source: &mut impl NodeRows,
        directory: u64,
        name: &str,
        states: States,
    ) -> Result<Option<Node>, Fault> {
        let node = match self.view {
            View::Current => states.current,
            View::Snapshot(number) => {
                let past = states.past.into_iter().find(|(generation, _)| *generation >= number);
                let state = past.map(|(_, node)| node).or(states.current);
                state.filter(|node| node.is_seen_by(number))
            }
        };
        match node {
            Some(node) if node.names == super::model::Names::Of => {
                let place = Place::folded(self.share.id, directory, name.to_owned());
                self.read(source, &place).await
            }
            Some(_) | None => Ok(node),
        }
    }
}

/// All that is kept of one name.
#[derive(Default)]
struct States {
    current: Option<Node>,
    /// The oldest first.
    past: Vec<(u64, Node)>,
}

/// The names in a directory, with what is kept of each.
struct Names {
    current: Rows,
    past: Option<Rows>,
    /// How many rows have been looked at.
    read: usize,
}

impl Names {
    fn current(share: u64, directory: u64, from: &ListFrom) -> Self {
        let mut range = KeyRange::prefix(rows::nodes(share, directory, &from.prefix));
        if let Some(after) = from.after() {
            range = range.after(rows::node(share, directory, after));
        }
        Self { current: Rows::of(range), past: None, read: 0 }
    }

    fn past_too(share: u64, directory: u64, from: &ListFrom) -> Self {
        let mut range = KeyRange::prefix(rows::past_nodes(share, directory, &from.prefix));
        if let Some(after) = from.after() {
            range = range.starting_at(rows::behind_past_nodes(share, directory, after));
        }
        Self { past: Some(Rows::of(range)), ..Self::current(share, directory, from) }
    }

    async fn next(
        &mut self,
        source: &mut impl NodeRows,
    ) -> Result<Option<(String, States)>, Fault> {
        let name = self.current.peek(source).await?.map(|key| rows::node_name(key));
        let mut name = name.transpose()?;
        let past = match &mut self.past {
            Some(past) => past.peek(source).await?,
            None => None,
        };
        if let Some(key) = past {
            let (past, _) = rows::past_node_name(key)?;
            name = Some(name.map_or(past, |name| name.min(past)));
        }
        let Some(name) = name.map(str::to_owned) else { return Ok(None) };
        let mut states = States::default();
        if let Some(key) = self.current.peek(source).await?
            && rows::node_name(key)? == name
        {
            states.current = self.current.take()?;
            self.read += 1;
        }
        while let Some(past) = &mut self.past
            && let Some(key) = past.peek(source).await?
        {
            let (of, generation) = rows::past_node_name(key)?;
            if of != name {
                break;
            }
            states.past.extend(past.take()?.map(|node| (generation, node)));
            self.read += 1;
        }
        Ok(Some((name, states)))
    }
}

impl ListFrom {
    /// A name before all that begin with the prefix skips nothing.
    fn after(&self) -> Option<&str> {
        self.after.as_deref().filter(|after| *after >= self.prefix.as_str())
    }
}

/// A range, read as it is asked for.
struct Rows {
    range: Option<KeyRange>,
    read: VecDeque<(Bytes, Bytes)>,
    yield_budget: YieldBudget,
}

impl Rows {
    fn of(range: KeyRange) -> Self {
        let range = (!range.is_empty()).then_some(range);
        Self { range, read: VecDeque::new(), yield_budget: YieldBudget::default() }
    }

    /// The key of the next row.
    async fn peek(&mut self, source: &mut impl NodeRows) -> Result<Option<&Bytes>, Fault> {
        if self.read.is_empty()
            && let Some(range) = self.range.take()
        {
            let found = source.scan(&range, ROWS_PER_SCAN).await?;
            if let Some(last) = found.last()
                && found.len() == ROWS_PER_SCAN
            {
                self.range = Some(range.after(last.key.clone()));
            }
            self.yield_budget.passed(found.len()).await;
            self.read = found.into_iter().map(|row| (row.key, row.value)).collect();
        }
        Ok(self.read.front().map(|(key, _)| key))
    }

    fn take(&mut self) -> Result<Option<Node>, Fault> {
        self.read.pop_front().map(|(_, value)| Node::decode(&value)).transpose()
    }
}
