//! The first page of help, which has groups of its own, broken between words where the terminal is
//! narrow, as the parser breaks all else.

use clap::{CommandFactory as _, FromArgMatches as _};

use crate::cli::{Cli, HELP, wrap};

/// Where the words for a command begin.
const WORDS: usize = 15;

/// What was typed, or the help or the error that it comes to, in lines of so many columns.
pub(crate) fn parse(width: Option<usize>) -> Result<Cli, clap::Error> {
    let mut command = Cli::command();
    if let Some(width) = width {
        command = command.help_template(fitted(HELP, width));
    }
    let mut matches = command.try_get_matches()?;
    let cli = Cli::from_arg_matches_mut(&mut matches);
    cli.map_err(|error| error.format(&mut Cli::command()))
}

/// What the parser says against what was typed, on one line: it adds how the command is used, which is
/// long and stands in its help.
pub(crate) fn refusal(text: &str) -> String {
    let is_help =
        |line: &&str| line.starts_with("Usage:") || line.starts_with("For more information");
    let mut told = String::new();
    for line in text
        .lines()
        .map(str::trim)
        .take_while(|line| !is_help(line))
    {
        if line.is_empty() {
            continue;
        }
        if !told.is_empty() {
            let goes_on = told.ends_with(':') || line.starts_with('[');
            told.push_str(if goes_on { " " } else { "; " });
        }
        told.push_str(line);
    }
    told.push_str("; see --help");
    told
}

/// The text in lines of so many columns.
fn fitted(text: &str, width: usize) -> String {
    let lines = text.lines().flat_map(|line| {
        let indent = if line.starts_with("  ") { WORDS } else { 0 };
        wrap::lines(line, width, indent)
    });
    let mut fitted: Vec<String> = lines.collect();
    fitted.push(String::new());
    fitted.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_of_the_first_page_is_broken() {
        assert_eq!(fitted(HELP, 80), HELP);
        for width in [40, 60] {
            let narrow = fitted(HELP, width);
            let longest = narrow.lines().map(str::len).max();
            assert!(longest <= Some(width), "{narrow}");
            let words = |text: &str| {
                text.split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            assert_eq!(words(&narrow), words(HELP));
        }
        let narrow = fitted(HELP, 60);
        let why = narrow.lines().skip_while(|line| !line.starts_with("  why"));
        insta::assert_snapshot!(why.take(2).collect::<Vec<_>>().join("\n"), @"
          why          See how an entry read in every request, and
                       what changed that
        ");
    }
}
