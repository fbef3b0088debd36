//! Whether a provider takes the tools that a model is told of.

use crate::exchange::ToolSpec;
use crate::setup::Model;

/// How many names a message lists.
const LISTED: usize = 10;

/// A provider would refuse every request because of its tools.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// There are more than it takes.
    #[error(
        "{count} tools are more than the {most} that `{model}` takes; leave out {}", list(.beyond)
    )]
    TooMany {
        /// How many there are.
        count: usize,
        /// How many it takes.
        most: u32,
        /// The model.
        model: String,
        /// The names of those that are too many.
        beyond: Vec<String>,
    },
    /// It does not take these names.
    #[error(
        "`{model}` takes no tool named {}: a name begins with a letter or `_` and has at most {most} \
         letters, digits, `_` and `-`", list(.names)
    )]
    Names {
        /// The names.
        names: Vec<String>,
        /// How long a name may be.
        most: u32,
        /// The model.
        model: String,
    },
}

fn list(names: &[String]) -> String {
    let quoted = |name: &String| format!("`{}`", name.escape_debug());
    let mut text = names
        .iter()
        .take(LISTED)
        .map(quoted)
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > LISTED {
        text = format!("{text} and {} more", names.len() - LISTED);
    }
    text
}

/// Checks that a model can be told of these tools.
pub fn check(tools: &[ToolSpec], model: &Model) -> Result<(), Unfit> {
    let profile = &model.profile.tools;
    let (name, names) = (model.name.clone(), tools.iter().map(|tool| &tool.name));
    let wrong: Vec<String> = names
        .clone()
        .filter(|name| !is_name(name, profile.name_max))
        .cloned()
        .collect();
    if !wrong.is_empty() {
        return Err(Unfit::Names {
            names: wrong,
            most: profile.name_max,
            model: name,
        });
    }
    let beyond: Vec<String> = names.skip(profile.max as usize).cloned().collect();
    if !beyond.is_empty() {
        return Err(Unfit::TooMany {
            count: tools.len(),
            most: profile.max,
            model: name,
            beyond,
        });
    }
    Ok(())
}

fn is_name(name: &str, most: u32) -> bool {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let goes_on = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    begins && name.len() <= most as usize && name.chars().all(goes_on)
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;
    use crate::exchange::ToolMeta;

    fn told(names: &[&str]) -> String {
        let tool = |name: &&str| ToolSpec {
            name: (*name).to_owned(),
            description: String::new(),
            schema: RawValue::NULL.to_owned(),
            meta: ToolMeta::default(),
        };
        let tools: Vec<ToolSpec> = names.iter().map(tool).collect();
        let mut model = Model::named("m");
        model.profile.tools.max = 3;
        check(&tools, &model).map_or_else(|unfit| unfit.to_string(), |()| "fit".into())
    }

    #[test]
    fn case_51_tools_that_no_request_can_carry_are_named() {
        let long = "a".repeat(65);
        for (names, expected) in [
            (&["Read", "_x", "a-1"][..], "fit"),
            (
                &["a.b", "Read", "9x", "-", ""],
                "`m` takes no tool named `a.b`, `9x`, `-`, ``: a name begins with a letter or `_` and has at most 64 letters, digits, `_` and `-`",
            ),
            (
                &["a", "b", "c", "d", "e"],
                "5 tools are more than the 3 that `m` takes; leave out `d`, `e`",
            ),
            (
                &["größe\n"],
                "`m` takes no tool named `größe\\n`: a name begins with a letter or `_` and has at most 64 letters, digits, `_` and `-`",
            ),
        ] {
            assert_eq!(told(names), expected);
        }
        assert!(told(&[&long]).contains(&long));
        let many: Vec<String> = (0..20).map(|n| format!("t{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(told(&many).ends_with("`t11`, `t12` and 7 more"));
    }
}
