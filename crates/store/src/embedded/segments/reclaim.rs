//! The thread that gives space back to the file system: it deletes empty segment files beyond those
//! kept for reuse, and punches holes where extents were freed.

use std::sync::Arc;

use super::{BLOCK_BYTES, Shared};
use crate::engine::is_no_descriptors;

pub(super) fn run(shared: &Arc<Shared>) {
    while shared.chores.pop().is_some() {
        delete_surplus(shared);
        punch_holes(shared);
    }
}

/// After a crash before the folder is synced a file may exist again: then it is inherited, and
/// emptied again by garbage collection.
fn delete_surplus(shared: &Shared) {
    loop {
        let (kept, _) = shared.kept_and_slack();
        let surplus = shared.space.lock().take_surplus(kept);
        let Some(segment) = surplus else {
            if kept == 0 {
                shrink_empty(shared);
            }
            return;
        };
        shared.files.forget(segment);
        if let Err(error) = shared.folder.delete(segment) {
            tracing::warn!(segment, %error, "cannot delete an empty segment file");
        }
    }
}

/// The one that stays for its number need take up no space.
fn shrink_empty(shared: &Shared) {
    // Meanwhile nobody may take it for new extents.
    let _only_one = shared.opening.lock();
    let Some(segment) = shared.space.lock().take_to_shrink() else { return };
    shared.files.forget(segment);
    if let Err(error) = shared.folder.truncate(segment) {
        tracing::warn!(segment, %error, "cannot give the space of an empty segment back");
    }
    shared.space.lock().put_back_empty(segment);
}

fn punch_holes(shared: &Shared) {
    loop {
        let (_, slack) = shared.kept_and_slack();
        let Some((segment, runs)) = shared.space.lock().next_to_punch(slack) else { return };
        let punched = shared.file(segment).and_then(|file| {
            runs.iter().try_for_each(|run| {
                file.punch_hole(run.start * BLOCK_BYTES, run.blocks * BLOCK_BYTES)
            })
        });
        if let Err(error) = &punched
            && is_no_descriptors(error)
        {
            // The next free triggers another attempt.
            return shared.space.lock().has_punched(segment, &[]);
        }
        if let Err(error) = punched {
            tracing::warn!(segment, %error, "cannot give freed space back before the whole segment is free");
        }
        let mut space = shared.space.lock();
        space.has_punched(segment, &runs);
        shared.look_for_chores(&space);
    }
}
