//! XML: the documents of requests, and those of answers.

pub mod document;
mod writer;

pub use writer::{Writer, is_character};
