//! The file of tasks, read one line at a time: what a line says, and what is wrong with one.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read as _};
use std::num::{NonZeroU32, NonZeroU64};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use schemars::JsonSchema;
use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use undertext::config::{Lasting, Usd};
use undertext::id::Digest;
use undertext::model::offline;

use crate::cli::exit::{Exit, Failure};

/// The longest line, in bytes: as much as is read of one task.
const LONGEST: u64 = 64 << 20;

/// A line of a file of tasks. Paths in it count from the file's directory; what it leaves out is as the
/// flags of `batch`, and then the settings, say.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TaskLine {
    /// A name of your own, to find the result by; no other line has the same.
    pub(super) id: Option<String>,
    /// What to do, in your words.
    pub(super) task: Option<String>,
    /// A file with the task, in place of `task`.
    pub(super) task_file: Option<PathBuf>,
    /// Text files that are handed in with the task.
    pub(super) attach: Vec<PathBuf>,
    /// Where the model works.
    pub(super) workspace: Option<PathBuf>,
    /// The model, as the server knows it.
    pub(super) model: Option<String>,
    /// The command that must exit with 0 before the work is done.
    pub(super) check: Option<String>,
    /// The JSON Schema that the answer must fit, or the path of a file with one.
    pub(super) schema: Option<Value>,
    /// Offer only these tools.
    pub(super) tools: Vec<String>,
    /// Offer all tools but these.
    pub(super) no_tools: Vec<String>,
    /// What is said behind the system text and the project's AGENTS.md.
    pub(super) append_instructions: Option<String>,
    /// The run ends after this many requests.
    #[serde(deserialize_with = "above_zero")]
    pub(super) max_rounds: Option<NonZeroU32>,
    /// The run ends after this many tokens, in and out.
    #[serde(deserialize_with = "above_zero")]
    pub(super) max_tokens: Option<NonZeroU64>,
    /// The run ends after this much money, in US dollars.
    pub(super) max_cost: Option<Usd>,
    /// The run ends after this long, such as `90s`, `30m` or `2h`.
    pub(super) max_time: Option<Lasting>,
    /// Single settings, such as `{"compaction.enabled": false}`.
    pub(super) set: Map<String, Value>,
}

impl TaskLine {
    /// Whether it names a model.
    pub(super) fn names_model(&self) -> bool {
        self.model.is_some() || self.set.contains_key("model.name")
    }

    /// Whether it may name a server, or a model that needs none.
    pub(super) fn may_name_server(&self) -> bool {
        self.model.as_deref() == Some(offline::NAME)
            || self.set.keys().any(|key| key.starts_with("model"))
    }
}

/// A line that was read.
#[derive(Debug)]
pub(super) struct Line {
    /// Its number in the file, from 1.
    pub(super) number: u64,
    /// By what it is known again.
    pub(super) key: Key,
    /// The id that it gives, if that can be read and no earlier line has it.
    pub(super) id: Option<String>,
    /// What it says, or what is wrong with it.
    pub(super) task: Result<Box<TaskLine>, String>,
}

/// By what a line is known again, wherever in the file it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// The digest of the line without white space around it.
    pub(super) sha256: Digest,
    /// How many lines before it are the same.
    pub(super) before: u64,
}

/// The lines of a file, as far as it was read.
pub(super) struct Tasks<R> {
    from: R,
    number: u64,
    /// How often each line stood there.
    seen: HashMap<Digest, u64>,
    /// The line that has each id.
    ids: HashMap<Digest, u64>,
}

/// Opens a file of tasks. What is no plain file could not be gone on with.
pub(super) fn open(path: &Path) -> Result<BufReader<File>, Failure> {
    let failed = |error: io::Error| {
        let error = anyhow::Error::new(error);
        let error = error.context(format!("cannot read the tasks in {}", path.display()));
        Failure::new(Exit::Usage, error)
    };
    // A pipe would be waited for.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(flags).open(path);
    let file = file.map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(Failure::usage(format!(
            "{} is no plain file; tasks are read from one, so that the same command can go on where it \
             stopped",
            path.display()
        )));
    }
    Ok(BufReader::with_capacity(64 << 10, file))
}

impl<R: BufRead> Tasks<R> {
    pub(super) fn new(from: R) -> Self {
        Self {
            from,
            number: 0,
            seen: HashMap::new(),
            ids: HashMap::new(),
        }
    }

    /// The next line that is not blank; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let mut bytes = Vec::new();
            let mut some = (&mut self.from).take(LONGEST);
            if some.read_until(b'\n', &mut bytes)? == 0 {
                return Ok(None);
            }
            self.number += 1;
            let is_long = bytes.len() as u64 == LONGEST && !bytes.ends_with(b"\n");
            if is_long {
                skip_line(&mut self.from)?;
            }
            let mark = "\u{feff}".as_bytes();
            let line = bytes.strip_prefix(mark).filter(|_| self.number == 1);
            let line = line.unwrap_or(&bytes).trim_ascii();
            if !line.is_empty() {
                return Ok(Some(self.line(line, is_long)));
            }
        }
    }

    fn line(&mut self, line: &[u8], is_long: bool) -> Line {
        let number = self.number;
        let sha256 = Digest::of(line);
        let same = self.seen.entry(sha256).or_default();
        let before = *same;
        *same += 1;
        let mut task = if is_long {
            Err(format!(
                "line {number}: it is longer than {} MiB; put texts into files and name them",
                LONGEST >> 20
            ))
        } else {
            parse(line, number)
        };
        let mut id = match &task {
            Ok(task) => task.id.clone(),
            Err(_) => id(line),
        };
        if let Some(taken) = id.take_if(|id| self.first(id) != number) {
            let first = self.first(&taken);
            task = task.and(Err(format!(
                "line {number}: line {first} has the id `{taken}` as well; give each its own"
            )));
        }
        Line {
            number,
            key: Key { sha256, before },
            id,
            task: task.map(Box::new),
        }
    }

    /// The first line that has this id.
    fn first(&mut self, id: &str) -> u64 {
        let first = self.ids.entry(Digest::of(id.as_bytes()));
        *first.or_insert(self.number)
    }
}

fn skip_line(from: &mut impl BufRead) -> io::Result<()> {
    loop {
        let some = from.fill_buf()?;
        let end = some.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(some.len(), |end| end + 1);
        let is_over = end.is_some() || some.is_empty();
        from.consume(taken);
        if is_over {
            return Ok(());
        }
    }
}

/// The id of a line that says something wrong.
fn id(line: &[u8]) -> Option<String> {
    let said: Map<String, Value> = serde_json::from_slice(line).ok()?;
    let id = said.get("id")?.as_str()?;
    (!id.trim().is_empty()).then(|| id.to_owned())
}

/// A number above 0.
fn above_zero<'de, D, N>(from: D) -> Result<Option<N>, D::Error>
where
    D: Deserializer<'de>,
    N: TryFrom<NonZeroU64>,
{
    let fits = |number| NonZeroU64::new(number).and_then(|number| N::try_from(number).ok());
    let refused =
        |number| D::Error::invalid_value(Unexpected::Unsigned(number), &"a number above 0");
    let number: Option<u64> = Option::deserialize(from)?;
    let number = number.map(|number| fits(number).ok_or_else(|| refused(number)));
    number.transpose()
}

/// What a line says, or what is wrong with it and where.
fn parse(line: &[u8], number: u64) -> Result<TaskLine, String> {
    let wrong = |what: &str| format!("line {number}: {what}");
    if let Err(error) = std::str::from_utf8(line) {
        let column = error.valid_up_to() + 1;
        return Err(format!("line {number}, byte {column}: it is not UTF-8"));
    }
    if !line.starts_with(b"{") {
        return Err(wrong(
            "a line is one JSON object, such as {\"task\": \"explain src/main.rs\"}",
        ));
    }
    let task: TaskLine = serde_json::from_slice(line).map_err(|error| {
        let text = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let what = text.strip_suffix(&place).unwrap_or(&text);
        let what = if error.is_eof() {
            "the line ends before its JSON does; a task is one line"
        } else {
            what
        };
        format!("line {number}, column {}: {what}", error.column())
    })?;
    let blank = |text: &Option<String>| text.as_ref().is_some_and(|text| text.trim().is_empty());
    match (&task.task, &task.task_file) {
        (None, None) => return Err(wrong("it says no `task`")),
        (Some(_), Some(_)) => return Err(wrong("give `task` or `task_file`, not both")),
        (Some(_), None) | (None, Some(_)) => {}
    }
    for (field, text) in [
        ("id", &task.id),
        ("task", &task.task),
        ("model", &task.model),
        ("check", &task.check),
    ] {
        if blank(text) {
            return Err(wrong(&format!("`{field}` is empty")));
        }
    }
    if task.max_cost == Some(Usd(0)) {
        return Err(wrong("`max_cost` is a sum above 0"));
    }
    if !task.tools.is_empty() && !task.no_tools.is_empty() {
        return Err(wrong("give `tools` or `no_tools`, not both"));
    }
    Ok(task)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Vec<String> {
        let mut tasks = Tasks::new(text);
        let next = || tasks.next().unwrap();
        let told = |line: Line| match line.task {
            Ok(task) => format!("{}. {}", line.key.before, task.task.unwrap_or_default()),
            Err(wrong) => wrong,
        };
        std::iter::from_fn(next).map(told).collect()
    }

    #[test]
    fn a_line_is_a_task_or_says_what_is_wrong_with_it() {
        for (text, expected) in [
            (&b"\xef\xbb\xbf{\"task\":\"a\"}\r\n"[..], "0. a"),
            (b"{\"task\":\"a\"}", "0. a"),
            (b"{\"task\":\"a\",\"id\":null}", "0. a"),
            (
                b"a",
                "line 1: a line is one JSON object, such as {\"task\": \"explain src/main.rs\"}",
            ),
            (
                b"[\"a\"]",
                "line 1: a line is one JSON object, such as {\"task\": \"explain src/main.rs\"}",
            ),
            (b"{\"task\":\"\xff\"}", "line 1, byte 10: it is not UTF-8"),
            (
                b"{\"task\":\"a\"",
                "line 1, column 11: the line ends before its JSON does; a task is one line",
            ),
            (
                b"{\"task\":\"a\"} {}",
                "line 1, column 14: trailing characters",
            ),
            (
                b"{\"task\":7}",
                "line 1, column 9: invalid type: integer `7`, expected a string",
            ),
            (b"{}", "line 1: it says no `task`"),
            (
                b"{\"task\":\"a\",\"task_file\":\"b\"}",
                "line 1: give `task` or `task_file`, not both",
            ),
            (b"{\"task\":\" \"}", "line 1: `task` is empty"),
            (
                b"{\"task\":\"a\",\"max_cost\":0}",
                "line 1: `max_cost` is a sum above 0",
            ),
            (
                b"{\"task\":\"a\",\"max_rounds\":0}",
                "line 1, column 27: invalid value: integer `0`, expected a number above 0",
            ),
            (
                b"{\"task\":\"a\",\"max_time\":\"5\"}",
                "line 1, column 27: `5` needs a unit, such as 5s or 5m",
            ),
            (
                b"{\"task\":\"a\",\"tools\":[\"Read\"],\"no_tools\":[\"Bash\"]}",
                "line 1: give `tools` or `no_tools`, not both",
            ),
        ] {
            assert_eq!(read(text), [expected], "{}", String::from_utf8_lossy(text));
        }
        let unknown = read(b"\n \n{\"task\":\"a\",\"taks\":1}\n").remove(0);
        assert!(
            unknown.starts_with(
                "line 3, column 18: unknown field `taks`, expected one of `id`, `task`"
            ),
            "{unknown}"
        );
    }

    #[test]
    fn lines_that_are_the_same_are_told_apart_and_an_id_stands_once() {
        let one = r#"{"task":"a"}"#;
        let text = format!(
            "{one}\n\n  {one}  \n{{\"task\":\"b\",\"id\":\"x\"}}\n{{\"task\":\"c\",\"id\":\"x\"}}\n{one}"
        );
        assert_eq!(
            read(text.as_bytes()),
            [
                "0. a",
                "1. a",
                "0. b",
                "line 5: line 4 has the id `x` as well; give each its own",
                "2. a"
            ]
        );
    }

    #[test]
    fn a_line_without_end_is_not_held() {
        struct Endless(u64);
        impl io::Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let some = self.0.min(buffer.len() as u64);
                self.0 -= some;
                let some = usize::try_from(some).unwrap();
                buffer[..some].fill(b'x');
                Ok(some)
            }
        }
        let long = BufReader::with_capacity(1 << 20, Endless(LONGEST + (8 << 20)));
        let more = &b"\n{\"task\":\"a\"}"[..];
        let mut tasks = Tasks::new(long.chain(more));
        let first = tasks.next().unwrap().unwrap().task.unwrap_err();
        assert_eq!(
            first,
            "line 1: it is longer than 64 MiB; put texts into files and name them"
        );
        assert_eq!(tasks.next().unwrap().unwrap().number, 2);
    }
}
