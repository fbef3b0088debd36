//! The tools of a run, and the check that a call must pass before it runs.

use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::Value;

use crate::difference;
use crate::exchange::{ToolMeta, ToolSpec};
use crate::tools::external::External;
use crate::tools::{Compact, LoadSkill, Recall, Skill, TodoRead, TodoWrite, Tool};
use crate::tools::{arguments, bash, clip, edit, glob, grep, job, read, write};

/// The tools of a run: those answered beside the view, and those that hands perform.
#[derive(Debug, Default)]
pub struct Toolbox {
    tools: Vec<Held>,
}

/// Where a tool is answered.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// Beside the view, by this tool.
    Brain(&'a dyn Tool),
    /// By [`Hands`](crate::hands::Hands), which know the tool by its name.
    Hands,
}

/// A tool and what is known of it.
#[derive(Debug)]
struct Held {
    spec: ToolSpec,
    /// `None`: hands perform it.
    tool: Option<Box<dyn Tool>>,
    /// The compiled schema, or why it cannot be compiled.
    validator: OnceLock<Result<Validator, String>>,
}

/// A name is not that of a tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no tool is named `{name}`{}", suggestion(.close))]
pub struct UnknownTool {
    /// The name.
    pub name: String,
    /// Names of tools that are close to it.
    pub close: Vec<String>,
}

impl Toolbox {
    /// No tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// The built-in tools: `Bash`, `Job`, `Read`, `Write`, `Edit`, `Grep` and `Glob`, performed by
    /// hands, and `Compact`, `Recall`, `TodoWrite` and `TodoRead`, answered beside the view.
    pub fn builtin() -> Self {
        let specs = [
            bash::spec(),
            job::spec(),
            read::spec(),
            write::spec(),
            edit::spec(),
            grep::spec(),
            glob::spec(),
        ];
        let tools = specs
            .into_iter()
            .map(|spec| Held::new(spec, None))
            .collect();
        Self { tools }
            .with(Compact)
            .with(Recall)
            .with(TodoWrite)
            .with(TodoRead)
    }

    /// The same tools and `LoadSkill` for these skills, if there are any.
    #[must_use]
    pub fn with_skills(self, skills: Vec<Skill>) -> Self {
        if skills.is_empty() {
            return self;
        }
        self.with(LoadSkill::new(skills))
    }

    /// The same tools and this one, which takes the place of one with its name.
    #[must_use]
    pub fn with(mut self, tool: impl Tool + 'static) -> Self {
        let held = Held::new(tool.spec(), Some(Box::new(tool)));
        match self
            .tools
            .iter_mut()
            .find(|old| old.spec.name == held.spec.name)
        {
            Some(old) => *old = held,
            None => self.tools.push(held),
        }
        self
    }

    /// The same tools and this one, which hands that know it perform. It takes the place of one
    /// with its name.
    #[must_use]
    pub fn with_external(mut self, tool: &External) -> Self {
        let held = Held::new(tool.spec().clone(), None);
        self.tools.retain(|old| old.spec.name != held.spec.name);
        self.tools.push(held);
        self
    }

    /// Only the tools of these names, in the order they have here.
    pub fn only<N: AsRef<str>>(
        mut self,
        names: impl IntoIterator<Item = N>,
    ) -> Result<Self, UnknownTool> {
        let names = self.known(names)?;
        self.tools.retain(|held| names.contains(&held.spec.name));
        Ok(self)
    }

    /// All tools but those of these names.
    pub fn without<N: AsRef<str>>(
        mut self,
        names: impl IntoIterator<Item = N>,
    ) -> Result<Self, UnknownTool> {
        let names = self.known(names)?;
        self.tools.retain(|held| !names.contains(&held.spec.name));
        Ok(self)
    }

    /// The same tools without `Compact`, for runs that compact nothing by themselves.
    #[must_use]
    pub fn without_compact(mut self) -> Self {
        self.tools.retain(|held| held.spec.name != "Compact");
        self
    }

    /// The same tools, whose calls the runtime treats as `meta` says of each.
    #[must_use]
    pub fn with_meta(mut self, meta: impl Fn(&ToolSpec) -> ToolMeta) -> Self {
        for held in &mut self.tools {
            held.spec.meta = meta(&held.spec);
            bash::tell_limit(&mut held.spec);
        }
        self
    }

    /// The specs, in the order they are sent.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|held| held.spec.clone()).collect()
    }

    /// Where the tool of exactly this name is answered; `None` if there is none.
    pub fn find(&self, name: &str) -> Option<Place<'_>> {
        self.held(name).map(|held| match &held.tool {
            Some(tool) => Place::Brain(tool.as_ref()),
            None => Place::Hands,
        })
    }

    /// Checks a call before it runs, and returns the arguments to run it with: one JSON object
    /// that fits the schema.
    ///
    /// They may have come as a string that holds exactly one encoded object, or as no text at all
    /// if the tool requires nothing. `Err` says what is wrong, for the model.
    pub fn check(&self, name: &str, arguments: &str) -> Result<String, String> {
        let held = self
            .held(name)
            .ok_or_else(|| self.unknown_for_model(name))?;
        if arguments::is_blank(arguments) {
            return match held.required() {
                names if names.is_empty() => Ok("{}".to_owned()),
                names => Err(format!(
                    "The call of {name} has no arguments; it requires {}. Nothing ran.",
                    names.join(", ")
                )),
            };
        }
        let fault = |what: String| format!("The call of {name} did not run: {what}.");
        let decoded = arguments::decode(arguments);
        let (text, value) = decoded.map_err(|wrong| fault(wrong.into_words()))?;
        held.judge(&value).map_err(fault)?;
        Ok(text.into_owned())
    }

    fn held(&self, name: &str) -> Option<&Held> {
        self.tools.iter().find(|held| held.spec.name == name)
    }

    /// The names as they are, if each is a tool's.
    fn known<N: AsRef<str>>(
        &self,
        names: impl IntoIterator<Item = N>,
    ) -> Result<Vec<String>, UnknownTool> {
        let known = |name: N| match self.held(name.as_ref()) {
            Some(held) => Ok(held.spec.name.clone()),
            None => Err(UnknownTool {
                name: name.as_ref().to_owned(),
                close: self.close(name.as_ref()),
            }),
        };
        names.into_iter().map(known).collect()
    }

    /// The names close to this one, nearest first.
    fn close(&self, name: &str) -> Vec<String> {
        let name = clip::first(name, 80).to_lowercase();
        let lower: Vec<String> = self
            .tools
            .iter()
            .map(|held| held.spec.name.to_lowercase())
            .collect();
        let all: Vec<&str> = lower.iter().map(String::as_str).collect();
        let close = difference::close(&name, &all, 3, 0.6);
        let named = |close: &str| {
            let held = self
                .tools
                .iter()
                .find(|held| held.spec.name.to_lowercase() == close)?;
            Some(held.spec.name.clone())
        };
        close.into_iter().filter_map(named).collect()
    }

    fn unknown_for_model(&self, name: &str) -> String {
        if name.trim().is_empty() {
            return "The call names no tool. Nothing ran.".to_owned();
        }
        let close = self.close(name);
        let hint = if close.is_empty() {
            let names: Vec<&str> = self
                .tools
                .iter()
                .take(32)
                .map(|held| held.spec.name.as_str())
                .collect();
            format!("the tools are {}", names.join(", "))
        } else {
            format!("close names are {}", close.join(", "))
        };
        let name = clip::first(name, 80);
        format!("No tool is named `{name}`; {hint}. Nothing ran.")
    }
}

impl Held {
    fn new(spec: ToolSpec, tool: Option<Box<dyn Tool>>) -> Self {
        Self {
            spec,
            tool,
            validator: OnceLock::new(),
        }
    }

    /// The parameters that must be given.
    fn required(&self) -> Vec<String> {
        let schema: Value = serde_json::from_str(self.spec.schema.get()).unwrap_or_default();
        let names = schema.get("required").and_then(Value::as_array);
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        names.map(str::to_owned).collect()
    }

    /// Whether the arguments fit the schema; `Err` names the first few places where they do not.
    fn judge(&self, arguments: &Value) -> Result<(), String> {
        let validator = self.validator.get_or_init(|| {
            let schema: Value =
                serde_json::from_str(self.spec.schema.get()).map_err(|error| error.to_string())?;
            jsonschema::validator_for(&schema).map_err(|error| error.to_string())
        });
        let validator = match validator {
            Ok(validator) => validator,
            Err(error) => return Err(format!("the tool's own schema is not usable: {error}")),
        };
        let faults: Vec<String> = validator
            .iter_errors(arguments)
            .take(5)
            .map(|error| {
                let path = error.instance_path().as_str();
                let place = if path.is_empty() {
                    "the arguments"
                } else {
                    path
                };
                let what = error.to_string();
                let what = match what.char_indices().nth(300) {
                    Some(_) => error.masked().to_string(),
                    None => what,
                };
                format!("{place}: {}", clip::first(&what, 300))
            })
            .collect();
        if faults.is_empty() {
            Ok(())
        } else {
            Err(faults.join("; "))
        }
    }
}

/// `, did you mean …`, or nothing.
fn suggestion(close: &[String]) -> String {
    if close.is_empty() {
        String::new()
    } else {
        format!(", did you mean {}?", close.join(" or "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{Effect, Status};
    use crate::id::{CallId, EntryId};
    use crate::tools::{Call, Outcome, typed};
    use crate::view::View;

    #[derive(schemars::JsonSchema, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Greet {
        /// Whom to greet.
        name: Option<String>,
    }

    fn toolbox() -> Toolbox {
        let greet = typed("Greet", "Greets.", |args: Greet| async move {
            Outcome::ok(format!("Hello, {}", args.name.as_deref().unwrap_or("you")))
        });
        Toolbox::builtin().with(greet.reads())
    }

    /// What the check says to each call, one line each.
    fn check(calls: &[(&str, &str)]) -> String {
        let toolbox = toolbox();
        let said = calls
            .iter()
            .map(|(name, arguments)| match toolbox.check(name, arguments) {
                Ok(text) => format!("ok: {text}\n"),
                Err(error) => format!("{error}\n"),
            });
        said.collect()
    }

    #[test]
    fn arguments_are_one_object_that_fits() {
        insta::assert_snapshot!(check(&[
            ("Read", r#" {"path": "a",  "limit": 3} "#),
            ("Read", r#""{\"path\": \"a\"}""#),
            ("Greet", ""),
            ("Greet", " \n"),
            ("Greet", "{}"),
        ]), @r#"
        ok: {"path": "a",  "limit": 3}
        ok: {"path": "a"}
        ok: {}
        ok: {}
        ok: {}
        "#);
    }

    #[test]
    fn what_is_wrong_is_said_and_nothing_is_repaired() {
        let deep = format!(r#"{{"path": {}1{}}}"#, "[".repeat(100), "]".repeat(100));
        let long = format!(r#"{{"path": "{}"}}"#, "x".repeat(20 << 20));
        let wrong = format!(r#"{{"path": ["{}"]}}"#, "x".repeat(1000));
        insta::assert_snapshot!(check(&[
            ("Read", ""),
            ("Read", "null"),
            ("Read", "[]"),
            ("Read", r#""\"{}\"""#),
            ("Read", r#""{\"path\": }""#),
            ("Read", r#"{"path": "a",}"#),
            ("Read", r"{'path': 'a'}"),
            ("Read", r#"{"path": "a" /* the file */}"#),
            ("Read", "{\"path\": \"a\n\"}"),
            ("Read", r#"{"path": NaN}"#),
            ("Read", r#"{"path": "a", "limit": 1e999}"#),
            ("Read", r#"{"path": "a"} {"path": "b"}"#),
            ("Read", r#"{"path": "a", "path": "b"}"#),
            ("Read", r#"{"path": "\ud800"}"#),
            ("Read", &deep),
            ("Read", &long),
            ("Read", &wrong),
            ("Read", r#"{"file": "a"}"#),
            ("Read", r#"{"path": "a", "offset": 0}"#),
            ("Read", r#"{"path": "a", "limit": 1.5}"#),
            ("Edit", r#"{"path": "a", "edits": [{"old": 1, "new": "b"}]}"#),
            ("Bash", r#"{"command": "true", "timeout_ms": 600001}"#),
        ]), @r#"
        The call of Read has no arguments; it requires path. Nothing ran.
        The call of Read did not run: the arguments must be one JSON object, not null.
        The call of Read did not run: the arguments must be one JSON object, not an array.
        The call of Read did not run: the arguments must be one JSON object, not a string that holds a string.
        The call of Read did not run: the arguments are not valid JSON: expected value at line 1 column 10 (in the string that the arguments are).
        The call of Read did not run: the arguments are not valid JSON: trailing comma at line 1 column 14.
        The call of Read did not run: the arguments are not valid JSON: key must be a string at line 1 column 2.
        The call of Read did not run: the arguments are not valid JSON: expected `,` or `}` at line 1 column 14.
        The call of Read did not run: the arguments are not valid JSON: control character (\u0000-\u001F) found while parsing a string at line 2 column 0.
        The call of Read did not run: the arguments are not valid JSON: expected value at line 1 column 10.
        The call of Read did not run: the arguments are not valid JSON: number out of range at line 1 column 28.
        The call of Read did not run: the arguments are not valid JSON: trailing characters at line 1 column 15.
        The call of Read did not run: the arguments are not valid JSON: `path` stands twice at line 1 column 20.
        The call of Read did not run: the arguments are not valid JSON: unexpected end of hex escape at line 1 column 17.
        The call of Read did not run: the arguments are not valid JSON: nested more than 64 levels deep at line 1 column 73.
        The call of Read did not run: the arguments are 20971532 bytes long; at most 4194304 are taken.
        The call of Read did not run: /path: value is not of type "string".
        The call of Read did not run: the arguments: Additional properties are not allowed ('file' was unexpected); the arguments: "path" is a required property.
        The call of Read did not run: /offset: 0 is less than the minimum of 1.
        The call of Read did not run: /limit: 1.5 is not of types "null", "integer".
        The call of Edit did not run: /edits/0/old: 1 is not of type "string".
        The call of Bash did not run: /timeout_ms: 600001 is greater than the maximum of 600000.
        "#);
    }

    #[test]
    fn only_exact_names_are_tools() {
        insta::assert_snapshot!(check(&[
            ("read", "{}"),
            ("Edti", "{}"),
            ("functions.Delete", "{}"),
            (" ", "{}"),
        ]), @"
        No tool is named `read`; close names are Read, TodoRead, Recall. Nothing ran.
        No tool is named `Edti`; close names are Edit. Nothing ran.
        No tool is named `functions.Delete`; the tools are Bash, Job, Read, Write, Edit, Grep, Glob, Compact, Recall, TodoWrite, TodoRead, Greet. Nothing ran.
        The call names no tool. Nothing ran.
        ");
        assert!(matches!(toolbox().find("Bash"), Some(Place::Hands)));
        assert!(matches!(toolbox().find("Greet"), Some(Place::Brain(_))));
        assert!(toolbox().find("bash").is_none());
    }

    #[test]
    fn a_choice_of_tools_names_only_known_ones() {
        let names = |toolbox: Toolbox| {
            toolbox
                .specs()
                .into_iter()
                .map(|spec| spec.name)
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(
            names(toolbox()),
            "Bash Job Read Write Edit Grep Glob Compact Recall TodoWrite TodoRead Greet"
        );
        assert_eq!(
            names(toolbox().only(["Edit", "Bash"]).unwrap()),
            "Bash Edit"
        );
        assert_eq!(
            names(toolbox().without(["Edit", "Bash"]).unwrap()),
            "Job Read Write Grep Glob Compact Recall TodoWrite TodoRead Greet"
        );
        let error = toolbox().without(["bash"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no tool is named `bash`, did you mean Bash?"
        );
        let again = typed("Bash", "Another.", |_: Greet| async { Outcome::ok("") });
        assert_eq!(
            names(toolbox().with(again)),
            "Bash Job Read Write Edit Grep Glob Compact Recall TodoWrite TodoRead Greet"
        );
    }

    #[tokio::test]
    async fn a_typed_tool_reads_its_arguments() {
        let toolbox = toolbox();
        let Some(Place::Brain(tool)) = toolbox.find("Greet") else {
            panic!("Greet is answered beside the view");
        };
        assert_eq!(tool.spec().meta.effect, Effect::Reads);
        let (view, blobs) = (View::default(), |_| None);
        let call = |arguments| Call {
            id: CallId::new(EntryId(5), 1),
            arguments,
            view: &view,
            blobs: &blobs,
        };
        assert_eq!(
            tool.call(call(r#"{"name": "Ada"}"#)).await,
            Outcome::ok("Hello, Ada")
        );
        let wrong = tool.call(call(r#"{"name": 1}"#)).await;
        assert_eq!(wrong.status, Status::Error);
    }
}
