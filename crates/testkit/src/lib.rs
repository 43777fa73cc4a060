//! What tests share, and the load generator with them: programs as child processes ([`process`]) and, as a
//! cargo feature, a client of the services (`client`). It knows nothing of how the server is made.

#[cfg(feature = "client")]
pub mod client;
pub mod process;
