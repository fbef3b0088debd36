//! `page`: a run as one file for a browser.

use std::io;
use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use undertext::page::{self, Data, Life};

use crate::cli::exit::{Exit, Failure};
use crate::cli::find::{self, Found};
use crate::cli::outputs;
use crate::cli::serve::{self, Listen};
use crate::cli::term::{Look, Term};
use crate::cli::{Process, SettingArgs, amount, planted};

/// `page`
#[derive(Debug, Args)]
#[command(after_help = "\
The file holds everything it needs: it can be mailed, kept, and opened without network. Nothing in it \
can run, load or send anything but its own script. It holds all that the run read and wrote; what looks \
like a secret is masked in it, but look at it before you give it away.")]
pub(crate) struct PageArgs {
    /// The run
    #[arg(value_name = "RUN", default_value = "last")]
    pub(crate) run: String,
    /// Write the page there; `-` is standard output [default: the run's digits with .html, here]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Serve it instead, growing as the run does, there or on a free port of this machine
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "localhost")]
    #[arg(conflicts_with = "out")]
    pub(crate) serve: Option<Listen>,
    /// Write a JSON object that says where it is
    #[arg(long)]
    pub(crate) json: bool,
    /// Where settings come from.
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

/// What is told of a page that was written.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Written {
    /// Where it is.
    page: String,
    bytes: u64,
    entries: u64,
    /// The number of texts that are too long to stand in it whole.
    #[serde(skip_serializing_if = "is_zero")]
    cut: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "what the serializer calls it with"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Writes the page of a run.
pub(crate) fn page(args: &PageArgs, process: &Process, term: &mut Term) -> Result<Exit, Failure> {
    let named = args.out.as_deref().filter(|out| out.as_os_str() != "-");
    let named = outputs::place(named, process)?;
    let found = find::read(&args.run, &args.settings, process, term)?;
    if let Some(listen) = args.serve {
        return serve::serve(listen, &found.path, args.json, term);
    }
    let exit = found.copied();
    let entries = found.loaded.view.transcript().entries();
    let mut data = Data::behind(term.masks().clone());
    for entry in entries {
        data.take(entry);
    }
    for damage in &found.loaded.damage {
        data.damaged(damage.to_string());
    }
    let html = page::html(&data.more(), Life::File);
    let out = match &args.out {
        Some(out) if out.as_os_str() == "-" => {
            term.page(&html)?;
            return Ok(exit);
        }
        Some(out) => out.clone(),
        None => PathBuf::from(name(&found)),
    };
    let place = match named {
        Some(place) => place,
        None => outputs::place(Some(&out), process)?.unwrap_or_else(|| out.clone()),
    };
    if let Some(run) = found.loaded.run() {
        planted::check_told(&out, run, process)?;
    }
    outputs::spare(&place, None)?;
    outputs::write(&place, html.as_bytes()).map_err(|error| {
        let text = format!("cannot write {}", out.display());
        Failure::new(Exit::Usage, anyhow::Error::new(error).context(text))
    })?;
    let written = Written {
        page: out.display().to_string(),
        bytes: html.len() as u64,
        entries: entries.len() as u64,
        cut: data.cut() as u64,
    };
    if args.json {
        term.print_json(&serde_json::to_string(&written).map_err(io::Error::from)?)?;
        return Ok(exit);
    }
    let entries = amount::entries(written.entries);
    term.print(&[
        (Look::Strong, written.page.clone()),
        (
            Look::Plain,
            format!(
                ": {entries}, {}; open it in a browser",
                amount::of(written.bytes, "byte")
            ),
        ),
    ])?;
    if written.cut > 0 {
        let texts = amount::of(written.cut, "text");
        term.say(&[(
            Look::Faint,
            &format!("{texts} too long for a page: cut in the middle, whole in `undertext print`"),
        )])?;
    }
    Ok(exit)
}

/// What the page of a run is called, unless told otherwise.
fn name(found: &Found) -> String {
    let named = found.loaded.run().map(|run| run.run.short());
    let file = || {
        let stem = found.path.file_stem();
        stem.map(|stem| stem.to_string_lossy().into_owned())
    };
    format!(
        "{}.html",
        named.or_else(file).unwrap_or_else(|| "run".into())
    )
}
