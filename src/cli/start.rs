//! What a run begins with, checked before anything is recorded.

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use undertext::compaction::by_hand::Order;
use undertext::config::{self, ConfigError, Endpoint, EndpointError, Environment, Settings};
use undertext::secret::Known;
use undertext::transcript::Attachment;

use crate::cli::exit::{Exit, Failure};
use crate::cli::task::{self, Given};
use crate::cli::{Process, RunArgs, answer_form, compact, offline, planted};

pub(super) const NO_MODEL: &str = "\
no model named; there are three ways on:
  with a key       OPENAI_API_KEY=… undertext run -m MODEL \"TASK\"
  a local server   undertext run --base-url http://127.0.0.1:11434/v1 -m MODEL \"TASK\"
  with neither     undertext demo";

/// What a run begins with, checked as far as it can be before anything is recorded.
#[derive(Debug)]
pub(crate) struct Start {
    /// What the person says; nothing when a run is only taken up again.
    pub(crate) task: Option<String>,
    /// The files that go with it.
    pub(crate) attachments: Vec<Attachment>,
    /// The variables that tools see beside the usual ones.
    pub(crate) environment: Vec<OsString>,
    /// Every setting.
    pub(crate) settings: Settings,
    /// The server and its key.
    pub(crate) endpoint: Endpoint,
    /// Whether that is the offline model.
    pub(crate) offline: bool,
    /// The directory the model works in, without symlinks; nothing if the run says where.
    pub(crate) workspace: Option<PathBuf>,
    /// The directory of the transcripts.
    pub(crate) transcripts: PathBuf,
    /// What is compacted first.
    pub(crate) order: Option<Order>,
    /// What the person should know before it begins.
    pub(crate) remarks: Vec<String>,
    /// What must be nowhere: the key, and what variables hold that are secret.
    pub(crate) known: Known,
}

impl Start {
    /// Reads and checks what the command line, the settings and standard input say.
    pub(crate) fn new(
        args: &RunArgs,
        process: &Process,
        input: &mut dyn Read,
    ) -> Result<Self, Failure> {
        let environment = &process.environment;
        // Before anything is read that may be waited for. A run that is taken up by its name alone is found
        // once settings are known.
        let named = args.settings.transcripts.as_deref();
        let place = planted::of_run(args, named.unwrap_or(Path::new("")), process);
        planted::check_settings(args, place.as_deref(), process)?;
        let mut settings = config::load(&args.settings.sources(environment, args.flags()))?;
        settings.policy.check.clone_from(&args.check);
        let transcripts = settings.transcripts_dir(environment);
        let place = transcripts.as_deref().ok();
        let place = place.and_then(|transcripts| planted::of_run(args, transcripts, process));
        let site = (place.as_deref(), process);
        planted::check_settings(args, site.0, process)?;
        let schema = args.outputs.output_schema.as_deref();
        let schema = schema.map(|path| answer_form::named("--output-schema", path, site));
        settings.policy.output = schema.transpose()?;
        let taken_up = args.resume.is_some() || args.continue_last;
        let Given {
            task,
            attachments,
            remarks: read,
        } = task::given(args, site, input)?;
        if task.is_none() && !taken_up {
            return Err(Failure::usage(
                "no task; give it as an argument, or - to read it from standard input",
            ));
        }
        let order = order(args, &settings, taken_up)?;
        // A run that is taken up has a model already.
        if settings.model.name.is_none() && !taken_up {
            let mistaken = mistaken(environment).map(|said| format!("\n{said}"));
            return Err(Failure::usage(
                NO_MODEL.to_owned() + &mistaken.collect::<String>(),
            ));
        }
        spoken(&settings)?;
        let endpoint = offline::endpoint(args, &settings, environment).map_err(no_key)?;
        let known = process.known().and(&of_server(&endpoint));
        let passed = passed(&args.env, &settings, &endpoint, environment)?;
        let transcripts = transcripts?;
        let workspace = match &args.workspace {
            None if args.resume.is_some() => None,
            named => Some(workspace(named.as_deref(), process)?),
        };

        let mut remarks = vec![server(&endpoint)];
        remarks.extend(mistaken(environment));
        remarks.extend(read);
        Ok(Self {
            task,
            attachments,
            environment: passed,
            settings,
            endpoint,
            offline: false,
            workspace,
            transcripts,
            order,
            remarks,
            known,
        })
    }
}

impl Start {
    /// Does not hide what the path of the workspace holds: a model that reads another one works
    /// elsewhere.
    pub(super) fn keep_readable(&mut self, workspace: &Path) {
        self.known = self.known.but_for(&workspace.to_string_lossy());
    }

    /// The address of the server; nothing for the offline model, which has none of its own.
    pub(super) fn server(&self) -> Option<&str> {
        (!self.offline).then_some(self.endpoint.base_url.as_str())
    }
}

/// What is compacted before a run goes on.
fn order(args: &RunArgs, settings: &Settings, taken_up: bool) -> Result<Option<Order>, Failure> {
    if args.compact.is_some() && !taken_up {
        return Err(Failure::usage(
            "--compact goes with --resume or --continue: a new run has nothing to compact",
        ));
    }
    if let (Some(""), Some(task)) = (args.compact.as_deref(), &args.task)
        && settings.policy.compaction.rules.contains_key(task)
    {
        return Err(Failure::usage(format!(
            "`{task}` would be the task; a rule is named so: --compact={task}"
        )));
    }
    compact::order_named(settings, args.compact.as_deref())
}

/// What is said of variables that are meant as settings and are none.
pub(crate) fn mistaken(environment: &Environment) -> impl Iterator<Item = String> {
    let mistaken = config::mistaken(environment).into_iter();
    mistaken.map(|(variable, meant)| {
        format!("{variable} is not read; two underscores stand between levels: {meant}")
    })
}

/// What is secret of a server: the key, and what its address holds.
pub(super) fn of_server(endpoint: &Endpoint) -> Known {
    let key = endpoint.key.as_ref().map(config::Key::secret);
    let address = Known::of_address(&endpoint.base_url);
    Known::new(key).and(&address)
}

/// Says which server is asked, and with whose key.
pub(super) fn server(endpoint: &Endpoint) -> String {
    let address = config::public_part(&endpoint.base_url);
    let key = match &endpoint.key {
        Some(key) => format!("key from {}", key.variable),
        None => "no key".to_owned(),
    };
    format!("server: {address} ({key})")
}

/// Refuses what the settings allow and this version does not do.
pub(super) fn spoken(settings: &Settings) -> Result<(), Failure> {
    if let Some(name) = &settings.model.profile
        && settings.profile_named(name).is_none()
    {
        let hint = config::rule_hint(settings.profile_names().iter(), name);
        return Err(Failure::usage(format!(
            "no profile is named `{name}`; {hint}"
        )));
    }
    Ok(())
}

/// The variables that tools see beside the usual ones. The key is the model's server's alone.
fn passed(
    names: &[String],
    settings: &Settings,
    endpoint: &Endpoint,
    environment: &Environment,
) -> Result<Vec<OsString>, Failure> {
    let key = endpoint.key.as_ref().map(|key| key.variable.as_str());
    let key = [key, settings.server.api_key_env.as_deref()];
    for name in names {
        if name.is_empty() || name.contains('=') {
            return Err(Failure::usage(
                "--env takes the name of a variable; its value is the one you have",
            ));
        }
        if key.contains(&Some(name.as_str())) {
            return Err(Failure::usage(format!(
                "--env {name}: it holds the model's key, and what a tool prints goes into the \
                 transcript; give tools a key of their own"
            )));
        }
        if !environment.contains_key(name) {
            return Err(Failure::usage(format!(
                "--env {name}: it is not set; export it, or leave that out"
            )));
        }
    }
    Ok(names.iter().map(OsString::from).collect())
}

/// Says what to do about a missing key.
pub(super) fn no_key(error: ConfigError) -> Failure {
    match error {
        ConfigError::Endpoint(EndpointError::UsualKey) => Failure::usage(format!(
            "no key for {}; set OPENAI_API_KEY, name another server with --base-url, \
             or try `undertext demo`",
            config::PUBLIC_SERVER
        )),
        error @ (ConfigError::File { .. }
        | ConfigError::Setting { .. }
        | ConfigError::Tool { .. }
        | ConfigError::Meaning(_)
        | ConfigError::MeaningAt { .. }
        | ConfigError::Endpoint(_)) => error.into(),
    }
}

/// The directory that the model may work in. The whole machine and the whole home directory are
/// refused: nobody means them.
pub(super) fn workspace(named: Option<&Path>, process: &Process) -> Result<PathBuf, Failure> {
    let wrong =
        |path: &Path, what: &str| Failure::usage(format!("workspace {} {what}", path.display()));
    let current = process.directory.as_ref().ok();
    let path = match (named, current) {
        (Some(named), Some(current)) => current.join(named),
        (Some(named), None) if named.is_absolute() => named.to_owned(),
        (None, Some(current)) => current.clone(),
        (_, None) => {
            return Err(Failure::usage(
                "the current directory is gone; name a workspace with -C",
            ));
        }
    };
    let real = path.canonicalize().map_err(|error| {
        let text = format!("workspace {} cannot be used", path.display());
        let failure = Failure::new(Exit::Usage, anyhow::Error::new(error).context(text));
        failure.advised("make that directory first, or name another")
    })?;
    if !real.is_dir() {
        return Err(wrong(&path, "is not a directory; name one"));
    }
    if real.parent().is_none() {
        return Err(wrong(
            &path,
            "is the whole file system; name a project's directory with -C",
        ));
    }
    if holds_home(&real, process) {
        return Err(wrong(
            &path,
            "holds your whole home directory; name a project's directory with -C",
        ));
    }
    Ok(real)
}

/// The user's home directory, if it is known.
pub(super) fn home(environment: &Environment) -> Option<PathBuf> {
    let home = environment.get("HOME").filter(|home| !home.is_empty())?;
    Path::new(home).canonicalize().ok()
}

/// Whether the home directory lies here: the one that `HOME` names, or the one that the system knows,
/// which services and `sudo` do not tell of.
pub(super) fn holds_home(real: &Path, process: &Process) -> bool {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let known = home_of(rustix::process::getuid().as_raw(), &users);
    let known = known.and_then(|home| home.canonicalize().ok());
    let mut homes = home(&process.environment).into_iter().chain(known);
    homes.any(|home| home.starts_with(real))
}

/// The home directory of this user, in a file like `/etc/passwd`.
fn home_of(user: u32, users: &str) -> Option<PathBuf> {
    users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [_, _, id, _, _, home, ..] = fields[..] else {
            return None;
        };
        let is_theirs = id.parse() == Ok(user) && home.starts_with('/');
        is_theirs.then(|| home.into())
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::exit::Exit;
    use crate::cli::{Cli, Command};

    /// A home directory with a project in it, in which a command line is tried.
    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(dir.path().join("home/project")).unwrap();
            std::fs::write(dir.path().join("home/file"), "").unwrap();
            Self(dir)
        }

        fn start(&self, line: &[&str], variables: &[(&str, &str)]) -> Result<Start, Failure> {
            let home = self.0.path().join("home");
            let mut environment: Environment = variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            environment.insert("HOME".to_owned(), home.to_str().unwrap().to_owned());
            let process = Process {
                environment,
                directory: Ok(home.join("project")),
                typed: Vec::new(),
            };
            let line = ["undertext", "run"].iter().chain(line);
            let Command::Run(args) = Cli::try_parse_from(line).unwrap().command else {
                unreachable!()
            };
            Start::new(&args, &process, &mut "from standard input".as_bytes())
        }

        fn check(&self, line: &[&str], expected: &str) {
            let failure = self.start(line, &[]).unwrap_err();
            let text = failure.line().replace(self.0.path().to_str().unwrap(), "");
            assert_eq!(text, expected);
            assert_eq!(failure.exit, Exit::Usage);
        }
    }

    #[test]
    fn a_home_is_found_by_its_user() {
        let users = "root:x:0:0:root:/root:/bin/bash\nodd\n+::::::\n\
                     ada:x:1000:1000:Ada,,,:/home/ada:/bin/zsh\nsvc:x:9:9::nowhere:/bin/false\n";
        for (user, home) in [
            (0, Some("/root")),
            (1000, Some("/home/ada")),
            (9, None),
            (1, None),
        ] {
            assert_eq!(home_of(user, users).as_deref(), home.map(Path::new));
        }
    }

    #[test]
    fn bad_input_is_refused_before_anything_is_recorded() {
        let place = Place::new();
        let server = ["-m", "m", "--base-url", "http://127.0.0.1:1/v1"];
        let line = |more: &[&'static str]| [&server[..], more].concat();
        place.check(&["task"], NO_MODEL);
        place.check(
            &["-m", "m", "task"],
            "no key for https://api.openai.com/v1; set OPENAI_API_KEY, name another server with \
             --base-url, or try `undertext demo`",
        );
        place.check(
            &line(&[]),
            "no task; give it as an argument, or - to read it from standard input",
        );
        place.check(&line(&[" \n"]), "the task is empty; say what is to be done");
        place.check(
            &line(&["-C", "missing", "task"]),
            "workspace /home/project/missing cannot be used: No such file or directory (os error 2); make that directory first, or name another",
        );
        place.check(
            &line(&["-C", "../file", "task"]),
            "workspace /home/project/../file is not a directory; name one",
        );
        place.check(
            &line(&["-C", "/", "task"]),
            "workspace / is the whole file system; name a project's directory with -C",
        );
        for home in ["..", "../.."] {
            let expected = format!(
                "workspace /home/project/{home} holds your whole home directory; \
                 name a project's directory with -C"
            );
            place.check(&[&server[..], &["-C", home, "task"]].concat(), &expected);
        }
        let set = |key: &'static str| line(&["--set", key, "task"]);
        place.check(
            &set("model.profile=nobody"),
            "no profile is named `nobody`; there is openai, azure, anthropic, openrouter-anthropic, \
             openrouter-signed, openrouter-reasoning, openrouter, deepseek, groq, gemini-3, gemini, mistral, \
             together, fireworks, xai, moonshot, zai, vllm, sglang, llama.cpp, ollama, litellm, \
             compatible",
        );
        place.check(
            &set("model.profile=deepsek"),
            "no profile is named `deepsek`; did you mean `deepseek`?",
        );
        place.check(
            &line(&["--env", "SECRET", "task"]),
            "--env SECRET: it is not set; export it, or leave that out",
        );
        place.check(
            &line(&["--env", "A=b", "task"]),
            "--env takes the name of a variable; its value is the one you have",
        );
        place.check(
            &[
                "--continue",
                "--base-url",
                "http://h/v1",
                "--attach",
                "../file",
            ],
            "attachments go with a task; say what is to be done with them",
        );
    }

    #[test]
    fn a_run_says_where_it_asks_and_what_tools_may_do() {
        let place = Place::new();
        let variables = [("OPENAI_API_KEY", "sk-secret")];
        let start = place.start(&["-m", "m", "-"], &variables).unwrap();
        assert_eq!(start.task.as_deref(), Some("from standard input"));
        assert_eq!(
            start.remarks,
            ["server: https://api.openai.com/v1 (key from OPENAI_API_KEY)"]
        );
        let home = place.0.path().canonicalize().unwrap().join("home");
        assert_eq!(start.workspace, Some(home.join("project")));
        assert!(
            start
                .transcripts
                .ends_with("home/.local/state/undertext/transcripts")
        );

        let line = ["-m", "m", "task", "--env", "OPENAI_API_KEY"];
        assert_eq!(
            place.start(&line, &variables).unwrap_err().line(),
            "--env OPENAI_API_KEY: it holds the model's key, and what a tool prints goes into the \
             transcript; give tools a key of their own"
        );

        let start = place.start(&["--continue"], &variables).unwrap();
        assert_eq!(
            start.remarks[0],
            "server: https://api.openai.com/v1 (key from OPENAI_API_KEY)"
        );
        let line = ["--continue", "--base-url", "http://h/v1?key=sk-secret"];
        let start = place.start(&line, &variables).unwrap();
        assert_eq!(start.remarks[0], "server: http://h/v1 (no key)");

        std::fs::write(home.join("project/config.yaml"), "model: {name: evil}").unwrap();
        let line = ["-m", "m", "--base-url", "http://h/v1", "--continue"];
        let start = place.start(&line, &variables).unwrap();
        assert_eq!(start.task, None);
        assert_eq!(start.settings.model.name.as_deref(), Some("m"));
        assert_eq!(start.remarks, ["server: http://h/v1 (no key)"]);
    }
}
