//! What is refused, and in which words.

use std::fs;
use std::os::unix::fs::symlink;

use undertext::record::{Durability, FileStorage};

use crate::cli::{Place, looks, says};
use crate::provider::{Answer, Provider};

#[test]
fn bad_input_ends_before_anything_is_recorded() {
    let place = Place::new();
    let server = ["-m", "m", "--base-url", "http://127.0.0.1:1/v1"];
    let mut said = String::new();
    for (code, line) in [
        (2, vec!["task"]),
        (2, vec!["-m", "m", "task"]),
        (2, [&server[..], &[""]].concat()),
        (2, [&server[..], &["-C", "none", "task"]].concat()),
        (2, [&server[..], &["-C", "/", "task"]].concat()),
        (2, [&server[..], &["-C", "..", "task"]].concat()),
        (2, [&server[..], &["--continue"]].concat()),
        (2, [&server[..], &["--resume", "0000"]].concat()),
        (
            2,
            [&server[..], &["--set", "model.nome=x", "task"]].concat(),
        ),
    ] {
        let ran = place.run(&[&["run"], &line[..]].concat());
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{line:?} {ran:?}");
        said += &ran.err;
    }
    insta::assert_snapshot!(place.plain(&said), @r#"
    undertext: no model named; there are three ways on:
      with a key       OPENAI_API_KEY=… undertext run -m MODEL "TASK"
      a local server   undertext run --base-url http://HOST/v1 -m MODEL "TASK"
      with neither     undertext demo
    undertext: no key for https://api.openai.com/v1; set OPENAI_API_KEY, name another server with --base-url, or try `undertext demo`
    undertext: the task is empty; say what is to be done
    undertext: workspace /home/w/none cannot be used: No such file or directory (os error 2); make that directory first, or name another
    undertext: workspace / is the whole file system; name a project's directory with -C
    undertext: workspace /home/w/.. holds your whole home directory; name a project's directory with -C
    undertext: no run of /home/w in /home/.local/state/undertext/transcripts; `undertext list` shows all runs
    undertext: no run `0000` in /home/.local/state/undertext/transcripts; `undertext list` shows all runs
    undertext: wrong setting in --set model.nome=x: unknown key `nome`, did you mean `name`?
    "#);
    assert!(!place.path("home/.local").exists());
}

/// A name with the end of a line in it makes no line of its own, whether the user typed it or a model did.
#[test]
fn what_is_quoted_stays_on_its_line() {
    let place = Place::new();
    let name = "x\nundertext: done";
    let server = ["run", "-m", "m", "--base-url", "http://127.0.0.1:1/v1"];
    for line in [
        vec!["show", name],
        vec!["import", name],
        vec!["rm", name],
        vec!["tools", name],
        [&server[..], &["--attach", name, "task"]].concat(),
        [&server[..], &["-C", name, "task"]].concat(),
        [&server[..], &["--set", name, "task"]].concat(),
        vec!["print", "--at", name],
    ] {
        let ran = place.run(&line);
        assert_eq!(ran.err.lines().count(), 1, "{line:?} {ran:?}");
        assert_eq!(ran.out, "", "{line:?}");
    }
    let call = Answer::Calls(vec![("Bash\nfinished: all is well", "{}")]);
    let provider = Provider::new([call, says("Done.")]);
    let ran = place.ask(&provider, &["task"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for line in [&["replay"][..], &["why", "e7"], &["show"], &["list"]] {
        let ran = place.run(line);
        let is_made_up = |line: &str| line.starts_with("finished: all");
        assert!(!ran.out.lines().any(is_made_up), "{line:?} {ran:?}");
        assert_eq!(ran.code, 0, "{line:?} {ran:?}");
    }
}

#[test]
fn a_variable_that_is_nearly_a_setting_is_named() {
    let place = Place::new();
    let said = |line: &[&str]| {
        let mut command = place.command(line);
        let ran = command.env("UNDERTEXT_MODEL_NAME", "m").output().unwrap();
        String::from_utf8(ran.stderr).unwrap()
    };
    let last = |text: &str| text.lines().last().unwrap().to_owned();
    let meant = "UNDERTEXT_MODEL_NAME is not read; two underscores stand between levels: \
                 UNDERTEXT_MODEL__NAME";
    assert_eq!(last(&said(&["run", "task"])), meant);
    assert_eq!(
        last(&said(&["config", "check"])),
        format!("warning: {meant}")
    );
    let told = said(&["run", "-m", "offline", "task"]);
    assert!(told.lines().any(|line| line == meant), "{told}");
}

#[test]
fn a_transcript_that_cannot_be_trusted_is_left_alone() {
    let place = Place::new();
    let provider = Provider::new([looks(), says("All done."), says("Again.")]);
    place.ask(&provider, &["look"]);
    let path = place.transcripts().remove(0);
    let text = fs::read_to_string(&path).unwrap();

    let damaged = place.path("damaged.jsonl");
    fs::write(&damaged, text.replacen("\"ok\"", "\"no\"", 1)).unwrap();
    let link = place.path("link.jsonl");
    symlink(&path, &link).unwrap();
    let newer = place.path("newer.jsonl");
    let first = text
        .lines()
        .next()
        .unwrap()
        .replace("\"format\":1", "\"format\":2");
    let json = &first[..first.rfind(",\"crc\"").unwrap()];
    let crc = crc32c::crc32c(json.as_bytes());
    fs::write(&newer, format!("{json},\"crc\":\"{crc:08x}\"}}\n")).unwrap();
    let locked = FileStorage::open(&path, Durability::None).unwrap();

    let mut said = String::new();
    for path in [&damaged, &link, &newer, &path] {
        let before = fs::read(path).unwrap();
        let ran = place.ask(&provider, &["--resume", path.to_str().unwrap(), "task"]);
        assert_eq!((ran.code, ran.out.as_str()), (6, ""), "{ran:?}");
        assert_eq!(fs::read(path).unwrap(), before);
        said += &ran.err;
    }
    drop(locked);
    // Reading does not need a transcript to be whole, and says what is not.
    let shown = place.run(&["show", damaged.to_str().unwrap()]);
    assert_eq!(shown.code, 0, "{shown:?}");
    said += &shown.err;
    let replayed = place.run(&["replay", "--verify", damaged.to_str().unwrap()]);
    assert_eq!(replayed.code, 6);
    said += &replayed.out;
    insta::assert_snapshot!(place.plain(&said), @"
    undertext: /damaged.jsonl is damaged: line 7: checksum does not match; line 8: entry 7 is missing; `undertext run --resume RUN --accept-damage` goes on with what is left
    undertext: /link.jsonl is a symbolic link, not a plain file; name the file that it leads to
    undertext: /newer.jsonl has format 2, this version knows formats up to 1; use the undertext that recorded it, or a newer one
    undertext: /home/.local/state/undertext/transcripts/UUID.jsonl is in use by another process; wait until that ends, or go on with a copy: `undertext fork` makes one meanwhile
    warning: /damaged.jsonl is damaged: line 7: checksum does not match; line 8: entry 7 is missing
    1 of 2 requests rebuilt; the first that is not: e9 (round 2): other bytes than were sent; the transcript is damaged, line 7: checksum does not match; line 8: entry 7 is missing
      13,100 bytes were sent, 13,116 are built: 16 more
      bytes 0 to 12,698 are those of r1, which is equal
      the difference lies in what is new since r1:
        message 2, e5 response: Bash, Read, bytes 12,699 to 12,962
        message 3, result of Bash (echo from bash), bytes 12,963 to 13,044
        message 4, e8 result of Read (a.txt), bytes 13,045 to 13,114
    ");

    let accepting = [
        "--resume",
        damaged.to_str().unwrap(),
        "--accept-damage",
        "task",
    ];
    let ran = place.ask(&provider, &accepting);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Again.\n"), "{ran:?}");
}

#[test]
fn what_holds_no_run_is_told_in_one_line() {
    let place = Place::new();
    let provider = Provider::new([says("All done.")]);
    place.ask(&provider, &["look"]);
    let path = place.transcripts().remove(0);
    let text = fs::read_to_string(&path).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let mut newer = first.replace("\"format\":1", "\"format\":2");
    newer.truncate(newer.rfind(",\"crc\"").unwrap());
    let crc = crc32c::crc32c(newer.as_bytes());
    let newer = format!("{newer},\"crc\":\"{crc:08x}\"}}\n");
    for (name, bytes) in [
        ("text", b"some\ntext\n".to_vec()),
        ("empty", Vec::new()),
        ("binary", vec![0, 159, 146, 150]),
        ("headless", rest.into()),
        ("newer", newer.into_bytes()),
        ("torn", format!("{text}{{\"id\":").into_bytes()),
    ] {
        fs::write(place.path(&format!("{name}.jsonl")), bytes).unwrap();
    }
    let run = |line: &[&str], name: &str| {
        let file = place.path(&format!("{name}.jsonl"));
        let ran = place.run(&[line, &[file.to_str().unwrap()]].concat());
        (ran.code, place.plain(&ran.err))
    };
    let no_json =
        "its first line is no JSON; what other agents recorded is read by `undertext import`";
    for (name, why) in [
        ("text", no_json),
        ("empty", "it is empty; `undertext list` shows all runs"),
        ("binary", no_json),
    ] {
        for command in ["show", "print", "replay"] {
            let said = format!("undertext: /{name}.jsonl holds no run: {why}\n");
            assert_eq!(run(&[command], name), (6, said));
        }
    }
    let torn = "warning: /torn.jsonl does not end with an entry: its last 6 bytes are left out\n";
    for command in ["show", "print", "replay"] {
        assert_eq!(run(&[command], "torn"), (0, torn.to_owned()));
    }
    let verify = run(&["replay", "--verify"], "newer");
    let server = ["run", "-m", "m", "--base-url", &provider.url, "task"];
    let headless = run(&[&server[..], &["--resume"]].concat(), "headless");
    assert_eq!((verify.0, headless.0), (6, 6));
    insta::assert_snapshot!(verify.1 + &headless.1, @"
    warning: /newer.jsonl has format 2, this version knows formats up to 1; what is shown may be wrong
    undertext: this version cannot verify a run of a newer format; use the undertext that recorded it, or a newer one
    undertext: /headless.jsonl is damaged: line 1: entry 1 is missing; without its first entry it cannot be taken up; `undertext print` shows what is left
    ");
}

#[test]
fn wrong_usage_is_said_by_the_program_and_help_is_a_command() {
    let place = Place::new();
    let mut said = String::new();
    for line in [&["walk"][..], &["run", "--max-rounds", "0", "task"]] {
        let ran = place.run(line);
        assert_eq!(ran.code, 2, "{ran:?}");
        said += ran.err.lines().next().unwrap();
        said.push('\n');
    }
    insta::assert_snapshot!(said, @"
    undertext: unrecognized subcommand 'walk'; see --help
    undertext: invalid value '0' for '--max-rounds <N>': --max-rounds takes a number from 1; see --help
    ");
    for line in [&["help"][..], &["help", "run"]] {
        let ran = place.run(line);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{line:?}");
        assert!(ran.out.contains("Usage: undertext"), "{ran:?}");
    }
}
