//! A queue that threads wait on. Its length is bounded by its users: each writer has at most a
//! fixed number of items in it.

use std::collections::VecDeque;

use holdfast_sync::{Condvar, Mutex};

pub(super) struct WorkQueue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    items: VecDeque<T>,
    closed: bool,
}

impl<T> Default for WorkQueue<T> {
    fn default() -> Self {
        let state = State { items: VecDeque::new(), closed: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }
}

impl<T> WorkQueue<T> {
    /// Drops the item if the queue is closed.
    pub(super) fn push(&self, item: T) {
        let mut state = self.state.lock();
        if !state.closed {
            state.items.push_back(item);
            drop(state);
            self.changed.notify_one();
        }
    }

    pub(super) fn push_if_empty(&self, item: T) {
        let mut state = self.state.lock();
        if !state.closed && state.items.is_empty() {
            state.items.push_back(item);
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Waits for an item; `None` once the queue is closed and empty.
    pub(super) fn pop(&self) -> Option<T> {
        let mut state = self.state.lock();
        loop {
            if let Some(item) = state.items.pop_front() {
                return Some(item);
            }
            if state.closed {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }

    /// The next item, if there is one already and `wanted` accepts it.
    pub(super) fn pop_more(&self, wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        let mut state = self.state.lock();
        if state.items.front().is_some_and(wanted) { state.items.pop_front() } else { None }
    }

    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }
}
