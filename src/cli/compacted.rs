//! What a compaction by hand came to, or would come to: for people, and for programs.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use undertext::compaction::by_hand::{Hidden, Report, StepReport, Stretch};
use undertext::id::RunId;

use crate::cli::amount;
use crate::cli::term::{Look, Term};

/// Whether it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// It was done.
    Real,
    /// It was only planned.
    DryRun,
}

/// What `compact --json` writes.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Compacted {
    /// The run.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunId>,
    /// Whether it was only planned.
    dry_run: bool,
    #[serde(flatten)]
    report: Report,
}

/// Shows a report on standard output; the run was named as it was typed.
pub(super) fn show(
    report: &Report,
    (run, typed): (Option<RunId>, &str),
    how: How,
    json: bool,
    term: &mut Term,
) -> std::io::Result<()> {
    if json {
        let dry_run = how == How::DryRun;
        let report = report.clone();
        let told = Compacted {
            run,
            dry_run,
            report,
        };
        return term.print_json(&serde_json::to_string(&told)?);
    }
    let name = run.map_or_else(|| typed.to_owned(), RunId::short);
    let is_path = Path::new(typed).extension().is_some();
    let again = if is_path { typed } else { &name };
    for (look, line) in lines(report, (&name, again), how, term.width().unwrap_or(80)) {
        term.print(&[(look, line)])?;
    }
    Ok(())
}

/// The report in lines of so many columns, as far as words allow. The run has a name and, in a command,
/// maybe another.
pub(super) fn lines(
    report: &Report,
    (run, again): (&str, &str),
    how: How,
    width: usize,
) -> Vec<(Look, String)> {
    if let Some(nothing) = &report.nothing {
        return vec![(Look::Plain, format!("run {run}: {nothing}"))];
    }
    let would = match how {
        How::Real => "",
        How::DryRun => " would be",
    };
    let expected = report.steps.iter().any(|step| step.asks.is_some());
    let head = format!(
        "run {run}:{would} {} tokens{}",
        sizes(report.before, report.after, expected),
        less(report.before, report.after)
    );
    let mut lines = vec![(Look::Strong, head)];
    lines.extend(
        timeline(&report.timeline, width)
            .into_iter()
            .map(|line| (Look::Plain, line)),
    );
    lines.push((Look::Plain, String::new()));
    let rows: Vec<[String; 3]> = report.steps.iter().map(row).collect();
    let wide = |column: usize| {
        let lengths = rows.iter().map(|row| row[column].chars().count());
        lengths.max().unwrap_or(0)
    };
    for [name, sizes, what] in &rows {
        let (first, second) = (wide(0), wide(1));
        lines.push((
            Look::Plain,
            format!("  {name:<first$}  {sizes:<second$}  {what}"),
        ));
    }
    for left_out in &report.left_out {
        let text = format!("  {}: {}", left_out.strategy, left_out.why);
        lines.push((Look::Faint, text));
    }
    lines.push((Look::Plain, String::new()));
    let mut end = |text: String| lines.push((Look::Faint, text));
    match how {
        How::DryRun if expected => {
            end("a dry run: nothing was changed; ~ stands for an expected size".to_owned());
        }
        How::DryRun => end("a dry run: nothing was changed".to_owned()),
        How::Real => {
            if report.steps.iter().any(|step| step.overlay.is_some()) {
                end(format!("to undo: undertext undo {again}"));
            }
            if report.steps.iter().any(|step| step.setup.is_some()) {
                end(format!(
                    "to offer other tools: undertext run --resume {again} --tools A,B"
                ));
            }
        }
    }
    lines
}

/// A step: what it is called, what it does to the size, and what it hides.
fn row(step: &StepReport) -> [String; 3] {
    let name = match step.overlay.or(step.setup) {
        Some(entry) => format!("e{entry} {}", step.strategy),
        None => step.strategy.clone(),
    };
    let place = match step.rounds {
        Some((first, last)) if first == last => format!("round {first}"),
        Some((first, last)) => format!("rounds {first} to {last}"),
        None => step.span.map_or_else(String::new, |span| span.to_string()),
    };
    let what = match &step.asks {
        Some(model) => format!("would summarise {place} with {model}"),
        None if step.strategy == "summarize" => format!("a summary of {place}"),
        None => match hides(step.hides).as_str() {
            "" => place,
            hides if place.is_empty() => hides.to_owned(),
            hides => format!("{hides} in {place}"),
        },
    };
    let expected = step.asks.is_some();
    [name, sizes(step.before, step.after, expected), what]
}

/// `12,310 → 8,000`
fn sizes(before: u64, after: u64, expected: bool) -> String {
    let about = if expected { "~" } else { "" };
    let (before, after) = (amount::count(before), amount::count(after));
    format!("{before} → {about}{after}")
}

/// `, 35 % less`
fn less(before: u64, after: u64) -> String {
    let percent = |part: u64| part.saturating_mul(100) / before.max(1);
    if after <= before {
        format!(", {} % less", percent(before - after))
    } else {
        format!(", {} % more", percent(after - before))
    }
}

/// `7 results, 2 arguments`
fn hides(hidden: Hidden) -> String {
    let Hidden {
        results,
        arguments,
        calls,
        reasoning,
        attachments,
        rounds,
        tools,
    } = hidden;
    let part = |number: u64, noun: &str| (number > 0).then(|| amount::of(number, noun));
    let parts = [
        part(results, "result"),
        part(arguments, "argument"),
        part(calls, "call"),
        part(reasoning, "block").map(|blocks| blocks + " of reasoning"),
        part(attachments, "attachment"),
        part(rounds, "round"),
        part(tools, "tool"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

/// `rounds 1–2 kept · 3–84 summarised · 85–91 kept`, in lines.
fn timeline(stretches: &[Stretch], width: usize) -> Vec<String> {
    let mut lines = vec![String::from("rounds")];
    for (place, stretch) in stretches.iter().enumerate() {
        let rounds = match stretch.rounds {
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first}–{last}"),
        };
        let piece = format!(" {rounds} {}", stretch.reads);
        let mark = if place == 0 { "" } else { " ·" };
        let Some(line) = lines.last_mut() else {
            continue;
        };
        if line.chars().count() + mark.chars().count() + piece.chars().count() <= width {
            line.push_str(mark);
            line.push_str(&piece);
        } else {
            line.push_str(mark);
            lines.push(format!("      {piece}"));
        }
    }
    lines
}
