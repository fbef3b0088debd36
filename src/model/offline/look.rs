//! The beginning: a plan, the files, the notes of the project, the test.

use crate::model::Reply;
use crate::model::offline::acts::Acts;
use crate::model::offline::policy::Mind;
use crate::model::offline::{project, tell};

/// How many documents are read at the beginning.
const DOCUMENTS: usize = 6;

/// How much of each is read, in lines.
const DOCUMENT_LINES: u64 = 200;

/// The first reply.
pub(super) fn plan(mind: &Mind<'_>) -> Reply {
    let acts = mind.acts();
    if !acts.has_shell() {
        return tell::no_shell(mind);
    }
    if !project::is_mending(&mind.seen.task) {
        return tell::another_task(mind);
    }
    let acts = acts
        .say(
            "I am Undertext's offline model: a script in the program and no LLM. I run the test, read \
             what fails, and try plain repairs one at a time.",
        )
        .todo(&mind.todos(""), 0)
        .list(false);
    acts.reply()
}

/// Looks around until the test has run.
pub(super) fn look(mind: &Mind<'_>) -> Reply {
    let seen = &mind.seen;
    let listings = seen.calls().filter(|called| called.is_listing()).count();
    let files = match &mind.files {
        Some(files) if !files.is_empty() || listings > 1 => files.as_slice(),
        Some(_) | None if listings < 2 => {
            let acts = mind.acts().say("I need the list of the files.");
            return acts.list(listings > 0).reply();
        }
        Some(_) | None => &[],
    };
    let documents = project::documents(files);
    let was_read = |path: &str| {
        seen.calls()
            .any(|called| called.reads().as_deref() == Some(path))
    };
    let looked = documents.iter().any(|path| was_read(path));
    if !looked {
        let mut acts = mind.acts();
        let skill = skill(mind, &acts);
        let mut parts = Vec::new();
        if let Some(name) = &skill {
            parts.push(format!("load the skill `{name}`"));
            acts = acts.load_skill(name);
        }
        for path in documents.iter().take(DOCUMENTS) {
            acts = acts.read(path, Some(DOCUMENT_LINES));
        }
        if !documents.is_empty() {
            parts.push("read the project's notes".to_owned());
        }
        if !acts.is_idle() {
            acts = acts.say(format!("{} files. I {}.", files.len(), listed(&parts)));
            if let Some(test) = &mind.test {
                acts = acts.say(format!("Test: `{test}`"));
            }
            return acts.reply();
        }
    }
    match find_test(mind, files) {
        Some(test) => {
            let acts = mind.acts().say(format!("Test: `{test}`"));
            acts.test(&test).reply()
        }
        None => tell::no_test(mind),
    }
}

/// The command of the test: from the task, the documents, or the files.
fn find_test(mind: &Mind<'_>, files: &[String]) -> Option<String> {
    let seen = &mind.seen;
    let read = seen
        .calls()
        .filter(|called| called.reads().is_some() || called.name == "LoadSkill");
    let texts = read.map(|called| {
        let lines = called.result.lines();
        let plain = lines.map(|line| line.split_once('\t').map_or(line, |(_, line)| line));
        plain.collect::<Vec<_>>().join("\n")
    });
    let mut texts: Vec<String> = texts.collect();
    texts.push(mind.request.instructions.clone());
    mind.test
        .clone()
        .or_else(|| texts.iter().find_map(|text| project::command_in(text)))
        .or_else(|| project::command_of(files))
}

/// The skill whose words meet the task's, if one is offered and none was loaded.
fn skill(mind: &Mind<'_>, acts: &Acts<'_>) -> Option<String> {
    if mind.seen.calls().any(|called| called.name == "LoadSkill") {
        return None;
    }
    let offer = acts.offer("LoadSkill", "name")?;
    let task = stems(&mind.seen.task);
    let skills = offer.description.lines().filter_map(|line| {
        let line = line.trim().trim_start_matches(['-', '*']).trim_start();
        let (name, about) = line.split_once(": ")?;
        let name = name.trim_matches(['`', '*', '"']);
        let plain = !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        plain.then(|| (name.to_owned(), stems(&format!("{name} {about}"))))
    });
    let shared = |stems: &[String]| stems.iter().filter(|stem| task.contains(stem)).count();
    let rated = skills.map(|(name, stems)| (shared(&stems), name));
    let fitting = rated.filter(|(shared, _)| *shared >= 2);
    // Among equals the first.
    let best = fitting.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.map(|(_, name)| name)
}

/// The beginnings of the words of a text, once each.
fn stems(text: &str) -> Vec<String> {
    const COMMON: [&str; 8] = [
        "with", "that", "this", "when", "from", "them", "then", "what",
    ];
    let mut stems: Vec<String> = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        let stem: String = word.to_lowercase().chars().take(5).collect();
        if stem.chars().count() >= 4 && !COMMON.contains(&stem.as_str()) && !stems.contains(&stem) {
            stems.push(stem);
        }
    }
    stems
}

fn listed(parts: &[String]) -> String {
    match parts {
        [] => "look around".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
