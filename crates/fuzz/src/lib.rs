//! Every parser that meets the network, by name. Each takes bytes and returns whether they were
//! valid; none may panic, hang, or take more memory than its bound. `fuzz/` runs them under
//! cargo-fuzz, `tests/mutations.rs` briefly with the other tests.

mod domain;
pub mod mutate;
mod sql;

use holdfast_rest::fuzz as rest;
use holdfast_smb::fuzz as smb;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// A parser, and its memory limit for inputs of a few kilobytes.
#[derive(Clone, Copy)]
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]) -> bool,
    pub memory_bytes_max: usize,
    /// A decoder that is not ours may panic; the server catches that and answers with an error.
    pub panics_are_caught: bool,
}

impl Target {
    const fn new(name: &'static str, run: fn(&[u8]) -> bool, memory_bytes_max: usize) -> Self {
        Self { name, run, memory_bytes_max, panics_are_caught: false }
    }
}

/// The folder of seeds and the fuzz target of each have its name.
pub const TARGETS: &[Target] = &[
    Target::new("authorization", rest::authorization, MIB),
    Target::new("batch", rest::batch, MIB),
    Target::new("chunked_body", rest::chunked_body, MIB),
    Target::new("entity", rest::entity, MIB),
    Target::new("like", sql::like, MIB),
    Target::new("odata_filter", domain::odata_filter, MIB),
    Target { panics_are_caught: true, ..Target::new("parquet", sql::parquet, 96 * MIB) },
    Target::new("query_text", sql::text, 4 * MIB),
    Target::new("ranges", rest::ranges, 64 * KIB),
    Target::new("request", rest::request, MIB),
    Target::new("security_descriptor", domain::security_descriptor, MIB),
    Target::new("smb_answers", smb::answers, MIB),
    Target::new("smb_logon", smb::logon, MIB),
    Target::new("smb_packet", smb::packet, MIB),
    Target::new("source_url", rest::source_url, MIB),
    Target::new("sql", sql::sql, 4 * MIB),
    Target::new("structured_body", rest::structured_body, MIB),
    Target::new("tag_predicate", domain::tag_predicate, MIB),
    Target::new("xml", rest::xml, MIB),
];

/// Runs the target with this name.
///
/// # Panics
///
/// If there is none, and if the target finds something.
pub fn run(name: &str, bytes: &[u8]) -> bool {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.unwrap_or_else(|| panic!("no target is called {name}")).run)(bytes)
}
