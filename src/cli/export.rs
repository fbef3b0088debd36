//! `export`: a run in another form, for people or for other programs.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use undertext::export::atif::Trajectory;
use undertext::export::{self, markdown};
use undertext::record::runs::Scanned;
use undertext::transcript::Run;

use crate::cli::exit::{Exit, Failure};
use crate::cli::find::{self, Found};
use crate::cli::term::{Look, Term};
use crate::cli::{Format, Process, SettingArgs, Shown, outputs, planted, print};

/// `export`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undertext export last > run.jsonl                    the transcript's lines
  undertext export last --unmasked > run.jsonl         the same, byte for byte, secrets too
  undertext export last --format markdown --out run.md
  undertext export last --format atif --out run.json   for tools that know ATIF")]
pub(crate) struct ExportArgs {
    /// The run
    #[arg(value_name = "RUN")]
    run: String,
    /// What of it: entries as they are, messages as the model reads them at the end, or both
    #[arg(long, value_name = "VIEW", value_enum, default_value_t = Shown::Raw)]
    view: Shown,
    /// The form: the transcript's lines or a message a line; a document to read; one trajectory in
    /// the Agent Trajectory Interchange Format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Form::Jsonl)]
    format: Form,
    /// Write to this file, whole or not at all [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Where settings come from.
    #[command(flatten)]
    settings: SettingArgs,
}

/// The form in which a run is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    // One JSON object a line.
    Jsonl,
    // A document.
    Markdown,
    // A trajectory.
    Atif,
}

/// Writes a run in another form.
pub(crate) fn export(
    args: &ExportArgs,
    process: &Process,
    term: &mut Term,
) -> Result<Exit, Failure> {
    if (args.format, args.view) == (Form::Atif, Shown::Both) {
        return Err(Failure::usage(
            "a trajectory has one view; --view raw names every overlay in its place, --view \
             compacted is what the model reads",
        ));
    }
    let out = outputs::place(args.out.as_deref(), process)?;
    let source = Source::find(args, process, term)?;
    let Some(out) = out else {
        write(args, &source, term)?;
        let masked = term.has_masked();
        say_masked(args, masked, term)?;
        return Ok(source.exit());
    };
    if let (Some(named), Some(run)) = (&args.out, source.run()) {
        planted::check_told(named, run, process)?;
    }
    if outputs::real(source.path()) == out {
        let text = format!(
            "{} is the transcript itself; name another file",
            out.display()
        );
        return Err(Failure::usage(text));
    }
    // An export may be made anew.
    outputs::spare(&out, source.run().map(|run| run.run))?;
    let mut masked = false;
    let written: Result<(), Written> = outputs::write_by(&out, |file| {
        let mut paper = term.paper(Box::new(BufWriter::new(file)));
        write(args, &source, &mut paper)?;
        masked = paper.has_masked();
        Ok(())
    });
    written.map_err(|error| error.at(&out))?;
    term.say(&[(Look::Faint, format!("written to {}", out.display()))])?;
    say_masked(args, masked, term)?;
    Ok(source.exit())
}

/// What is written.
enum Source {
    /// The file's own lines, none of which is held.
    Lines(PathBuf, Box<Scanned>),
    /// What they say.
    View(Box<Found>),
}

impl Source {
    /// Finds the run and reads as much of it as its form needs.
    fn find(args: &ExportArgs, process: &Process, term: &mut Term) -> Result<Self, Failure> {
        let (run, settings) = (&args.run, &args.settings);
        if (args.format, args.view) == (Form::Jsonl, Shown::Raw) {
            let (path, scanned) = find::scan(run, settings, process, term)?;
            return Ok(Self::Lines(path, Box::new(scanned)));
        }
        let found = find::read(run, settings, process, term)?;
        Ok(Self::View(Box::new(found)))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Lines(path, _) => path,
            Self::View(found) => &found.path,
        }
    }

    fn run(&self) -> Option<&Run> {
        match self {
            Self::Lines(_, scanned) => scanned.run(),
            Self::View(found) => found.loaded.run(),
        }
    }

    /// What is written of a run that is damaged, or that a newer version wrote, may not be all of it.
    fn exit(&self) -> Exit {
        let (damage, newer) = match self {
            Self::Lines(_, scanned) => (&scanned.damage, scanned.newer()),
            Self::View(found) => (&found.loaded.damage, found.loaded.newer()),
        };
        if damage.is_empty() && newer.is_none() {
            Exit::Done
        } else {
            Exit::Transcript
        }
    }
}

/// Says that what is written is not what was recorded, if it is not.
fn say_masked(args: &ExportArgs, masked: bool, term: &mut Term) -> io::Result<()> {
    if !masked {
        return Ok(());
    }
    let exact = match (args.format, args.view) {
        (Form::Jsonl, Shown::Raw) => ": the requests in it can no longer be verified",
        (Form::Jsonl | Form::Markdown | Form::Atif, _) => "",
    };
    let text = format!("what looks like a secret is masked{exact}; --unmasked writes it as it is");
    term.say(&[(Look::Faint, text)])
}

/// Why a file is not written.
enum Written {
    File(io::Error),
    Run(Failure),
}

impl From<io::Error> for Written {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl From<Failure> for Written {
    fn from(failure: Failure) -> Self {
        Self::Run(failure)
    }
}

impl Written {
    fn at(self, path: &Path) -> Failure {
        match self {
            Self::File(error) => {
                let context = format!("cannot write {}", path.display());
                Failure::new(Exit::Unfinished, anyhow::Error::new(error).context(context))
            }
            Self::Run(failure) => failure,
        }
    }
}

fn write(args: &ExportArgs, source: &Source, term: &mut Term) -> Result<(), Failure> {
    let found = match source {
        Source::Lines(path, _) => return copy(path, term),
        Source::View(found) => found,
    };
    let view = &found.loaded.view;
    match (args.format, args.view) {
        (Form::Jsonl, shown) => print::write(found, None, shown, Format::Json, term),
        (Form::Markdown, shown) => {
            let shown = match shown {
                Shown::Raw => export::Shown::Raw,
                Shown::Compacted => export::Shown::Compacted,
                Shown::Both => export::Shown::Both,
            };
            let mut out = BufWriter::new(term.prose());
            markdown::write(view, shown, &mut out)?;
            Ok(out.flush()?)
        }
        (Form::Atif, shown) => {
            let trajectory = match shown {
                Shown::Raw | Shown::Both => Trajectory::raw(view),
                Shown::Compacted => Trajectory::compacted(view),
            };
            let mut out = BufWriter::new(term.document());
            serde_json::to_writer(&mut out, &trajectory).map_err(io::Error::from)?;
            out.write_all(b"\n")?;
            Ok(out.flush()?)
        }
    }
}

/// The file itself, byte for byte but for what is masked, whatever is wrong with it.
fn copy(path: &Path, term: &mut Term) -> Result<(), Failure> {
    let file = File::open(path).map_err(|error| {
        let context = format!("cannot read {}", path.display());
        Failure::new(Exit::Transcript, anyhow::Error::new(error).context(context))
    })?;
    let mut out = BufWriter::new(term.document());
    io::copy(&mut BufReader::new(file), &mut out)?;
    Ok(out.flush()?)
}
