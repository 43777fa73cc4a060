//! The SMB front end: packets to commands of the domain and back. What a share is and what may be
//! done with it is the domain's; statuses and bytes are this crate's.

pub mod status;
pub mod wire;
