//! Processing of bodies: limits, digests, and the structured form with its own checksums.

pub(crate) mod concurrent_digests;
mod digests;
pub(crate) mod download;
pub mod multipart;
mod request_body;
mod structured_body;
mod structured_encoder;

pub use digests::{
    DigestRefusal, Digests, ExpectedDigests, FinishedDigests, decode_md5, encode_crc64,
};
pub(crate) use request_body::{ContentBody, RequestBody, is_too_slow};
pub use structured_body::{Decoder, Plain, StructuredBody, StructuredRefusal};
pub use structured_encoder::Encoder;
