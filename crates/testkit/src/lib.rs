//! Histories: what many clients did to a server at once and what it answered, and whether any
//! server that keeps its promises could have answered so. Tests use it, and `holdfast verify`.

pub mod account;
mod answer;
pub mod append;
pub mod blob;
pub mod client;
pub mod connection;
pub mod content;
pub mod entity;
pub mod etag;
pub mod file;
pub mod history;
pub mod lease;
pub mod linearizable;
pub mod partition;
pub mod queue;
pub mod random;
pub mod record;
pub mod refusal;
pub mod report;
mod signature;
pub mod space;
pub mod verify;
