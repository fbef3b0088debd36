//! What is shown in the place of a value does not take its place in a file.

use std::fs;

use crate::tools::tests::files::Bench;

#[test]
fn what_stands_for_a_value_does_not_overwrite_it() {
    let mut bench = Bench::new();
    let env = "HOST=a\nPASSWORD=Tr0ub4dor-and-3\n";
    bench.put(".env", env);
    let mut text = bench.said(&bench.write(".env", "HOST=b\nPASSWORD=[secret]\n"));
    for edit in [
        ("Tr0ub4dor-and-3", "[secret]"),
        ("HOST=a\nPASSWORD=[secret]", "HOST=b\nPASSWORD=[secret]"),
    ] {
        text += &bench.said(&bench.edit(".env", &[edit]));
    }
    assert_eq!(fs::read_to_string(bench.at(".env")).unwrap(), env);
    text += &bench.said(&bench.edit(".env", &[("HOST=a", "HOST=b")]));
    // Where it stood before it may stand again, also elsewhere.
    bench.put("hosts.toml", "[secret]\nkey = 1\n");
    text += &bench.said(&bench.write("hosts.toml", "key = 2\n\n[secret]\n"));
    text += &bench.said(&bench.write("new.toml", "[secret]\nkey = 1\n"));
    insta::assert_snapshot!(text, @"
    error: `.env`: not written, `[secret]` only stands for a value that is not shown, and would take its place. Change other lines with Edit, without that text in `old` or `new`; if the characters themselves are meant, write them with a command.
    error: `.env`: not changed, `[secret]` only stands for a value that is not shown, and would take its place. Change other lines with Edit, without that text in `old` or `new`; if the characters themselves are meant, write them with a command.
    error: `.env`: not changed, `old` is not in the file. `[secret]` only stands for a value that is not shown: leave it out of `old`. The nearest text, lines 1–2:
    HOST=a
    PASSWORD=Tr0ub4dor-and-3
    ok: Edited `.env`.
    @@ -1,2 +1,2 @@
    -HOST=a
    +HOST=b
     PASSWORD=Tr0ub4dor-and-3

    ok: Replaced `hosts.toml` (3 lines).
    ok: Created `new.toml` (2 lines).
    [`[secret]` stands in it as it is, not the value that is shown so]
    ");
}
