//! Histories: what many clients did to a server at once and what it answered, and whether any
//! server that keeps its promises could have answered so. `holdfast verify` shows it, and tests use it.

#![forbid(unsafe_code)]

pub mod account;
pub mod append;
pub mod blob;
pub mod client;
pub mod connection;
pub mod content;
pub mod entity;
pub mod etag;
pub mod file;
pub mod history;
mod http_answer;
pub mod lease;
pub mod linearizability;
pub mod partition;
pub mod queue;
pub mod record;
pub mod refusal;
pub mod report;
pub mod run;
pub mod scratch_space;
mod signature;
mod stream;
