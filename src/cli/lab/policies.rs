//! The policies that are tried: those that are built in, one's own, and those of files.

use std::path::{Path, PathBuf};

use undertext::config::{self, Layers, Origin, Sections, Sources};
use undertext::lab::Contender;
use undertext::setup::Compaction;

use crate::cli::Process;
use crate::cli::exit::Failure;
use crate::cli::lab::LabArgs;
use crate::cli::term::{Look, Term};

/// Names that no file goes by.
pub(super) const FOUND: &str = "found";
const YOURS: &str = "yours";

/// The most keys of a file that are named if they are left out.
const SHOWN: usize = 3;

/// Every policy that is tried, the first of which is no compaction.
pub(super) fn contenders(
    args: &LabArgs,
    process: &Process,
    term: &mut Term,
) -> Result<Vec<Contender>, Failure> {
    let mut contenders = vec![
        Contender::none(),
        Contender::each_chance(),
        Contender::built_in(),
    ];
    let sources = args
        .settings
        .sources(&process.environment, Sections::default());
    let yours = config::load(&sources)?.policy.compaction;
    if yours != Compaction::default() {
        contenders.push(Contender::new(YOURS, yours));
    }
    let mut files: Vec<(PathBuf, Compaction)> = Vec::new();
    for named in &args.policy {
        let path = process.here(named);
        if files.iter().all(|(known, _)| *known != path) {
            let policy = policy(named, &path, term)?;
            files.push((path, policy));
        }
    }
    let mut taken = vec![YOURS.to_owned(), FOUND.to_owned()];
    taken.extend(contenders.iter().map(|it| it.name.clone()));
    for (path, policy) in &files {
        let others = files.iter().map(|(other, _)| other);
        let others: Vec<&PathBuf> = others.filter(|other| *other != path).collect();
        contenders.push(Contender::new(name(path, &others, &taken), policy.clone()));
    }
    Ok(contenders)
}

/// The policy that a file describes; says what else stands there.
fn policy(named: &Path, path: &Path, term: &mut Term) -> Result<Compaction, Failure> {
    let layers = Layers::read(&Sources {
        files: vec![path.to_owned()],
        ..Sources::default()
    })?;
    let policy = layers.settings()?.policy.compaction;
    let mut others = Vec::new();
    let mut sets = false;
    for key in layers.in_force()? {
        if let Origin::File(_, line) = key.origin {
            if key
                .path
                .first()
                .is_some_and(|section| section == "compaction")
            {
                sets = true;
            } else {
                others.push((line, key.path.join(".")));
            }
        }
    }
    let named = named.display();
    if !sets {
        return Err(Failure::usage(format!(
            "{named} sets nothing in a `compaction:` section; a policy is what stands there"
        )));
    }
    others.sort();
    let first = others.iter().take(SHOWN).map(|(line, key)| match line {
        Some(line) => format!("`{key}` (line {line})"),
        None => format!("`{key}`"),
    });
    let first = first.collect::<Vec<_>>().join(", ");
    let left_out = match others.len().saturating_sub(SHOWN) {
        _ if first.is_empty() => return Ok(policy),
        0 => first,
        more => format!("{first} and {more} more"),
    };
    let text = format!("left out of {named}: {left_out}; a policy is its `compaction:` section");
    term.say(&[(Look::Faint, text)])?;
    Ok(policy)
}

/// The shortest end of a path that is no end of another and no name that is taken.
fn name(path: &Path, others: &[&PathBuf], taken: &[String]) -> String {
    let parts: Vec<_> = path.components().collect();
    let ends = (1..=parts.len()).map(|count| parts[parts.len() - count..].iter().collect());
    let mut ends = ends.filter(|end: &PathBuf| {
        let text = end.display().to_string();
        !taken.contains(&text) && !others.iter().any(|other| other.ends_with(end))
    });
    let end = ends.next();
    end.as_deref().unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_goes_by_the_shortest_end_that_tells_it_apart() {
        let taken = ["none".to_owned()];
        for (path, others, expected) in [
            ("/w/a/cheap.yaml", &[][..], "cheap.yaml"),
            ("/w/a/cheap.yaml", &["/w/b/cheap.yaml"], "a/cheap.yaml"),
            (
                "/w/a/cheap.yaml",
                &["/x/a/cheap.yaml", "/w/b/cheap.yaml"],
                "w/a/cheap.yaml",
            ),
            ("/cheap.yaml", &["/w/cheap.yaml"], "/cheap.yaml"),
            ("/w/none", &[], "w/none"),
        ] {
            let others: Vec<PathBuf> = others.iter().map(PathBuf::from).collect();
            let others: Vec<&PathBuf> = others.iter().collect();
            assert_eq!(name(Path::new(path), &others, &taken), expected, "{path}");
        }
    }
}
