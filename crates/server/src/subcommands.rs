//! What the first word of the command line may be instead of a setting.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Command, CommandFactory as _};

use crate::{generate, health, scrub};

pub struct Subcommand {
    name: &'static str,
    pub command: fn() -> Command,
    run: fn(&[OsString]) -> ExitCode,
}

pub const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand {
        name: "completions",
        command: generate::completions_command,
        run: generate::run_completions,
    },
    #[cfg(feature = "transfer")]
    Subcommand {
        name: "import",
        command: holdfast_transfer::command::import_command,
        run: holdfast_transfer::command::run_import,
    },
    #[cfg(feature = "transfer")]
    Subcommand {
        name: "export",
        command: holdfast_transfer::command::export_command,
        run: holdfast_transfer::command::run_export,
    },
    Subcommand { name: "health", command: health::command, run: health::run },
    Subcommand { name: "man", command: generate::man_command, run: generate::run_man },
    Subcommand { name: "scrub", command: scrub::command, run: scrub::run },
    #[cfg(feature = "verify")]
    Subcommand {
        name: "verify",
        command: crate::verify::Arguments::command,
        run: crate::verify::run,
    },
];

/// Runs the subcommand that the first argument behind the name of the program names, if any.
pub fn run(arguments: &[OsString]) -> Option<ExitCode> {
    let word = arguments.get(1)?.to_str()?;
    let named = SUBCOMMANDS.iter().find(|subcommand| subcommand.name == word)?;
    Some((named.run)(&arguments[1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_called_as_its_command_is_and_says_what_it_does() {
        for subcommand in SUBCOMMANDS {
            let command = (subcommand.command)();
            assert_eq!(command.get_name(), subcommand.name);
            assert!(command.get_about().is_some(), "{}", subcommand.name);
            let full_name = format!("holdfast {}", subcommand.name);
            assert_eq!(command.get_bin_name(), Some(full_name.as_str()));
            assert!(command.get_version().is_some(), "{}", subcommand.name);
        }
    }
}
