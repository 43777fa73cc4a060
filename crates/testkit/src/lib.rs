//! What tests of the real binary share, and the load generator with them: programs as child processes
//! ([`process`]) and a client of the services ([`client`]). It knows nothing of how the server is made.

pub mod client;
pub mod process;
