use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::*;
use crate::tools::{LoadSkill, Tool as _};

#[test]
fn the_text_is_plain_and_short() {
    assert!(
        BUILTIN.is_ascii() && BUILTIN.len() < 2_600,
        "{}",
        BUILTIN.len()
    );
    assert!(BUILTIN.lines().all(|line| !line.ends_with(' ')));
}

/// A home directory with a project in it, in which the model works in `crates/one`.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(place.path("home/project/crates/one")).unwrap();
        fs::create_dir_all(place.path("home/project/.git")).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    /// A file below the project.
    fn put(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path("home/project").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn told(&self, text: &str, append: Option<&str>) -> Instructions {
        Instructions::find(&Sources {
            workspace: &self.path("home/project/crates/one"),
            home: Some(&self.path("home")),
            own_skills: Some(&self.path("home/.config/skills")),
            skills: true,
            text: Some(text),
            append,
            agents_md: true,
        })
    }

    /// What is told after `Be good.`, and the remarks, without the place's own path.
    fn check(&self, append: Option<&str>) -> String {
        let told = self.told("Be good.\n", append);
        let text = format!("{}--\n{}", told.text, told.remarks.join("\n"));
        text.replace(self.path("").to_str().unwrap(), "/")
    }
}

fn pipe(path: &Path) {
    #[expect(clippy::disallowed_methods, reason = "std has no way to make a FIFO")]
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

#[test]
fn the_notes_of_a_project_stand_from_its_root_to_the_workspace() {
    let place = Place::new();
    assert_eq!(place.check(None), "Be good.\n--\n");
    fs::write(place.path("home/AGENTS.md"), "above the root").unwrap();
    place.put("AGENTS.md", "Use tabs.\n\n");
    place.put("crates/AGENTS.md", " \n");
    place.put("crates/one/AGENTS.md", "Use spaces.\n");
    place.put("crates/two/AGENTS.md", "of another part");
    place.put(&format!("{SHELF}/look/SKILL.md"), skill("look", "Looks."));
    insta::assert_snapshot!(place.check(Some(" Be brief.\n")), @"
    Be good.

    The project keeps notes for agents, which follow. They are the project's words, not the user's: keep to them where they fit the task. Where two of them differ, the later one holds, which stands nearer to your workspace; what the task says goes before them all.

    [AGENTS.md, from the project]
    Use tabs.
    [end of AGENTS.md]

    [crates/one/AGENTS.md, from the project]
    Use spaces.
    [end of crates/one/AGENTS.md]

    Be brief.
    --
    notes of the project: AGENTS.md, crates/one/AGENTS.md
    skills: look
    ");

    let told = Instructions::find(&Sources {
        workspace: &place.path("home/project/crates/one"),
        home: None,
        own_skills: None,
        skills: false,
        text: None,
        append: None,
        agents_md: false,
    });
    assert_eq!(told.text, BUILTIN);
    assert!(told.remarks.is_empty() && told.skills.is_empty());
}

#[test]
fn the_root_is_not_above_the_home_directory() {
    let place = Place::new();
    fs::remove_dir(place.path("home/project/.git")).unwrap();
    fs::create_dir(place.path(".git")).unwrap();
    fs::write(place.path("AGENTS.md"), "above the home directory").unwrap();
    place.put("AGENTS.md", "above the workspace");
    place.put("crates/one/AGENTS.md", "Use spaces.");
    let told = place.told("", None);
    assert_eq!(told.remarks, ["notes of the project: AGENTS.md"]);
    // A submodule's `.git` is a file.
    place.put(".git", "gitdir: elsewhere");
    let told = place.told("", None);
    let both = "notes of the project: AGENTS.md, crates/one/AGENTS.md";
    assert_eq!(told.remarks, [both]);
}

#[test]
fn notes_have_room_for_the_nearest_first() {
    let place = Place::new();
    place.put("AGENTS.md", "far\n".repeat(10_000));
    place.put("crates/AGENTS.md", "ä".repeat(10_000));
    place.put("crates/one/AGENTS.md", "n".repeat(20_001));
    let told = place.told("", None);
    assert_eq!(
        told.remarks,
        [
            "notes of the project: AGENTS.md, crates/AGENTS.md, crates/one/AGENTS.md",
            "crates/AGENTS.md is clipped: 7,234 of its 20,000 bytes had no room",
            "AGENTS.md is clipped: 39,999 of its 40,000 bytes had no room",
        ]
    );
    let ends: Vec<&str> = told.text.lines().filter(|l| l.starts_with('[')).collect();
    insta::assert_snapshot!(ends.join("\n"), @"
    [AGENTS.md, from the project]
    [… the other 39,999 bytes of AGENTS.md had no room …]
    [end of AGENTS.md]
    [crates/AGENTS.md, from the project]
    [… the other 7,234 bytes of crates/AGENTS.md had no room …]
    [end of crates/AGENTS.md]
    [crates/one/AGENTS.md, from the project]
    [end of crates/one/AGENTS.md]
    ");
    assert!(told.text.len() < 34_000 && told.text.contains(&"n".repeat(20_001)));
}

#[test]
fn what_is_no_text_of_the_project_is_not_read() {
    let place = Place::new();
    fs::write(place.path("home/secret"), "sk-secret").unwrap();
    symlink(
        place.path("home/secret"),
        place.path("home/project/AGENTS.md"),
    )
    .unwrap();
    pipe(&place.path("home/project/crates/AGENTS.md"));
    place.put("crates/one/AGENTS.md", b"\x7fELF\0\0");
    insta::assert_snapshot!(place.check(None), @"
    Be good.
    --
    crates/one/AGENTS.md is not read: it is not text in UTF-8
    crates/AGENTS.md is not read: it is not a plain file
    AGENTS.md is not read: it leads out of the project
    ");
    // What version control keeps for itself may hold the passwords of servers.
    place.put(".git/config", "[remote]\n");
    fs::remove_file(place.path("home/project/AGENTS.md")).unwrap();
    symlink(".git/config", place.path("home/project/AGENTS.md")).unwrap();
    let told = place.told("", None);
    let said = "AGENTS.md is not read: it leads out of the project";
    assert_eq!(told.remarks.last().unwrap(), said);
    assert!(!told.text.contains("[remote]"));
    // A link within the project is as good as the file.
    fs::remove_file(place.path("home/project/AGENTS.md")).unwrap();
    place.put("CLAUDE.md", "Use tabs.");
    symlink("CLAUDE.md", place.path("home/project/AGENTS.md")).unwrap();
    assert!(place.told("", None).text.contains("\nUse tabs.\n"));
    fs::write(place.path("home/project/AGENTS.md"), b"caf\xe9").unwrap();
    fs::remove_file(place.path("home/project/crates/AGENTS.md")).unwrap();
    symlink("nowhere", place.path("home/project/crates/AGENTS.md")).unwrap();
    fs::remove_file(place.path("home/project/crates/one/AGENTS.md")).unwrap();
    fs::create_dir(place.path("home/project/crates/one/AGENTS.md")).unwrap();
    insta::assert_snapshot!(place.told("", None).remarks.join("\n"), @"
    crates/one/AGENTS.md is not read: it is not a plain file
    crates/AGENTS.md is not read: it leads to nothing that can be read
    AGENTS.md is not read: it is not text in UTF-8
    ");
}

const SHELF: &str = "crates/one/.agents/skills";

fn skill(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\nlicense: MIT\n---\n\nDo {name}.\n")
}

#[test]
fn skills_are_found_in_both_places() {
    let place = Place::new();
    let workspace = |name: &str, text: &str| place.put(&format!("{SHELF}/{name}"), text);
    let own = |name: &str, text: &str| place.put(&format!("../.config/skills/{name}"), text);
    let windows = skill("release", ">-\n  Cuts a\n  release.").replace('\n', "\r\n");
    workspace("release/SKILL.md", &format!("\u{feff}{windows}"));
    workspace("release/scripts/tag.sh", "exit 1");
    workspace("release/.hidden", "");
    workspace("release/notes.md", "");
    workspace("README.md", "no skill");
    workspace(".cache/x", "no skill");
    own("review/SKILL.md", &skill("review", &"word ".repeat(200)));
    own("Release/SKILL.md", &skill("Release", "Mine."));
    let found = place.told("", None);
    assert_eq!(
        found.remarks,
        [
            "skills: Release, review",
            "skill Release of the workspace gives way to yours of the same name"
        ]
    );
    fs::remove_dir_all(place.path("home/.config/skills/Release")).unwrap();
    // Where the user's own folders lead is the user's choice.
    place.put("../skills/look/SKILL.md", skill("look", "Looks."));
    symlink(
        place.path("home/skills/look"),
        place.path("home/.config/skills/look"),
    )
    .unwrap();
    let found = place.told("", None);
    assert_eq!(found.remarks, ["skills: look, release, review"]);
    let shown: Vec<String> = found
        .skills
        .iter()
        .map(|skill| {
            let description = skill.description.chars().rev().take(40).collect::<String>();
            let description: String = description.chars().rev().collect();
            let folder = skill.folder.replace(place.path("").to_str().unwrap(), "/");
            format!(
                "{} | {description} | {folder} | {:?} | {:?}",
                skill.name, skill.body, skill.files
            )
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    look | Looks. | /home/.config/skills/look | "Do look." | []
    release | Cuts a release. | .agents/skills/release | "Do release." | ["notes.md", "scripts/tag.sh"]
    review | ord word word word word word word word … | /home/.config/skills/review | "Do review." | []
    "#);
}

#[test]
fn a_long_skill_is_clipped() {
    let place = Place::new();
    let long = format!("{}{}", skill("long", "Long."), "ä".repeat(40_000));
    place.put(&format!("{SHELF}/long/SKILL.md"), long);
    for file in 0..60 {
        place.put(&format!("{SHELF}/long/{file:02}"), "");
    }
    let found = place.told("", None).skills.remove(0);
    assert_eq!((found.body.len(), found.left_out), (65_535, 14_474));
    assert_eq!((found.files.len(), found.more_files), (50, true));
    assert_eq!(LoadSkill::new(vec![found]).spec().name, "LoadSkill");
}

#[test]
fn what_is_no_skill_is_left_out_and_said() {
    let place = Place::new();
    let put = |name: &str, text: &str| place.put(&format!("{SHELF}/{name}/SKILL.md"), text);
    let bomb = (1..12).map(|n| {
        let inner = vec![format!("*a{}", n - 1); 10].join(", ");
        format!("a{n}: &a{n} [{inner}]\n")
    });
    let bomb = bomb.collect::<Vec<_>>().concat();
    for (name, text) in [
        (
            "bomb",
            format!("---\na0: &a0 x\n{bomb}{}", &skill("bomb", "*a11")[4..]),
        ),
        ("empty", String::new()),
        ("endless", "---\nname: endless\n".to_owned()),
        ("good", skill("good", "Good.")),
        ("good-again", skill("good", "Good again.")),
        ("huge", skill("huge", "Huge.") + &" ".repeat(1 << 20)),
        ("list", "---\n- name\n---\nx".to_owned()),
        ("long", skill("long", &"x".repeat(1 << 19))),
        ("markdown", "# A skill\n".to_owned()),
        ("nameless", "---\ndescription: x\n---\nx".to_owned()),
        ("lines", skill("\"a\\nb\"", "x")),
        ("slash", skill("../etc", "x")),
        ("escape", skill("\"a\\e[31m\"", "x")),
        ("silent", "---\nname: silent\n---\nx".to_owned()),
        (
            "bare",
            "---\nname: bare\ndescription: x\n---\n \n".to_owned(),
        ),
        ("tabs", "---\nname:\n\t- x\n---\nx".to_owned()),
        ("a\nb", skill("newline", "x")),
        ("binary", skill("binary", "x") + "\0"),
    ] {
        put(name, &text);
    }
    place.put(&format!("{SHELF}/none/README.md"), "");
    place.put("../elsewhere/SKILL.md", skill("elsewhere", "x"));
    let shelf = place.path("home/project").join(SHELF);
    symlink(place.path("home/elsewhere"), shelf.join("outside")).unwrap();
    fs::create_dir(shelf.join("leads")).unwrap();
    symlink(
        place.path("home/elsewhere/SKILL.md"),
        shelf.join("leads/SKILL.md"),
    )
    .unwrap();
    fs::create_dir(shelf.join("pipe")).unwrap();
    pipe(&shelf.join("pipe/SKILL.md"));
    let found = place.told("", None);
    let remarks = found.remarks.join("\n").replace(&format!("{SHELF}/"), "");
    insta::assert_snapshot!(remarks.replace(".agents/skills/", ""), @r#"
    skills: good
    skill a\nb is left out: its folder cannot be named in plain text
    skill bare is left out: its SKILL.md says nothing below the header
    skill binary is left out: its SKILL.md is not read: it is not text in UTF-8
    skill bomb is left out: its header cannot be understood: budget breached: Nodes { nodes: 250001 } at line 2, column 9 (defined at line 6, column 9) (used at line 7, column 15)
    skill empty is left out: its SKILL.md does not begin with a header between two lines `---`
    skill endless is left out: its SKILL.md does not begin with a header between two lines `---`
    skill escape is left out: its name must be at most 64 letters, digits, `-`, `_` and `.`, a letter or digit first
    skill good-again is left out: another skill before it has the same name
    skill huge is left out: its SKILL.md is larger than 1 MiB
    skill leads is left out: its SKILL.md is not read: it leads out of its folder
    skill lines is left out: its name must be at most 64 letters, digits, `-`, `_` and `.`, a letter or digit first
    skill list is left out: its header cannot be understood: expected mapping start at line 1, column 1
    skill long is left out: its header is longer than 16 KiB
    skill markdown is left out: its SKILL.md does not begin with a header between two lines `---`
    skill nameless is left out: its header gives no name
    skill none is left out: there is no SKILL.md in it
    skill outside is left out: it leads out of the workspace
    skill pipe is left out: its SKILL.md is not read: it is not a plain file
    skill silent is left out: its header gives no description
    skill slash is left out: its name must be at most 64 letters, digits, `-`, `_` and `.`, a letter or digit first
    … and 1 more
    "#);
    assert_eq!(found.skills.len(), 1);
}

#[test]
fn a_text_in_place_of_the_built_in_one_is_read_whole_or_not_at_all() {
    let place = Place::new();
    let path = place.path("home/told.md");
    let read = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        read(&path).map_err(|error| error.source.to_string())
    };
    assert_eq!(read(b"Be good.\n"), Ok("Be good.\n".to_owned()));
    assert_eq!(read(b"a\0b").unwrap_err(), "not text");
    assert!(read(b"caf\xe9").unwrap_err().contains("UTF-8"));
    assert_eq!(
        read(&vec![b'x'; 262_145]).unwrap_err(),
        "larger than 256 KiB"
    );
    fs::remove_file(&path).unwrap();
    pipe(&path);
    let error = super::read(&path).unwrap_err();
    assert_eq!(error.source.to_string(), "not a file");
    let line = error
        .to_string()
        .replace(place.path("").to_str().unwrap(), "/");
    assert_eq!(line, "cannot read instructions from /home/told.md");
}
