//! `holdfast import` and `holdfast export` as a program of their own: the first argument says which.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match arguments.first().and_then(|name| name.to_str()) {
        Some("import") => holdfast_transfer::command::run_import(&arguments),
        Some("export") => holdfast_transfer::command::run_export(&arguments),
        _ => {
            eprintln!("usage: transfer import|export …");
            ExitCode::from(2)
        }
    }
}
