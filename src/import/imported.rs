//! One run of a recording: where it comes from, and the transcript that it becomes.

use std::io::{self, BufRead};
use std::sync::Arc;

use crate::exchange::ToolSpec;
use crate::id::{Digest, RunId};
use crate::import::pen::{Pen, What};
use crate::import::{Format, known, write};
use crate::record::{Clock, RecordError, Recorder, Storage};
use crate::secret::Known;
use crate::setup::{Model, Setup};
use crate::transcript::{At, Entry, Event, Import, Run};
use crate::wire::lower;

/// One run of a recording, ready to be written as a transcript.
#[derive(Debug)]
pub struct Imported {
    pen: Pen,
    format: Format,
    import: Import,
    began: Option<At>,
}

/// Where a run comes from.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) format: Format,
    pub(super) file: String,
    pub(super) sha256: Digest,
    /// Which run of the file it is, if there are several.
    pub(super) part: Option<u32>,
    /// When the file was last written.
    pub(super) modified: Option<At>,
}

impl Imported {
    pub(super) fn new(pen: Pen, origin: Origin) -> Self {
        let Origin {
            format,
            file,
            sha256,
            part,
            modified,
        } = origin;
        let session = Some(pen.head.session.clone()).filter(|id| !id.is_empty());
        let import = Import {
            format: format.word().to_owned(),
            file,
            sha256,
            session,
            part,
            skipped: pen.skipped,
        };
        let mut times = pen.items.iter().map(|item| item.at);
        let began = times.find_map(|at| at).or(modified);
        Self {
            pen,
            format,
            import,
            began,
        }
    }

    /// Its format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Where it comes from, as its first entry says.
    pub fn import(&self) -> &Import {
        &self.import
    }

    /// When it began; if that was not recorded, when its file was last written.
    pub fn began(&self) -> Option<At> {
        self.began
    }

    /// An id for it: of the time at which it began, and of what the file holds. The same run of the same
    /// file always gets the same one; another `copy` of it gets another.
    pub fn run_id(&self, copy: u32) -> RunId {
        let part = self.import.part.unwrap_or_default();
        let of = format!("{} {part} {copy}", self.import.sha256);
        let digest = Digest::of(of.as_bytes());
        let mut random = [0; 10];
        random.copy_from_slice(&digest.0[..10]);
        let ms = self.began.map_or(0, |at| u64::try_from(at.0).unwrap_or(0));
        RunId(uuid::Builder::from_unix_timestamp_millis(ms, &random).into_uuid())
    }

    /// Its entries, kept in memory alone.
    pub fn entries(self) -> Result<Vec<Arc<Entry>>, RecordError> {
        let run = self.run_id(0);
        let recorder = self.record(Box::new(Nowhere), run, None, Known::default())?;
        Ok(recorder.view().transcript().entries().to_vec())
    }

    /// Writes it as a transcript into an empty storage, under this id and name. Of the values that are
    /// known, nothing is written.
    pub fn record(
        self,
        storage: Box<dyn Storage>,
        run: RunId,
        name: Option<String>,
        known: Known,
    ) -> Result<Recorder, RecordError> {
        let clock = Clock::fixed(self.began.unwrap_or_default());
        let head = &self.pen.head;
        let mut generator = self.format.word().to_owned();
        if !head.version.is_empty() {
            generator = format!("{generator} {}", head.version);
        }
        let mut run = Run {
            generator,
            name,
            imported: Some(self.import),
            ..Run::new(run, head.cwd.clone())
        };
        let mut setup = Setup::new(first_model(&self.pen), "");
        setup.wire.tools = tools(&self.pen);
        if let Event::Run(without) = known.event(Event::Run(run.clone())) {
            run = without;
        }
        let mut recorder = Recorder::create(storage, clock.clone(), run)?;
        recorder.keep_out(known);
        write::lay_down(self.pen, recorder, clock, setup)
    }
}

/// A storage that keeps nothing: the entries are in the view.
#[derive(Debug)]
struct Nowhere;

/// The model that was asked first, with its window if that was told at any time: what comes before it
/// was told was sent to it as well.
fn first_model(pen: &Pen) -> Model {
    let mut models = pen.items.iter().filter_map(|item| match &item.what {
        What::Model(name, window) => Some((name, *window)),
        What::Instructions(_)
        | What::User(..)
        | What::Response(_)
        | What::Compacted(_)
        | What::Note(_)
        | What::Settings(_)
        | What::Change(_)
        | What::Reply(_) => None,
    });
    let Some((name, window)) = models.next() else {
        return Model::named("unknown");
    };
    let mut same = models.take_while(|(other, _)| *other == name);
    let window = window.or_else(|| same.find_map(|(_, window)| window));
    Model {
        window,
        ..Model::named(name)
    }
}

/// The most that descriptions and schemas of tools may take together, in bytes.
const SPECS: usize = 1 << 20;

/// The tools that the model was told of, and those that it only called.
fn tools(pen: &Pen) -> Vec<ToolSpec> {
    let mut tools = pen.tools.clone();
    let size = |spec: &ToolSpec| spec.description.len() + spec.schema.get().len();
    if tools.iter().map(size).sum::<usize>() > SPECS {
        // No line holds them: the names tell them apart.
        for spec in &mut tools {
            spec.description.clear();
            spec.schema = lower::any_object();
        }
    }
    for call in pen.calls() {
        if !tools.iter().any(|tool| tool.name == call.name) {
            tools.push(ToolSpec {
                name: call.name.clone(),
                description: String::new(),
                schema: lower::any_object(),
                meta: known::meta(&call.name),
            });
        }
    }
    tools
}

impl Storage for Nowhere {
    fn append(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn read(&self) -> io::Result<Box<dyn BufRead + Send + '_>> {
        Ok(Box::new(io::empty()))
    }

    fn length(&self) -> io::Result<u64> {
        Ok(0)
    }

    fn write_blob(&mut self, _: Digest, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn read_blob(&self, _: Digest) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn location(&self) -> String {
        "an imported run".to_owned()
    }
}
