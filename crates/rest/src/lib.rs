//! HTTP to commands and back.
//!
//! A request travels through [`server`] (its connection), [`frontend`] (address, operation, caller)
//! and the folder of its service, where each operation is parse, call, respond.

#![deny(unsafe_code)]

pub mod access_log;
pub mod address;
mod answer;
pub mod auth;
mod blob;
pub mod body;
pub mod connection;
pub mod cors;
mod error;
mod file;
pub mod frontend;
#[doc(hidden)]
pub mod fuzz;
pub mod headers;
pub mod lanes;
mod listing;
pub mod metrics;
pub mod operation;
mod queue;
pub mod redact;
mod request;
pub mod server;
pub mod service;
pub mod source;
pub mod table;
pub mod url_query;
pub mod version;
mod website;
pub mod xml;
