//! The binary `holdfast`: reads its settings, opens the store, listens, and on a signal finishes
//! what is running and closes. Exit code 0 is a clean end, 2 settings that cannot be used, 1 a
//! fault: a port in use, a locked folder, a disk that fails.

#![deny(unsafe_code)]

mod access_log;
mod account;
mod admin;
mod allocator;
mod announce;
mod azurite;
mod background;
mod clock;
mod command_line;
mod configuration_file;
mod generate;
mod health;
#[cfg(test)]
mod hostile;
mod logging;
mod open_files;
mod run;
mod scrub;
mod seed;
mod settings;
mod subcommands;
mod tls;
mod token_keys;
#[cfg(feature = "verify")]
mod verify;
mod welcome;
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
    if let Some(ended) = subcommands::run(&arguments) {
        return ended;
    }
    let prepared = match prepare(&arguments, &environment) {
        Ok(prepared) => prepared,
        Err(SettingsError::Usage(error)) => return usage(&error),
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

/// Prints the help or version that was asked for, or what is wrong with the arguments.
fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(BAD_SETTINGS))
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
