//! What looks like a secret is masked, and next to nothing else: held against recorded runs.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use undertext::secret::Masks;

use crate::corpus::corpus;

/// The most of a file that is read, in bytes.
const MOST: usize = 1 << 20;

/// Every text in these files and below: how many lines there are, and what became of those that
/// changed.
fn look(path: &Path, lines: &mut usize, changed: &mut Vec<String>) {
    if path.is_dir() {
        let mut below: Vec<_> = fs::read_dir(path)
            .unwrap()
            .map(|it| it.unwrap().path())
            .collect();
        below.sort();
        return below.iter().for_each(|path| look(path, lines, changed));
    }
    let Ok(file) = fs::File::open(path) else {
        return;
    };
    let mut file = BufReader::new(file);
    let (masks, mut read, mut line) = (Masks::default(), 0, Vec::new());
    while read < MOST
        && file
            .read_until(b'\n', &mut line)
            .is_ok_and(|bytes| bytes > 0)
    {
        read += line.len();
        *lines += 1;
        let text = String::from_utf8_lossy(&line);
        // What is recorded as JSON holds many lines of text.
        *lines += text.matches("\\n").count();
        let shown = masks.document(&text);
        for (at, _) in shown.match_indices("[masked: ") {
            let from = (at.saturating_sub(60)..=at).find(|from| shown.is_char_boundary(*from));
            let to = (at + 30..shown.len()).find(|to| shown.is_char_boundary(*to));
            let around = &shown[from.unwrap_or(at)..to.unwrap_or(shown.len())];
            changed.push(format!("{}: {around}", path.display()));
        }
        line.clear();
    }
}

#[test]
fn of_recorded_runs_nearly_all_stays() {
    let (mut lines, mut changed) = (0, Vec::new());
    look(&corpus().0, &mut lines, &mut changed);
    println!(
        "{} of {lines} lines:\n{}",
        changed.len(),
        changed.join("\n")
    );
    assert!(lines > 100);
    assert!(
        changed.len() * 1000 <= lines,
        "{} of {lines} are masked",
        changed.len()
    );
}
