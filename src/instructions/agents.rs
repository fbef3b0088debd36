//! `AGENTS.md`: the notes that a project keeps for agents, from its root down to the workspace.

use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::instructions::file;
use crate::words::grouped;

/// The name of the files.
pub(super) const NAME: &str = "AGENTS.md";

/// The most that all of them together take, in bytes.
const ROOM: u64 = 32 << 10;

const INTRO: &str = "\
The project keeps notes for agents, which follow. They are the project's words, not the user's: \
keep to them where they fit the task. Where two of them differ, the later one holds, which stands \
nearer to your workspace; what the task says goes before them all.";

/// One of the files, as much of it as there is room for.
struct Note {
    name: String,
    text: String,
    /// The bytes that had no room.
    left_out: u64,
}

/// The notes as they stand in the system text; empty if there are none.
pub(super) fn find(workspace: &Path, root: &Path, remarks: &mut Vec<String>) -> String {
    let below = |directory: &&Path| directory.starts_with(root);
    let mut left = ROOM;
    let mut notes = Vec::new();
    let mut said = Vec::new();
    // The nearest says most about the work at hand, so it has the room first.
    for directory in workspace.ancestors().take_while(below) {
        let path = directory.join(NAME);
        let name = file::shown(path.strip_prefix(root).unwrap_or(&path));
        match file::text(&path, left, (root, "the project")) {
            Ok(None) => {}
            Ok(Some(found)) => {
                let left_out = found.size - found.text.len() as u64;
                if left_out == 0 && found.text.trim().is_empty() {
                    continue;
                }
                left -= found.text.len() as u64;
                if left_out > 0 {
                    said.push(format!(
                        "{name} is clipped: {} of its {} bytes had no room",
                        grouped(left_out),
                        grouped(found.size)
                    ));
                }
                notes.push(Note {
                    name,
                    text: found.text,
                    left_out,
                });
            }
            Err(error) => said.push(format!("{name} is not read: {error}")),
        }
    }
    if notes.is_empty() {
        remarks.append(&mut said);
        return String::new();
    }
    notes.reverse();
    let names: Vec<&str> = notes.iter().map(|note| note.name.as_str()).collect();
    remarks.push(format!("notes of the project: {}", names.join(", ")));
    remarks.append(&mut said);
    let mut text = INTRO.to_owned();
    for note in &notes {
        write!(text, "\n\n{}", note.framed()).ok();
    }
    text
}

impl Note {
    fn framed(&self) -> String {
        let Self { name, text, .. } = self;
        let mut framed = format!("[{name}, from the project]\n{}", text.trim());
        if self.left_out > 0 {
            let left_out = grouped(self.left_out);
            write!(
                framed,
                "\n[… the other {left_out} bytes of {name} had no room …]"
            )
            .ok();
        }
        write!(framed, "\n[end of {name}]").ok();
        framed
    }
}

/// The root of the project: the nearest directory with `.git` from the workspace up to the home
/// directory, or the workspace itself. A directory of somebody else ends the search, since
/// whoever owns it may put there what they like.
pub(super) fn root(workspace: &Path, home: Option<&Path>) -> PathBuf {
    let owner = |directory: &Path| directory.metadata().ok().map(|found| found.uid());
    let own = owner(workspace);
    for directory in workspace.ancestors() {
        if own.is_none() || owner(directory) != own {
            break;
        }
        if directory.join(".git").exists() {
            return directory.to_owned();
        }
        if home == Some(directory) {
            break;
        }
    }
    workspace.to_owned()
}

/// Whether a path without symlinks is one of the project's own: below its root, and not in what version
/// control keeps for itself, which may hold passwords of servers.
pub(super) fn is_of(root: &Path, real: &Path) -> bool {
    let below = real.strip_prefix(root);
    below.is_ok_and(|below| below.iter().all(|part| part != ".git"))
}
