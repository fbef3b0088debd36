//! The project that the demo works on: a few awk programs with two bugs, and its tests.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use similar::TextDiff;

/// A file: its path below the workspace, and its text.
type File = (&'static str, Cow<'static, str>);

macro_rules! written {
    ($($path:literal),* $(,)?) => {
        [$(($path, Cow::Borrowed(include_str!(concat!("till/", $path))))),*]
    };
}

/// Every file as the model finds it.
pub(crate) fn files() -> Vec<File> {
    let written: [File; 21] = written![
        "README.md",
        "bin/till",
        "docs/CHANGES.md",
        "docs/discounts.md",
        "docs/format.md",
        "docs/tax.md",
        "lib/discount.awk",
        "lib/format.awk",
        "lib/main.awk",
        "lib/parse.awk",
        "lib/tax.awk",
        "tests/cases/discount.expected",
        "tests/cases/discount.tsv",
        "tests/cases/mixed.expected",
        "tests/cases/mixed.tsv",
        "tests/cases/single.expected",
        "tests/cases/single.tsv",
        "tests/cases/tax.expected",
        "tests/cases/tax.tsv",
        "tests/cases/unknown.expected",
        "tests/cases/unknown.tsv",
    ];
    let mut files = Vec::from(written);
    files.push((
        "tests/run.sh",
        Cow::Borrowed(include_str!("till/tests/run.sh")),
    ));
    files.push(("data/prices.tsv", prices().into()));
    for (path, month) in [
        ("data/orders-01.tsv", 1),
        ("data/orders-02.tsv", 2),
        ("data/orders-03.tsv", 3),
    ] {
        files.push((path, orders(month).into()));
    }
    files
}

/// Lays the project out in a directory.
pub(crate) fn lay_out(directory: &Path) -> io::Result<()> {
    for (path, text) in files() {
        let path = directory.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text.as_bytes())?;
    }
    Ok(())
}

/// What became of the files, as a unified diff. A file that is gone reads as an empty one.
pub(crate) fn diff(directory: &Path) -> String {
    let mut diff = String::new();
    for (path, before) in files() {
        let after = fs::read(directory.join(path)).unwrap_or_default();
        let after = String::from_utf8_lossy(&after);
        if after != before {
            let text = TextDiff::from_lines(before.as_ref(), after.as_ref());
            let text = text
                .unified_diff()
                .context_radius(1)
                .header(path, path)
                .to_string();
            diff.push_str(&text);
        }
    }
    diff
}

/// The number of articles.
const ARTICLES: u32 = 120;

/// What the articles are called, after those that the cases name.
const NAMES: [&str; 8] = [
    "Grater", "Honey", "Ink", "Jam", "Kettle", "Lamp", "Map", "Needles",
];

/// The group of an article, and the letter that its name begins with.
const GROUPS: [(char, &str); 3] = [('B', "book"), ('F', "food"), ('X', "other")];

/// The price list: the articles that the cases name, and more.
fn prices() -> String {
    let mut text = String::from("# article\tname\tcents\tgroup\n");
    text.push_str(
        "B-0001\tAtlas\t1999\tbook\nF-0002\tBread\t349\tfood\nX-0003\tCandle\t125\tother\n",
    );
    text.push_str(
        "B-0004\tDiary\t1050\tbook\nF-0005\tEggs\t236\tfood\nX-0006\tFunnel\t298\tother\n",
    );
    let mut draw = Draw(7);
    for number in 7..=ARTICLES {
        let (letter, group) = GROUPS[(number as usize + 2) % GROUPS.len()];
        let name = NAMES[number as usize % NAMES.len()];
        let cents = 50 + draw.below(4000);
        writeln!(
            text,
            "{letter}-{number:04}\t{name} {number}\t{cents}\t{group}"
        )
        .ok();
    }
    text
}

/// The orders of a month.
fn orders(month: u32) -> String {
    const CUSTOMERS: [&str; 6] = ["ada", "bert", "carl", "dora", "emil", "fred"];
    const USUAL: [u32; 8] = [1, 2, 3, 5, 10, 12, 50, 100];
    let mut text = String::from("# order\tcustomer\tarticle\tquantity\n");
    let mut draw = Draw(month);
    for order in 1..=70 {
        let number = month * 1000 + order;
        let customer = CUSTOMERS[draw.below(6) as usize];
        for _ in 0..=draw.below(4) {
            let article = 7 + draw.below(ARTICLES - 6);
            let (letter, _) = GROUPS[(article as usize + 2) % GROUPS.len()];
            let quantity = USUAL[draw.below(8) as usize];
            writeln!(
                text,
                "{number}\t{customer}\t{letter}-{article:04}\t{quantity}"
            )
            .ok();
        }
    }
    text
}

/// Numbers that look drawn and are the same every time.
struct Draw(u32);

impl Draw {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 16) % end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_is_laid_out_and_compared() {
        let dir = tempfile::tempdir().unwrap();
        lay_out(dir.path()).unwrap();
        assert_eq!(diff(dir.path()), "");
        let tax = dir.path().join("lib/tax.awk");
        let text = fs::read_to_string(&tax).unwrap();
        fs::write(&tax, text.replace("return 19", "return 16")).unwrap();
        let expected = "--- lib/tax.awk\n+++ lib/tax.awk\n@@ -7,3 +7,3 @@\n     }\n-    return 19\n\
                        +    return 16\n }\n";
        assert_eq!(diff(dir.path()), expected);
    }
}
