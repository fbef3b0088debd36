//! What compaction does, as the settings say.

use crate::config::choice::{Keeping, SummaryChoice};
use crate::config::section::{CompactionSection, RuleSection};
use crate::config::value::not_blank;
use crate::difference;
use crate::setup::{Compaction, Rule};

/// Lays a section over what was there.
pub(super) fn put_compaction(section: CompactionSection, compaction: &mut Compaction) {
    let CompactionSection {
        enabled,
        estimate,
        default_rule,
        micro,
        auto,
        summary,
        tool,
        hooks,
        rules,
    } = section;
    enabled.put(&mut compaction.enabled);
    estimate.put(&mut compaction.estimate);
    default_rule.put(&mut compaction.default_rule);

    let target = &mut compaction.micro;
    micro.enabled.put(&mut target.enabled);
    micro.keep_recent.put(&mut target.keep_recent);
    micro.min_chars.put(&mut target.min_chars);
    micro.min_gain_tokens.put(&mut target.min_gain_tokens);
    micro
        .min_gain_ratio
        .map(|r| r.0)
        .put(&mut target.min_gain_ratio);
    let cold_after = micro.cold_after.map(|time| time.0);
    cold_after.put(&mut target.cold_after_ms);
    micro.exempt.put(&mut target.exempt);
    micro.arguments.put(&mut target.arguments);

    let target = &mut compaction.auto;
    auto.enabled.put(&mut target.enabled);
    let threshold = auto.token_threshold.map(u64::from);
    threshold.put(&mut target.token_threshold);
    auto.trigger_ratio
        .map(|r| r.0)
        .put(&mut target.trigger_ratio);
    auto.target_ratio.map(|r| r.0).put(&mut target.target_ratio);
    auto.tail_ratio.map(|r| r.0).put(&mut target.tail_ratio);
    auto.bands_ratio.map(|r| r.0).put(&mut target.bands_ratio);
    auto.min_rounds.put(&mut target.min_rounds);
    auto.on_failure.put(&mut target.on_failure);

    let target = &mut compaction.summary;
    summary
        .max_tokens
        .map(u64::from)
        .put(&mut target.max_tokens);
    let words = summary.instructions.map(not_blank);
    words.put(&mut target.instructions);

    let target = &mut compaction.tool;
    tool.enabled.put(&mut target.enabled);
    tool.min_ratio.map(|r| r.0).put(&mut target.min_ratio);
    tool.cooldown_rounds.put(&mut target.cooldown_rounds);

    let target = &mut compaction.hooks;
    hooks.before.map(not_blank).put(&mut target.before);
    hooks.after.map(not_blank).put(&mut target.after);
    hooks
        .timeout
        .map(|time| time.0.0)
        .put(&mut target.timeout_ms);

    for (name, section) in rules {
        put_rule(section, compaction.rules.entry(name).or_default());
    }
}

fn put_rule(section: RuleSection, rule: &mut Rule) {
    let RuleSection {
        reasoning,
        tools,
        attachments,
        dedup,
        summary,
        keep_first,
        keep_last,
    } = section;
    let strip = reasoning.map(|keeping| keeping == Keeping::Strip);
    strip.put(&mut rule.strip_reasoning);
    let own = rule.tools.unwrap_or_default();
    tools
        .map(|choice| choice.map(|choice| choice.over(own)))
        .put(&mut rule.tools);
    let strip = attachments.map(|keeping| keeping == Keeping::Strip);
    strip.put(&mut rule.strip_attachments);
    dedup.put(&mut rule.dedup);
    if let Some(SummaryChoice(words)) = summary.get() {
        rule.summary = words.is_some();
        let words = words.unwrap_or_default();
        rule.focus = words.focus;
        rule.instructions = words.instructions;
    }
    keep_first.put(&mut rule.keep_first);
    keep_last.put(&mut rule.keep_last);
}

/// Which rule a name that is none of these may mean, as the end of a sentence.
pub fn rule_hint<'a>(rules: impl Iterator<Item = &'a String>, name: &str) -> String {
    let names: Vec<&str> = rules.map(String::as_str).collect();
    match closest(name, &names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there is {}", names.join(", ")),
    }
}

/// The one of these names that looks most like a name that none of them is.
pub fn closest<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    let close = difference::close(name, names, 1, 0.6);
    close.first().copied()
}
