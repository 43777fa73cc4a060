//! Headers of requests and answers, and those that several services share.

pub mod answer_headers;
pub(crate) mod byte_scan;
pub(crate) mod content_headers;
pub(crate) mod copy_state;
pub(crate) mod date;
pub(crate) mod lease_headers;
pub mod range;
pub mod request_headers;
pub(crate) mod resource_headers;

pub(crate) use answer_headers::AnswerHeaders;
pub use request_headers::RequestHeaders;
