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
        let ran = interpreter(&self.program);
        let ran = ran.iter().flat_map(|line| line.split_ascii_whitespace());
        let arguments = self.arguments.iter().map(String::as_str);
        let named =
            std::iter::once(self.program.as_path()).chain(ran.chain(arguments).map(Path::new));
        for path in named {
            // It runs in the root directory.
            let path = Path::new("/").join(path);
            if let Some(written) = bounds.replaceable(&path) {
                return Err(Unheld::usage(format!(
                    "sandbox.ask_command: tools could put something else in the place of {}, since they \
                     may write in {}; keep what decides for you elsewhere",
                    path.display(),
                    written.display()
                )));
            }
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
        let names_one = parts.any(|part| part.starts_with('/') && is_theirs(part));
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
}
