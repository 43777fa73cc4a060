//! What happens to the bytes of a body on their way: digests, and the structured form that carries
//! its own checksums. Pure: chunks in, chunks out, whatever their boundaries.

mod digest;
mod encoder;
mod structured;

pub use digest::{
    DigestRefusal, Digests, ExpectedDigests, FinishedDigests, decode_md5, encode_crc64,
};
pub use encoder::Encoder;
pub use structured::{Decoder, Plain, StructuredBody, StructuredRefusal};
