//! XML documents in requests and answers.

pub mod document;
mod writer;

pub use writer::{Writer, is_character};
