//! The program that decides for the user: where it lies, and with what it is started.
//!
//! It runs outside the sandbox, so nothing of it may be changed from inside.

#[cfg(target_os = "linux")]
use std::ffi::OsString;
#[cfg(target_os = "linux")]
use std::fs;
use std::path::{Path, PathBuf};

use undertext::config::Settings;
#[cfg(target_os = "linux")]
use undertext::hands::Approval;
#[cfg(target_os = "linux")]
use undertext::sandbox::{Bounds, has_names_elsewhere};

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
    /// Whether PATH led to it.
    is_found: bool,
    arguments: Vec<String>,
    /// Its variables.
    environment: Vec<(String, String)>,
    /// The home directory, by which they may name a place.
    home: Option<String>,
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
        let home = start::home(&process.environment);
        let home = home.and_then(|home| home.into_os_string().into_string().ok());
        let named = at_home(named, home.as_deref());
        Ok(Some(Self {
            program: program(&named, process).map_err(Unheld::usage)?,
            is_found: !named.contains('/'),
            arguments: words.map(|word| at_home(word, home.as_deref())).collect(),
            environment: environment.collect(),
            home,
        }))
    }

    /// Refuses a program that tools could replace, or lead elsewhere, or whose files they could: they
    /// would decide for themselves, and run what they like outside the sandbox.
    #[cfg(target_os = "linux")]
    pub(super) fn check(&self, bounds: &Bounds) -> Result<(), Unheld> {
        let refused = |why: String| Err(Unheld::usage(format!("sandbox.ask_command: {why}")));
        let mut paths = self.kept(bounds).into_iter();
        let paths = paths.find_map(|(name, value)| (name == "PATH").then_some(value));
        let paths = paths.unwrap_or_default();
        let program = self.program.to_string_lossy().into_owned();
        let mut named: Vec<String> = std::iter::once(program)
            .chain(self.arguments.iter().cloned())
            .collect();
        let mut looked_at = 0;
        while let Some(word) = named.get(looked_at) {
            // It runs in the root directory, and looks for what it starts in PATH.
            let path = Path::new("/").join(word);
            let found = std::env::split_paths(&paths)
                .map(|directory| directory.join(word))
                .find(|path| !word.contains('/') && runs(path));
            let path = found.unwrap_or(path);
            let is_argument = (1..=self.arguments.len()).contains(&looked_at);
            let written = bounds.replaceable(&path);
            if let Some(written) = written.filter(|_| !is_argument || !path.is_dir()) {
                let advice = if self.is_found && looked_at == 0 {
                    "PATH names that first, so give the full path of one elsewhere"
                } else {
                    "keep what decides for you elsewhere"
                };
                return refused(format!(
                    "tools could put something else in the place of {}, since they may write in {}; \
                     {advice}",
                    path.display(),
                    written.display()
                ));
            }
            let written = self.written_in(word, bounds, false);
            if let Some(written) = written {
                return refused(format!(
                    "`{word}` names {}, where tools may write, and a program may load what it finds in a \
                     place that it is given; leave it out: each question says which workspace it is about",
                    written.display()
                ));
            }
            if has_names_elsewhere(&path) {
                return refused(format!(
                    "{} is a file of several names (hard links), by another of which tools could write it; \
                     name a copy of it",
                    path.display()
                ));
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

    /// Where tools write that a text names in any way, as it stands or as a shell reads it. A name alone
    /// is one of the root directory only where `bare` is so.
    #[cfg(target_os = "linux")]
    fn written_in(&self, text: &str, bounds: &Bounds, bare: bool) -> Option<PathBuf> {
        let spelled = self.spelled(text);
        [text, &spelled].into_iter().find_map(|text| {
            let mut parts = parts(text).filter(|part| bare || *part == text || part.contains('/'));
            let written = parts.find_map(|part| bounds.replaceable(&Path::new("/").join(part)));
            written.or_else(|| bounds.written_in(text))
        })
    }

    /// The variables that name no place where tools write: whoever sees one might load a part of itself
    /// from there. `PATH` keeps what else it names.
    #[cfg(target_os = "linux")]
    fn kept(&self, bounds: &Bounds) -> Vec<(String, String)> {
        // It runs in the root directory.
        let is_theirs = |path: &str| bounds.replaceable(&Path::new("/").join(path)).is_some();
        let kept = |(name, value): &(String, String)| {
            if name == "PATH" {
                let paths = value.split(':').filter(|path| path.starts_with('/'));
                let paths: Vec<&str> = paths.filter(|path| !is_theirs(path)).collect();
                return Some((name.clone(), paths.join(":")));
            }
            let written = self.written_in(value, bounds, true);
            written.is_none().then(|| (name.clone(), value.clone()))
        };
        self.environment.iter().filter_map(kept).collect()
    }

    /// A text without quotes, and with the home directory where it is meant.
    #[cfg(target_os = "linux")]
    fn spelled(&self, text: &str) -> String {
        let plain = text.replace(['"', '\'', '\\'], "");
        let Some(home) = &self.home else {
            return plain;
        };
        let named = ["${HOME}", "$HOME"].into_iter();
        let plain = named.fold(plain, |text, name| text.replace(name, home));
        plain.replace("~/", &format!("{home}/"))
    }

    /// What asks it.
    #[cfg(target_os = "linux")]
    pub(super) fn approval(self, bounds: &Bounds) -> Approval {
        let variables = self.kept(bounds).into_iter();
        let arguments = self.arguments.into_iter().map(OsString::from).collect();
        let environment = variables.map(|(name, value)| (name.into(), value.into()));
        Approval::command(self.program, arguments, environment.collect())
    }
}

/// The parts of a text that may be paths: all of it, and what stands between the signs of lists, options
/// and commands.
#[cfg(target_os = "linux")]
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let between = text.split(|c: char| c.is_whitespace() || ":;,=`()|&<>".contains(c));
    std::iter::once(text).chain(between).flat_map(|part| {
        // `-I/lib` and `-Ilib`.
        let option = part.strip_prefix('-').and_then(|option| {
            let mut letters = option.chars();
            letters.next().map(|_| letters.as_str())
        });
        let absolute = part.find('/').map(|at| &part[at..]);
        [Some(part), option, absolute].into_iter().flatten()
    })
}

/// A word of the command, in which `~` is the home directory.
fn at_home(word: &str, home: Option<&str>) -> String {
    match (word.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => format!("{home}/{rest}"),
        (Some(_) | None, _) => word.to_owned(),
    }
}

fn runs(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Where the program lies that is named so; why there is none.
fn program(named: &str, process: &Process) -> Result<PathBuf, String> {
    let path = PathBuf::from(named);
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
    let paths = process.environment.get("PATH").map_or("", String::as_str);
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
    let file = fs::File::open(program).ok()?;
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

    fn asked(program: &str, arguments: Vec<String>) -> Asked {
        Asked {
            program: PathBuf::from(program),
            is_found: false,
            arguments,
            environment: Vec::new(),
            home: None,
        }
    }

    #[test]
    fn variables_that_name_what_tools_write_are_not_seen() {
        let place = tempfile::tempdir().unwrap();
        let at = place.path().canonicalize().unwrap();
        let (work, at) = (at.join("w"), at.display());
        fs::create_dir_all(work.join("lib")).unwrap();
        std::os::unix::fs::symlink("w/lib", format!("{at}/link")).unwrap();
        let sandbox = Sandbox::Workspace(Reach::default());
        let bounds = Bounds::of(&sandbox, &[work], &Home::default()).unwrap();
        // It runs in the root directory, from which these count.
        let relative = at.to_string();
        let relative = relative.trim_start_matches('/');
        let variables = [
            ("PATH", format!("{at}/w/bin:/usr/bin:bin::{at}/link:/bin")),
            ("HOME", at.to_string()),
            ("PWD", format!("{at}/w")),
            ("PYTHONPATH", format!("/usr/lib:{at}/link")),
            ("NODE_OPTIONS", format!("--quiet --require={at}/w/later.js")),
            ("PERL5OPT", format!("-I{at}/w/lib")),
            ("RUBYOPT", format!("-W -I{relative}/link")),
            ("BASH_ENV", format!("{relative}/w/later.sh")),
            ("ENV", "$HOME/w/later.sh".to_owned()),
            ("ZDOTDIR", "~/link".to_owned()),
            ("LANG", "C".to_owned()),
            ("NEAR", format!("{at}/w-2:w/lib:$HOME/w-2")),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value));
        let asked = Asked {
            environment: variables.into(),
            home: Some(at.to_string()),
            ..asked("/bin/sh", Vec::new())
        };
        let expected = [
            ("PATH", "/usr/bin:/bin".to_owned()),
            ("HOME", at.to_string()),
            ("LANG", "C".to_owned()),
            ("NEAR", format!("{at}/w-2:w/lib:$HOME/w-2")),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(asked.kept(&bounds), expected);
    }

    /// Wherever in a command it is named, and whatever runs what is named.
    #[test]
    fn what_tools_write_decides_nothing() {
        use std::os::unix::fs::PermissionsExt as _;

        let place = tempfile::tempdir().unwrap();
        let at = place.path().canonicalize().unwrap();
        fs::create_dir_all(at.join("w/bin")).unwrap();
        fs::create_dir_all(at.join("bin")).unwrap();
        let script = |name: &str, first: String| {
            let path = at.join(name);
            fs::write(&path, format!("#!{first}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path.to_string_lossy().into_owned()
        };
        let sound = script("sound", "/bin/sh -e".to_owned());
        let linked = script("linked", "/bin/sh -e".to_owned());
        fs::hard_link(&linked, at.join("w/linked")).unwrap();
        let theirs = script("w/bin/theirs", "/bin/sh".to_owned());
        std::os::unix::fs::symlink(theirs, at.join("bin/theirs")).unwrap();
        let wrap = script("wrap", format!("{}/w/bin/python3", at.display()));
        let chain = script("chain", wrap.clone());
        let by_name = script("by-name", "/usr/bin/env theirs".to_owned());
        let sandbox = Sandbox::Workspace(Reach::default());
        let bounds = Bounds::of(&sandbox, &[at.join("w")], &Home::default()).unwrap();
        let inside = format!("{}/w", at.display());
        let relative = inside.trim_start_matches('/');
        let command = |text: String| vec!["-c".to_owned(), text];
        for (program, arguments, is_refused) in [
            (&sound, vec![], false),
            (&sound, command(format!("exec {sound}")), false),
            (&sound, vec![format!("{inside}-2/ask.py")], false),
            (
                &sound,
                vec!["w".to_owned(), "~/w-2/rules".to_owned()],
                false,
            ),
            (&wrap, vec![], true),
            (&chain, vec![], true),
            (&by_name, vec![], true),
            (&linked, vec![], true),
            (&sound, vec![linked.clone()], true),
            (&sound, vec!["60".to_owned(), wrap.clone()], true),
            (&sound, vec![format!("-I{inside}/lib")], true),
            (&sound, vec![format!("-I/usr/..{inside}/lib")], true),
            (&sound, vec![format!("-I{relative}/lib")], true),
            (&sound, vec![format!("--load={relative}/lib")], true),
            (&sound, vec![inside.clone()], true),
            (&sound, command(format!("exec {inside}/x")), true),
            (&sound, command(format!("cd /; exec {relative}/x")), true),
            (&sound, command(". ~/w/rules".to_owned()), true),
            (&sound, command("exec \"${HOME}\"/w/x".to_owned()), true),
            (&sound, command("exec \"$HOME/w/x\"".to_owned()), true),
        ] {
            let asked = Asked {
                environment: vec![("PATH".to_owned(), format!("{}/bin", at.display()))],
                home: Some(at.to_string_lossy().into_owned()),
                ..asked(program, arguments)
            };
            assert_eq!(asked.check(&bounds).is_err(), is_refused, "{asked:?}");
        }
    }
}
