//! From a failing test to suspects: its words are searched for, the files that hold them are read.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::model::Reply;
use crate::model::offline::change::Try;
use crate::model::offline::clues::{Clues, Likeness};
use crate::model::offline::known::Known;
use crate::model::offline::policy::Mind;
use crate::model::offline::project::{self, Sort};
use crate::model::offline::seen::{Called, Fate, Step};
use crate::model::offline::{rank, tell};

/// How many source files are read.
const SUSPECTS: usize = 6;

/// How many are read at least, whether the failure's words are in them or not.
const LEAST: usize = 4;

/// How many files that belong to the failing case are looked at.
const EVIDENCE: usize = 2;

/// How many files of data are looked at, and how many lines of each.
const DATA: usize = 4;
const DATA_LINES: u64 = 400;

/// What is written before the words of the failure, and before what it looks like.
pub(super) const WORDS_OF: &str = "Words of the failure:";
pub(super) const LOOKS: &str = "The failure looks like:";
pub(super) const WANTED: &str = "What it misses:";

/// How many words are searched for.
const WORDS: usize = 5;

/// How definitions begin.
const DEFINITIONS: [&str; 2] = ["function ", "def "];

/// By how many patterns the sources are named at most.
const PATTERNS: usize = 24;

/// How many repairs are judged likely.
const LIKELY: usize = 24;

/// Takes the next step towards suspects.
pub(super) fn diagnose(mind: &Mind<'_>, command: &str) -> Reply {
    let seen = &mind.seen;
    // Who was suspected when the search could be read is suspected still.
    if let Some(noted) = seen.noted("I read `") {
        let suspects: Vec<&str> = noted
            .split('`')
            .step_by(2)
            .filter(|path| !path.is_empty())
            .collect();
        return accuse(mind, command, &suspects, &clues(mind, command));
    }
    let Some(files) = mind.files.as_deref() else {
        return mind
            .acts()
            .say("I need the list of the files.")
            .list(true)
            .reply();
    };
    let clues = clues(mind, command);
    let sources: Vec<&str> = files
        .iter()
        .map(String::as_str)
        .filter(|path| project::sort(path) == Sort::Source && !path.starts_with('.'))
        .collect();
    if sources.is_empty() {
        return tell::no_sources(mind, command);
    }
    let attempted = |path: &str| {
        seen.calls()
            .any(|called| called.reads().as_deref() == Some(path))
    };
    if !seen.calls().any(Called::is_search) && !clues.words.is_empty() {
        // Where something of the code is named, the rest is what it was called with.
        let is_name = |word: &&str| word.contains('_');
        let mut words: Vec<&str> = clues.words.iter().map(String::as_str).collect();
        if words.iter().any(is_name) {
            words.retain(|word| is_name(word));
        }
        words.truncate(WORDS);
        let named = words.join("`, `");
        if clues.likeness == Likeness::Unknown {
            // What was meant is most likely what something else is called.
            words.extend(DEFINITIONS);
        }
        let mut acts = mind
            .acts()
            .say(format!(
                "The test fails. Its words: `{named}`. I search the sources for them."
            ))
            .say(format!("{WORDS_OF} {}", clues.words.join(", ")))
            .say(format!("{LOOKS} {}", clues.likeness.word()));
        if !clues.wanted.is_empty() {
            acts = acts.say(format!("{WANTED} {}", clues.wanted.join(", ")));
        }
        acts = acts
            .todo(&mind.todos(""), 2)
            .search(&words, &patterns(&sources));
        for path in evidence(files, &clues, command) {
            // A name that is not known says enough, and the search needs the room.
            if clues.likeness != Likeness::Unknown && !attempted(path) {
                acts = acts.read(path, Some(80));
            }
        }
        return acts.reply();
    }
    let suspects = suspects(mind, &sources, &clues, first_failure(mind, command));
    let named = suspects.join("`, `");
    let mut acts = mind.acts().say(format!("I read `{named}`."));
    for path in suspects {
        acts = acts.read(path, None);
    }
    acts.reply()
}

/// Says which files are suspected and what is tried first, and begins with it.
fn accuse(mind: &Mind<'_>, command: &str, suspects: &[&str], clues: &Clues) -> Reply {
    let known = known(mind);
    let mut likely = Vec::new();
    for (place, path) in suspects.iter().enumerate() {
        if let Some(text) = mind.seen.content(path) {
            likely.extend(rank::candidates(path, &text, place, &known, clues));
        }
    }
    // Among equals the first.
    likely.sort_by_key(|candidate| -candidate.score);
    let named = suspects.join("`, `");
    let mut acts = mind.acts().say(format!("Suspects: `{named}`"));
    for candidate in likely.iter().take(LIKELY) {
        acts = acts.say(Try::words_next(&candidate.path, &candidate.change));
    }
    if likely.is_empty() {
        return tell::nothing_to_try(mind, command);
    }
    let data = data(mind, command);
    if !data.is_empty() {
        acts = acts.say(format!("Data: `{}`", data.join("`, `")));
    }
    acts.say("Before I change anything: does it fail the same way twice?")
        .todo(&mind.todos(&format!("Repair: suspects `{named}`")), 3)
        .test(command)
        .reply()
}

/// What is still to be looked at before the first repair, one thing at a time; `None` if nothing is.
pub(super) fn weigh(mind: &Mind<'_>, command: &str) -> Option<Reply> {
    let seen = &mind.seen;
    let summarised = seen
        .steps
        .iter()
        .any(|step| matches!(step, Step::Said { summary: true, .. }));
    let compacted = seen.calls().any(|called| called.name == "Compact");
    if summarised || compacted || !seen.tries().is_empty() {
        return None;
    }
    let noted = seen.noted("Data:").unwrap_or_default();
    for path in noted.split('`').skip(1).step_by(2) {
        if !seen
            .calls()
            .any(|called| called.reads().as_deref() == Some(path))
        {
            let acts = mind
                .acts()
                .say(format!("I look at what it works on: `{path}`."));
            return Some(acts.read(path, Some(DATA_LINES)).reply());
        }
    }
    mind.is_full().then(|| {
        let named = seen.noted("Suspects:").unwrap_or_default();
        let focus = format!(
            "the failing test `{command}`, the suspects {named} and the repairs to try next"
        );
        mind.acts()
            .say("Before I try repairs I ask for what I no longer need to be put away.")
            .compact(&focus)
            .reply()
    })
}

/// The files that the project works on: those that the failure names first.
fn data<'a>(mind: &'a Mind<'_>, command: &str) -> Vec<&'a str> {
    let said = mind.seen.runs(command).next_back();
    let said = said.map_or("", |run| run.result.as_str());
    let files = mind.files.iter().flatten().map(String::as_str);
    let mut data: Vec<&str> = files
        .filter(|path| project::sort(path) == Sort::Data && !path.starts_with('.'))
        .filter(|path| path.contains('.'))
        .collect();
    data.sort_by_key(|path| !said.contains(path));
    data.truncate(DATA);
    data
}

/// What the failing test said, before anything was tried.
pub(super) fn clues(mind: &Mind<'_>, command: &str) -> Clues {
    if let Some(noted) = mind.seen.noted(WORDS_OF) {
        // What was read from the first failure holds: later ones show what a try did.
        let words = noted.split(", ").filter(|word| !word.is_empty());
        let likeness = mind.seen.noted(LOOKS).and_then(Likeness::of);
        let wanted = mind.seen.noted(WANTED).unwrap_or_default().split(", ");
        return Clues {
            words: words.map(str::to_owned).collect(),
            places: Vec::new(),
            wanted: wanted
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect(),
            likeness: likeness.unwrap_or(Likeness::Other),
        };
    }
    Clues::of(first_failure(mind, command))
}

/// What the test said when it first failed, as far as that can still be read.
fn first_failure<'a>(mind: &'a Mind<'_>, command: &'a str) -> &'a str {
    let mut runs = mind.seen.runs(command);
    let first = runs.find(|run| run.fate() == Fate::Bad && !run.is_hidden());
    first.map_or("", |run| run.result.as_str())
}

/// What all visible files tell.
pub(super) fn known(mind: &Mind<'_>) -> Known {
    let mut known = Known::default();
    known.add_built_in();
    let read: BTreeSet<Cow<'_, str>> = mind.seen.calls().filter_map(Called::reads).collect();
    for path in &read {
        let Some(text) = mind.seen.content(path) else {
            continue;
        };
        match project::sort(path) {
            Sort::Source => known.add_source(path, &text),
            Sort::Document => known.add_lore(&text),
            Sort::Test | Sort::Data => {}
        }
    }
    let searches = mind.seen.calls().filter(|called| called.is_search());
    for line in searches.flat_map(|called| called.result.lines()) {
        let mut parts = line.trim_start_matches("./").splitn(3, ':');
        if let (Some(path), Some(_), Some(text)) = (parts.next(), parts.next(), parts.next())
            && project::sort(path) == Sort::Source
            && mind.seen.content(path).is_none()
        {
            known.add_source(path, text.trim_start());
        }
    }
    let skills = mind
        .seen
        .calls()
        .filter(|called| called.name == "LoadSkill");
    for skill in skills {
        known.add_lore(&skill.result);
    }
    known
}

/// Patterns that name the sources: by directory and ending, once each.
fn patterns(sources: &[&str]) -> Vec<String> {
    let pattern = |path: &&str| {
        let (directory, name) = path.rsplit_once('/').unwrap_or((".", path));
        match name.rsplit_once('.') {
            Some((_, ending)) => format!("{directory}/*.{ending}"),
            None => (*path).to_owned(),
        }
    };
    let plain = |pattern: &String| {
        pattern
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-*/".contains(c))
    };
    let all: BTreeSet<String> = sources.iter().map(pattern).filter(plain).collect();
    let all = all
        .into_iter()
        .map(|one| one.trim_start_matches("./").to_owned());
    all.take(PATTERNS).collect()
}

/// Files that the failing case is made of: named by it, or called as it is.
fn evidence<'a>(files: &'a [String], clues: &Clues, command: &str) -> Vec<&'a str> {
    let rated = files.iter().filter_map(|path| {
        let sort = project::sort(path);
        let name = path.rsplit('/').next().unwrap_or(path);
        let stem = name.split('.').next().unwrap_or(name).to_lowercase();
        let called = clues.words.iter().position(|word| *word == stem);
        let named = clues.places.iter().any(|(place, _)| place == path);
        let runs = command.split_whitespace().any(|word| word == path);
        match sort {
            Sort::Test | Sort::Data if named => Some((0, path)),
            Sort::Test if called.is_some() => Some((1 + called.unwrap_or_default(), path)),
            Sort::Data if called.is_some() => Some((20 + called.unwrap_or_default(), path)),
            Sort::Test if runs => Some((50, path)),
            Sort::Test | Sort::Data | Sort::Source | Sort::Document => None,
        }
    });
    let mut rated: Vec<(usize, &String)> = rated.collect();
    rated.sort();
    rated
        .into_iter()
        .map(|(_, path)| path.as_str())
        .take(EVIDENCE)
        .collect()
}

/// The sources, the one that holds most of the failure's words first.
fn suspects<'a>(mind: &Mind<'_>, sources: &[&'a str], clues: &Clues, said: &str) -> Vec<&'a str> {
    let mut rated: Vec<(i32, &str)> = sources
        .iter()
        .map(|path| {
            let named = if said.contains(path) { 30 } else { 0 };
            (named + rate(mind, path, clues), *path)
        })
        .collect();
    rated.sort_by_key(|(score, path)| (-score, *path));
    let met = rated.iter().filter(|(score, _)| *score > 0).count();
    rated
        .into_iter()
        .map(|(_, path)| path)
        .take(met.clamp(LEAST, SUSPECTS))
        .collect()
}

fn rate(mind: &Mind<'_>, path: &str, clues: &Clues) -> i32 {
    let mut score = 0;
    if clues
        .places
        .iter()
        .any(|(place, _)| path.ends_with(place.as_str()))
    {
        score += 30;
    }
    let searches = mind
        .seen
        .calls()
        .filter(|called| called.is_search() && !called.is_hidden());
    let found: String = searches
        .flat_map(|called| called.result.lines())
        .filter_map(|line| line.trim_start_matches("./").strip_prefix(path))
        .filter(|rest| rest.starts_with(':'))
        .map(|rest| rest.to_lowercase() + "\n")
        .collect();
    let name = path.to_lowercase();
    for (place, word) in clues.words.iter().enumerate() {
        // The first words are the most telling ones.
        let weight = match place {
            0 => 10,
            1 => 6,
            2 => 4,
            _ => 2,
        };
        let defines = [
            format!("function {word}"),
            format!("def {word}"),
            format!("fn {word}"),
            format!("{word}() {{"),
        ];
        if found.contains(word.as_str()) {
            score += weight;
        }
        if defines.iter().any(|begins| found.contains(begins)) {
            score += 2 * weight;
        }
        if word
            .split('_')
            .any(|part| part.len() > 3 && name.contains(part))
        {
            score += weight;
        }
    }
    score
}
