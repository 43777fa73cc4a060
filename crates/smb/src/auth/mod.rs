//! Authentication: NTLM version 2 in SPNEGO; the user is the name of an account, the password one
//! of its keys as text. There are no guests.

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
