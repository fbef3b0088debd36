//! What is known of the tools of all agents, by name: a recording names them and says no more.

use crate::exchange::{Effect, Hint, Supersession, ToolMeta, Treatment};

/// Tools that only read, with the argument that names what they read, if it is one.
const READ: [(&str, Option<&str>); 35] = [
    ("Read", Some("file_path")),
    ("read", Some("path")),
    ("read_file", Some("absolute_path")),
    ("read_many_files", None),
    ("view", Some("path")),
    ("view_image", Some("path")),
    ("Grep", None),
    ("grep", None),
    ("search_file_content", None),
    ("grep_search", None),
    ("Glob", None),
    ("glob", None),
    ("LS", None),
    ("ls", None),
    ("list_directory", None),
    ("find", None),
    ("find_file", None),
    ("search_file", None),
    ("search_dir", None),
    ("open", Some("path")),
    ("goto", None),
    ("scroll_up", None),
    ("scroll_down", None),
    ("NotebookRead", Some("notebook_path")),
    ("WebFetch", None),
    ("WebSearch", None),
    ("web_fetch", None),
    ("web_search", None),
    ("google_web_search", None),
    ("ToolSearch", None),
    ("TaskList", None),
    ("TaskGet", None),
    ("TodoRead", None),
    ("think", None),
    ("get_goal", None),
];

/// Tools that write a file, with the argument that names it.
const WRITE: [(&str, &str); 13] = [
    ("Edit", "file_path"),
    ("MultiEdit", "file_path"),
    ("Write", "file_path"),
    ("NotebookEdit", "notebook_path"),
    ("edit", "path"),
    ("write", "path"),
    ("write_file", "file_path"),
    ("replace", "file_path"),
    ("create", "filename"),
    ("create_file", "path"),
    ("str_replace_editor", "path"),
    ("file_editor", "path"),
    ("edit_file", "path"),
];

/// Tools whose newest call is the state of the work: micro-compaction leaves them alone.
const EXEMPT: [&str; 10] = [
    "TodoWrite",
    "TodoRead",
    "Task",
    "Skill",
    "AskUserQuestion",
    "ExitPlanMode",
    "update_plan",
    "write_todos",
    "task_tracker",
    "finish",
];

/// Tools that run a command, with the argument that holds it.
const RUN: [(&str, &str); 9] = [
    ("Bash", "command"),
    ("bash", "command"),
    ("shell", "command"),
    ("shell_command", "command"),
    ("exec_command", "cmd"),
    ("execute_bash", "command"),
    ("terminal", "command"),
    ("run_shell_command", "command"),
    ("local_shell", "command"),
];

/// How the runtime would treat the calls of a tool of this name.
pub(super) fn meta(name: &str) -> ToolMeta {
    let exempt = EXEMPT.contains(&name);
    if let Some((_, key)) = READ.iter().find(|(known, _)| *known == name) {
        let written = key.iter().flat_map(|key| {
            let writers = WRITE.iter().filter(move |(_, of)| of == key);
            writers.map(|(writer, _)| (*writer).to_owned())
        });
        let supersession = key.map(|key| Supersession {
            key: Some(key.to_owned()),
            range: Some(["offset".to_owned(), "limit".to_owned()]),
            stale_after: written.collect(),
        });
        return ToolMeta {
            effect: Effect::Reads,
            exempt,
            supersession,
            labels: key.iter().map(|key| (*key).to_owned()).collect(),
            ..ToolMeta::default()
        };
    }
    let label = WRITE.iter().chain(&RUN).find(|(known, _)| *known == name);
    let writes = WRITE.iter().any(|(known, _)| *known == name);
    let hint = match (exempt, writes) {
        (true, _) => Hint::new(Treatment::Keep, Treatment::Keep),
        (false, true) => Hint::new(Treatment::Strip, Treatment::Strip),
        (false, false) => Hint::default(),
    };
    ToolMeta {
        effect: Effect::Writes,
        hint,
        exempt,
        labels: label.iter().map(|(_, key)| (*key).to_owned()).collect(),
        ..ToolMeta::default()
    }
}
