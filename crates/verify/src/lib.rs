//! Histories of many concurrent clients: recording them, and checking whether a correct server could
//! have answered so. Used by `holdfast verify` and by tests.

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
