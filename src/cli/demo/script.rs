//! What the demo's model says: one reply a round, and an answer to every request for a summary.
//!
//! It reads what it is sent only where it says so below: to find the handle of a result that was put
//! away, and to make a summary out of what is to be summarized.

use serde_json::{Value, json};
use undertext::exchange::Usage;
use undertext::model::{Ask, Reply, Script, Scripted};
use undertext::record::Clock;

use crate::cli::demo::summary::{self, Sent};

/// What the model is asked to do.
pub(crate) const TASK: &str = "\
`sh tests/run.sh` fails. Find out why and mend it in lib/, not in the tests: the cases are right. \
Amounts stay whole cents. Note what you changed in docs/CHANGES.md, and tell me by how much the sums \
of the three months in data/ were wrong.";

/// What the model is told that it is.
pub(crate) const INSTRUCTIONS: &str = "\
You are a careful programmer. You work in a small project with the tools you are given. Read before \
you change, run the tests after each change, and say in the end what you did.";

/// How long the model takes for a reply, by a clock that stands still: for the golden run.
const THINKS_MS: u64 = 1_700;

/// The model of the demo.
pub(crate) fn model(clock: &Clock) -> Scripted {
    let moves = finding().into_iter().chain(mending()).map(|one| {
        let clock = clock.clone();
        Script::with(move |ask| Ok(counted(one.reply(ask), ask, &clock)))
    });
    let clock = clock.clone();
    Scripted::new(moves).with_summaries(move |ask| {
        Ok(counted(
            Reply::text(summary::summary(&Sent::of(ask))),
            ask,
            &clock,
        ))
    })
}

/// The reply with the usage that a provider would report, if its tokens were four characters each.
fn counted(mut reply: Reply, ask: &Ask, clock: &Clock) -> Reply {
    clock.advance(THINKS_MS);
    let arguments = reply
        .calls
        .iter()
        .map(|call| call.arguments.len())
        .sum::<usize>();
    let tokens = |chars: usize| Some(chars.div_ceil(4) as u64);
    let sent = String::from_utf8_lossy(&ask.body).chars().count();
    reply.usage = Some(Usage {
        input: tokens(sent),
        output: tokens(reply.text.len() + arguments),
        ..Usage::default()
    });
    reply
}

/// What the model does in a round.
struct Move {
    says: &'static str,
    calls: Vec<Deed>,
}

/// A call.
enum Deed {
    /// Of this tool, with these arguments.
    Call(&'static str, Value),
    /// Of `Recall`, for what `Read` said of this path.
    Recall(&'static str),
}

impl Move {
    fn reply(&self, ask: &Ask) -> Reply {
        if self.calls.is_empty() {
            return Reply::text(self.says);
        }
        let calls = self.calls.iter().map(|deed| match deed {
            Deed::Call(name, arguments) => (*name, arguments.to_string()),
            Deed::Recall(path) => ("Recall", recall(ask, path)),
        });
        Reply {
            text: self.says.to_owned(),
            ..Reply::calls(calls)
        }
    }
}

/// The arguments that bring back what `Read` said of this path: the handle, if the result was put
/// away, or else a search.
fn recall(ask: &Ask, path: &str) -> String {
    let sent = Sent::of(ask);
    let stub = sent.calls().into_iter().find_map(|call| {
        let put_away = call.name == "Read" && call.about == path && call.result.starts_with('[');
        let handle = call.result.split("Recall ").nth(1)?.split(' ').next()?;
        put_away.then(|| handle.to_owned())
    });
    match stub {
        Some(handle) => json!({ "handle": handle }),
        None => json!({ "pattern": "^ *[0-9]+\t\\| from" }),
    }
    .to_string()
}

fn bash(command: &str) -> Deed {
    Deed::Call("Bash", json!({ "command": command }))
}

fn trace(path: &str) -> Deed {
    bash(&format!("TILL_TRACE=1 sh bin/till {path}"))
}

fn read(path: &str) -> Deed {
    Deed::Call("Read", json!({ "path": path }))
}

fn edit(path: &str, pairs: &[(&str, &str)]) -> Deed {
    let edits: Vec<Value> = pairs
        .iter()
        .map(|(old, new)| json!({ "old": old, "new": new }))
        .collect();
    Deed::Call("Edit", json!({ "path": path, "edits": edits }))
}

fn round(says: &'static str, calls: Vec<Deed>) -> Move {
    Move { says, calls }
}

fn tests() -> Deed {
    bash("sh tests/run.sh")
}

/// The rounds in which the model finds out what is wrong.
fn finding() -> Vec<Move> {
    vec![
        round(
            "I look at what is there.",
            vec![bash("find . -type f | sort")],
        ),
        round("Now the test.", vec![tests()]),
        round(
            "Four cases fail. What is this program to do?",
            vec![read("README.md"), read("docs/format.md")],
        ),
        round(
            "The rules stand in docs/, and they win over the code.",
            vec![read("docs/discounts.md"), read("docs/tax.md")],
        ),
        round(
            "Now the code, from the outside in.",
            vec![
                read("bin/till"),
                read("lib/main.awk"),
                read("lib/parse.awk"),
                read("lib/format.awk"),
            ],
        ),
        round(
            "The test itself, and its simplest case.",
            vec![read("tests/run.sh"), read("tests/cases/single.tsv")],
        ),
        round(
            "I look at each line of that case.",
            vec![trace("tests/cases/single.tsv")],
        ),
        round(
            "One cent of tax is missing. What do the articles cost, and what is ordered?",
            vec![read("data/prices.tsv")],
        ),
        round(
            "And what do the months come to, as long as it is wrong?",
            vec![read("data/orders-01.tsv"), bash(SUMS)],
        ),
        round(
            "I note the three sums, and look at every line of January.",
            vec![trace("data/orders-01.tsv")],
        ),
        round("The same for February,", vec![trace("data/orders-02.tsv")]),
        round("and for March.", vec![trace("data/orders-03.tsv")]),
        round(
            "February as it was ordered.",
            vec![read("data/orders-02.tsv")],
        ),
        round("And March.", vec![read("data/orders-03.tsv")]),
    ]
}

/// The rounds in which it mends that.
fn mending() -> Vec<Move> {
    vec![
        round(
            "Tax is cut off where docs/tax.md rounds half up. I mend it.",
            vec![edit(
                "lib/tax.awk",
                &[(
                    "return int(net * rate / 100)",
                    "return int((net * rate + 50) / 100)",
                )],
            )],
        ),
        round(
            "That is not what the file says. I read it first.",
            vec![read("lib/tax.awk")],
        ),
        round(
            "Now it is the right line.",
            vec![edit(
                "lib/tax.awk",
                &[(
                    "return int(net * tax_percent(group) / 100)",
                    "return int((net * tax_percent(group) + 50) / 100)",
                )],
            )],
        ),
        round("Is that all?", vec![tests()]),
        round(
            "Two cases are mended, two still fail: those with many pieces.",
            vec![trace("tests/cases/discount.tsv"), read("lib/discount.awk")],
        ),
        round(
            "Ten pieces get nothing. From which number on is there a discount? I read that before.",
            vec![Deed::Recall("docs/discounts.md")],
        ),
        round(
            "\"From 10\" means ten as well. The code begins one too late, three times.",
            vec![edit(
                "lib/discount.awk",
                &[
                    ("quantity > 100", "quantity >= 100"),
                    ("quantity > 50", "quantity >= 50"),
                    ("quantity > 10)", "quantity >= 10)"),
                ],
            )],
        ),
        round("And now?", vec![tests()]),
        round(
            "All cases pass. Before I go on I clear my desk.",
            vec![Deed::Call("Compact", json!({ "focus": FOCUS }))],
        ),
        round("The sums as they are now.", vec![bash(SUMS)]),
        round("Now the note.", vec![read("docs/CHANGES.md")]),
        round(
            "One line, on top.",
            vec![edit(
                "docs/CHANGES.md",
                &[(
                    "# Changes\n\n",
                    "# Changes\n\n- Tax is rounded half up; discounts begin at 10, 50, 100 pieces.\n",
                )],
            )],
        ),
        round("Once more, all of it.", vec![tests()]),
        round(DONE, Vec::new()),
    ]
}

/// The sum of each month, in one line.
const SUMS: &str = "echo $(for month in 01 02 03; do \
     sh bin/till data/orders-$month.tsv | tail -n 1 | cut -f 5; done)";

/// What the model wants to be kept when it clears its desk.
const FOCUS: &str = "what was changed in lib/, the three sums, and that docs/CHANGES.md is left";

/// What the model says in the end.
const DONE: &str = "\
All five cases pass. Two rules of docs/ were not what the code did:
- lib/tax.awk cut fractions of a cent off; now they are rounded half up.
- lib/discount.awk gave discounts from 11, 51 and 101 pieces on; now from 10, 50 and 100.
Both are noted in docs/CHANGES.md. The sums were too high, in cents:
- 01: 8438279, now 8145063, by 293216
- 02: 8165585, now 7892938, by 272647
- 03: 8483092, now 8171773, by 311319";
