//! The program that decides for the user: where it lies, and with what it is started.
//!
//! It runs outside the sandbox, so nothing of it may be changed from inside.

#[cfg(target_os = "linux")]
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use undertext::config::Settings;
#[cfg(target_os = "linux")]
use undertext::hands::Approval;
#[cfg(target_os = "linux")]
use undertext::sandbox::Bounds;

use crate::cli::confined::Unheld;
use crate::cli::{Process, start};

/// Of so many words the interpreter is looked for: the system follows fewer.
#[cfg(target_os = "linux")]
const NAMED: usize = 32;

/// A program that decides for the user.
#[derive(Debug)]
pub(super) struct Asked {
    /// The program, found once: in PATH it might be another one later.
    program: PathBuf,
    arguments: Vec<String>,
    /// Its variables.
    environment: Vec<(String, String)>,
}

impl Asked {
    /// The program that the settings name, if it is to be asked. It has the variables of the user, but
    /// not the model's key.
    pub(super) fn of(
        settings: &Settings,
        key: Option<&str>,
        process: &Process,
    ) -> Result<Option<Self>, Unheld> {
        if !settings
            .policy
            .sandbox
            .reach()
            .is_some_and(|reach| reach.asks)
        {
            return Ok(None);
        }
        let mut words = settings.asked.iter();
        let Some(named) = words.next().filter(|program| !program.is_empty()) else {
            return Err(Unheld::usage(
                "sandbox.ask is on-request, but sandbox.ask_command names no program to ask; \
                 name one there",
            ));
        };
        let is_key = |name: &str| {
            name == "OPENAI_API_KEY"
                || key == Some(name)
                || settings.server.api_key_env.as_deref() == Some(name)
        };
        let variables = process.environment.iter().filter(|(name, _)| !is_key(name));
        let environment = variables.map(|(name, value)| (name.clone(), value.clone()));
        Ok(Some(Self {
            program: program(named, process).map_err(Unheld::usage)?,
            arguments: words.cloned().collect(),
            environment: environment.collect(),
        }))
    }

    /// Refuses a program that tools could replace, or lead elsewhere, or whose files they could: they
    /// would decide for themselves, and run what they like outside the sandbox.
    #[cfg(target_os = "linux")]
    pub(super) fn check(&self, bounds: &Bounds) -> Result<(), Unheld> {
        let program = self.program.to_string_lossy().into_owned();
        let mut named: Vec<String> = std::iter::once(program)
            .chain(self.arguments.iter().cloned())
            .collect();
        let mut looked_at = 0;
        while let Some(word) = named.get(looked_at) {
            // It runs in the root directory.
            let path = Path::new("/").join(word);
            let written = bounds.replaceable(&path);
            let written = written.or_else(|| bounds.written_in(word));
            if let Some(written) = written {
                return Err(Unheld::usage(format!(
                    "sandbox.ask_command: tools could put something else in the place of {}, since they \
                     may write in {}; keep what decides for you elsewhere",
                    path.display(),
                    written.display()
                )));
            }
            // What runs a script may be one as well.
            if looked_at < NAMED
                && let Some(line) = interpreter(&path)
            {
                named.extend(line.split_ascii_whitespace().map(str::to_owned));
            }
            looked_at += 1;
        }
        Ok(())
    }

    /// What asks it.
    #[cfg(target_os = "linux")]
    pub(super) fn approval(self, bounds: &Bounds) -> Approval {
        let arguments = self.arguments.into_iter().map(OsString::from).collect();
        let variables = apart(self.environment, bounds).into_iter();
        let environment = variables.map(|(name, value)| (name.into(), value.into()));
        Approval::command(self.program, arguments, environment.collect())
    }
}

/// The variables that name no place where tools write: whoever sees one might load a part of itself from
/// there. `PATH` keeps what else it names.
#[cfg(target_os = "linux")]
fn apart(variables: Vec<(String, String)>, bounds: &Bounds) -> Vec<(String, String)> {
    let is_theirs = |path: &str| bounds.replaceable(Path::new(path)).is_some();
    let kept = |(name, value): (String, String)| {
        if name == "PATH" {
            let paths = value.split(':').filter(|path| path.starts_with('/'));
            let paths: Vec<&str> = paths.filter(|path| !is_theirs(path)).collect();
            return Some((name, paths.join(":")));
        }
        let mut parts = value.split([':', ';', ',', '=', ' ']);
        let names_one = bounds.written_in(&value).is_some()
            || parts.any(|part| part.starts_with('/') && is_theirs(part));
        (!names_one).then_some((name, value))
    };
    variables.into_iter().filter_map(kept).collect()
}

/// Where the program lies that is named so; why there is none.
fn program(named: &str, process: &Process) -> Result<PathBuf, String> {
    let environment = &process.environment;
    let runs = |path: &Path| {
        path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    };
    let home = start::home(environment);
    let path = match (named.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        (Some(_) | None, _) => PathBuf::from(named),
    };
    if path.is_absolute() {
        return if runs(&path) {
            Ok(path)
        } else {
            Err(format!(
                "sandbox.ask_command: {} is no program that can be run; name one that is there",
                path.display()
            ))
        };
    }
    if named.contains('/') {
        return Err(format!(
            "sandbox.ask_command: {named} counts from nowhere; give its full path, or its name alone if \
             it is in PATH"
        ));
    }
    let paths = environment.get("PATH").map_or("", String::as_str);
    let mut found = std::env::split_paths(paths)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(named));
    found.find(|path| runs(path)).ok_or_else(|| {
        format!("sandbox.ask_command: {named} is in no directory of PATH; give its full path")
    })
}

/// What a script says in its first line that runs it.
#[cfg(target_os = "linux")]
fn interpreter(program: &Path) -> Option<String> {
    use std::io::Read as _;

    // As much as the system reads of it.
    let mut start = Vec::new();
    let file = std::fs::File::open(program).ok()?;
    file.take(256).read_to_end(&mut start).ok()?;
    let line = start
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    Some(String::from_utf8_lossy(line).into_owned())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use undertext::sandbox::Home;
    use undertext::setup::{Reach, Sandbox};

    use super::*;

    #[test]
    fn variables_that_name_what_tools_write_are_not_seen() {
        let place = tempfile::tempdir().unwrap();
        let at = place.path().canonicalize().unwrap();
        let (work, at) = (at.join("w"), at.display());
        std::fs::create_dir_all(work.join("lib")).unwrap();
        std::os::unix::fs::symlink("w/lib", format!("{at}/link")).unwrap();
        let sandbox = Sandbox::Workspace(Reach::default());
        let bounds = Bounds::of(&sandbox, &[work], &Home::default()).unwrap();
        let variables = [
            ("PATH", format!("{at}/w/bin:/usr/bin:bin::{at}/link:/bin")),
            ("HOME", at.to_string()),
            ("PWD", format!("{at}/w")),
            ("PYTHONPATH", format!("/usr/lib:{at}/link")),
            ("NODE_OPTIONS", format!("--quiet --require={at}/w/later.js")),
            ("PERL5OPT", format!("-I{at}/w/lib")),
            ("LANG", "C".to_owned()),
            ("NEAR", format!("{at}/w-2:w/lib")),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value));
        let kept = apart(variables.into(), &bounds);
        let expected = [
            ("PATH", "/usr/bin:/bin".to_owned()),
            ("HOME", at.to_string()),
            ("LANG", "C".to_owned()),
            ("NEAR", format!("{at}/w-2:w/lib")),
        ];
        assert_eq!(kept, expected.map(|(name, value)| (name.to_owned(), value)));
    }

    /// Wherever in a command it is named, and whatever runs what is named.
    #[test]
    fn what_tools_write_decides_nothing() {
        use std::os::unix::fs::PermissionsExt as _;

        let place = tempfile::tempdir().unwrap();
        let at = place.path().canonicalize().unwrap();
        std::fs::create_dir_all(at.join("w/bin")).unwrap();
        let script = |name: &str, first: String| {
            let path = at.join(name);
            std::fs::write(&path, format!("#!{first}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            path.to_string_lossy().into_owned()
        };
        let sound = script("sound", "/bin/sh -e".to_owned());
        let wrap = script("wrap", format!("{}/w/bin/python3", at.display()));
        let chain = script("chain", wrap.clone());
        let sandbox = Sandbox::Workspace(Reach::default());
        let bounds = Bounds::of(&sandbox, &[at.join("w")], &Home::default()).unwrap();
        let inside = format!("{}/w", at.display());
        for (program, arguments, is_refused) in [
            (&sound, vec![], false),
            (
                &sound,
                vec!["-c".to_owned(), format!("exec {sound}")],
                false,
            ),
            (&sound, vec![format!("{inside}-2/ask.py")], false),
            (&wrap, vec![], true),
            (&chain, vec![], true),
            (&sound, vec!["60".to_owned(), wrap.clone()], true),
            (&sound, vec![format!("-I{inside}/lib")], true),
            (
                &sound,
                vec!["-c".to_owned(), format!("exec {inside}/x")],
                true,
            ),
        ] {
            let asked = Asked {
                program: PathBuf::from(program),
                arguments,
                environment: Vec::new(),
            };
            assert_eq!(asked.check(&bounds).is_err(), is_refused, "{asked:?}");
        }
    }
}
