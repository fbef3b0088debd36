//! The floors: a module imports only what stands above it in `src/lib.rs`.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// Every source file below a module's directory, or its one file, tests left out.
fn files(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            files(&entry.unwrap().path(), found);
        }
    } else if path.extension().is_some_and(|end| end == "rs") {
        let is_test = path
            .iter()
            .any(|part| part == "tests" || part == "tests.rs");
        found.extend((!is_test).then(|| path.to_owned()));
    }
}

#[test]
fn no_module_imports_one_that_stands_below_it() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let declared = Regex::new(r"(?m)^(?:pub(?:\(crate\))? )?mod (\w+);").unwrap();
    let named = Regex::new(r"\bcrate::(\w+)").unwrap();
    let lib = fs::read_to_string(src.join("lib.rs")).unwrap();
    let order: Vec<&str> = declared
        .captures_iter(&lib)
        .map(|found| found.get(1).unwrap().as_str())
        .collect();
    assert!(order.starts_with(&["id", "exchange"]), "{order:?}");
    for (place, module) in order.iter().enumerate() {
        let mut sources = Vec::new();
        files(&src.join(module), &mut sources);
        files(&src.join(format!("{module}.rs")), &mut sources);
        for path in sources.iter().filter(|path| path.exists()) {
            let text = fs::read_to_string(path).unwrap();
            let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            let code = (1..)
                .zip(text.lines())
                .filter(|(_, line)| !line.trim_start().starts_with("//"));
            for (number, line) in code {
                assert!(!line.contains("crate::{"), "one module an import: {line}");
                for name in named.captures_iter(line) {
                    let below = order.iter().position(|other| *other == &name[1]);
                    let sinks = below.is_some_and(|below| below > place);
                    assert!(!sinks, "{}:{number} imports {}", path.display(), &name[1]);
                }
            }
        }
    }
}
