//! HTTP to commands and back.

pub mod acl;
pub mod address;
pub mod auth;
pub mod body;
pub mod cors;
pub mod document;
pub mod operation;
pub mod query;
pub mod range;
pub mod metrics;
pub mod operation;
pub mod query;
pub mod redact;
pub mod service;
pub mod service_properties;
pub mod version;
pub mod xml;
