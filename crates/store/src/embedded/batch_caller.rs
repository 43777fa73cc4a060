//! The caller that waits for the outcome of a batch.

use std::thread::ThreadId;

use holdfast_sync::oneshot;
use tokio::runtime::Handle;

use crate::engine::{CommitError, Placed};

pub(super) struct Caller {
    answer: oneshot::Sender<Result<(), CommitError>>,
    thread: ThreadId,
    runtime: Option<Handle>,
}

impl Caller {
    /// A caller for the task that runs on this thread, and what the task waits for.
    pub fn new() -> (Self, Placed) {
        let (answer, answered) = oneshot::channel();
        let thread = std::thread::current().id();
        (Self { answer, thread, runtime: Handle::try_current().ok() }, Placed::awaiting(answered))
    }

    /// If the caller is gone, the outcome is dropped.
    pub fn tell(self, outcome: Result<(), CommitError>) {
        let _ = self.answer.send(outcome);
    }

    /// Waking a task on another thread is a system call. So the callers of one thread are woken by
    /// one task of its runtime, which takes one call.
    pub fn tell_all_committed(mut callers: Vec<Self>) {
        while let Some(Self { thread, runtime, .. }) = callers.first() {
            let (thread, runtime) = (*thread, runtime.clone());
            let same_thread: Vec<_> = callers.extract_if(.., |it| it.thread == thread).collect();
            let are_many = same_thread.len() > 1;
            let tell = || same_thread.into_iter().for_each(|caller| caller.tell(Ok(())));
            match runtime {
                Some(runtime) if are_many => drop(runtime.spawn(async move { tell() })),
                Some(_) | None => tell(),
            }
        }
    }
}
