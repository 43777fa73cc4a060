//! `holdfast completions SHELL` and `holdfast man`: what shells and `man` read of the command line. It is
//! made from the commands themselves, so that it cannot fall behind them.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Arg, Command, value_parser};
use clap_complete::Shell;

use crate::{FAULT, command_line};

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub fn completions_command() -> Command {
    Command::new("completions")
        .bin_name("holdfast completions")
        .version(VERSION)
        .about("Print what a shell needs to complete the command line")
        .arg(
            Arg::new("shell").required(true).value_name("SHELL").value_parser(value_parser!(Shell)),
        )
}

pub fn man_command() -> Command {
    Command::new("man")
        .bin_name("holdfast man")
        .version(VERSION)
        .about("Print the manual page: holdfast man > holdfast.1")
}

pub fn run_completions(arguments: &[OsString]) -> ExitCode {
    let given = match completions_command().try_get_matches_from(arguments) {
        Ok(given) => given,
        Err(usage) => return crate::usage(&usage),
    };
    let shell = *given.get_one::<Shell>("shell").expect("it is required");
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command_line::command(), "holdfast", &mut script);
    print(&script)
}

pub fn run_man(arguments: &[OsString]) -> ExitCode {
    if let Err(usage) = man_command().try_get_matches_from(arguments) {
        return crate::usage(&usage);
    }
    let mut page = Vec::new();
    match clap_mangen::Man::new(command_line::command()).render(&mut page) {
        Ok(()) => print(&page),
        Err(error) => {
            eprintln!("holdfast man: {error}");
            ExitCode::from(FAULT)
        }
    }
}

/// A reader that has seen enough is no fault.
fn print(bytes: &[u8]) -> ExitCode {
    match io::stdout().write_all(bytes) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("holdfast: {error}");
            ExitCode::from(FAULT)
        }
        Ok(()) | Err(_) => ExitCode::SUCCESS,
    }
}
