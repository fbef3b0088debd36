//! What a provider counted, in any of the spellings that are known.

use crate::exchange::Usage;
use crate::model::loose::{Object, Value};
use crate::setup::UsageProfile;

/// The counts that an object holds. What is missing, negative or no number stays absent.
pub(crate) fn read(usage: &Object<'_>) -> Usage {
    let details = |names: [&str; 2]| {
        let found = names.iter().find_map(|name| usage.object(name));
        found.unwrap_or_default()
    };
    let count = |object: &Object<'_>, names: &[&str]| {
        let mut counts = names
            .iter()
            .filter_map(|name| object.get(name).and_then(Value::count));
        counts.next()
    };
    let read = details(["prompt_tokens_details", "input_tokens_details"]);
    let written = details(["completion_tokens_details", "output_tokens_details"]);
    let cached = count(&read, &["cached_tokens"]);
    let cache_write = count(&read, &["cache_write_tokens", "cache_creation_tokens"]);
    let reasoning = count(&written, &["reasoning_tokens"]);
    let mut new = Usage {
        input: count(
            usage,
            &["prompt_tokens", "input_tokens", "prompt_token_count"],
        ),
        cached: cached.or(count(
            usage,
            &[
                "prompt_cache_hit_tokens",
                "cached_tokens",
                "cache_read_input_tokens",
                "cached_content_token_count",
            ],
        )),
        cache_write: cache_write.or(count(usage, &["cache_creation_input_tokens"])),
        output: count(
            usage,
            &[
                "completion_tokens",
                "output_tokens",
                "candidates_token_count",
            ],
        ),
        reasoning: reasoning.or(count(usage, &["reasoning_tokens", "thoughts_token_count"])),
    };
    if let Some(total) = count(usage, &["total_tokens", "total_token_count"]) {
        complete(&mut new, total);
    }
    new
}

/// Fills in what follows from the sum of all tokens.
fn complete(usage: &mut Usage, total: u64) {
    match (usage.input, usage.output) {
        (Some(input), None) => usage.output = total.checked_sub(input),
        (None, Some(output)) => usage.input = total.checked_sub(output),
        (Some(input), Some(output)) => {
            // Some providers count reasoning beside the output.
            let more = total.saturating_sub(input).saturating_sub(output);
            if more > 0 && Some(more) == usage.reasoning {
                usage.output = Some(output + more);
            }
        }
        (None, None) => {}
    }
}

/// The last known counts: new ones, and old ones where there is no new one. `None` if there are none.
pub(crate) fn last_known(old: Option<Usage>, new: Usage) -> Option<Usage> {
    if new == Usage::default() {
        return old;
    }
    let old = old.unwrap_or_default();
    // A nought after a count was never counted.
    let last = |new: Option<u64>, old: Option<u64>| new.filter(|n| *n > 0).or(old).or(new);
    Some(Usage {
        input: last(new.input, old.input),
        cached: last(new.cached, old.cached),
        cache_write: last(new.cache_write, old.cache_write),
        output: last(new.output, old.output),
        reasoning: last(new.reasoning, old.reasoning),
    })
}

/// The counts in our words, in which tokens from a cache and those written to it are among the ones
/// read.
pub(crate) fn whole(usage: Usage, profile: &UsageProfile) -> Usage {
    if !profile.cached_apart {
        return usage;
    }
    let apart = usage
        .cached
        .unwrap_or(0)
        .saturating_add(usage.cache_write.unwrap_or(0));
    Usage {
        input: usage.input.map(|input| input.saturating_add(apart)),
        ..usage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `input/cached/written/output/reasoning`, with `-` for what is not known.
    fn shown(usage: Usage) -> String {
        let Usage {
            input,
            cached,
            cache_write,
            output,
            reasoning,
        } = usage;
        [input, cached, cache_write, output, reasoning]
            .map(|count| count.map_or("-".to_owned(), |count| count.to_string()))
            .join("/")
    }

    #[test]
    fn every_spelling_is_read() {
        for (json, expected) in [
            ("{}", "-/-/-/-/-"),
            (
                r#"{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}"#,
                "9/-/-/2/-",
            ),
            (
                r#"{"prompt_tokens":9,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":3}}"#,
                "9/8/-/5/3",
            ),
            (
                r#"{"input_tokens":9,"output_tokens":2,"input_tokens_details":{"cached_tokens":8},"output_tokens_details":{"reasoning_tokens":1}}"#,
                "9/8/-/2/1",
            ),
            (
                r#"{"prompt_tokens":9,"completion_tokens":2,"prompt_cache_hit_tokens":8,"prompt_cache_miss_tokens":1}"#,
                "9/8/-/2/-",
            ),
            (r#"{"prompt_tokens":9,"cached_tokens":8}"#, "9/8/-/-/-"),
            (
                r#"{"input_tokens":9,"output_tokens":2,"cache_read_input_tokens":8,"cache_creation_input_tokens":7}"#,
                "9/8/7/2/-",
            ),
            (
                r#"{"prompt_token_count":9,"candidates_token_count":2,"cached_content_token_count":8,"thoughts_token_count":4,"total_token_count":15}"#,
                "9/8/-/6/4",
            ),
            (
                r#"{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":8,"cache_write_tokens":1}}"#,
                "9/8/1/-/-",
            ),
            (
                r#"{"prompt_tokens":"9","completion_tokens":2.0}"#,
                "9/-/-/2/-",
            ),
            (
                r#"{"prompt_tokens":-1,"input_tokens":9,"completion_tokens":null,"output_tokens":"many"}"#,
                "9/-/-/-/-",
            ),
            (r#"{"prompt_tokens":9,"total_tokens":11}"#, "9/-/-/2/-"),
            (r#"{"completion_tokens":2,"total_tokens":11}"#, "9/-/-/2/-"),
            (r#"{"prompt_tokens":9,"total_tokens":1}"#, "9/-/-/-/-"),
        ] {
            assert_eq!(
                shown(read(&Object::read(json).unwrap())),
                expected,
                "{json}"
            );
        }
    }

    #[test]
    fn the_last_known_counts_stay() {
        let read = |json| read(&Object::read(json).unwrap());
        let first = last_known(None, read(r#"{"prompt_tokens":9,"completion_tokens":1}"#));
        let second = last_known(first, read(r#"{"completion_tokens":2}"#));
        assert_eq!(shown(second.unwrap()), "9/-/-/2/-");
        assert_eq!(last_known(second, read("{}")), second);
        assert_eq!(last_known(None, read("{}")), None);
    }

    #[test]
    fn what_is_counted_apart_is_added() {
        let usage = Usage {
            input: Some(1),
            cached: Some(8),
            cache_write: Some(7),
            ..Usage::default()
        };
        for (cached_apart, expected) in [(false, "1/8/7/-/-"), (true, "16/8/7/-/-")] {
            assert_eq!(
                shown(whole(usage, &UsageProfile { cached_apart })),
                expected
            );
        }
    }
}
