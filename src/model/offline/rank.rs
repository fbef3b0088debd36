//! Puts repairs in order: by the file, by the line, by what the failure looks like, and by what is odd
//! about the code itself.

use std::collections::BTreeSet;

use crate::model::offline::change::Change;
use crate::model::offline::clues::{Clues, Likeness};
use crate::model::offline::idea::{Idea, Repair};
use crate::model::offline::known::{self, Known, Line, distance};
use crate::model::offline::lex::{Kind, Language};
use crate::model::offline::repairs;

/// A repair with what speaks for it.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) score: i32,
    pub(super) path: String,
    pub(super) change: Change,
}

/// Phrases for bounds that are included or not, and the comparison that they mean.
const BOUNDS: &[(&str, &str)] = &[
    ("at least", ">="),
    ("or more", ">="),
    ("from", ">="),
    ("and above", ">="),
    ("minimum", ">="),
    ("more than", ">"),
    ("over", ">"),
    ("exceed", ">"),
    ("at most", "<="),
    ("up to", "<="),
    ("or less", "<="),
    ("or fewer", "<="),
    ("maximum", "<="),
    ("less than", "<"),
    ("fewer than", "<"),
    ("below", "<"),
    ("under", "<"),
];

/// Every repair of a file, best first. `place` is how many files are suspected more.
pub(super) fn candidates(
    path: &str,
    text: &str,
    place: usize,
    known: &Known,
    clues: &Clues,
) -> Vec<Candidate> {
    let lines = known::lines(path, text);
    let judge = Judge {
        path,
        place,
        lines: &lines,
        known,
        clues,
    };
    let wanted: Vec<String> = clues
        .wanted
        .iter()
        .map(|word| format!("\"{word}\""))
        .collect();
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut header = "";
    for line in &lines {
        if !line.text.starts_with([' ', '\t', '}']) {
            header = line.text;
        }
        let mut texts: Vec<&str> = wanted.iter().map(String::as_str).collect();
        if line.tokens.iter().any(|token| token.kind == Kind::Text) {
            texts.extend(texts_near(&lines, line.number));
        }
        let about = judge.line(line, header);
        for idea in repairs::ideas(line, known, &texts) {
            let change = Change::new(line.number, line.text, idea.span, &idea.new);
            candidates.extend(change.map(|change| Candidate {
                score: about + judge.idea(line, &idea),
                path: path.to_owned(),
                change,
            }));
        }
    }
    // Among equals the first.
    candidates.sort_by_key(|candidate| -candidate.score);
    candidates
}

/// The strings of a file, those of near lines first.
fn texts_near<'a>(lines: &'a [Line<'a>], number: usize) -> Vec<&'a str> {
    let mut texts: Vec<(usize, &str)> = Vec::new();
    for line in lines {
        for token in line.tokens.iter().filter(|token| token.kind == Kind::Text) {
            texts.push((line.number.abs_diff(number), token.text(line.text)));
        }
    }
    texts.sort_by_key(|(far, _)| *far);
    let mut met = BTreeSet::new();
    texts.retain(|(_, text)| met.insert(*text));
    texts.into_iter().map(|(_, text)| text).collect()
}

struct Judge<'a> {
    path: &'a str,
    place: usize,
    lines: &'a [Line<'a>],
    known: &'a Known,
    clues: &'a Clues,
}

impl Judge<'_> {
    /// What speaks for a line, whatever is done to it.
    fn line(&self, line: &Line<'_>, header: &str) -> i32 {
        let place = i32::try_from(self.place).unwrap_or(100);
        let mut score = 12 - 3 * place.min(6);
        for (path, number) in &self.clues.places {
            if self.path.ends_with(path.as_str()) {
                score += match line.number.abs_diff(*number) {
                    0 => 40,
                    1..=3 => 20,
                    _ => 0,
                };
            }
        }
        let about = format!("{header} {}", line.text).to_lowercase();
        // The first words are the most telling ones, and names tell more than other words.
        let told = (0..).zip(&self.clues.words).map(|(place, word)| {
            let weight = match (place, word.contains('_')) {
                (0, true) => 14,
                (1, true) => 8,
                (2, true) => 5,
                (0..=3, _) => 3,
                (_, _) => 1,
            };
            match (has_word(&about, word), about.contains(word.as_str())) {
                (true, _) => weight,
                (false, true) => weight / 2,
                (false, false) => 0,
            }
        });
        score + told.sum::<i32>().min(24)
    }

    /// What speaks for an idea on this line.
    fn idea(&self, line: &Line<'_>, idea: &Idea) -> i32 {
        usual(idea.repair)
            + alike(idea.repair, self.clues.likeness)
            + match idea.repair {
                Repair::Name => self.name(line, idea),
                Repair::Number | Repair::Digits => self.number(line, idea),
                Repair::Bound => self.bound(line, idea) + self.odd_one(line, idea),
                Repair::Direction | Repair::Equality | Repair::Logic | Repair::Sign => {
                    self.odd_one(line, idea)
                }
                Repair::Arguments => self.arguments(line, idea),
                Repair::Column => self.column(line, idea),
                Repair::Text => self.text(line, idea),
                Repair::Factor | Repair::Negation | Repair::Step | Repair::Truth => 0,
                Repair::NoStep => step(line, idea),
            }
    }

    /// A name that stands alone beside one that is known is most likely misspelt.
    fn name(&self, line: &Line<'_>, idea: &Idea) -> i32 {
        let old = &line.text[idea.span.0..idea.span.1];
        let known = self.known;
        let often = known.names.get(old).copied().unwrap_or_default();
        let far = i32::try_from(distance(old, &idea.new)).unwrap_or(9);
        if often != 1 {
            return -10 * far;
        }
        match (
            known.defined.contains(old),
            known.defined.contains(&idea.new),
        ) {
            // One of the two is used and never defined, or defined and never used.
            (false, true) | (true, false) => 85 - 30 * far,
            // Two names that are both right are seldom mistaken for each other.
            (true, true) => -10 * far,
            (false, false) => 20 - 10 * far,
        }
    }

    /// A number that no rule names, where its neighbour is named.
    fn number(&self, line: &Line<'_>, idea: &Idea) -> i32 {
        let old = &line.text[idea.span.0..idea.span.1];
        if old.len() < 2 && idea.new.len() < 2 {
            return 0;
        }
        match (self.is_told(old), self.is_told(&idea.new)) {
            (false, true) => 35,
            (true, false) => -10,
            (true, true) | (false, false) => 0,
        }
    }

    fn is_told(&self, number: &str) -> bool {
        self.known.lore.iter().any(|line| has_word(line, number))
    }

    /// A bound that the rules word otherwise.
    fn bound(&self, line: &Line<'_>, idea: &Idea) -> i32 {
        let index = line
            .tokens
            .iter()
            .position(|token| token.from == idea.span.0);
        let Some(number) = index
            .map(|index| line.token(index + 1))
            .filter(|number| number.len() > 1)
        else {
            return 0;
        };
        let old = plain(&line.text[idea.span.0..idea.span.1]);
        let new = plain(&idea.new);
        let lines = self.known.lore.iter().filter(|line| has_word(line, number));
        let told: Vec<&str> = lines
            .flat_map(|line| BOUNDS.iter().filter(|(phrase, _)| line.contains(phrase)))
            .map(|(_, comparison)| *comparison)
            .collect();
        match (told.contains(&old), told.contains(&new)) {
            (false, true) => 25,
            (true, false) => -10,
            (true, true) | (false, false) => 0,
        }
    }

    /// An operator that differs from those of lines of the same shape.
    fn odd_one(&self, line: &Line<'_>, idea: &Idea) -> i32 {
        let shape = shape(line, idea.span.0);
        let (mut as_now, mut as_then) = (0, 0);
        let now = &line.text[idea.span.0..idea.span.1];
        for other in self.lines {
            for token in other
                .tokens
                .iter()
                .filter(|token| token.kind == Kind::Operator)
            {
                if self::shape(other, token.from) == shape {
                    as_now += i32::from(token.text(other.text) == now);
                    as_then += i32::from(token.text(other.text) == idea.new);
                }
            }
        }
        if as_now == 1 && as_then >= 2 {
            20
        } else if as_now >= 3 && as_then == 0 {
            -6
        } else {
            0
        }
    }

    /// Arguments that are called as the parameters are, in another order.
    fn arguments(&self, line: &Line<'_>, idea: &Idea) -> i32 {
        let call = line.tokens.iter().enumerate().find_map(|(index, token)| {
            let parameters = self.known.functions.get(token.text(line.text))?;
            let spans = line.arguments(index + 1);
            let place = spans.iter().position(|span| span.0 == idea.span.0)?;
            Some((parameters, spans, place))
        });
        let Some((parameters, spans, place)) = call else {
            return 0;
        };
        let fits = |span: usize, parameter: usize| {
            let (Some((from, to)), Some(parameter)) = (spans.get(span), parameters.get(parameter))
            else {
                return 0;
            };
            let text = &line.text[*from..*to];
            i32::from(text == parameter) * 2 + i32::from(text.contains(parameter.as_str()))
        };
        let now = fits(place, place) + fits(place + 1, place + 1);
        let then = fits(place, place + 1) + fits(place + 1, place);
        match then.cmp(&now) {
            std::cmp::Ordering::Greater => 45,
            std::cmp::Ordering::Less => -10,
            std::cmp::Ordering::Equal => 0,
        }
    }

    /// A column that a neighbouring line takes as well, where the other one is taken by none.
    fn column(&self, line: &Line<'_>, idea: &Idea) -> i32 {
        // There they are arguments, which are taken in any order.
        if line.language == Language::Shell {
            return -6;
        }
        // What others are looked up by stands in many lines, and rightly so.
        if line.text[..idea.span.0].ends_with('[') {
            return 0;
        }
        let old = &line.text[idea.span.0..idea.span.1];
        let near = self
            .lines
            .iter()
            .filter(|other| other.number.abs_diff(line.number) <= 3);
        let mut counts = (0, 0);
        for token in
            near.flat_map(|other| other.tokens.iter().map(move |token| token.text(other.text)))
        {
            counts.0 += usize::from(token == old);
            counts.1 += usize::from(token == idea.new);
        }
        match counts {
            (2.., 0) => 25,
            (1, 1..) => -4,
            _ => 0,
        }
    }

    fn text(&self, line: &Line<'_>, idea: &Idea) -> i32 {
        let inner = |text: &str| text.trim_matches(['"', '\'']).to_lowercase();
        let old = inner(&line.text[idea.span.0..idea.span.1]);
        let new = inner(&idea.new);
        // The line has both already: one of them was meant to be another.
        let own = line.tokens.iter().filter(|token| token.kind == Kind::Text);
        let twice = own
            .filter(|token| inner(token.text(line.text)) == old)
            .count()
            > 1;
        let near = self.clues.words.contains(&new) || self.clues.words.contains(&old);
        i32::from(twice) * 25 + i32::from(near) * 6
    }
}

/// What is left over where a step was lost: brackets around one name, a name set to itself.
fn step(line: &Line<'_>, idea: &Idea) -> i32 {
    let (before, after) = (&line.text[..idea.span.0], &line.text[idea.span.1..]);
    let bare = before.strip_suffix('(').is_some_and(|before| {
        after.starts_with(')') && before.ends_with(|c: char| !(c.is_alphanumeric() || c == '_'))
    });
    let old = &line.text[idea.span.0..idea.span.1];
    let itself = before.trim() == format!("{old} =") && after.trim().is_empty();
    if bare || itself { 30 } else { 0 }
}

/// How often a repair is the one, by its kind.
fn usual(repair: Repair) -> i32 {
    match repair {
        Repair::Bound => 12,
        Repair::Sign | Repair::Logic | Repair::Column => 9,
        Repair::Number | Repair::Equality | Repair::Negation => 8,
        Repair::Digits | Repair::Arguments | Repair::Factor => 7,
        Repair::Step | Repair::Text | Repair::Truth => 6,
        Repair::Direction => 5,
        Repair::NoStep => 4,
        Repair::Name => 0,
    }
}

/// What the failure says of a kind of repair.
fn alike(repair: Repair, likeness: Likeness) -> i32 {
    let likely: &[Repair] = match likeness {
        Likeness::Unknown => &[Repair::Name, Repair::Arguments],
        Likeness::Near => &[Repair::Number, Repair::Bound, Repair::Step, Repair::NoStep],
        Likeness::Sign => &[Repair::Sign],
        Likeness::Digits => &[Repair::Digits],
        Likeness::Scale => &[Repair::Factor, Repair::Digits],
        Likeness::Missing => &[
            Repair::Equality,
            Repair::Negation,
            Repair::Logic,
            Repair::Bound,
        ],
        Likeness::Other => &[],
    };
    if likely.contains(&repair) { 10 } else { 0 }
}

/// Whether a text holds a number or name as a word of its own.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

/// A comparison of the shell as others write it.
fn plain(operator: &str) -> &str {
    match operator {
        "-lt" => "<",
        "-le" => "<=",
        "-gt" => ">",
        "-ge" => ">=",
        other => other,
    }
}

/// A line with names, numbers and one operator left open.
fn shape(line: &Line<'_>, operator: usize) -> String {
    let texts = line.tokens.iter().map(|token| match token.kind {
        Kind::Word if line.text[token.to..].starts_with('(') => "f",
        Kind::Word if matches!(token.text(line.text), "if" | "return" | "else") => {
            token.text(line.text)
        }
        Kind::Word => "w",
        Kind::Number => "1",
        Kind::Text => "t",
        Kind::Column => "c",
        Kind::Operator if token.from == operator => "_",
        Kind::Operator | Kind::Other => token.text(line.text),
    });
    texts.collect::<Vec<_>>().join(" ")
}
