//! The project's large files: a price list and the orders of three months.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::cli::demo::draw::Draw;
use crate::cli::demo::project::File;

/// The files, the same every time.
pub(crate) fn files() -> Vec<File> {
    let articles = articles();
    let mut files: Vec<File> = vec![
        ("data/prices.tsv", prices(&articles).into()),
        ("data/customers.tsv", customers().into()),
        ("docs/price-list.md", price_list(&articles).into()),
    ];
    for (path, month) in [
        ("data/orders-01.tsv", 1),
        ("data/orders-02.tsv", 2),
        ("data/orders-03.tsv", 3),
    ] {
        files.push((path, Cow::Owned(orders(month, &articles))));
    }
    files
}

/// The customers that the cases name.
const CUSTOMERS: [(&str, &str); 7] = [
    ("ada", "near"),
    ("bert", "far"),
    ("carl", "near"),
    ("dora", "far"),
    ("emil", "island"),
    ("frederick", "far"),
    ("gina", "near"),
];

fn customers() -> String {
    let mut text = String::from("# customer\tzone\tsince\n");
    let mut draw = Draw::new(11);
    for (name, zone) in CUSTOMERS {
        writeln!(text, "{name}\t{zone}\t{}", 2011 + draw.below(13)).ok();
    }
    for number in 1..=600 {
        let zone = draw.one(&["near", "near", "near", "far", "far", "island"]);
        writeln!(text, "guest-{number:03}\t{zone}\t{}", 2011 + draw.below(13)).ok();
    }
    text
}

/// What the shop sells.
struct Article {
    number: String,
    name: String,
    cents: u64,
    group: &'static str,
    grams: u64,
}

/// The number of articles.
const ARTICLES: u64 = 420;

/// The articles that the cases name.
const NAMED: [(&str, &str, u64, &str, u64); 7] = [
    ("B-0001", "Atlas", 1999, "book", 1450),
    ("F-0002", "Bread", 349, "food", 750),
    ("X-0003", "Candle", 125, "other", 60),
    ("B-0004", "Diary", 1050, "book", 310),
    ("F-0005", "Eggs", 236, "food", 400),
    ("X-0006", "Funnel", 298, "other", 95),
    ("S-0007", "Stamp", 85, "stamp", 1),
];

/// What the others are called.
const NAMES: [&str; 8] = [
    "Grater", "Honey", "Ink", "Jam", "Kettle", "Lamp", "Map", "Needles",
];

/// The groups of the others, and the letter that their numbers begin with.
const GROUPS: [(char, &str); 3] = [('B', "book"), ('F', "food"), ('X', "other")];

fn articles() -> Vec<Article> {
    let named = NAMED
        .iter()
        .map(|&(number, name, cents, group, grams)| Article {
            number: number.to_owned(),
            name: name.to_owned(),
            cents,
            group,
            grams,
        });
    let mut articles: Vec<Article> = named.collect();
    let mut draw = Draw::new(7);
    for number in NAMED.len() as u64 + 1..=ARTICLES {
        let (letter, group) = *draw.one(&GROUPS);
        articles.push(Article {
            number: format!("{letter}-{number:04}"),
            name: format!("{} {number}", draw.one(&NAMES)),
            cents: 50 + draw.below(4000),
            group,
            grams: 5 * (1 + draw.below(300)),
        });
    }
    articles
}

fn prices(articles: &[Article]) -> String {
    let mut text = String::from("# article\tname\tcents\tgroup\tgrams\n");
    for Article {
        number,
        name,
        cents,
        group,
        grams,
    } in articles
    {
        writeln!(text, "{number}\t{name}\t{cents}\t{group}\t{grams}").ok();
    }
    text
}

fn price_list(articles: &[Article]) -> String {
    let mut text = String::from(
        "# Price list\n\nAs it hangs on the wall: net, in euros. From 10 pieces on they are cheaper.\n\n\
         | article | | price |\n| --- | --- | --- |\n",
    );
    for article in articles {
        let (euros, cents) = (article.cents / 100, article.cents % 100);
        let Article { number, name, .. } = article;
        writeln!(text, "| {number} | {name} | {euros}.{cents:02} |").ok();
    }
    text
}

/// The orders of a month.
fn orders(month: u64, articles: &[Article]) -> String {
    const USUAL: [u32; 8] = [1, 2, 3, 5, 10, 12, 50, 100];
    let mut text = String::from("# order\tcustomer\tdate\tarticle\tquantity\n");
    let mut draw = Draw::new(month);
    for order in 1..=140_u64 {
        let head = format!(
            "{}\t{}\t2024-{month:02}-{:02}",
            month * 1000 + order,
            draw.one(&CUSTOMERS).0,
            order.div_ceil(5)
        );
        for _ in 0..=draw.below(4) {
            let article = draw.one(articles);
            writeln!(text, "{head}\t{}\t{}", article.number, draw.one(&USUAL)).ok();
        }
        if draw.below(9) == 0 {
            writeln!(text, "{head}\tV-{:04}\t1", 100 * (1 + draw.below(20))).ok();
        }
    }
    text
}
