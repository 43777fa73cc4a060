//! Moves the data of storage accounts: from the folder of Azurite into an account, and between
//! accounts by the wire protocol. A [`source::Source`] yields what there is, [`plan`] decides what
//! becomes of it, and [`destination`] writes it.

#![forbid(unsafe_code)]

pub mod azurite;
pub mod command;
pub mod destination;
pub mod edm;
pub mod endpoint;
pub mod model;
pub mod plan;
pub mod report;
pub mod run;
pub mod source;
