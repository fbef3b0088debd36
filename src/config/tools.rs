//! The tools of a person's own: `undertext/tools/*.yaml` beside the settings.
//!
//! A file describes one [external tool](crate::tools::external) in the words that `tools/*.yaml`
//! of the repository use, and names the command that answers its calls. Nothing is read from the
//! workspace: what lies there must not decide what runs.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::config::choice::HintChoice;
use crate::config::read::{self, ConfigError, Place};
use crate::config::value::Lasting;
use crate::config::wrong::{self, Wrong};
use crate::config::{Environment, own_file};
use crate::door;
use crate::exchange::{Effect, Hint, Supersession, ToolMeta};
use crate::tools::external::{Command, External, ExternalError};

/// A tool and the file that describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolFile {
    /// The file.
    pub path: PathBuf,
    /// The tool.
    pub tool: External,
}

/// What a file says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    name: Option<String>,
    description: Option<String>,
    command: Option<Value>,
    parameters: Option<Value>,
    #[serde(default)]
    meta: Meta,
    timeout: Option<Lasting>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Meta {
    effect: Effect,
    hint: HintChoice,
    exempt: bool,
    supersession: Option<Superseding>,
    labels: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Superseding {
    key: Option<String>,
    range: Option<[String; 2]>,
    #[serde(default)]
    stale_after: Vec<String>,
}

/// The directory of the user's tools.
pub fn tools_dir(environment: &Environment) -> Option<PathBuf> {
    Some(own_file(environment)?.with_file_name("tools"))
}

/// The user's tools, in the order of their files' names. None may have one of the names in
/// `builtin`, which is asked for if there are any, or that of another, in whatever case.
pub fn tools(
    environment: &Environment,
    builtin: impl FnOnce() -> Vec<String>,
) -> Result<Vec<ToolFile>, ConfigError> {
    let directory = tools_dir(environment);
    let paths = directory.map_or_else(|| Ok(Vec::new()), |directory| paths(&directory))?;
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let builtin = builtin();
    let mut files: Vec<ToolFile> = Vec::new();
    for path in paths {
        let tool = tool(&path)?;
        let name = &tool.spec().name;
        let is_taken = |other: &str| other.eq_ignore_ascii_case(name);
        let before = files.iter().find(|file| is_taken(&file.tool.spec().name));
        let taken = match (before, builtin.iter().find(|other| is_taken(other))) {
            (Some(before), _) => format!("`{name}` is taken by {}", before.path.display()),
            (None, Some(other)) => format!("`{name}` is taken by the built-in {other}"),
            (None, None) => {
                files.push(ToolFile { path, tool });
                continue;
            }
        };
        return Err(wrong(&path, None, Wrong::Value(taken)));
    }
    Ok(files)
}

/// The files of a directory that describe tools; none if it is not there.
fn paths(directory: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    let failed = |source| ConfigError::File {
        path: directory.to_owned(),
        source,
    };
    let entries = match directory.read_dir() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let is_yaml = path
            .extension()
            .is_some_and(|end| end == "yaml" || end == "yml");
        let name = path.file_name().unwrap_or_default();
        if is_yaml && !name.as_encoded_bytes().starts_with(b".") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// The tool that a file describes.
fn tool(path: &Path) -> Result<External, ConfigError> {
    let bytes = read::bytes(path).map_err(|source| ConfigError::File {
        path: path.to_owned(),
        source,
    })?;
    let text = read::as_text(&bytes).map_err(|(source, at)| wrong(path, at, source))?;
    let options = serde_saphyr::options! { with_snippet: false };
    let words = door::yaml::<Words>(text, options).map_err(|error| {
        let place = error.location().filter(|at| at.line() > 0);
        let at = place.map(|at| (at.line(), at.column()));
        wrong(path, at, own_keys_only(wrong::wrong(&error)))
    })?;
    external(path, words).map_err(|source| wrong(path, None, source))
}

/// The same fault without the hint at a key of the settings: none stands here.
fn own_keys_only(mut wrong: Wrong) -> Wrong {
    if let Wrong::Key { nearest, .. } = &mut wrong {
        nearest.take_if(|key| key.contains('.'));
    }
    wrong
}

fn wrong(path: &Path, at: Option<(u64, u64)>, source: Wrong) -> ConfigError {
    ConfigError::Tool {
        place: Place::File(path.to_owned(), at),
        source: Box::new(source),
    }
}

/// The tool in the words of a file.
fn external(path: &Path, words: Words) -> Result<External, Wrong> {
    let Words {
        name,
        description,
        command,
        parameters,
        meta,
        timeout,
    } = words;
    let missing = |key: &str| Wrong::Value(format!("`{key}` is missing"));
    let name = name.ok_or_else(|| missing("name"))?;
    let description = description.ok_or_else(|| missing("description"))?;
    let command = command.ok_or_else(|| missing("command"))?;
    let meta = ToolMeta {
        effect: meta.effect,
        hint: meta.hint.over(Hint::default()),
        exempt: meta.exempt,
        supersession: meta.supersession.map(|rule| Supersession {
            key: rule.key,
            range: rule.range,
            stale_after: rule.stale_after,
        }),
        labels: meta.labels,
        timeout_ms: timeout.map(|time| time.0.0),
    };
    let external = External::new(name, description, parameters, meta, told(path, &command)?);
    external.map_err(|error: ExternalError| Wrong::Value(error.to_string()))
}

/// The command in this value. A program with `/` in its name lies beside the file.
fn told(path: &Path, command: &Value) -> Result<Command, Wrong> {
    let word = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    let words = match command {
        Value::String(line) => return Ok(Command::Shell(line.clone())),
        Value::Array(words) => words.iter().map(word).collect::<Option<Vec<_>>>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    };
    let mut words = words.ok_or_else(|| {
        let text = "`command` takes a text for the shell, or a list: [program, argument, …]";
        Wrong::Value(text.to_owned())
    })?;
    if let Some(program) = words.first_mut().filter(|word| word.contains('/')) {
        let beside = path.parent().unwrap_or(Path::new("")).join(&program);
        *program = beside.to_string_lossy().into_owned();
    }
    Ok(Command::Program(words))
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    /// What is said of these files, in a directory whose name is left out.
    fn check(files: &[(&str, &str)]) -> Result<Vec<ToolFile>, String> {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("undertext/tools");
        std::fs::create_dir_all(&directory).unwrap();
        for (name, text) in files {
            std::fs::write(directory.join(name), text).unwrap();
        }
        let home = place.path().to_str().unwrap().to_owned();
        let environment = Environment::from([("XDG_CONFIG_HOME".to_owned(), home.clone())]);
        tools(&environment, || vec!["Bash".to_owned()]).map_err(|error| {
            let source = error.source().map(ToString::to_string).unwrap_or_default();
            let line = format!("{error}: {source}\n");
            line.replace(&format!("{home}/undertext/tools/"), "")
        })
    }

    #[test]
    fn a_file_describes_a_tool() {
        let tools = check(&[
            ("notes.txt", "not one of them"),
            (".hidden.yaml", "neither"),
            (
                "b.yml",
                "name: Ping\ndescription: Pings.\ncommand: ping -c 1 localhost\n",
            ),
            (
                "a.yaml",
                "name: Count\n\
                 description: |\n  Counts.\n\
                 command: [./count.sh, -n, 5]\n\
                 timeout: 5s\n\
                 parameters:\n  type: object\n  properties: { path: { type: string } }\n  required: [path]\n\
                 meta: { effect: reads, hint: keep, supersession: { key: path }, labels: [path] }\n",
            ),
        ]);
        let tools = tools.unwrap();
        let spec = tools[0].tool.spec();
        assert_eq!(
            (spec.name.as_str(), spec.description.as_str()),
            ("Count", "Counts.")
        );
        insta::assert_snapshot!(spec.schema.get(), @r#"{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}"#);
        insta::assert_snapshot!(serde_json::to_string(&spec.meta).unwrap(), @r#"{"effect":"reads","hint":{"request":"keep","response":"keep"},"supersession":{"key":"path"},"labels":["path"],"timeout_ms":5000}"#);
        let beside = tools[0].path.with_file_name("./count.sh");
        let program = vec![beside.to_str().unwrap().to_owned(), "-n".into(), "5".into()];
        assert_eq!(tools[0].tool.command(), &Command::Program(program));
        let spec = tools[1].tool.spec();
        assert_eq!(spec.schema.get(), r#"{"type":"object","properties":{}}"#);
        assert_eq!(spec.meta, ToolMeta::default());
        assert_eq!(check(&[]), Ok(Vec::new()));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let with = |name: &str, more: &str| {
            format!("name: {name}\ndescription: Does it.\ncommand: run\n{more}")
        };
        let mut said = String::new();
        for text in [
            "",
            "name: A\ndescription: Does it.\n",
            "name: A\ndescription: ' '\ncommand: run\n",
            "name: A\ndescription: Does it.\ncommand: []\n",
            "name: A\ndescription: Does it.\ncommand: { run: it }\n",
            "name: A\n\tdescription: Does it.\n",
            "name: [A\n",
            &with("A", "descriptoin: x\n"),
            &with("A", "meta: { enabled: true }\n"),
            &with("A", "meta: { effect: read }\n"),
            &with("A", "timeout: 90\n"),
            &with("A", "timeout: 0s\n"),
            &with("A", "parameters: { type: string }\n"),
            &with("A", "parameters: { type: object, required: path }\n"),
            &with("Do it", ""),
            &with("bash", ""),
        ] {
            said += &check(&[("a.yaml", text)]).unwrap_err();
        }
        said += &check(&[("a.yaml", &with("A", "")), ("b.yaml", &with("a", ""))]).unwrap_err();
        insta::assert_snapshot!(said, @r#"
        wrong tool in a.yaml: `name` is missing
        wrong tool in a.yaml: `command` is missing
        wrong tool in a.yaml: `description` is empty: it says to the model what the tool does, and when to use it
        wrong tool in a.yaml: `command` is empty
        wrong tool in a.yaml: `command` takes a text for the shell, or a list: [program, argument, …]
        wrong tool in a.yaml:1:7: while scanning a plain scalar, found a tab
        wrong tool in a.yaml:1:7: one value must stand here, no list and no keys
        wrong tool in a.yaml:4:1: unknown key `descriptoin`, did you mean `description`?
        wrong tool in a.yaml:4:9: unknown key `enabled`, known here: effect, hint, exempt, supersession, labels
        wrong tool in a.yaml:4:17: unknown word `read`, known here: reads, writes
        wrong tool in a.yaml:4:10: `90` needs a unit, such as 90s or 90m
        wrong tool in a.yaml:4:10: `0s` is no time at all; it must be longer
        wrong tool in a.yaml: `parameters` must describe an object: `type: object`, with its `properties`
        wrong tool in a.yaml: `parameters` is no JSON Schema: "path" is not of type "array"
        wrong tool in a.yaml: `Do it` is no name for a tool: it begins with a letter and goes on with at most 63 letters, digits, `_` and `-`
        wrong tool in a.yaml: `bash` is taken by the built-in Bash
        wrong tool in b.yaml: `a` is taken by a.yaml
        "#);
    }
}
