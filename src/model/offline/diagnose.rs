//! From a failing test to suspects: its words are searched for, the files that hold them are read.

use std::collections::BTreeSet;

use crate::model::Reply;
use crate::model::offline::change::Try;
use crate::model::offline::clues::{Clues, Likeness};
use crate::model::offline::known::Known;
use crate::model::offline::policy::Mind;
use crate::model::offline::project::{self, Sort};
use crate::model::offline::seen::{Called, Fate};
use crate::model::offline::{mend, rank, tell};

/// How many source files are read.
const SUSPECTS: usize = 8;

/// How many files that belong to the failing case are looked at.
const EVIDENCE: usize = 2;

/// How many words are searched for.
const WORDS: usize = 8;

/// How many repairs are judged likely.
const LIKELY: usize = 24;

/// Takes the next step towards suspects.
pub(super) fn diagnose(mind: &Mind<'_>, command: &str) -> Reply {
    let seen = &mind.seen;
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
    let attempted = |path: &str| seen.calls().any(|called| called.reads() == Some(path));
    if !seen.calls().any(Called::is_search) && !clues.words.is_empty() {
        let words: Vec<&str> = clues.words.iter().map(String::as_str).take(WORDS).collect();
        let named = words.join("`, `");
        let mut acts = mind
            .acts()
            .say(format!(
                "The test fails. Its words: `{named}`. I search the sources for them."
            ))
            .todo(&mind.todos(""), 2)
            .search(&words, &endings(&sources));
        for path in evidence(files, &clues, command) {
            if !attempted(path) {
                acts = acts.read(path, Some(80));
            }
        }
        return acts.reply();
    }
    let suspects = suspects(mind, &sources, &clues);
    let unread: Vec<&str> = suspects
        .iter()
        .copied()
        .filter(|path| !attempted(path))
        .collect();
    if !unread.is_empty() {
        let mut acts = mind
            .acts()
            .say(format!("I read `{}`.", unread.join("`, `")));
        for path in unread {
            acts = acts.read(path, None);
        }
        return acts.reply();
    }
    accuse(mind, command, &suspects, &clues)
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
    let mut acts = mind
        .acts()
        .say(format!("Suspects: `{named}`"))
        .say(format!("Words of the failure: {}", clues.words.join(", ")));
    for candidate in likely.iter().take(LIKELY) {
        acts = acts.say(Try::words_next(&candidate.path, &candidate.change));
    }
    acts = acts.todo(&mind.todos(&format!("Repair: suspects `{named}`")), 3);
    if mind.is_full() {
        let focus = format!(
            "the failing test `{command}`, the suspects `{named}` and the repairs to try next"
        );
        return acts
            .say("Before I try repairs I ask for what I no longer need to be put away.")
            .compact(&focus)
            .reply();
    }
    match likely.first() {
        Some(first) => mend::first(mind, acts, command, &first.path, &first.change),
        None => tell::nothing_to_try(mind, command),
    }
}

/// What the failing test said, before anything was tried.
pub(super) fn clues(mind: &Mind<'_>, command: &str) -> Clues {
    let mut runs = mind.seen.runs(command);
    let first = runs.find(|run| run.fate() == Fate::Bad && !run.is_hidden());
    if let Some(noted) = mind.seen.noted("Words of the failure:") {
        // What was read from the first failure holds: later ones show what a try did.
        let words = noted.split(", ").map(str::to_owned).collect();
        let likeness = first.map_or(Likeness::Other, |run| Clues::of(&run.result).likeness);
        let places = Vec::new();
        return Clues {
            words,
            places,
            likeness,
        };
    }
    Clues::of(first.map_or("", |run| run.result.as_str()))
}

/// What all visible files tell.
pub(super) fn known(mind: &Mind<'_>) -> Known {
    let mut known = Known::default();
    known.add_built_in();
    let read: BTreeSet<&str> = mind
        .seen
        .calls()
        .filter_map(|called| called.reads())
        .collect();
    for path in read {
        let Some(text) = mind.seen.content(path) else {
            continue;
        };
        match project::sort(path) {
            Sort::Source => known.add_source(path, &text),
            Sort::Document => known.add_lore(&text),
            Sort::Test | Sort::Data => {}
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

/// The endings of the sources, once each; none if one has no ending.
fn endings<'a>(sources: &[&'a str]) -> Vec<&'a str> {
    let ending = |path: &&'a str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        name.rsplit_once('.').map(|(_, ending)| ending)
    };
    let all: Option<BTreeSet<&str>> = sources.iter().map(ending).collect();
    all.map(|all| all.into_iter().collect()).unwrap_or_default()
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
fn suspects<'a>(mind: &Mind<'_>, sources: &[&'a str], clues: &Clues) -> Vec<&'a str> {
    let mut rated: Vec<(i32, &str)> = sources
        .iter()
        .map(|path| (rate(mind, path, clues), *path))
        .collect();
    rated.sort_by_key(|(score, path)| (-score, *path));
    rated
        .into_iter()
        .map(|(_, path)| path)
        .take(SUSPECTS)
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
        // The words that are said most often tell more.
        let weight = if place < 3 { 4 } else { 2 };
        if found.contains(word.as_str()) {
            score += weight;
        }
        let stem = word.split('_').next().unwrap_or(word);
        if name.contains(word.as_str()) || (stem.len() > 3 && name.contains(stem)) {
            score += weight;
        }
    }
    score
}
