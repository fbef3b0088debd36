//! What a run is told before its task: the project's notes, the user's words, skills.

use std::fs;

use serde_json::Value;

use crate::cli::{Place, says};
use crate::provider::{Answer, Provider};

/// The system text of a request.
fn system(body: &Value) -> &str {
    let first = &body["messages"][0];
    assert_eq!(first["role"], "system");
    first["content"].as_str().unwrap()
}

/// What a request says of a tool.
fn description<'a>(body: &'a Value, name: &str) -> Option<&'a str> {
    let tools = body["tools"].as_array().unwrap();
    let functions = tools.iter().map(|tool| &tool["function"]);
    let mut named = functions.filter(|function| function["name"] == name);
    named.next()?["description"].as_str()
}

impl Place {
    fn put(&self, name: &str, text: &str) {
        let path = self.path("home").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[test]
fn a_run_is_told_of_the_project_and_its_skills() {
    let place = Place::new();
    place.put("w/AGENTS.md", "Use tabs.\n");
    place.put(
        "w/.agents/skills/release/SKILL.md",
        "---\nname: release\ndescription: Cuts a release.\n---\nTag it, see `check.sh`.\n",
    );
    place.put("w/.agents/skills/release/check.sh", "touch ran\n");
    place.put("w/.agents/skills/broken/SKILL.md", "# Broken\n");
    place.put(
        ".config/undertext/skills/review/SKILL.md",
        "---\nname: review\ndescription: How I like reviews.\n---\nBe kind.\n",
    );
    place.put("told.md", "Be good.\n");
    let calls = vec![
        ("LoadSkill", r#"{"name":"release"}"#),
        (
            "TodoWrite",
            r#"{"todos":[{"content":"tag","status":"pending"}]}"#,
        ),
        ("TodoRead", "{}"),
    ];
    let provider = Provider::new([Answer::Calls(calls), says("All done."), says("Done.")]);
    let told = ["--instructions", "../told.md"];
    let line = [&told[..], &["--append-instructions", "Be brief.", "task"]].concat();
    let ran = place.ask(&provider, &line);
    assert_eq!((ran.code, ran.out.as_str()), (0, "All done.\n"), "{ran:?}");
    insta::assert_snapshot!(place.plain(&ran.err), @"
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
    server: http://HOST/v1 (no key)
    sandbox: off, tools run with your own rights
    notes of the project: AGENTS.md
    skills: release, review
    skill .agents/skills/broken is left out: its SKILL.md does not begin with a header between two lines `---`
    finished: 2 rounds, 3 calls, 2,000 tokens in (0 cached), 20 out, cost unknown, TIME
    ");

    let first: Value = serde_json::from_slice(&provider.body()).unwrap();
    insta::assert_snapshot!(system(&first), @"
    Be good.

    The project keeps notes for agents, which follow. They are the project's words, not the user's: keep to them where they fit the task. Where two of them differ, the later one holds, which stands nearer to your workspace; what the task says goes before them all.

    [AGENTS.md, from the project]
    Use tabs.
    [end of AGENTS.md]

    Be brief.
    ");
    insta::assert_snapshot!(description(&first, "LoadSkill").unwrap(), @"
    Loads a skill: instructions for one kind of task, written beforehand, and the names of the files that belong to them.
    - Load a skill before you begin work that its description fits, then follow it as far as the task goes.
    - Loading runs nothing. A skill stays in sight when older parts of this conversation are summarized; load it once.

    Skills from the user's configuration:
    - review: How I like reviews.

    Skills from the workspace:
    - release: Cuts a release.
    ");
    let results = provider.messages();
    let results = results.iter().filter(|message| message["role"] == "tool");
    let results: Vec<&str> = results
        .map(|result| result["content"].as_str().unwrap())
        .collect();
    insta::assert_snapshot!(results.join("\n--\n"), @"
    [skill release, from the workspace; paths in it count from .agents/skills/release]

    Tag it, see `check.sh`.

    [end of skill release; its other files, none of which was read or run (Read shows them):
    .agents/skills/release/check.sh]
    --
    Noted: 1 todo, 1 pending.
    --
    1. [pending] tag
    ");
    assert!(!place.path("home/w/ran").exists());

    // A run that is taken up is told anew.
    place.put("w/AGENTS.md", "Use spaces.\n");
    let line = [
        "--continue",
        "--set",
        "tools.LoadSkill.enabled=false",
        "go on",
    ];
    let ran = place.ask(&provider, &line);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!ran.err.contains("skill"), "{ran:?}");
    let third: Value = serde_json::from_slice(&provider.body()).unwrap();
    assert_eq!(description(&third, "LoadSkill"), None);
    let system = system(&third);
    assert!(system.starts_with("You are a coding agent."), "{system}");
    assert!(
        system.ends_with("\nUse spaces.\n[end of AGENTS.md]\n"),
        "{system}"
    );
    let replayed = place.run(&["replay", "--verify"]);
    assert_eq!(replayed.out, "3 of 3 requests rebuilt, all digests equal\n");
}

#[test]
fn settings_say_what_is_told() {
    let place = Place::new();
    place.put("w/AGENTS.md", "Use tabs.\n");
    place.put(".config/undertext/told.md", "Be good.");
    place.put(
        ".config/undertext/config.yaml",
        "instructions: { file: told.md, append: Be brief., agents_md: false }",
    );
    let provider = Provider::new([says("All done.")]);
    let ran = place.ask(&provider, &["task"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let first: Value = serde_json::from_slice(&provider.body()).unwrap();
    assert_eq!(system(&first), "Be good.\n\nBe brief.\n");

    let ran = place.ask(&provider, &["--instructions", "~/none.md", "task"]);
    assert_eq!((ran.code, place.transcripts().len()), (2, 1), "{ran:?}");
    insta::assert_snapshot!(place.plain(&ran.err), @"undertext: cannot read instructions from /home/none.md: No such file or directory (os error 2); check the path");
}
