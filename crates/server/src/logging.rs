//! Where log lines go: standard error as text or JSON, and under a name of Azurite a debug file.

use std::fs::File;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Mutex;

use tracing::Subscriber;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::command_line::SettingsError;
use crate::settings::{Log, LogFormat};

/// # Panics
/// If called twice in a process.
pub fn start(log: &Log) -> Result<(), SettingsError> {
    let filter = EnvFilter::try_new(&log.filter)
        .map_err(|error| SettingsError::rule(format!("log filter {:?}: {error}", log.filter)))?;
    let debug_file = log.debug_file.as_deref().map(create).transpose()?;
    tracing_subscriber::registry()
        .with(to_standard_error(log.format).with_filter(filter))
        .with(debug_file.map(|file| {
            let lines = tracing_subscriber::fmt::layer().with_ansi(false);
            lines.with_writer(Mutex::new(file)).with_filter(EnvFilter::new("debug"))
        }))
        .init();
    Ok(())
}

fn to_standard_error<S>(format: LogFormat) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    match format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    }
}

fn create(path: &Path) -> Result<File, SettingsError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| File::options().create(true).append(true).open(path))
        .map_err(|error| {
            SettingsError::rule(format!("cannot write debug log {}: {error}", path.display()))
        })
}
