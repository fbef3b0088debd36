//! Tools of a person's own, and which tools a run offers.

use std::fs;

use serde_json::Value;

use crate::cli::{Place, says};
use crate::provider::{Answer, Provider};

const SHOUT: &str = "\
name: Shout
description: |
  Writes a text in capitals.
  It does nothing else.
command: |
  echo \"from $(pwd)\"; tr a-z A-Z
parameters:
  type: object
  properties: { text: { type: string } }
  required: [text]
meta: { effect: reads, hint: keep, labels: [text] }
timeout: 5s
";

fn with_tool(name: &str, text: &str) -> Place {
    let place = Place::new();
    let directory = place.path("home/.config/undertext/tools");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join(name), text).unwrap();
    place
}

/// The names of the tools in a request.
fn offered(body: &[u8]) -> Vec<String> {
    let body: Value = serde_json::from_slice(body).unwrap();
    let tools = body["tools"].as_array().unwrap();
    let names = tools.iter().map(|tool| tool["function"]["name"].as_str());
    names.map(|name| name.unwrap().to_owned()).collect()
}

#[test]
fn a_tool_of_ones_own_is_called_and_recorded() {
    let place = with_tool("shout.yaml", SHOUT);
    let calls = Answer::Calls(vec![("Shout", r#"{"text":"hey"}"#), ("Shout", "{}")]);
    let provider = Provider::new([calls, says("Done.")]);
    let ran = place.ask(&provider, &["--tools", "Shout,Bash", "shout"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(offered(&provider.body()), ["Bash", "Shout"]);
    let told = provider.messages();
    let contents: Vec<_> = told[told.len() - 2..]
        .iter()
        .map(|told| &told["content"])
        .collect();
    let root = place.path("home/w").canonicalize().unwrap();
    assert_eq!(
        contents[0].as_str().unwrap(),
        format!("from {}\n{{\"TEXT\":\"HEY\"}}\n", root.display())
    );
    assert_eq!(
        contents[1],
        "The call of Shout did not run: the arguments: \"text\" is a required property."
    );
    let recorded = fs::read_to_string(&place.transcripts()[0]).unwrap();
    assert!(recorded.contains(r#""labels":["text"],"timeout_ms":5000"#));
    assert_eq!(place.run(&["replay", "--verify"]).code, 0);
}

#[test]
fn tools_are_listed_and_shown() {
    let place = with_tool("shout.yaml", SHOUT);
    let off = ["--set", "tools.Write.enabled=false"];
    let listed = place.run(&[&["tools"], &off[..]].concat());
    let shown = place.run(&["tools", "Shout"]);
    // How wide the columns are depends on all tools.
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n";
    let is_told = |line: &&str| line.starts_with("Shout") || line.starts_with("Write");
    let listed: String = listed.out.lines().filter(is_told).map(words).collect();
    insta::assert_snapshot!(place.plain(&[listed, shown.out].join("\n")), @r#"
    Write writes built in, off Writes a whole file of the workspace, with the directories it needs.
    Shout reads shout.yaml Writes a text in capitals.

    Shout  reads, shout.yaml
    Writes a text in capitals.
    It does nothing else.

    Arguments
    {
      "type": "object",
      "properties": {
        "text": {
          "type": "string"
        }
      },
      "required": [
        "text"
      ]
    }

    Treatment
    calls        run side by side
    compaction   by hints, old arguments stay, old results stay
    stubs name   text
    timeout      TIME
    file         /home/.config/undertext/tools/shout.yaml
    "#);
    let json = place.run(&[&["tools", "--json", "Write"], &off[..]].concat());
    let tool: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(
        (&tool["name"], &tool["enabled"], &tool["file"]),
        (&"Write".into(), &false.into(), &Value::Null)
    );
    let every = place.run(&["tools", "--json"]);
    let names = every.out.lines().map(|line| {
        let tool: Value = serde_json::from_str(line).unwrap();
        tool["name"].as_str().unwrap().to_owned()
    });
    assert!(names.into_iter().any(|name| name == "Shout"));
}

#[test]
fn what_is_wrong_with_tools_ends_before_anything_is_recorded() {
    let server = [
        "run",
        "-m",
        "m",
        "--base-url",
        "http://127.0.0.1:1/v1",
        "task",
    ];
    let mut said = String::new();
    let mut check = |place: &Place, line: &[&str]| {
        let ran = place.run(line);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{line:?} {ran:?}");
        said += &place.plain(&ran.err);
        assert!(place.transcripts().is_empty());
    };
    for text in [
        "name: [x\n",
        "name: Shout\ndescription: Shouts.\ncomand: tr\n",
        "name: bash\ndescription: Mine.\ncommand: bash\n",
    ] {
        let place = with_tool("bad.yaml", text);
        check(&place, &server);
        check(&place, &["tools"]);
    }
    let place = Place::new();
    check(&place, &["tools", "Raed"]);
    check(&place, &[&server[..], &["--tools", "Read,bash"]].concat());
    check(&place, &[&server[..], &["--no-tools", "Delete"]].concat());
    insta::assert_snapshot!(said, @"
    undertext: wrong tool in /home/.config/undertext/tools/bad.yaml:1:7: one value must stand here, no list and no keys
    undertext: wrong tool in /home/.config/undertext/tools/bad.yaml:1:7: one value must stand here, no list and no keys
    undertext: wrong tool in /home/.config/undertext/tools/bad.yaml:3:1: unknown key `comand`, did you mean `command`?
    undertext: wrong tool in /home/.config/undertext/tools/bad.yaml:3:1: unknown key `comand`, did you mean `command`?
    undertext: wrong tool in /home/.config/undertext/tools/bad.yaml: `bash` is taken by the built-in Bash
    undertext: wrong tool in /home/.config/undertext/tools/bad.yaml: `bash` is taken by the built-in Bash
    undertext: no tool is named `Raed`, did you mean Read?
    undertext: no tool is named `bash`, did you mean Bash?
    undertext: no tool is named `Delete`; `undertext tools` lists all
    ");
}

#[test]
fn flags_win_over_settings_and_stay_out_of_the_next_part() {
    let place = Place::new();
    let provider = Provider::new([says("One."), says("Two."), says("Three.")]);
    let off = [
        "--set",
        "tools.Bash.enabled=false",
        "--set",
        "tools.Read.timeout=1s",
    ];
    let ran = place.ask(
        &provider,
        &[&off[..], &["--no-tools", "Edit,Write", "task"]].concat(),
    );
    assert!(
        ran.err
            .contains("tools.read.timeout: calls of this tool have no limit of time"),
        "{ran:?}"
    );
    place.ask(
        &provider,
        &[&off[..], &["--tools", "Bash", "task"]].concat(),
    );
    place.run(&["run", "--continue", "--base-url", &provider.url, "more"]);
    let first = offered(&provider.body());
    assert!(first.contains(&"Read".to_owned()), "{first:?}");
    for gone in ["Bash", "Edit", "Write"] {
        assert!(!first.contains(&gone.to_owned()), "{first:?}");
    }
    assert_eq!(offered(&provider.body()), ["Bash"]);
    assert!(offered(&provider.body()).len() > 3);
}

#[test]
fn a_tool_has_the_time_that_the_settings_say() {
    let place = Place::new();
    let calls = Answer::Calls(vec![("Bash", r#"{"command":"sleep 1000"}"#)]);
    let provider = Provider::new([calls, says("Done.")]);
    let set = ["--set", "tools.Bash.timeout=300ms", "task"];
    let ran = place.ask(&provider, &set);
    assert_eq!(ran.code, 0, "{ran:?}");
    let asked = String::from_utf8(provider.body()).unwrap();
    assert!(asked.contains("After how many milliseconds it is ended (300 unless given)."));
    assert_eq!(
        provider.messages().pop().unwrap()["content"],
        "[ended after 300 ms, the limit of this call; what it did until then may have taken effect]"
    );
}

#[test]
fn the_tool_for_skills_may_be_named_whether_there_are_any_or_not() {
    let none = Place::new();
    let some = Place::new();
    let skill = some.path("home/w/.agents/skills/release");
    fs::create_dir_all(&skill).unwrap();
    let text = "---\nname: release\ndescription: Cuts a release.\n---\nTag it.\n";
    fs::write(skill.join("SKILL.md"), text).unwrap();
    let check = |place: &Place, line: &[&str], is_offered: bool| {
        let provider = Provider::new([says("Done.")]);
        let ran = place.ask(&provider, &[line, &["task"]].concat());
        assert_eq!(ran.code, 0, "{line:?} {ran:?}");
        let tools = offered(&provider.body());
        assert!(tools.contains(&"Read".to_owned()), "{line:?} {tools:?}");
        let is_there = |name: &String| name == "LoadSkill";
        assert_eq!(tools.iter().any(is_there), is_offered, "{line:?}");
        assert_eq!(ran.err.contains("skill"), is_offered, "{line:?} {ran:?}");
    };
    let off = ["--set", "tools.LoadSkill.enabled=false"];
    for (line, is_wanted) in [
        (&[][..], true),
        (&["--tools", "Read,LoadSkill"], true),
        (&["--tools", "Read"], false),
        (&["--no-tools", "LoadSkill"], false),
        (&off, false),
    ] {
        check(&none, line, false);
        check(&some, line, is_wanted);
    }
    let shown = some.run(&["tools", "LoadSkill"]);
    assert!(
        shown.out.contains("- release: Cuts a release."),
        "{shown:?}"
    );
}
