//! The words a model reads about the built-in tools, and how their calls are treated.
//!
//! They stand in `tools/*.yaml` at the top of the repository, one file a tool, and are embedded
//! at build. The schema of the arguments is not there: it is made from the type that reads them.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::exchange::{ToolMeta, ToolSpec};
use crate::profile::embedded;

/// The embedded files.
const FILES: &[&str] = &[
    include_str!("../../tools/bash.yaml"),
    include_str!("../../tools/compact.yaml"),
    include_str!("../../tools/edit.yaml"),
    include_str!("../../tools/glob.yaml"),
    include_str!("../../tools/grep.yaml"),
    include_str!("../../tools/job.yaml"),
    include_str!("../../tools/loadskill.yaml"),
    include_str!("../../tools/read.yaml"),
    include_str!("../../tools/recall.yaml"),
    include_str!("../../tools/todoread.yaml"),
    include_str!("../../tools/todowrite.yaml"),
    include_str!("../../tools/write.yaml"),
];

/// What one file says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    name: String,
    description: String,
    #[serde(default)]
    meta: ToolMeta,
}

static WORDS: LazyLock<Vec<Words>> = LazyLock::new(|| {
    #[expect(
        clippy::expect_used,
        reason = "the files are part of the program, and a test reads each of them"
    )]
    let read = |text| embedded(text).expect("an embedded tool file is well-formed");
    FILES.iter().copied().map(read).collect()
});

/// The spec of the built-in tool of this name with this schema.
///
/// A name that no file has gives a spec without description and with the usual meta.
pub fn spec(name: &str, schema: Box<RawValue>) -> ToolSpec {
    let words = WORDS.iter().find(|words| words.name == name);
    ToolSpec {
        name: name.to_owned(),
        description: words
            .map_or_else(String::new, |words| words.description.trim_end().to_owned()),
        schema,
        meta: words.map_or_else(ToolMeta::default, |words| words.meta.clone()),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::exchange::{Effect, Supersession};
    use crate::tools::schema;

    #[test]
    fn every_tool_has_words_and_the_meta_of_the_design() {
        let mut table = String::new();
        for words in WORDS.iter() {
            assert!(!words.description.trim().is_empty(), "{}", words.name);
            let spec = spec(&words.name, schema::of::<()>());
            let ToolMeta {
                effect,
                hint,
                exempt,
                labels,
                ..
            } = spec.meta;
            writeln!(
                table,
                "{}: {effect:?} {:?}/{:?} exempt={exempt} {labels:?}",
                spec.name, hint.request, hint.response
            )
            .unwrap();
        }
        insta::assert_snapshot!(table, @r#"
        Bash: Writes Keep/Strip exempt=false ["command"]
        Compact: Reads Keep/Keep exempt=true []
        Edit: Writes Strip/Strip exempt=false ["path"]
        Glob: Reads Keep/Strip exempt=false ["pattern", "path"]
        Grep: Reads Keep/Strip exempt=false ["pattern", "path"]
        Job: Writes Keep/Strip exempt=false ["job", "action"]
        LoadSkill: Reads Keep/Keep exempt=true ["name"]
        Read: Reads Keep/Strip exempt=false ["path"]
        Recall: Reads Keep/Strip exempt=false ["handle", "pattern"]
        TodoRead: Reads Keep/Keep exempt=true []
        TodoWrite: Reads Keep/Keep exempt=true []
        Write: Writes Strip/Keep exempt=false ["path"]
        "#);
    }

    #[test]
    fn a_read_is_superseded_by_path_and_range() {
        let meta = spec("Read", schema::of::<()>()).meta;
        assert_eq!(
            meta.supersession,
            Some(Supersession {
                key: Some("path".into()),
                range: Some(["offset".into(), "limit".into()]),
                stale_after: vec!["Write".into(), "Edit".into()],
            })
        );
        assert_eq!(meta.effect, Effect::Reads);
    }
}
