//! Skills: folders with a `SKILL.md`, of the user's configuration and of the workspace.
//!
//! `SKILL.md` begins with a header in YAML between two lines `---`, which gives a `name` and a
//! `description`; what else stands in it is not for us. A skill that is not as it should be is left
//! out with a remark.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::door;
use crate::instructions::agents;
use crate::instructions::file::{self, Unread};
use crate::tools::{Skill, SkillOrigin};

/// The most skills of a run.
const MOST: usize = 64;

/// How many names of a directory are looked at.
const MOST_NAMES: usize = 1_000;

/// The longest header, in bytes.
const HEADER: usize = 16 << 10;

/// The longest text of a skill, in bytes.
const BODY: usize = 64 << 10;

/// The largest `SKILL.md`, in bytes.
const LARGEST: u64 = 1 << 20;

/// The longest name, in characters.
const NAME_CHARS: usize = 64;

/// The longest description in the list, in characters.
const DESCRIPTION_CHARS: usize = 400;

/// The most other files of a skill that are named.
const FILES: usize = 50;

/// The most skills of which it is said why they are left out.
const REMARKS: usize = 20;

/// How deep they are looked for.
const DEPTH: usize = 4;

/// The header, as far as it is read.
#[derive(Debug, Deserialize)]
struct Header {
    name: Option<String>,
    description: Option<String>,
}

/// Why a folder is no skill that can be loaded.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error("there is no SKILL.md in it")]
    NoText,
    #[error("its SKILL.md is not read: {0}")]
    Unread(#[from] Unread),
    #[error("its SKILL.md is larger than 1 MiB")]
    TooLarge,
    #[error("its SKILL.md does not begin with a header between two lines `---`")]
    NoHeader,
    #[error("its header is longer than 16 KiB")]
    LongHeader,
    #[error("its header cannot be understood: {0}")]
    Header(String),
    #[error("its header gives no {0}")]
    Missing(&'static str),
    #[error(
        "its name must be at most 64 letters, digits, `-`, `_` and `.`, a letter or digit first"
    )]
    Name,
    #[error("its SKILL.md says nothing below the header")]
    Empty,
    #[error("it leads out of the workspace")]
    Outside,
    #[error("its folder cannot be named in plain text")]
    Folder,
    #[error("another skill before it has the same name")]
    Twice,
    #[error("it cannot be looked at: {}", .0.kind())]
    System(#[from] io::Error),
}

/// Folders, as they can be named, and what each of them is or why it is no skill.
type Folders = Vec<(String, Result<Skill, String>)>;

/// A directory with skills in it.
struct Shelf<'a> {
    directory: PathBuf,
    origin: SkillOrigin,
    workspace: &'a Path,
}

/// The folders of skills in a project, as they can be named, and what each of them is.
pub(super) fn of_project(workspace: &Path, said: &mut Vec<String>) -> Folders {
    let shelf = Shelf {
        directory: workspace.join(".agents/skills"),
        origin: SkillOrigin::Workspace,
        workspace,
    };
    shelf.skills(said)
}

/// The skills by name: the user's own, and those of the project with what was said of them. Of two with
/// one name the user's own is taken.
pub(super) fn all(
    own: Option<&Path>,
    project: (Folders, Vec<String>),
    remarks: &mut Vec<String>,
) -> Vec<Skill> {
    let mut skills: Vec<Skill> = Vec::new();
    let mut said = Vec::new();
    let own = own.map(|directory| {
        let shelf = Shelf {
            directory: directory.to_owned(),
            origin: SkillOrigin::User,
            workspace: Path::new(""),
        };
        shelf.skills(&mut said)
    });
    let (folders, of_project) = project;
    let own = own.map(|folders| (SkillOrigin::User, folders));
    said.extend(of_project);
    for (origin, folders) in own.into_iter().chain([(SkillOrigin::Workspace, folders)]) {
        for (folder, found) in folders {
            let same = |other: &&Skill, name: &str| other.name.eq_ignore_ascii_case(name);
            let found = found.and_then(|skill| {
                match skills.iter().find(|other| same(other, &skill.name)) {
                    Some(other) if other.origin == origin => Err(Unusable::Twice.to_string()),
                    Some(other) => {
                        let name = &other.name;
                        said.push(format!(
                            "skill {name} of the workspace gives way to yours of the same name"
                        ));
                        Ok(None)
                    }
                    None => Ok(Some(skill)),
                }
            });
            match found {
                Ok(Some(_)) if skills.len() == MOST => {
                    said.push(format!(
                        "skill {folder} is left out: there are {MOST} already"
                    ));
                }
                Ok(skill) => skills.extend(skill),
                Err(error) => said.push(format!("skill {folder} is left out: {error}")),
            }
        }
    }
    skills.sort_by(|a, b| a.name.cmp(&b.name));
    if !skills.is_empty() {
        let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
        remarks.push(format!("skills: {}", names.join(", ")));
    }
    let more = said.len().saturating_sub(REMARKS);
    if more > 0 {
        said.truncate(REMARKS);
        said.push(format!("… and {more} more"));
    }
    remarks.append(&mut said);
    skills
}

impl Shelf<'_> {
    /// What the folders in it are, in the order of their names.
    fn skills(&self, said: &mut Vec<String>) -> Folders {
        let names = match names(&self.directory) {
            Ok(names) => names,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    let directory = file::shown(&self.directory);
                    said.push(format!("no skills from {directory}: {}", error.kind()));
                }
                return Vec::new();
            }
        };
        let folders = names.into_iter().map(|name| self.directory.join(name));
        let folders = folders.filter(|folder| folder.is_dir());
        folders
            .map(|folder| {
                let shown = file::shown(self.name(&folder));
                (
                    shown,
                    self.skill(&folder).map_err(|error| error.to_string()),
                )
            })
            .collect()
    }

    /// The folder as the model can name it.
    fn name<'a>(&self, folder: &'a Path) -> &'a Path {
        match self.origin {
            SkillOrigin::User => folder,
            SkillOrigin::Workspace => folder.strip_prefix(self.workspace).unwrap_or(folder),
        }
    }

    fn skill(&self, folder: &Path) -> Result<Skill, Unusable> {
        let real = folder.canonicalize()?;
        // Where the user's own folders lead is the user's choice.
        if self.origin == SkillOrigin::Workspace && !agents::is_of(self.workspace, &real) {
            return Err(Unusable::Outside);
        }
        let named = self.name(folder).to_str().filter(|name| is_plain(name));
        let named = named.ok_or(Unusable::Folder)?;
        let found = file::text(&real.join("SKILL.md"), LARGEST + 1, (&real, "its folder"))?;
        let found = found.ok_or(Unusable::NoText)?;
        if found.size > LARGEST {
            return Err(Unusable::TooLarge);
        }
        let (header, body) = halves(&found.text)?;
        let (name, description) = read_header(header)?;
        let body = body.trim();
        if body.is_empty() {
            return Err(Unusable::Empty);
        }
        let cuts = (0..=body.len().min(BODY)).rev();
        let cut = cuts.into_iter().find(|cut| body.is_char_boundary(*cut));
        let given = &body[..cut.unwrap_or(0)];
        let mut listing = Listing::default();
        listing.take(&real, "", DEPTH);
        let mut files = listing.files;
        let more_files = files.len() > FILES;
        files.truncate(FILES);
        Ok(Skill {
            name,
            description,
            origin: self.origin,
            folder: named.to_owned(),
            body: given.to_owned(),
            left_out: (body.len() - given.len()) as u64,
            files,
            more_files,
        })
    }
}

/// Header and body of a `SKILL.md`.
fn halves(text: &str) -> Result<(&str, &str), Unusable> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let is_mark = |line: &str| line.trim_end() == "---";
    let first = lines.next().filter(|line| is_mark(line));
    let start = first.ok_or(Unusable::NoHeader)?.len();
    let mut end = start;
    for line in lines {
        if is_mark(line) {
            return Ok((&text[start..end], &text[end + line.len()..]));
        }
        end += line.len();
        if end > HEADER {
            return Err(Unusable::LongHeader);
        }
    }
    Err(Unusable::NoHeader)
}

/// Name and description, each as one line.
fn read_header(yaml: &str) -> Result<(String, String), Unusable> {
    let options = serde_saphyr::options! { with_snippet: false };
    let header = door::yaml::<Option<Header>>(yaml, options);
    let header = header.map_err(|error| {
        let text = error.to_string();
        let line: String = text.chars().take(200).collect();
        Unusable::Header(line.replace(|c: char| c.is_control(), " "))
    })?;
    let (name, description) =
        header.map_or((None, None), |header| (header.name, header.description));
    let name = name.filter(|name| !name.is_empty());
    let name = name.ok_or(Unusable::Missing("name"))?;
    let may = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !begins || name.len() > NAME_CHARS || !name.chars().all(may) {
        return Err(Unusable::Name);
    }
    let description = description.unwrap_or_default();
    let words: Vec<&str> = description
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    let mut description = words.join(" ");
    if description.is_empty() {
        return Err(Unusable::Missing("description"));
    }
    if let Some((end, _)) = description.char_indices().nth(DESCRIPTION_CHARS) {
        description.truncate(end);
        description.push('…');
    }
    Ok((name, description))
}

/// The names in a directory, sorted; hidden ones left out.
fn names(directory: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name();
        if !name.as_encoded_bytes().starts_with(b".") {
            names.push(name);
        }
    }
    // The first by name, in whatever order the file system gives them.
    names.sort_unstable();
    names.truncate(MOST_NAMES);
    Ok(names)
}

/// The plain files below a folder, and one more than are named.
#[derive(Debug, Default)]
struct Listing {
    files: Vec<String>,
    /// How many names were looked at.
    looked: usize,
}

impl Listing {
    /// Adds the files of a directory. Links are not followed.
    fn take(&mut self, directory: &Path, prefix: &str, depth: usize) {
        for name in names(directory).unwrap_or_default() {
            self.looked += 1;
            if self.looked > MOST_NAMES || self.files.len() > FILES {
                return;
            }
            let path = directory.join(&name);
            let Some(name) = name.to_str().filter(|name| is_plain(name)) else {
                continue;
            };
            let Ok(found) = path.symlink_metadata() else {
                continue;
            };
            let name = format!("{prefix}{name}");
            if found.is_dir() && depth > 1 {
                self.take(&path, &format!("{name}/"), depth - 1);
            } else if found.is_file() && name != "SKILL.md" {
                self.files.push(name);
            }
        }
    }
}

/// Whether a name can stand in a line as it is.
fn is_plain(name: &str) -> bool {
    name.len() <= 500
        && !name
            .chars()
            .any(|c| c.is_control() || "\u{2028}\u{2029}".contains(c))
}
