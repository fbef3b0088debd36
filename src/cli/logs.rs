//! What the program says of its own work: on standard error, and into a file.
//!
//! Only its own events: those of others may hold what is secret.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use undertext::secret::Masks;

use crate::cli::Process;
use crate::cli::exit::{Exit, Failure};
use crate::cli::visible::Veiled;

/// How much is said, and where.
#[derive(Debug, Default, Args)]
pub(crate) struct LogArgs {
    /// Say nothing but errors and the answer
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Tell each round and call in a line, on standard error; -vv adds the log of the program
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Write what the program does into this file, behind what is there
    #[arg(long, value_name = "FILE")]
    pub(crate) log_file: Option<PathBuf>,
}

impl LogArgs {
    /// Says from now on what was asked for, behind these masks.
    pub(crate) fn begin(&self, process: &Process, masks: &Masks) -> Result<(), Failure> {
        let level = match self.verbose {
            0 | 1 => LevelFilter::OFF,
            2.. => LevelFilter::DEBUG,
        };
        let ours = |level| Targets::new().with_target("undertext", level);
        let said = tracing_subscriber::fmt::layer()
            .with_writer({
                let masks = masks.clone();
                move || Veiled::new(io::stderr(), &masks)
            })
            .with_span_events(FmtSpan::CLOSE)
            .with_ansi(false)
            .with_target(false)
            .with_filter(ours(level));
        let file = self.path(process).map(|path| file(&path));
        let written = file.transpose()?.map(|file| {
            let (file, masks) = (Arc::new(file), masks.clone());
            tracing_subscriber::fmt::layer()
                .with_writer(move || Veiled::new(Arc::clone(&file), &masks))
                .with_span_events(FmtSpan::CLOSE)
                .with_ansi(false)
                .with_filter(ours(LevelFilter::DEBUG))
        });
        if level != LevelFilter::OFF || written.is_some() {
            let registry = tracing_subscriber::registry().with(said).with(written);
            registry.try_init().ok();
        }
        Ok(())
    }

    /// The file, as it is named from the working directory.
    pub(crate) fn path(&self, process: &Process) -> Option<PathBuf> {
        self.log_file.as_deref().map(|path| process.here(path))
    }
}

/// Opens the file to write at its end. It is nobody else's to read.
fn file(path: &Path) -> Result<File, Failure> {
    let mut options = OpenOptions::new();
    let file = options.append(true).create(true).mode(0o600).open(path);
    let file = file.and_then(|file| {
        if file.metadata()?.is_file() {
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
        Ok(file)
    });
    file.map_err(|error| {
        let error = anyhow::Error::new(error);
        let path = path.display();
        Failure::new(
            Exit::Usage,
            error.context(format!("cannot write the log file {path}")),
        )
    })
}
