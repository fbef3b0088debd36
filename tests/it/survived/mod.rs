//! What must outlive a summary does: in its text, in what stays beside it, or in the list after it.

mod sent;

use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::json;
use undertext::compaction::carry::{Carried, carried};
use undertext::compaction::survival::Survival;
use undertext::exchange::{Facts, FileRead, FileWritten, Status, ToolResult};
use undertext::id::{CallId, Digest, EntryId, Span};
use undertext::overlay::{Author, Layer, Origin, Overlay, Part, Size, Summary};
use undertext::record::Clock;
use undertext::setup::Policy;
use undertext::transcript::{Event, Purpose, Speaker, Summarize};
use undertext::view::View;

use crate::draft::Draft;
use crate::generate::{Written, cases, lifelike};
use crate::scene;

/// A run with a model of this window: a task is entry 3.
fn begun(window: u64) -> Draft {
    let mut draft = Draft::default();
    draft.push(Event::Run(scene::run(&Clock::fixed(scene::BEGIN))));
    let setup = scene::setup(window, Policy::default());
    draft.push(Event::Setup(Box::new(setup)));
    draft.user(Speaker::Task, "Mend the parser.");
    draft
}

/// A closed round of one call with these facts.
fn call(draft: &mut Draft, name: &str, arguments: &serde_json::Value, facts: Facts) -> CallId {
    let request = draft.request(Purpose::Round);
    let response = draft.response(request, "", &[], &[(name, &arguments.to_string())]);
    let call = CallId::new(response, 1);
    draft.push(Event::Result(ToolResult {
        call,
        status: Status::Ok,
        content: "done".to_owned(),
        clipped: None,
        facts,
        ms: None,
    }));
    call
}

fn run(draft: &mut Draft, command: &str, exit: i32) -> CallId {
    let facts = Facts {
        exit: Some(exit),
        cwd: Some("/w/crates/parse".to_owned()),
        ..Facts::default()
    };
    call(draft, "Bash", &json!({ "command": command }), facts)
}

fn edit(draft: &mut Draft, path: &str) -> CallId {
    let wrote = FileWritten {
        path: path.to_owned(),
        sha256: Digest::of(b"new"),
    };
    let facts = Facts {
        wrote: vec![wrote],
        ..Facts::default()
    };
    call(draft, "Edit", &json!({ "path": path }), facts)
}

fn read(draft: &mut Draft, path: &str) -> CallId {
    let read = FileRead {
        path: path.to_owned(),
        sha256: Digest::of(b"old"),
        lines: None,
    };
    let facts = Facts {
        read: vec![read],
        ..Facts::default()
    };
    call(draft, "Read", &json!({ "path": path }), facts)
}

/// What a summary with this text carries if it covers everything after the task.
fn after(draft: &Draft, text: &str, keep: &[&str]) -> Carried {
    let view = View::of(draft.entries().iter().cloned());
    let last = EntryId(draft.next().0 - 1);
    let keep: Vec<String> = keep.iter().map(|text| (*text).to_owned()).collect();
    let span = Span::new(EntryId(4), last);
    carried(&view, &view.sizes().unwrap(), span, text, &keep)
}

/// State and list of a summary, and the counts.
fn told(carried: &Carried) -> String {
    let Survival {
        looked_for,
        appended,
        left_out,
        unfounded,
        ..
    } = &carried.survival;
    let counts = format!(
        "{looked_for} looked for, {appended} appended, {left_out} left out, {unfounded} unfounded"
    );
    let texts = [&carried.carry.state, &carried.carry.survival, &counts];
    let texts = texts.into_iter().filter(|text| !text.is_empty()).cloned();
    texts.collect::<Vec<_>>().join("\n\n")
}

/// A long message of the user, which is not shown again, so what it names must be in the list.
fn long_message(draft: &mut Draft, text: &str) -> EntryId {
    let padding = "and so on, as we said ".repeat(500);
    draft.user(Speaker::FollowUp, &format!("{text}\n{padding}"))
}

#[test]
fn what_a_summary_leaves_out_is_listed() {
    let mut draft = begun(32_000);
    run(&mut draft, "cargo test\n  -p parse", 101);
    edit(&mut draft, "src/parse.rs");
    read(&mut draft, "src/lex.rs");
    long_message(
        &mut draft,
        "Use `unescape` of src/text.rs with --strict, at most 30 ms. Never push to main.",
    );
    draft.round("Yes.", &[]);
    let text = "Task: mend the parser.\nFiles: src/text.rs.";
    assert_snapshot!(told(&after(&draft, text, &["ticket 4711"])), @r#"
    Working state, from the record (Recall with a handle shows the call):
    - failed when it last ran: cargo test -p parse (exit 101, 5.1)
    - working directory: crates/parse
    - file changed: src/parse.rs (8.1)
    - file read: src/lex.rs (11.1)

    Not in the summaries, but in what they cover (Recall with a pattern shows where):
    - to be kept: ticket 4711
    - the user said: "Use `unescape` of src/text.rs with --strict, at most 30 ms."
    - the user said: "Never push to main."

    9 looked for, 6 appended, 0 left out, 0 unfounded
    "#);
    // Nothing is missing.
    let text = "unescape, src/text.rs, --strict, 30 ms. The user said: \"use `unescape` of src/text.rs with \
                --strict,\n at most 30 ms\" and “never push to main”. ticket 4711";
    assert_snapshot!(told(&after(&draft, text, &["ticket 4711"])), @r#"
    Working state, from the record (Recall with a handle shows the call):
    - failed when it last ran: cargo test -p parse (exit 101, 5.1)
    - working directory: crates/parse
    - file changed: src/parse.rs (8.1)
    - file read: src/lex.rs (11.1)

    9 looked for, 0 appended, 0 left out, 0 unfounded
    "#);
    // Quotations that nobody wrote.
    let text = "The user said \"always push to main\".\nConstraints:\n- \"use … with --strict\"\n- \"no tests\"";
    assert_snapshot!(told(&after(&draft, text, &[])), @r#"
    Working state, from the record (Recall with a handle shows the call):
    - failed when it last ran: cargo test -p parse (exit 101, 5.1)
    - working directory: crates/parse
    - file changed: src/parse.rs (8.1)
    - file read: src/lex.rs (11.1)

    Not in the summaries, but in what they cover (Recall with a pattern shows where):
    - not found in what the user wrote: "always push to main"
    - not found in what the user wrote: "no tests"
    - the user said: "Use `unescape` of src/text.rs with --strict, at most 30 ms."
    - the user said: "Never push to main."

    8 looked for, 5 appended, 0 left out, 2 unfounded
    "#);
}

#[test]
fn what_is_shown_again_is_not_listed() {
    let mut draft = begun(32_000);
    draft.user(Speaker::FollowUp, "Never touch src/gen.rs.");
    draft.round("I will not.", &[]);
    assert_snapshot!(told(&after(&draft, "Nothing.", &["src/gen.rs"])), @"2 looked for, 0 appended, 0 left out, 0 unfounded");
}

/// A todo list that has no room as a call is told by its open items; failing commands stand first,
/// and files that were changed before those that were read.
#[test]
fn the_working_state_says_what_is_most_useful_first() {
    let mut draft = begun(8_000);
    let todos: Vec<_> = (1..40)
        .map(|n| {
            let status = ["pending", "in_progress", "completed"][(n % 13).min(2)];
            json!({"content": format!("step {n}: mend what is {}", "still ".repeat(12)), "status": status})
        })
        .collect();
    call(
        &mut draft,
        "TodoWrite",
        &json!({ "todos": todos }),
        Facts::default(),
    );
    read(&mut draft, "src/old.rs");
    edit(&mut draft, "src/parse.rs");
    run(&mut draft, "cargo test", 101);
    draft.round("Yes.", &[]);
    assert_snapshot!(told(&after(&draft, "Nothing.", &[])), @r#"
    Working state, from the record (Recall with a handle shows the call):
    - failed when it last ran: cargo test (exit 101, 14.1)
    - working directory: crates/parse
    - open todo: step 1: mend what is still still still still still still still still still still still still
    - open todo: step 13: mend what is still still still still still still still still still still still still

    Not in the summaries, but in what they cover (Recall with a pattern shows where):
    - open todo: step 14: mend what is still still still still still still still still still still still still
    - open todo: step 26: mend what is still still still still still still still still still still still still
    - file changed: src/parse.rs (11.1)
    … and 2 more that no summary holds; Recall with a pattern finds them

    8 looked for, 3 appended, 2 left out, 0 unfounded
    "#);
}

/// Of many commands that fail the newest stand first; the others after what was changed.
#[test]
fn what_was_changed_is_not_crowded_out_by_commands_that_fail() {
    let mut draft = begun(32_000);
    read(&mut draft, "src/lex.rs");
    edit(&mut draft, "src/parse.rs");
    for n in 1..=7 {
        run(&mut draft, &format!("grep -r {n} src"), 1);
    }
    draft.round("Yes.", &[]);
    assert_snapshot!(after(&draft, "Nothing.", &[]).carry.state, @r#"
    Working state, from the record (Recall with a handle shows the call):
    - failed when it last ran: grep -r 7 src (exit 1, 29.1)
    - failed when it last ran: grep -r 6 src (exit 1, 26.1)
    - failed when it last ran: grep -r 5 src (exit 1, 23.1)
    - failed when it last ran: grep -r 4 src (exit 1, 20.1)
    - failed when it last ran: grep -r 3 src (exit 1, 17.1)
    - working directory: crates/parse
    - file changed: src/parse.rs (8.1)
    - failed when it last ran: grep -r 2 src (exit 1, 14.1)
    - failed when it last ran: grep -r 1 src (exit 1, 11.1)
    - file read: src/lex.rs (5.1)
    "#);
}

/// What an older summary covers, and what was asked to be kept when it was made, is looked for
/// again when a newer one is laid.
#[test]
fn later_summaries_look_for_what_older_ones_cover() {
    let mut draft = begun(32_000);
    long_message(&mut draft, "It is about old_name and new_name.");
    draft.round("Yes.", &[]);
    let first = Span::new(EntryId(4), EntryId(6));
    let keep = vec!["ticket 4711".to_owned()];
    let request = draft.request(Purpose::Summary(Summarize {
        keep,
        ..Summarize::new(EntryId(6), first)
    }));
    draft.response(request, "It is about old_name.", &[], &[]);
    lay(&mut draft, first, "It is about old_name.", Vec::new());
    draft.round("Go on.", &[]);
    // The first stands: what it says stays.
    let second = Span::new(EntryId(10), EntryId(11));
    assert_snapshot!(told(&over(&draft, second, "Nothing.")), @r#"
    Not in the summaries, but in what they cover (Recall with a pattern shows where):
    - to be kept: ticket 4711
    - the user named (entry 4): new_name

    3 looked for, 2 appended, 0 left out, 0 unfounded
    "#);
    // It is merged into another, and later that one as well.
    let part = Part {
        span: first,
        response: None,
        overlay: Some(EntryId(9)),
        text: String::new(),
    };
    let both = Span::new(EntryId(4), EntryId(11));
    assert_snapshot!(told(&over(&draft, both, "Nothing.")), @r#"
    Not in the summaries, but in what they cover (Recall with a pattern shows where):
    - to be kept: ticket 4711
    - the user named (entry 4): old_name · new_name

    3 looked for, 3 appended, 0 left out, 0 unfounded
    "#);
    lay(&mut draft, both, "Nothing.", vec![part]);
    draft.round("Go on.", &[]);
    let third = Span::new(EntryId(13), EntryId(14));
    assert_snapshot!(told(&over(&draft, third, "old_name")), @r#"
    Not in the summaries, but in what they cover (Recall with a pattern shows where):
    - to be kept: ticket 4711
    - the user named (entry 4): new_name

    3 looked for, 2 appended, 0 left out, 0 unfounded
    "#);
}

/// What a summary of this span carries.
fn over(draft: &Draft, span: Span, text: &str) -> Carried {
    let view = View::of(draft.entries().iter().cloned());
    carried(&view, &view.sizes().unwrap(), span, text, &[])
}

fn lay(draft: &mut Draft, span: Span, text: &str, parts: Vec<Part>) {
    let carry = over(draft, span, text).carry;
    let pass = draft.next();
    draft.push(Event::Overlay(Overlay {
        origin: Origin::Auto,
        rule: "summary".to_owned(),
        pass,
        layer: Layer::Summary(Summary {
            span,
            text: text.to_owned(),
            by: Author::Model,
            focus: None,
            parts,
            depth: 1,
            carry,
        }),
        size: Size::default(),
        reason: String::new(),
    }));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever is named in a message that is not shown again is in the text, or in the list, or the
    /// list says how much it has no room for.
    #[test]
    fn nothing_is_lost_in_silence(
        window in 3_000..64_000_u64,
        names in proptest::collection::vec("[a-z]{3,8}_[a-z]{3,8}", 1..120),
        said in proptest::collection::vec(any::<bool>(), 120),
        keep in proptest::collection::vec("[a-zäé\"\n ]{1,40}", 0..6),
    ) {
        let mut draft = begun(window);
        // The most that is looked for in one message.
        for names in names.chunks(50) {
            long_message(&mut draft, &names.join(" and "));
        }
        draft.round("Yes.", &[]);
        let in_text = names.iter().zip(&said).filter(|(_, said)| **said);
        let text: Vec<&str> = in_text.map(|(name, _)| name.as_str()).collect();
        let text = text.join(", ");
        let keep: Vec<&str> = keep.iter().map(String::as_str).collect();
        let Carried { carry, survival } = after(&draft, &text, &keep);
        let whole = format!("{text}\n{}", carry.survival);
        let names: std::collections::BTreeSet<&String> = names.iter().collect();
        let missing = names.iter().filter(|name| !whole.contains(name.as_str())).count();
        prop_assert_eq!(missing, survival.left_out, "{}", carry.survival);
        let said = carry.survival.contains(&format!("… and {missing} more that no summary holds"));
        prop_assert_eq!(said, missing > 0, "{}", carry.survival);
        for text in keep {
            prop_assert!(whole.contains(text.trim()), "{text:?} is not kept: {}", carry.survival);
        }
        // The share of state and list: 0.03 R, but for what must be kept.
        if carry.state.is_empty() && !carry.survival.contains("to be kept") {
            let room = View::of(draft.entries().iter().cloned()).sizes().unwrap();
            let most = room.as_chars(room.share(0.03)) + 70;
            prop_assert!(carry.survival.chars().count() as u64 <= most);
        }
    }

    /// It is total.
    #[test]
    fn any_run_can_be_looked_through(Written(entries) in lifelike(), (from, to) in (0..80_u64, 0..80_u64)) {
        let view = View::of(entries);
        if let Some(sizes) = view.sizes() {
            let span = Span::new(EntryId(from), EntryId(to));
            let Carried { survival, .. } = carried(&view, &sizes, span, "The user said \"a b\".", &[]);
            prop_assert!(survival.appended + survival.left_out <= survival.looked_for);
        }
    }
}
