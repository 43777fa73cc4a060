//! `holdfast-bench`: loads a storage server, or two in turns, and reports how fast they were.

mod ceiling;
mod churn;
mod compare;
mod load;
mod neighbour;
mod report;
mod resource_usage;
mod servers;
mod workload;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use holdfast_verify::{account, client};

use account::Account;
use compare::Side;
use load::{Plan, PreparedServer};
use neighbour::Neighbours;
use report::{Figures, HEADINGS};
use servers::{Server, install_azurite};
use workload::{Kind, Parts, Settings, WorkloadName};

#[derive(Parser)]
#[command(name = "holdfast-bench", version, about)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Load one server.
    Run {
        /// A connection string: UseDevelopmentStorage=true, or AccountName=…;AccountKey=…;BlobEndpoint=…
        #[arg(long, default_value = "UseDevelopmentStorage=true")]
        connection: String,
        #[command(flatten)]
        load: Load,
    },
    /// Load several servers in turns and print the ratio of the first to each of the others.
    Compare {
        #[command(flatten)]
        sides: Sides,
        /// Runs on each server.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
        rounds: u16,
        #[command(flatten)]
        load: Load,
    },
    /// Load a server that does nothing, to know what this program itself can do.
    Ceiling {
        #[command(flatten)]
        load: Load,
    },
    /// Small Gets on two connections: alone, beside a load on another server process, and beside the same
    /// load on their own.
    NoisyNeighbour {
        /// Start this binary twice, each time with a new data folder.
        #[arg(long, value_name = "PATH")]
        holdfast: PathBuf,
        /// Runs of each.
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
        rounds: u16,
        #[command(flatten)]
        load: Load,
    },
    /// Fill a server, overwrite everything twice, delete half and then all, and print the size of its
    /// folder.
    Churn {
        /// Start this binary, with a new data folder.
        #[arg(long, value_name = "PATH")]
        holdfast: PathBuf,
        #[arg(long, value_enum, default_value = "blobs")]
        kind: Kind,
        #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u32).range(..=1_048_576))]
        payload: u32,
        #[arg(long, default_value_t = 120_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
        objects: u64,
    },
    /// Serve as `ceiling` does, until this program is ended.
    #[command(hide = true)]
    BareHyper {
        #[arg(long)]
        payload: u32,
    },
    /// Install Azurite and run it on free ports until this program is ended.
    Azurite {
        #[arg(long, default_value = AZURITE_FOLDER)]
        azurite_folder: PathBuf,
        /// Only install it.
        #[arg(long)]
        install_only: bool,
    },
}

const AZURITE_FOLDER: &str = ".local/azurite";
/// A run by count ends at the latest after this.
const COUNTED_RUN_MAX: Duration = Duration::from_secs(600);

#[derive(Args)]
struct Load {
    #[arg(long, value_enum)]
    workload: WorkloadName,
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    connections: u16,
    /// Bytes of content in a blob, message or entity.
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u32).range(..=268_435_456))]
    payload: u32,
    /// Objects that exist before a load that reads: 1000, but 5000 to list and 4 to download or to read in ranges.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    objects: Option<u64>,
    /// Blocks of a blob that is read in ranges.
    #[arg(long, default_value_t = Parts::default().count, value_parser = clap::value_parser!(u32).range(1..=50_000))]
    parts: u32,
    /// Bytes of each of those blocks.
    #[arg(long, default_value_t = Parts::default().bytes, value_parser = clap::value_parser!(u32).range(1..=268_435_456))]
    part_bytes: u32,
    /// How long a run is measured.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=3600))]
    seconds: u16,
    /// Operations in a run, instead of its length.
    #[arg(long, conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Seconds of the same load before each run, not measured.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(..=600))]
    warm_up: u16,
    /// Threads that make the load; unless given, as many as there are processors.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

#[derive(Args)]
struct Sides {
    /// Connection string of the server on the left.
    #[arg(long, required_unless_present = "holdfast", conflicts_with = "holdfast")]
    left: Option<String>,
    /// Start this binary, with a new data folder, as the server on the left.
    #[arg(long, value_name = "PATH")]
    holdfast: Option<PathBuf>,
    /// Another argument for that binary, such as --memory. May be repeated.
    #[arg(long, requires = "holdfast", allow_hyphen_values = true, value_name = "ARGUMENT")]
    holdfast_argument: Vec<String>,
    /// Connection string of the server on the right.
    #[arg(long, required_unless_present_any = ["with_holdfast", "with_azurite", "with_bare_hyper", "with_nginx"])]
    right: Option<String>,
    /// Start another build of Holdfast, with a new data folder and the same arguments, as a server on the right.
    #[arg(long, value_name = "PATH")]
    with_holdfast: Option<PathBuf>,
    /// Install and start Azurite as a server on the right.
    #[arg(long)]
    with_azurite: bool,
    /// Start a bare hyper server, which only answers from memory, as a server on the right: for
    /// get-blob, head-blob and put-blob.
    #[arg(long)]
    with_bare_hyper: bool,
    /// Start nginx as a server on the right: for get-blob.
    #[arg(long)]
    with_nginx: bool,
    #[arg(long, default_value = AZURITE_FOLDER)]
    azurite_folder: PathBuf,
}

impl Load {
    fn plan(&self) -> Plan {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        Plan {
            connections: self.connections.into(),
            threads: self.threads.map_or_else(processors, usize::from),
            warm_up: Duration::from_secs(self.warm_up.into()),
            duration: match self.count {
                Some(_) => COUNTED_RUN_MAX,
                None => Duration::from_secs(self.seconds.into()),
            },
            count: self.count,
        }
    }

    fn settings(&self) -> Settings {
        let objects = self.objects.unwrap_or_else(|| self.workload.objects_default());
        let parts = Parts { count: self.parts, bytes: self.part_bytes };
        Settings { payload_bytes: self.payload as usize, objects, parts }
    }
}

fn main() -> ExitCode {
    match execute(CommandLine::parse().command) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(errors) => {
            eprintln!("{errors} operations failed");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("holdfast-bench: {error}");
            let mut cause = error.source();
            while let Some(error) = cause {
                eprintln!("  because: {error}");
                cause = error.source();
            }
            ExitCode::FAILURE
        }
    }
}

/// Returns how many operations failed.
fn execute(command: Command) -> Result<u64, Box<dyn Error>> {
    match command {
        Command::Run { connection, load } => run(Account::parse(&connection)?, &load),
        Command::Ceiling { load } => run(ceiling::start(load.payload as usize)?, &load),
        Command::Compare { sides, rounds, load } => {
            let (settings, plan) = (load.settings(), load.plan());
            let started = started_sides(&sides, settings)?;
            let (sides, _servers): (Vec<_>, Vec<_>) = started.into_iter().unzip();
            Ok(compare::compare(sides, load.workload, settings, plan, rounds.into())?)
        }
        Command::NoisyNeighbour { holdfast, rounds, load } => {
            let servers = (Server::holdfast(&holdfast, &[])?, Server::holdfast(&holdfast, &[])?);
            let (workload, settings, plan) = (load.workload, load.settings(), load.plan());
            let neighbours = Neighbours { workload, settings, plan };
            Ok(neighbour::measure(&servers.0, &servers.1, &neighbours, rounds.into())?)
        }
        Command::Churn { holdfast, kind, payload, objects } => {
            let server = Server::holdfast(&holdfast, &[])?;
            let parts = Parts::default();
            let settings = Settings { payload_bytes: payload as usize, objects, parts };
            churn::churn(&server, kind, settings)?;
            Ok(0)
        }
        Command::BareHyper { payload } => {
            ceiling::run(payload as usize)?;
            Ok(0)
        }
        Command::Azurite { azurite_folder, install_only } => {
            install_azurite(&azurite_folder)?;
            if !install_only {
                serve_until_ended(&Server::azurite(&azurite_folder)?)?;
            }
            Ok(0)
        }
    }
}

fn run(account: Account, load: &Load) -> Result<u64, Box<dyn Error>> {
    let target = PreparedServer::prepare(account, load.workload, load.settings())?;
    let tally = target.run(load.plan());
    target.clean_up()?;
    let figures = Figures::of(&tally);
    println!("{HEADINGS}\n{figures}");
    report::print_failures(&tally);
    Ok(figures.errors)
}

/// A side, and its server if it was started for it.
type StartedSide = (Side, Option<Server>);

/// The one on the left first.
fn started_sides(sides: &Sides, settings: Settings) -> Result<Vec<StartedSide>, Box<dyn Error>> {
    let mut all = Vec::new();
    if let Some(connection) = &sides.left {
        all.push(running("left", connection)?);
    }
    if let Some(binary) = &sides.holdfast {
        all.push(started("holdfast", Server::holdfast(binary, &sides.holdfast_argument)?));
    }
    if let Some(connection) = &sides.right {
        all.push(running("right", connection)?);
    }
    if let Some(binary) = &sides.with_holdfast {
        all.push(started("other", Server::holdfast(binary, &sides.holdfast_argument)?));
    }
    if sides.with_azurite {
        install_azurite(&sides.azurite_folder)?;
        all.push(started("azurite", Server::azurite(&sides.azurite_folder)?));
    }
    if sides.with_bare_hyper {
        all.push(started("bare-hyper", Server::bare_hyper(settings.payload_bytes)?));
    }
    if sides.with_nginx {
        all.push(started("nginx", Server::nginx()?));
    }
    Ok(all)
}

fn running(name: &str, connection: &str) -> Result<StartedSide, Box<dyn Error>> {
    let account = Account::parse(connection)?;
    Ok((Side { name: name.to_owned(), account, process: None }, None))
}

fn started(name: &str, server: Server) -> StartedSide {
    let (account, process) = (server.account.clone(), Some(server.process()));
    (Side { name: name.to_owned(), account, process }, Some(server))
}

fn serve_until_ended(server: &Server) -> Result<(), std::io::Error> {
    println!("{}", server.account.development_connection());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        use tokio::signal::unix::{SignalKind, signal};
        let mut ended = signal(SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted,
            _ = ended.recv() => Ok(()),
        }
    })
}
