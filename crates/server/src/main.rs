//! The binary `holdfast`: reads its settings, opens the store, listens, and on a signal finishes
//! what is running and closes. Exit code 0 is a clean end, 2 settings that cannot be used, 1 a
//! fault: a port in use, a locked folder, a disk that fails.

#![deny(unsafe_code)]

mod account;
mod admin;
mod allocator;
mod announce;
mod azurite;
mod background;
mod clock;
mod command_line;
mod configuration_file;
#[cfg(test)]
mod hostile;
mod logging;
mod open_files;
mod run;
mod scrub;
mod seed;
mod settings;
mod tls;
mod token_keys;
#[cfg(feature = "verify")]
mod verify;
mod wiring;

use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;

use rustix::fs::Mode;

use crate::command_line::{Environment, SettingsError};
use crate::run::Prepared;

#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

const FAULT: u8 = 1;
const BAD_SETTINGS: u8 = 2;

fn main() -> ExitCode {
    allocator::give_memory_back_soon();
    // Some files of the data folder are created by libraries, which set no permissions.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    let arguments: Vec<_> = std::env::args_os().collect();
    let environment = std::env::vars_os().collect();
    match arguments.get(1).and_then(|word| word.to_str()) {
        Some("scrub") => return scrub::run(&arguments[2..]),
        #[cfg(feature = "verify")]
        Some("verify") => return verify::main(&arguments[1..]),
        Some(_) | None => {}
    }
    let prepared = match prepare(&arguments, &environment) {
        Ok(prepared) => prepared,
        Err(SettingsError::Usage(usage)) => {
            let _ = usage.print();
            return ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(BAD_SETTINGS));
        }
        Err(error @ (SettingsError::Value { .. } | SettingsError::Rule(_))) => {
            eprintln!("holdfast: {error}");
            return ExitCode::from(BAD_SETTINGS);
        }
    };
    match run::run(prepared) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("holdfast: {}", with_reasons(error.as_ref()));
            ExitCode::from(FAULT)
        }
    }
}

/// Checks everything that can be refused before anything is opened.
fn prepare(arguments: &[OsString], environment: &Environment) -> Result<Prepared, SettingsError> {
    let settings = settings::read(arguments, environment)?;
    let tls = settings.tls.as_ref().map(tls::load).transpose()?;
    let accounts: Vec<&str> = settings.accounts.iter().map(|it| it.name.as_str()).collect();
    let seed = settings.seed.as_deref().map(|path| seed::read(path, &accounts)).transpose()?;
    let tokens = wiring::read_tokens(settings.bearer.as_ref())?;
    let sources = wiring::read_sources(&settings.copy_sources)?;
    logging::start(&settings.log)?;
    Ok(Prepared { settings, tls, tokens, sources, seed })
}

fn with_reasons(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(reason) = source {
        text.push_str(&format!(": {reason}"));
        source = reason.source();
    }
    text
}
