//! The Queue service: queues, and messages that are invisible for a time once they are got.
//!
//! A message is one row (a long text has a second one), and its place in the order of rows is when
//! it becomes visible. Getting it moves it to a later place, and the receipt names that place: so a
//! receipt is valid as long as the message is at that place.

mod get;
mod head;
mod lifecycle;
mod list;
mod live_queue;
mod message;
mod model;
mod put;
mod rows;
#[cfg(all(test, feature = "shuttle"))]
mod shuttle;
mod update;
mod upkeep;

pub use get::{GetMessages, PeekMessages};
pub use lifecycle::{CreateQueue, Created, QueueRefusal, SetQueueAcl, SetQueueMetadata};
pub use list::{ListQueues, ListedQueue, QueueListing};
pub(crate) use live_queue::LiveQueues;
pub use message::MessageRefusal;
pub use model::{MessageId, MessageState, PopReceipt, Queue, QueuePath, TextMessage};
pub use put::{PutMessage, TIME_TO_LIVE_DEFAULT};
pub use update::{DeleteMessage, UpdateMessage};
