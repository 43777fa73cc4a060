//! `holdfast import` and `holdfast export`: the command lines, and a run from beginning to end.
//! Exit code 0 says that everything is there, 1 that something was left out, 2 that the command
//! line cannot be used.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use holdfast_verify::account::{Account, InvalidConnection, Service};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

use crate::azurite::Folder;
use crate::destination::Destination;
use crate::endpoint::{Endpoint, EndpointSource};
use crate::plan::{Compare, Rules};
use crate::report::Report;
use crate::run::Run;
use crate::source::Source;

const LEFT_OUT: u8 = 1;
const UNUSABLE: u8 = 2;
const DEVELOPMENT: &str = "UseDevelopmentStorage=true";
const PROGRESS_PERIOD: Duration = Duration::from_secs(5);

/// Copy everything from another account, or from the folder of Azurite, into an account.
///
/// What is there already with the same content is not sent again, so that a run which was broken off is continued by
/// the same command. Leases, deleted objects and versions are not taken.
#[derive(Parser)]
#[command(
    name = "import",
    bin_name = "holdfast import",
    version,
    args_conflicts_with_subcommands = true
)]
#[command(subcommand_negates_reqs = true)]
struct Import {
    #[command(subcommand)]
    folder: Option<ImportFolder>,
    /// The account to read: a connection string (with AccountKey or SharedAccessSignature) or a URL with
    /// a shared access signature.
    #[arg(long, value_name = "STRING", env = "HOLDFAST_FROM", hide_env_values = true)]
    #[arg(required = true)]
    from: Option<String>,
    /// The account to write to, in the same forms.
    #[arg(long, value_name = "STRING", env = "HOLDFAST_TO", hide_env_values = true)]
    #[arg(default_value = DEVELOPMENT)]
    to: String,
    #[command(flatten)]
    between: Between,
    #[command(flatten)]
    options: Options,
}

#[derive(Subcommand)]
enum ImportFolder {
    Azurite(ImportAzurite),
}

/// Read the folder of a stopped Azurite 3.3x (what its --location names).
#[derive(Args)]
struct ImportAzurite {
    /// The folder, which is not changed.
    folder: PathBuf,
    /// The account to write to: a connection string or a URL with a shared access signature. Given
    /// several times, each takes the account of its own name.
    #[arg(long, value_name = "STRING", env = "HOLDFAST_TO", hide_env_values = true)]
    #[arg(default_value = DEVELOPMENT)]
    to: Vec<String>,
    /// Import only this account of the folder, whatever the name of the destination is.
    #[arg(long, value_name = "NAME")]
    from_account: Option<String>,
    #[command(flatten)]
    options: Options,
}

/// Copy everything from an account to another one.
///
/// The same as import, with the other default: what is read is the development account, unless --from says otherwise.
#[derive(Parser)]
#[command(name = "export", bin_name = "holdfast export", version)]
struct Export {
    /// The account to read: a connection string (with AccountKey or SharedAccessSignature) or a URL with
    /// a shared access signature.
    #[arg(long, value_name = "STRING", env = "HOLDFAST_FROM", hide_env_values = true)]
    #[arg(default_value = DEVELOPMENT)]
    from: String,
    /// The account to write to, in the same forms.
    #[arg(long, value_name = "STRING", env = "HOLDFAST_TO", hide_env_values = true)]
    to: String,
    #[command(flatten)]
    between: Between,
    #[command(flatten)]
    options: Options,
}

#[derive(Args)]
struct Between {
    /// Move the visible messages of queues: each is deleted at the source once it has been sent. Without
    /// this they are left, since reading a message changes it (and only 32 can be peeked at).
    #[arg(long)]
    move_messages: bool,
}

#[derive(Args)]
struct Options {
    /// Only these services: blob, queue, table, file. Default: all that both sides have.
    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = parse_service)]
    services: Vec<Service>,
    /// Say what would be sent and what would be left out, and write nothing.
    #[arg(long)]
    dry_run: bool,
    /// How many objects are sent at once.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    parallel: u16,
    /// Replace what is there under the same name with another content.
    #[arg(long)]
    overwrite: bool,
    /// How contents without a Content-MD5 on both sides are compared: by reading them, or by the time of
    /// their last change.
    #[arg(long, value_enum, default_value = "content")]
    compare: Compare,
    /// Trust the authorities of this PEM file, too, for endpoints with https.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

fn parse_service(name: &str) -> Result<Service, String> {
    Service::named(name).ok_or_else(|| "the services are blob, queue, table and file".to_owned())
}

pub fn import_command() -> clap::Command {
    Import::command()
}

pub fn export_command() -> clap::Command {
    Export::command()
}

/// Runs the subcommand; its own name is the first of its arguments.
pub fn run_import(arguments: &[OsString]) -> ExitCode {
    let outcome =
        parse::<Import>(arguments).and_then(|import| match (import.folder, import.from) {
            (Some(ImportFolder::Azurite(azurite)), _) => import_folder(&azurite),
            (None, from) => {
                transfer(&from.unwrap_or_default(), &import.to, &import.between, &import.options)
            }
        });
    outcome.unwrap_or_else(|Unusable(code)| code)
}

/// The same for `holdfast export`.
pub fn run_export(arguments: &[OsString]) -> ExitCode {
    let outcome = parse::<Export>(arguments)
        .and_then(|export| transfer(&export.from, &export.to, &export.between, &export.options));
    outcome.unwrap_or_else(|Unusable(code)| code)
}

/// The command line cannot be used, which has been said.
struct Unusable(ExitCode);

impl Unusable {
    fn because(reason: impl Display) -> Self {
        eprintln!("holdfast: {reason}");
        Self(ExitCode::from(UNUSABLE))
    }
}

fn parse<Arguments: Parser>(arguments: &[OsString]) -> Result<Arguments, Unusable> {
    Arguments::try_parse_from(arguments).map_err(|usage| {
        let _ = usage.print();
        Unusable(ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(UNUSABLE)))
    })
}

/// An account that a flag names, and what of it its signature is limited to.
struct Named {
    account: Account,
    only: Option<(Service, Option<String>)>,
}

fn named(flag: &str, text: &str, options: &Options) -> Result<Named, Unusable> {
    let invalid = |error: InvalidConnection| Unusable::because(format!("{flag}: {error}"));
    let authorities = match &options.ca_file {
        Some(file) => authorities(file)?,
        None => Vec::new(),
    };
    if text.starts_with("http://") || text.starts_with("https://") {
        let opened = Account::open(text).map_err(invalid)?;
        let only = Some((opened.service, opened.container));
        return Ok(Named { account: opened.account.trusting(authorities), only });
    }
    let account = Account::parse(text).map_err(invalid)?;
    Ok(Named { account: account.trusting(authorities), only: None })
}

fn authorities(file: &Path) -> Result<Vec<CertificateDer<'static>>, Unusable> {
    let unusable =
        |error: &dyn Display| Unusable::because(format!("--ca-file: {}: {error}", file.display()));
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| unusable(&error))?;
    let certificates: Vec<_> =
        certificates.collect::<Result<_, _>>().map_err(|error| unusable(&error))?;
    if certificates.is_empty() {
        return Err(unusable(&"it has no certificate"));
    }
    Ok(certificates)
}

fn import_folder(arguments: &ImportAzurite) -> Result<ExitCode, Unusable> {
    let options = &arguments.options;
    let folder = Folder::open(&arguments.folder).map_err(Unusable::because)?;
    let report = Arc::new(Report::new(options.dry_run));
    folder.notes.iter().for_each(|note| report.note(note));
    for unusable in &folder.unusable {
        report.left(&unusable.what, &unusable.why);
    }
    let mut destinations = Vec::new();
    for to in &arguments.to {
        destinations.push(named("--to", to, options)?);
    }
    let mut jobs: Vec<(Arc<dyn Source>, Named)> = Vec::new();
    match &arguments.from_account {
        Some(name) => {
            let account = folder.account(name).ok_or_else(|| {
                let names: Vec<_> = folder.account_names().collect();
                let names = names.join(", ");
                Unusable::because(format!("the folder has no account {name:?}; it has: {names}"))
            })?;
            let destination = match destinations.pop() {
                Some(destination) if destinations.is_empty() => destination,
                _ => return Err(Unusable::because("--from-account goes with one --to")),
            };
            jobs.push((Arc::new(account), destination));
        }
        None => {
            for name in folder.account_names() {
                let at = destinations.iter().position(|it| it.account.name == name);
                match (folder.account(name), at) {
                    (Some(account), Some(at)) => {
                        jobs.push((Arc::new(account), destinations.swap_remove(at)));
                    }
                    _ => report.left(
                        format!("account {name}"),
                        "no --to names an account of this name; --from-account takes any",
                    ),
                }
            }
        }
    }
    run(report, async |report| {
        for (source, destination) in jobs {
            let only = destination.only.map(|(service, _)| service);
            let all = [Service::Blob, Service::Queue, Service::Table];
            let services = all.into_iter().filter(|it| only.is_none_or(|only| only == *it));
            let endpoint = Arc::new(Endpoint::new(destination.account));
            one(source, endpoint, services.collect(), options, report).await;
        }
    })
}

fn transfer(
    from: &str,
    to: &str,
    between: &Between,
    options: &Options,
) -> Result<ExitCode, Unusable> {
    let from = named("--from", from, options)?;
    let to = named("--to", to, options)?;
    for service in Service::ALL {
        let [one, two] = [&from, &to].map(|it| it.account.endpoint(service));
        if one.is_some() && one == two {
            return Err(Unusable::because("--from and --to are the same account"));
        }
    }
    let report = Arc::new(Report::new(options.dry_run));
    let limits = [from.only.as_ref(), to.only.as_ref()];
    let limits: Vec<Service> = limits.into_iter().flatten().map(|(service, _)| *service).collect();
    let services: Vec<Service> =
        Service::ALL.into_iter().filter(|it| limits.iter().all(|limit| limit == it)).collect();
    let container = from.only.and_then(|(_, container)| container);
    let moves_messages = between.move_messages && !options.dry_run;
    run(report, async |report| {
        let endpoint = Arc::new(Endpoint::new(from.account));
        let services = reachable("--from", &endpoint, services, options, report).await;
        let source = EndpointSource::new(endpoint, container, moves_messages);
        let destination = Arc::new(Endpoint::new(to.account));
        one(Arc::new(source), destination, services, options, report).await;
    })
}

/// The services that can be asked. One that was named and cannot be is left out; so are all, if there
/// is none.
async fn reachable(
    flag: &str,
    endpoint: &Endpoint,
    services: Vec<Service>,
    options: &Options,
    report: &Report,
) -> Vec<Service> {
    let is_wanted = |it: &Service| options.services.is_empty() || options.services.contains(it);
    let mut found = Vec::new();
    let mut failures = Vec::new();
    for service in services.into_iter().filter(is_wanted) {
        if !endpoint.has(service) {
            failures.push((service, "it has no such endpoint".to_owned()));
            continue;
        }
        match endpoint.probe(service).await {
            Ok(()) => found.push(service),
            Err(failure) => failures.push((service, failure.to_string())),
        }
    }
    let must_be_there = found.is_empty() || !options.services.is_empty();
    for (service, why) in failures {
        let what = format!("the {} service of {flag}", service.name());
        if must_be_there {
            report.left(what, why);
        } else {
            report.note(format!("{what} is passed over: {why}"));
        }
    }
    found
}

async fn one(
    source: Arc<dyn Source>,
    endpoint: Arc<Endpoint>,
    services: Vec<Service>,
    options: &Options,
    report: &Arc<Report>,
) {
    let services = reachable("--to", &endpoint, services, options, report).await;
    let destination = Destination {
        source,
        endpoint,
        report: Arc::clone(report),
        rules: Rules { overwrite: options.overwrite, compare: options.compare },
        is_dry: options.dry_run,
    };
    Run::new(destination, options.parallel.into()).services(&services).await;
}

/// Does the work, shows how it goes on, and says at the end what was done.
fn run(report: Arc<Report>, work: impl AsyncFnOnce(&Arc<Report>)) -> Result<ExitCode, Unusable> {
    let runtime = tokio::runtime::Runtime::new().map_err(Unusable::because)?;
    let begun = std::time::Instant::now();
    runtime.block_on(async {
        let mut working = std::pin::pin!(work(&report));
        let first = tokio::time::Instant::now() + PROGRESS_PERIOD;
        let mut ticks = tokio::time::interval_at(first, PROGRESS_PERIOD);
        loop {
            tokio::select! {
                () = &mut working => return,
                _ = ticks.tick() => {
                    eprintln!("{:>6.0} s  {}", begun.elapsed().as_secs_f64(), report.progress());
                }
            }
        }
    });
    eprintln!("{:>6.1} s  {}", begun.elapsed().as_secs_f64(), report.progress());
    println!("{report}");
    Ok(if report.is_complete() { ExitCode::SUCCESS } else { ExitCode::from(LEFT_OUT) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_usable(line: &str) -> bool {
        let command = if line.starts_with("export") { export_command() } else { import_command() };
        command.try_get_matches_from(line.split(' ')).is_ok()
    }

    #[test]
    fn commands_are_well_formed() {
        import_command().debug_assert();
        export_command().debug_assert();
    }

    #[test]
    fn command_lines_that_can_be_used_and_those_that_cannot() {
        for line in [
            "import azurite folder",
            "import azurite folder --to A=1 --to B=2 --dry-run --parallel 3",
            "import azurite folder --from-account a --overwrite --compare time",
            "import --from A=1",
            "import --from A=1 --to B=2 --services blob,file --move-messages",
            "export --to B=2",
        ] {
            assert!(is_usable(line), "{line}");
        }
        for line in [
            "import",
            "import azurite",
            "import azurite folder --from A=1",
            "import --from A=1 azurite folder",
            "import azurite folder --move-messages",
            "import azurite folder --parallel 0",
            "import azurite folder --services smb",
            "export",
            "export azurite folder",
        ] {
            assert!(!is_usable(line), "{line}");
        }
    }

    #[test]
    fn exit_code_of_a_command_line_that_cannot_be_used_is_2() {
        let code = |line: &str| {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            format!("{:?}", run_import(&arguments))
        };
        let two = format!("{:?}", ExitCode::from(2));
        assert_eq!(code("import"), two);
        assert_eq!(code("import azurite /nowhere"), two);
        assert_eq!(code("import --from nonsense"), two);
        assert_eq!(code("import --from UseDevelopmentStorage=true"), two);
    }
}
