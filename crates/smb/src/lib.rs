//! The SMB front end: packets to commands of the domain and back. The domain has the rules of
//! shares; this crate has statuses and bytes.

#![forbid(unsafe_code)]

pub mod answer;
pub mod auth;
pub mod call;
pub mod commands;
pub mod connection;
pub mod crypto;
pub mod dialect;
pub mod frontend;
#[doc(hidden)]
pub mod fuzz;
pub mod info;
pub mod ipc;
pub mod opens;
pub mod refusals;
pub mod rules;
pub mod server;
pub mod session;
pub mod settings;
pub mod shares;
pub mod snapshots;
pub mod status;
pub mod tree;
pub mod wire;

#[cfg(test)]
fn hexadecimal(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().map(|digit| digit.to_digit(16).expect("a hexadecimal digit") as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
