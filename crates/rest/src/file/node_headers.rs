//! Headers of answers about a directory, a file or a link.

use holdfast_domain::share::{
    File, FileTimes, Located, Node, NodeKind, PosixProperties, ShareState,
};
use holdfast_domain::time::Timestamp;
use hyper::StatusCode;

use super::attributes;
use crate::answer::Answer;
use crate::headers::content_headers;
use crate::headers::copy_state;
use crate::headers::resource_headers;
use crate::request::Call;
use crate::version::Version;

/// ETag, Last-Modified and the properties that SMB and NFS clients see.
pub fn node(answer: &mut Answer, call: &Call<'_>, located: &Located) {
    let node = &located.node;
    resource_headers::identity(answer, node.etag, node.last_modified, call.version);
    if call.version < Version::V2019_02_02 {
        return;
    }
    match &node.posix {
        None => {
            answer.header("x-ms-file-attributes", attributes_of(node));
            answer.show("x-ms-file-permission-key", node.permission);
        }
        Some(posix) => posix_properties(answer, call, posix, &node.kind),
    }
    times(answer, node.times);
    answer.show("x-ms-file-id", node.id);
    answer.show("x-ms-file-parent-id", located.place.directory());
}

fn times(answer: &mut Answer, times: FileTimes) {
    answer.show("x-ms-file-creation-time", times.created.iso8601());
    answer.show("x-ms-file-last-write-time", times.written.iso8601());
    answer.show("x-ms-file-change-time", times.changed.iso8601());
}

pub fn written(answer: &mut Answer, call: &Call<'_>, written: Timestamp) {
    if call.version >= Version::V2021_06_08 {
        answer.show("x-ms-file-last-write-time", written.iso8601());
    }
}

fn posix_properties(
    answer: &mut Answer,
    call: &Call<'_>,
    posix: &PosixProperties,
    kind: &NodeKind,
) {
    if call.version < Version::V2025_05_05 {
        return;
    }
    answer.header("x-ms-mode", format!("{:04o}", posix.mode));
    answer.show("x-ms-owner", posix.owner);
    answer.show("x-ms-group", posix.group);
    answer.header("x-ms-file-file-type", kind_name(kind));
    if !matches!(kind, NodeKind::Directory(_)) {
        answer.show("x-ms-link-count", posix.links);
    }
}

pub fn kind_name(kind: &NodeKind) -> &'static str {
    match kind {
        NodeKind::Directory(_) => "Directory",
        NodeKind::File(_) => "Regular",
        NodeKind::SymbolicLink(_) => "SymLink",
    }
}

pub fn attributes_of(node: &Node) -> String {
    attributes::text(node.attributes, node.is_directory())
}

/// The headers of Get File and Get File Properties besides those of all nodes.
pub fn file(answer: &mut Answer, call: &Call<'_>, file: &File, now: Timestamp, state: ShareState) {
    content_headers::stored_headers(answer, call, &file.headers);
    if state == ShareState::Current && call.version >= Version::V2019_02_02 {
        resource_headers::lease(answer, &file.lease, now);
    }
    if let Some(copy) = &file.copy {
        copy_state::copy_state(answer, copy);
    }
    answer.header("x-ms-type", "File");
    answer.header("x-ms-server-encrypted", "true");
}

/// The answer of operations that return only the metadata.
pub fn metadata(call: &Call<'_>, node: &Node) -> Answer {
    let mut answer = Answer::new(StatusCode::OK);
    resource_headers::identity(&mut answer, node.etag, node.last_modified, call.version);
    resource_headers::metadata(&mut answer, &node.metadata);
    answer
}

/// The answer of operations that return only the new state.
pub fn changed(call: &Call<'_>, node: &Node) -> Answer {
    let mut answer = Answer::new(StatusCode::OK);
    resource_headers::identity(&mut answer, node.etag, node.last_modified, call.version);
    answer.header("x-ms-request-server-encrypted", "true");
    answer
}
