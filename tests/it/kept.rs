//! What a run is in the middle of stays in sight through every compaction: the newest todo list
//! and each skill that was loaded, as the real tools write and load them.

use std::sync::Arc;

use serde_json::json;
use undertext::agent::{Agent, Task};
use undertext::exchange::Message;
use undertext::model::{Reply, Script, Scripted};
use undertext::record::MemoryStorage;
use undertext::setup::Policy;
use undertext::tools::{Skill, SkillOrigin, TodoRead, TodoWrite};
use undertext::view::View;

use crate::scene;

#[test]
fn the_todo_list_and_a_skill_outlive_a_summary() {
    let skill = Skill {
        name: "release".to_owned(),
        description: "Cuts a release.".to_owned(),
        origin: SkillOrigin::Workspace,
        folder: ".agents/skills/release".to_owned(),
        body: format!("Tag it.{}", " Then wait.".repeat(100)),
        left_out: 0,
        files: Vec::new(),
        more_files: false,
    };
    let calls = |name: &str, arguments: &str| -> Script {
        Reply::calls([(name.to_owned(), arguments.to_owned())]).into()
    };
    let list = |status: &str| json!({"todos": [{"content": "tag", "status": status}]}).to_string();
    // Some models wrap their arguments in a string.
    let wrapped = json!(r#"{"name":"release"}"#).to_string();
    let mut script = vec![
        calls("TodoWrite", &list("pending")),
        calls("LoadSkill", &wrapped),
        calls("TodoWrite", &list("in_progress")),
    ];
    script.extend((0..16).map(|n| {
        let arguments = json!({"path": format!("s{n}"), "chars": 3000});
        calls("Show", &arguments.to_string())
    }));
    script.push(calls("Compact", "{}"));
    script.push(calls("TodoRead", "{}"));
    script.push(Reply::text("Done.").into());
    let model = Scripted::new(script).with_summaries(|_| Ok(Reply::text("What was done.")));
    let toolbox = scene::toolbox().with(TodoWrite).with(TodoRead);
    let toolbox = toolbox.with_skills(vec![skill]);
    let mut policy = Policy::default();
    policy.compaction.micro.min_gain_tokens = 0;
    policy.compaction.tool.min_ratio = 0.0;
    let agent = Agent::new(scene::setup(12_000, policy), Arc::new(model), toolbox);
    let storage = MemoryStorage::default();
    scene::go(&agent, &mut scene::create(&storage), Some(Task::new("Go."))).unwrap();

    let view = View::of(scene::entries(&storage));
    let messages = view.messages();
    let carried = messages.iter().find_map(|message| match message {
        Message::User { text } if text.starts_with("[CARRIED OVER") => Some(text),
        _ => None,
    });
    let carried = carried.unwrap().replace(&" Then wait.".repeat(99), "");
    insta::assert_snapshot!(carried, @r#"
    [CARRIED OVER - the runtime shows this again from what is summarized above]

    [call 11.1, TodoWrite {"todos":[{"content":"tag","status":"in_progress"}]}]
    Noted: 1 todo, 1 in progress.

    [call 8.1, LoadSkill "{\"name\":\"release\"}"]
    [skill release, from the workspace; paths in it count from .agents/skills/release]

    Tag it. Then wait.

    [end of skill release]
    "#);
    let read = messages.iter().rev().find_map(|message| match message {
        Message::Tool { text, .. } => Some(text),
        _ => None,
    });
    assert_eq!(read.unwrap(), "1. [in_progress] tag");
}
