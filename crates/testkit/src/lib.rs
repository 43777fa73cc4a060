//! What tests share, and the load generator with them: programs as child processes ([`process`]) and, as a
//! cargo feature, a client of the services (`client`). It knows nothing of the server's implementation.

#[cfg(feature = "client")]
pub mod client;
pub mod process;
