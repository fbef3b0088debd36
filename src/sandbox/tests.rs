//! What the bounds of a workspace are.

use std::path::Path;

use super::*;
use crate::setup::{Reach, Sandbox};

fn bounds(sandbox: &Sandbox) -> Bounds {
    let around = Home {
        directory: Some("/home/u".into()),
        programs: vec![
            "/home/u/bin".into(),
            "/srv/bin".into(),
            "/home/u".into(),
            "/home/u/w/bin".into(),
        ],
        ours: vec!["/home/u/.local/state/undertext".into()],
    };
    Bounds::of(sandbox, &["/home/u/w".into()], &around).unwrap()
}

#[test]
fn what_was_named_may_be_reached() {
    let reach = Reach {
        read: vec!["~/.cargo".into(), "data".into()],
        write: vec!["/srv/cache".into(), ".git".into()],
        ..Reach::default()
    };
    let workspace = bounds(&Sandbox::Workspace(reach.clone()));
    let written: [PathBuf; 3] = [
        "/home/u/w".into(),
        "/srv/cache".into(),
        "/home/u/w/.git".into(),
    ];
    assert_eq!(workspace.write, written);
    assert_eq!(workspace.unprotected, written[1..]);
    let own: Vec<_> = workspace
        .read
        .iter()
        .filter(|path| path.starts_with("/home/u"))
        .collect();
    assert_eq!(
        own,
        [
            Path::new("/home/u/bin"),
            Path::new("/home/u/.cargo"),
            Path::new("/home/u/w/data")
        ]
    );
    assert!(
        workspace
            .hidden
            .contains(&"/home/u/.cargo/credentials.toml".into())
    );
    assert!(
        workspace
            .hidden
            .contains(&"/home/u/.local/state/undertext".into())
    );
    assert!(!workspace.open);
    assert!(workspace.read.contains(&"/srv/bin".into()));
    assert_eq!(workspace.layered, [PathBuf::from("/home/u/.cargo")]);
    // What is missing outside the workspace would not last.
    let roots = ["/home/u/w".into()];
    assert_eq!(workspace.missing(&roots), Some(Path::new("/srv/cache")));

    let only = bounds(&Sandbox::ReadOnly(reach));
    assert_eq!(only.write, [] as [PathBuf; 0]);
    assert_eq!(only.roots, [PathBuf::from("/home/u/w")]);
    assert!(Bounds::of(&Sandbox::Off, &[], &Home::default()).is_none());
}

#[test]
fn bounds_travel_as_bytes() {
    let bounds = bounds(&Sandbox::Workspace(Reach::default()));
    let text = serde_json::to_string(&bounds).unwrap();
    assert_eq!(serde_json::from_str::<Bounds>(&text).unwrap(), bounds);
}

/// What a mechanism does not stop stands in the documentation, by the same name.
#[test]
fn what_is_left_open_is_told() {
    let told = include_str!("../../docs/trust.md");
    for (mechanism, column) in [(Mechanism::Namespaces, 2), (Mechanism::Landlock, 3)] {
        let enforced = Enforced {
            mechanism,
            landlock: 7,
            placeholders: Vec::new(),
            told: Vec::new(),
        };
        for (class, held) in stopped(&enforced, &Bounds::default()) {
            let Held::Open(_) = held else { continue };
            let start = format!("| {} |", class.label());
            let row = told.lines().find(|line| line.starts_with(&start));
            let said = row.and_then(|row| row.split('|').nth(column)).unwrap();
            let is_open = said.contains("not stopped**") || said.trim() == "the same";
            assert!(is_open, "{mechanism:?}: {start}{said}");
        }
    }
}
