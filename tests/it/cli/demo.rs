//! The demo as a person sees it.

use crate::cli::{Place, ended};

#[test]
fn the_demo_fits_the_terminal() {
    let place = Place::new();
    let mut command = place.command(&["demo"]);
    let ran = ended(command.env("COLUMNS", "80").spawn().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    // Paths and commands are there to be copied.
    let is_told = |line: &&str| !line.contains('/') || line.starts_with("  ");
    let wide: Vec<&str> = ran
        .out
        .lines()
        .filter(is_told)
        .filter(|line| line.chars().count() > 80)
        .collect();
    assert!(wide.is_empty(), "{wide:#?}");
}
