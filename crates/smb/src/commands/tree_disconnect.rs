//! TREE_DISCONNECT: closes what was opened in the tree.

use std::sync::Arc;

use super::{Result, close};
use crate::answer::Answer;
use crate::call::Call;
use crate::wire;

pub async fn handle(call: &mut Call) -> Result {
    wire::tree::decode_empty(&call.message)?;
    let session = Arc::clone(call.session()?);
    let tree_id = call.tree()?.id;
    session.remove_tree(tree_id);
    for open in session.opens.remove_of_tree(tree_id) {
        close::close(&call.connection, &open).await;
    }
    Ok(Answer::empty())
}
