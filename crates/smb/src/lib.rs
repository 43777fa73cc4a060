//! The SMB front end: packets to commands of the domain and back. What a share is and what may be
//! done with it is the domain's; statuses and bytes are this crate's.

pub mod auth;
pub mod crypto;
pub mod info;
pub mod status;
pub mod wire;

#[cfg(test)]
fn hexadecimal(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().map(|digit| digit.to_digit(16).expect("a hexadecimal digit") as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
