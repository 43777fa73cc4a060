//! HTTP to commands and back.
//!
//! A request travels through [`server`] (its connection), [`frontend`] (address, operation, caller)
//! and the folder of its service, where each operation is parse, call, respond.

#![deny(unsafe_code)]

pub mod acl;
pub mod address;
mod answer;
mod answer_headers;
pub mod auth;
mod blob;
pub mod body;
pub mod connection;
pub mod cors;
mod date;
mod digests_aside;
pub mod document;
mod error;
mod file;
pub mod frontend;
#[doc(hidden)]
pub mod fuzz;
mod heavy_pool;
mod lane_share;
pub mod lanes;
mod lease_headers;
mod listing;
pub mod metrics;
pub mod multipart;
mod negotiate;
pub mod operation;
mod patience;
mod plain_bytes;
mod protocol_settings;
pub mod query;
mod queue;
pub mod range;
mod ranges_page;
pub mod redact;
mod refusals;
mod request;
mod request_body;
pub mod request_headers;
mod resource_headers;
pub mod server;
pub mod service;
mod service_operations;
pub mod service_properties;
pub mod source;
pub mod table;
pub mod version;
mod website;
mod xml;
