//! HTTP to commands and back.

pub mod address;
pub mod auth;
pub mod operation;
pub mod query;
pub mod service;
pub mod version;
