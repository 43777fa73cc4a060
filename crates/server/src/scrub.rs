//! `holdfast scrub --data DIR`: compares everything in a data folder that no server has open with its
//! checksums, and prints one line per damaged place. Exit code 0: no damage; 1: damage; 2: the command
//! cannot be run.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{Arg, Command, value_parser};
use holdfast_domain::scrub::{DamagedExtent, scrub_extents};
use holdfast_store::embedded::{
    Damage, DataFolder, Durability, EmbeddedEngine, OpenError, SegmentExtents, SegmentOptions,
    scrub_rows,
};

use crate::wiring::engine_options;

const DAMAGED: u8 = 1;
const USAGE: u8 = 2;

/// `arguments` are those after the word `scrub`.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let data = Arg::new("data").long("data").value_name("DIR").required(true);
    let command = Command::new("holdfast scrub")
        .about("Compares a data folder with its checksums and prints one line per damaged place")
        .no_binary_name(true)
        .arg(
            data.value_parser(value_parser!(OsString))
                .help("The folder; no server may be using it"),
        );
    let given = match command.try_get_matches_from(arguments) {
        Ok(given) => given,
        Err(usage) => {
            let _ = usage.print();
            return ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(USAGE));
        }
    };
    let path = given.get_one::<OsString>("data").expect("it is required");
    match scrub(Path::new(path)) {
        Ok(found) if found.is_empty() => {
            println!("no damage: {}", Path::new(path).display());
            ExitCode::SUCCESS
        }
        Ok(found) => {
            for line in found {
                println!("damaged: {line}");
            }
            ExitCode::from(DAMAGED)
        }
        Err(error) => {
            eprintln!("holdfast scrub: {}", crate::with_reasons(error.as_ref()));
            ExitCode::from(USAGE)
        }
    }
}

type AnyError = Box<dyn std::error::Error>;

fn scrub(path: &Path) -> Result<Vec<String>, AnyError> {
    if !path.is_dir() {
        return Err(format!("{} is not a folder", path.display()).into());
    }
    let folder = match DataFolder::open(path) {
        Ok(folder) => folder,
        Err(why @ (OpenError::NotADataFolder { .. } | OpenError::NewerFormat { .. }))
            if path.join("FORMAT").exists() =>
        {
            return Ok(vec![format!("{}: {why}", path.join("FORMAT").display())]);
        }
        Err(why) => return Err(why.into()),
    };
    let rows = scrub_rows(&folder)?;
    if !rows.is_empty() {
        // Without the rows it is unknown what is in a segment.
        return Ok(rows.iter().map(describe).collect());
    }
    let engine = EmbeddedEngine::open(&folder, &engine_options(Durability::Fsync))?;
    let extents = SegmentExtents::open(&folder, &SegmentOptions::default())?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let damaged = runtime.block_on(scrub_extents(&engine, &extents))?;
    Ok(damaged.iter().flat_map(|extent| describe_extent(path, extent)).collect())
}

fn describe(damage: &Damage) -> String {
    let Damage { file, offset, what } = damage;
    let place = offset.map_or(String::new(), |offset| format!(" at byte {offset}"));
    format!("{}{place}: {what}", file.display())
}

fn describe_extent(path: &Path, extent: &DamagedExtent) -> Vec<String> {
    let file = path.join("segments").join(format!("{:08}.seg", extent.id.segment));
    let owners = match extent.owners.as_slice() {
        [] => "it is not known what these bytes belong to".to_owned(),
        owners => format!("these bytes belong to {}", owners.join(" and ")),
    };
    let line = |piece: &u64| {
        let offset = extent.id.offset + piece;
        format!("{} from byte {offset} on: {}; {owners}", file.display(), extent.why)
    };
    extent.pieces.iter().map(line).collect()
}
