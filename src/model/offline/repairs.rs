//! The plain repairs of a line: everything that is tried, in no order yet.

use crate::model::offline::idea::{Idea, Repair};
use crate::model::offline::known::{Known, Line, distance};
use crate::model::offline::lex::{Kind, Language};

const KEYWORDS: &[&str] = &[
    "if", "while", "for", "until", "switch", "return", "function", "print", "printf", "elif",
];

/// Everything that is tried on a line. `texts` are the strings of the file, nearest first.
pub(super) fn ideas(line: &Line<'_>, known: &Known, texts: &[&str]) -> Vec<Idea> {
    if line.is_dangerous() {
        return Vec::new();
    }
    let mut ideas = Ideas {
        line,
        list: Vec::new(),
    };
    for (index, token) in line.tokens.iter().enumerate() {
        match token.kind {
            Kind::Operator => ideas.operator(index),
            Kind::Number => ideas.number(index),
            Kind::Column => ideas.column(index),
            Kind::Word => {
                ideas.name(index, known);
                ideas.call(index);
            }
            Kind::Text => ideas.text(index, texts),
            Kind::Other => ideas.other(index),
        }
        ideas.missing_step(index);
    }
    if line.language == Language::Shell {
        ideas.shell_call(known);
    }
    ideas.list
}

struct Ideas<'a> {
    line: &'a Line<'a>,
    list: Vec<Idea>,
}

impl Ideas<'_> {
    fn put(&mut self, repair: Repair, span: (usize, usize), new: &str) {
        let idea = Idea {
            repair,
            span,
            new: new.to_owned(),
        };
        if !self
            .list
            .iter()
            .any(|other| other.span == idea.span && other.new == idea.new)
        {
            self.list.push(idea);
        }
    }

    /// Puts another text in the place of a token.
    fn swap(&mut self, repair: Repair, index: usize, new: &str) {
        if let Some(token) = self.line.tokens.get(index) {
            self.put(repair, (token.from, token.to), new);
        }
    }

    /// Whether a value ends before this token.
    fn after_value(&self, index: usize) -> bool {
        let Some(before) = index.checked_sub(1) else {
            return false;
        };
        match self.line.kind(before) {
            Some(Kind::Word) => !KEYWORDS.contains(&self.line.token(before)),
            Some(Kind::Number | Kind::Text | Kind::Column) => true,
            Some(Kind::Other) => matches!(self.line.token(before), ")" | "]" | "}"),
            Some(Kind::Operator) | None => false,
        }
    }

    fn operator(&mut self, index: usize) {
        use Repair::{Bound, Direction, Equality, Factor, Logic, Negation, Sign};
        let line = self.line;
        let binary = self.after_value(index);
        let turns = !line.loops();
        let redirects = line.text.trim_start().starts_with("print") && line.token(index) == ">";
        let all: &[(Repair, &str)] = match line.token(index) {
            "<" => &[(Bound, "<="), (Direction, ">")],
            "<=" => &[(Bound, "<"), (Direction, ">=")],
            ">" if redirects => &[],
            ">" => &[(Bound, ">="), (Direction, "<")],
            ">=" => &[(Bound, ">"), (Direction, "<=")],
            "-lt" => &[(Bound, "-le"), (Direction, "-gt")],
            "-le" => &[(Bound, "-lt"), (Direction, "-ge")],
            "-gt" => &[(Bound, "-ge"), (Direction, "-lt")],
            "-ge" => &[(Bound, "-gt"), (Direction, "-le")],
            "==" => &[(Equality, "!=")],
            "!=" => &[(Equality, "==")],
            "-eq" => &[(Equality, "-ne")],
            "-ne" => &[(Equality, "-eq")],
            "~" => &[(Equality, "!~")],
            "!~" => &[(Equality, "~")],
            "-n" => &[(Negation, "-z")],
            "-z" => &[(Negation, "-n")],
            "&&" => &[(Logic, "||")],
            "||" => &[(Logic, "&&")],
            "+" if binary && turns => &[(Sign, "-")],
            "-" if binary && turns => &[(Sign, "+")],
            "+=" if turns => &[(Sign, "-=")],
            "-=" if turns => &[(Sign, "+=")],
            "*" | "%" if binary && turns => &[(Factor, "/")],
            "/" if binary && turns => &[(Factor, "*")],
            "*=" if turns => &[(Factor, "/=")],
            "/=" if turns => &[(Factor, "*=")],
            _ => &[],
        };
        for (repair, new) in all {
            if *repair != Direction || turns {
                self.swap(*repair, index, new);
            }
        }
        if line.token(index) == "!" {
            self.drop_negation(index);
        }
        self.extra_step(index);
    }

    fn drop_negation(&mut self, index: usize) {
        let (Some(token), Some(next)) =
            (self.line.tokens.get(index), self.line.tokens.get(index + 1))
        else {
            return;
        };
        let kept = next.text(self.line.text);
        self.put(Repair::Negation, (token.from, next.to), kept);
    }

    /// Leaves `+ 1` out.
    fn extra_step(&mut self, index: usize) {
        let line = self.line;
        let step = matches!(line.token(index), "+" | "-") && line.token(index + 1) == "1";
        if !step || !self.after_value(index) || line.loops() {
            return;
        }
        if let (Some(before), Some(one)) = (line.tokens.get(index - 1), line.tokens.get(index + 1))
        {
            self.put(Repair::Step, (before.from, one.to), before.text(line.text));
        }
    }

    /// Adds `+ 1` or `- 1` behind a value.
    fn missing_step(&mut self, index: usize) {
        let line = self.line;
        let Some(token) = line.tokens.get(index) else {
            return;
        };
        let value = matches!(token.kind, Kind::Word | Kind::Column)
            && !KEYWORDS.contains(&line.token(index))
            && line.language != Language::Shell;
        let ends = matches!(line.token(index + 1), ")" | "," | ";" | "]" | "")
            || line.token(index + 1) == "}";
        let within = line.tokens.iter().take(index).any(|before| {
            matches!(
                before.text(line.text),
                "(" | "=" | "return" | "print" | "[" | "+="
            )
        });
        if value
            && ends
            && within
            && !line.loops()
            && !line.text.trim_start().starts_with("function")
        {
            let text = line.token(index).to_owned();
            for step in ["+ 1", "- 1"] {
                self.put(
                    Repair::NoStep,
                    (token.from, token.to),
                    &format!("{text} {step}"),
                );
            }
        }
    }

    fn number(&mut self, index: usize) {
        let line = self.line;
        let Some(token) = line.tokens.get(index) else {
            return;
        };
        let (before, after) = (&line.text[..token.from], &line.text[token.to..]);
        if before.ends_with(['&', '>', '-', '/']) && line.language == Language::Shell
            || after.starts_with(['>', '<'])
        {
            return;
        }
        let text = token.text(line.text);
        let Ok(number) = text.parse::<u64>() else {
            return;
        };
        if let Some(more) = number.checked_add(1) {
            self.swap(Repair::Number, index, &more.to_string());
        }
        if let Some(less) = number.checked_sub(1) {
            self.swap(Repair::Number, index, &less.to_string());
        }
        let digits: Vec<char> = text.chars().collect();
        for at in 1..digits.len() {
            let mut other = digits.clone();
            other.swap(at - 1, at);
            if other != digits && other.first() != Some(&'0') {
                let other: String = other.into_iter().collect();
                self.swap(Repair::Digits, index, &other);
            }
        }
    }

    fn column(&mut self, index: usize) {
        let Ok(column) = self
            .line
            .token(index)
            .trim_start_matches('$')
            .parse::<u32>()
        else {
            return;
        };
        for other in [column.saturating_add(1), column.saturating_sub(1)] {
            if other > 0 && column > 0 {
                self.swap(Repair::Column, index, &format!("${other}"));
            }
        }
    }

    fn name(&mut self, index: usize, known: &Known) {
        let name = self.line.token(index).to_owned();
        match name.as_str() {
            "true" => self.swap(Repair::Truth, index, "false"),
            "false" => self.swap(Repair::Truth, index, "true"),
            _ => {}
        }
        if !self.is_name(index) {
            return;
        }
        let often = known.names.get(&name).copied().unwrap_or_default();
        let mut near: Vec<(usize, usize, &String)> = known
            .names
            .iter()
            .filter(|(other, count)| **other != name && **count >= often)
            .filter(|(other, _)| name.len() >= 3 && other.len().abs_diff(name.len()) <= 2)
            .filter_map(|(other, count)| {
                let far = distance(&name, other);
                let most = if name.len() >= 5 && often <= 1 { 2 } else { 1 };
                (far <= most).then_some((far, usize::MAX - count, other))
            })
            .collect();
        near.sort();
        for (_, _, other) in near.into_iter().take(2) {
            self.swap(Repair::Name, index, other);
        }
    }

    /// Whether a word stands for something; in the shell most words are only themselves.
    fn is_name(&self, index: usize) -> bool {
        let Some(token) = self.line.tokens.get(index) else {
            return false;
        };
        let (before, after) = (&self.line.text[..token.from], &self.line.text[token.to..]);
        self.line.language != Language::Shell
            || before.trim().is_empty()
            || before.ends_with(['$', '{'])
            || after.starts_with('=')
    }

    /// Exchanges neighbouring arguments of a call, and negates a plain condition.
    fn call(&mut self, index: usize) {
        let line = self.line;
        if line.token(index + 1) != "(" || line.token(0) == "function" {
            return;
        }
        if matches!(line.token(index), "if") {
            self.negate(index + 2);
        }
        if KEYWORDS.contains(&line.token(index)) {
            return;
        }
        let arguments = line.arguments(index + 1);
        self.exchange(&arguments);
    }

    fn exchange(&mut self, arguments: &[(usize, usize)]) {
        let line = self.line.text;
        for pair in arguments.windows(2) {
            let [(a, b), (c, d)] = pair else {
                continue;
            };
            let new = format!("{}{}{}", &line[*c..*d], &line[*b..*c], &line[*a..*b]);
            if line[*a..*b] != line[*c..*d] {
                self.put(Repair::Arguments, (*a, *d), &new);
            }
        }
    }

    /// Puts a negation before the value that begins here.
    fn negate(&mut self, index: usize) {
        let line = self.line;
        if matches!(line.kind(index), Some(Kind::Word)) {
            let compared = line.tokens.iter().any(|token| {
                matches!(
                    token.text(line.text),
                    "<" | ">" | "<=" | ">=" | "==" | "!=" | "~" | "!~"
                )
            });
            if !compared {
                let text = format!("!{}", line.token(index));
                self.swap(Repair::Negation, index, &text);
            }
        }
    }

    fn text(&mut self, index: usize, texts: &[&str]) {
        let own = self.line.token(index);
        let plain = |text: &str| {
            let inner = text.trim_matches(['"', '\'']);
            !inner.is_empty() && inner.len() <= 24 && !inner.contains(['%', '\\', '$'])
        };
        if !plain(own) {
            return;
        }
        let others = texts
            .iter()
            .filter(|text| **text != own && plain(text) && text.starts_with(&own[..1]));
        let mut others: Vec<&str> = others.copied().collect();
        others.truncate(4);
        for other in others {
            self.swap(Repair::Text, index, other);
        }
    }

    /// The shell's `=` within brackets, and the brackets themselves.
    fn other(&mut self, index: usize) {
        let line = self.line;
        let tests = line.token(index) == "="
            && line
                .text
                .get(..line.tokens[index].from)
                .is_some_and(|head| head.ends_with(' ') && head.contains('['))
            && line.language == Language::Shell;
        if tests {
            self.swap(Repair::Equality, index, "!=");
        }
        let begins = index.checked_sub(1).is_none_or(|before| {
            matches!(
                line.token(before),
                "if" | "elif" | "while" | "until" | "&&" | "||"
            )
        });
        if line.token(index) == "[" && begins && line.language == Language::Shell {
            self.swap(Repair::Negation, index, "! [");
        }
        if line.token(index) == "(" && index == 0 {
            self.negate(1);
        }
    }

    /// A function of the shell is called without brackets.
    fn shell_call(&mut self, known: &Known) {
        let text = self.line.text;
        let mut pieces = Vec::new();
        let mut from = None;
        for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
            match (from, c.is_whitespace()) {
                (None, false) => from = Some(at),
                (Some(begin), true) => {
                    pieces.push((begin, at));
                    from = None;
                }
                (None, true) | (Some(_), false) => {}
            }
        }
        let calls = pieces
            .first()
            .is_some_and(|(from, to)| known.functions.contains_key(&text[*from..*to]));
        let simple = pieces
            .iter()
            .all(|(from, to)| !text[*from..*to].contains(['(', ')', ';', '|', '{', '}', '>', '<']));
        if calls && simple {
            self.exchange(&pieces[1..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::offline::known;

    #[track_caller]
    fn check(path: &str, text: &str, number: usize, expected: &[&str]) {
        let mut known = Known::default();
        known.add_source(path, text);
        let lines = known::lines(path, text);
        let line = lines.iter().find(|line| line.number == number).unwrap();
        let made: Vec<String> = ideas(line, &known, &["\"red\"", "\"blue\""])
            .into_iter()
            .map(|idea| {
                format!(
                    "{:?} {} > {}",
                    idea.repair,
                    &line.text[idea.span.0..idea.span.1],
                    idea.new
                )
            })
            .collect();
        assert_eq!(made, expected);
    }

    #[test]
    fn each_kind_of_token_has_its_repairs() {
        check(
            "a.awk",
            "if ($3 >= 21 || !seen) x -= n - 1",
            1,
            &[
                "Column $3 > $4",
                "Column $3 > $2",
                "Bound >= > >",
                "Direction >= > <=",
                "Number 21 > 22",
                "Number 21 > 20",
                "Digits 21 > 12",
                "Logic || > &&",
                "Negation !seen > seen",
                "NoStep seen > seen + 1",
                "NoStep seen > seen - 1",
                "Sign -= > +=",
                "Sign - > +",
                "Step n - 1 > n",
                "Number 1 > 2",
                "Number 1 > 0",
            ],
        );
        check(
            "a.awk",
            "function area(width, height) { return width * height }\n{ print area(width, heigth), \"red\" }",
            2,
            &[
                "Arguments width, heigth > heigth, width",
                "NoStep width > width + 1",
                "NoStep width > width - 1",
                "Name heigth > height",
                "NoStep heigth > heigth + 1",
                "NoStep heigth > heigth - 1",
                "Text \"red\" > \"blue\"",
            ],
        );
        check(
            "a.sh",
            "if [ \"$a\" -lt 3 ]; then",
            1,
            &[
                "Negation [ > ! [",
                "Bound -lt > -le",
                "Direction -lt > -gt",
                "Number 3 > 4",
                "Number 3 > 2",
            ],
        );
        check(
            "a.sh",
            "area() {\n}\narea \"$2\" \"$1\"",
            3,
            &[
                "Column $2 > $3",
                "Column $2 > $1",
                "Column $1 > $2",
                "Arguments \"$2\" \"$1\" > \"$1\" \"$2\"",
            ],
        );
        check("a.sh", "rm -f $1 && b=$((c + 2))", 1, &[]);
        check(
            "a.awk",
            "while (i < 3) i = i + 1",
            1,
            &[
                "Bound < > <=",
                "Number 3 > 4",
                "Number 3 > 2",
                "Number 1 > 2",
                "Number 1 > 0",
            ],
        );
    }
}
