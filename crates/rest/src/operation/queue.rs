//! The operations of the Queue service.

use super::need::{Actions, CREATE, DELETE, LIST, Letters, NO_SAS, Need, READ, WRITE};
use super::row::{Comp, Restype, Row, Scope, Selector, Verbs};
use super::{Operation, QueueOperation};
use crate::version::Version;

const READ_SERVICE: Actions = &[&["queueServices/read"]];
/// The reference names the read action for writing, too; the roles grant the write action.
const WRITE_SERVICE: Actions = &[&["queueServices/write"]];
const READ_QUEUE: Actions = &[&["queueServices/queues/read"]];
const WRITE_QUEUE: Actions = &[&["queueServices/queues/write"]];
const DELETE_QUEUE: Actions = &[&["queueServices/queues/delete"]];
const READ_MESSAGE: Actions = &[&["queueServices/queues/messages/read"]];
const WRITE_MESSAGE: Actions = &[&["queueServices/queues/messages/write"]];
const DELETE_MESSAGES: Actions = &[&["queueServices/queues/messages/delete"]];
const ADD_MESSAGE: Actions =
    &[&["queueServices/queues/messages/add/action"], &["queueServices/queues/messages/write"]];
const TAKE_MESSAGES: Actions = &[
    &["queueServices/queues/messages/process/action"],
    &["queueServices/queues/messages/delete", "queueServices/queues/messages/read"],
];
const DELETE_MESSAGE: Actions =
    &[&["queueServices/queues/messages/process/action"], &["queueServices/queues/messages/delete"]];
const PROCESS: Letters = &["p"];

const fn service(operation: QueueOperation, name: &'static str, verbs: Verbs, need: Need) -> Row {
    Row::new(Operation::Queue(operation), name, verbs, Scope::Service, need)
        .restype(Restype::Service)
        .built()
}

const fn queue(operation: QueueOperation, name: &'static str, verbs: Verbs, need: Need) -> Row {
    Row::new(Operation::Queue(operation), name, verbs, Scope::Queue, need).built()
}

const fn messages(operation: QueueOperation, name: &'static str, verbs: Verbs, need: Need) -> Row {
    Row::new(Operation::Queue(operation), name, verbs, Scope::Messages, need).built()
}

const fn message(operation: QueueOperation, name: &'static str, verbs: Verbs, need: Need) -> Row {
    Row::new(Operation::Queue(operation), name, verbs, Scope::Message, need).built().success(&[204])
}

pub(super) const ROWS: &[Row] = &[
    service(
        QueueOperation::SetQueueServiceProperties,
        "Set Queue Service Properties",
        Verbs::PUT,
        Need::service(WRITE, WRITE_SERVICE),
    )
    .comp(Comp::Properties)
    .success(&[202]),
    service(
        QueueOperation::GetQueueServiceProperties,
        "Get Queue Service Properties",
        Verbs::GET,
        Need::service(READ, READ_SERVICE),
    )
    .comp(Comp::Properties),
    service(
        QueueOperation::GetQueueServiceStats,
        "Get Queue Service Stats",
        Verbs::GET,
        Need::service(READ, READ_SERVICE),
    )
    .comp(Comp::Stats)
    .since(Version::V2013_08_15),
    Row::new(
        Operation::Queue(QueueOperation::ListQueues),
        "List Queues",
        Verbs::GET,
        Scope::Service,
        Need::service(LIST, READ_QUEUE),
    )
    .comp(Comp::List)
    .built(),
    queue(
        QueueOperation::CreateQueue,
        "Create Queue",
        Verbs::PUT,
        Need::container(CREATE, WRITE_QUEUE),
    )
    .success(&[201, 204]),
    queue(
        QueueOperation::DeleteQueue,
        "Delete Queue",
        Verbs::DELETE,
        Need::container(DELETE, DELETE_QUEUE),
    )
    .success(&[204]),
    queue(
        QueueOperation::GetQueueMetadata,
        "Get Queue Metadata",
        Verbs::GET_OR_HEAD,
        Need::container(READ, READ_QUEUE).with_service_sas(),
    )
    .comp(Comp::Metadata),
    queue(
        QueueOperation::SetQueueMetadata,
        "Set Queue Metadata",
        Verbs::PUT,
        Need::container(WRITE, WRITE_QUEUE),
    )
    .comp(Comp::Metadata)
    .success(&[204]),
    queue(
        QueueOperation::GetQueueAcl,
        "Get Queue ACL",
        Verbs::GET_OR_HEAD,
        Need::container(NO_SAS, &[&["queueServices/queues/getAcl/action"]])
            .role_since(Version::V2025_07_05),
    )
    .comp(Comp::Acl)
    .since(Version::V2012_02_12),
    queue(
        QueueOperation::SetQueueAcl,
        "Set Queue ACL",
        Verbs::PUT,
        Need::container(NO_SAS, &[&["queueServices/queues/setAcl/action"]])
            .role_since(Version::V2025_07_05),
    )
    .comp(Comp::Acl)
    .since(Version::V2012_02_12)
    .success(&[204]),
    messages(
        QueueOperation::GetMessages,
        "Get Messages",
        Verbs::GET,
        Need::object(PROCESS, TAKE_MESSAGES),
    ),
    messages(
        QueueOperation::ClearMessages,
        "Clear Messages",
        Verbs::DELETE,
        Need::object(DELETE, DELETE_MESSAGES).without_service_sas(),
    )
    .success(&[204]),
    messages(
        QueueOperation::PutMessage,
        "Put Message",
        Verbs::POST,
        Need::object(&["a"], ADD_MESSAGE),
    )
    .success(&[201]),
    messages(
        QueueOperation::PeekMessages,
        "Peek Messages",
        Verbs::GET,
        Need::object(READ, READ_MESSAGE),
    )
    .when(&[Selector::QueryIs("peekonly", "true")]),
    message(
        QueueOperation::UpdateMessage,
        "Update Message",
        Verbs::PUT,
        Need::object(&["u"], WRITE_MESSAGE),
    )
    .since(Version::V2011_08_18),
    message(
        QueueOperation::DeleteMessage,
        "Delete Message",
        Verbs::DELETE,
        Need::object(PROCESS, DELETE_MESSAGE),
    ),
    service(
        QueueOperation::GetQueueUserDelegationKey,
        "Get User Delegation Key (queue)",
        Verbs::POST,
        Need::service(NO_SAS, &[&["queueServices/generateUserDelegationKey/action"]]).token_only(),
    )
    .comp(Comp::UserDelegationKey)
    .since(Version::V2026_02_06),
    Row::new(
        Operation::Queue(QueueOperation::PreflightQueueRequest),
        "Preflight Queue Request",
        Verbs::OPTIONS,
        Scope::Any,
        Need::NOTHING,
    )
    .since(Version::V2013_08_15)
    .built(),
];
