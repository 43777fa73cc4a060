//! Who is asking: NTLM version 2 in SPNEGO, with the name of an account for the user and one of its
//! keys, as text, for the password. There are no guests.

mod accounts;
mod der;
mod exchange;
mod ntlm;
mod ntlm_messages;
mod spnego;

pub use accounts::{Accounts, NtHash};
pub use exchange::{Authenticated, Exchange, Refused, Step, User};
pub use spnego::offer;

#[cfg(test)]
mod tests;
