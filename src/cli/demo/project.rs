//! The project that the demo works on: a small shop's till in sh, awk and grep, and its tests.

use std::borrow::Cow;
use std::path::Path;
use std::{fs, io};

use crate::cli::changes::patch;
use crate::cli::demo::data;

/// A file: its path below the workspace, and its text.
pub(crate) type File = (&'static str, Cow<'static, str>);

/// The command that tells whether the project is well.
pub(crate) const TEST: &str = "sh tests/run.sh";

macro_rules! written {
    ($($path:literal),* $(,)?) => {
        [$(($path, Cow::Borrowed(include_str!(concat!("till/", $path))))),*]
    };
}

/// Every file of the project in health.
pub(crate) fn files() -> Vec<File> {
    let written = written![
        ".agents/skills/mend-the-till/SKILL.md",
        ".agents/skills/month-end/SKILL.md",
        "AGENTS.md",
        "README.md",
        "bin/find-article",
        "bin/till",
        "docs/CHANGES.md",
        "docs/barcodes.md",
        "docs/dates.md",
        "docs/discounts.md",
        "docs/format.md",
        "docs/money.md",
        "docs/parcels.md",
        "docs/points.md",
        "docs/stock.md",
        "docs/tax.md",
        "docs/vouchers.md",
        "lib/barcode.awk",
        "lib/dates.awk",
        "lib/discount.awk",
        "lib/format.awk",
        "lib/main.awk",
        "lib/money.awk",
        "lib/parcel.awk",
        "lib/parse.awk",
        "lib/points.awk",
        "lib/stock.awk",
        "lib/tax.awk",
        "lib/voucher.awk",
        "tests/cases/discount.expected",
        "tests/cases/discount.tsv",
        "tests/cases/mixed.expected",
        "tests/cases/mixed.tsv",
        "tests/cases/single.expected",
        "tests/cases/single.tsv",
        "tests/cases/tax.expected",
        "tests/cases/tax.tsv",
        "tests/cases/missing.expected",
        "tests/cases/missing.tsv",
        "tests/cases/half.expected",
        "tests/cases/half.tsv",
        "tests/differ.awk",
        "tests/run.sh",
        "tests/unit/all.awk",
        "tests/unit/barcode.awk",
        "tests/unit/dates.awk",
        "tests/unit/discount.awk",
        "tests/unit/format.awk",
        "tests/unit/money.awk",
        "tests/unit/parcel.awk",
        "tests/unit/parse.awk",
        "tests/unit/points.awk",
        "tests/unit/stock.awk",
        "tests/unit/tax.awk",
        "tests/unit/voucher.awk",
    ];
    let mut files = Vec::from(written);
    files.extend(data::files());
    files
}

/// Whether a bug may be in this file.
pub(crate) fn is_source(path: &str) -> bool {
    path.starts_with("lib/")
}

/// Lays files out in a directory.
pub(crate) fn lay_out(directory: &Path, files: &[File]) -> io::Result<()> {
    for (path, text) in files {
        let path = directory.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text.as_bytes())?;
    }
    Ok(())
}

/// What became of the files in a directory, as a unified diff. A file that is gone reads as an
/// empty one.
pub(crate) fn diff(directory: &Path, files: &[File]) -> String {
    let mut diff = String::new();
    for (path, before) in files {
        let after = fs::read(directory.join(path)).unwrap_or_default();
        let after = String::from_utf8_lossy(&after);
        if after != *before {
            let hunks = patch::hunks(before.as_bytes(), after.as_bytes(), 1);
            let hunks = String::from_utf8_lossy(&hunks);
            diff.extend([&format!("--- {path}\n+++ {path}\n"), &*hunks]);
        }
    }
    diff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_is_laid_out_and_compared() {
        let dir = tempfile::tempdir().unwrap();
        let files = files();
        lay_out(dir.path(), &files).unwrap();
        assert_eq!(diff(dir.path(), &files), "");
        let tax = dir.path().join("lib/tax.awk");
        let text = fs::read_to_string(&tax).unwrap();
        fs::write(&tax, text.replace("return 19", "return 16")).unwrap();
        let expected = "--- lib/tax.awk\n+++ lib/tax.awk\n@@ -10,3 +10,3 @@\n     }\n-    return 19\n\
                        +    return 16\n }\n";
        assert_eq!(diff(dir.path(), &files), expected);
    }

    /// What stands in the directory is what is laid out.
    #[test]
    fn no_file_is_forgotten() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/demo/till");
        let mut found = Vec::new();
        let mut left = vec![root.clone()];
        while let Some(directory) = left.pop() {
            for file in fs::read_dir(directory).unwrap() {
                let path = file.unwrap().path();
                if path.is_dir() {
                    left.push(path);
                } else {
                    found.push(
                        path.strip_prefix(&root)
                            .unwrap()
                            .to_str()
                            .unwrap()
                            .to_owned(),
                    );
                }
            }
        }
        let made = data::files();
        let laid: Vec<_> = files().into_iter().map(|(path, _)| path).collect();
        for path in &found {
            assert!(laid.contains(&path.as_str()), "{path}");
        }
        assert_eq!(laid.len(), found.len() + made.len());
    }
}
