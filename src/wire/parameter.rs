//! Parameters that a provider turns out not to take.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::setup::ParameterProfile;

/// Members without which there is no request.
const NEEDED: [&str; 6] = [
    "model",
    "messages",
    "input",
    "instructions",
    "tools",
    "stream",
];
/// The two names of the most tokens of output.
const MOST: [&str; 2] = ["max_completion_tokens", "max_tokens"];

/// Whether there is no request without a member of this name.
pub(super) fn is_needed(name: &str) -> bool {
    NEEDED.contains(&name)
}

/// The member of a request that a provider speaks of when it names a parameter; `None` if the
/// request has no such member or cannot do without it.
pub fn named(body: &[u8], parameter: &str) -> Option<String> {
    let name = parameter
        .split(['.', '[', '/'])
        .find(|part| !part.is_empty())?;
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(body).ok()?;
    (!is_needed(name) && members.contains_key(name)).then(|| name.to_owned())
}

/// Leaves a parameter out from here on; of the most tokens of output, the other name is tried first.
/// `false` if it was left out already.
pub fn leave_out(profile: &mut ParameterProfile, parameter: &str) -> bool {
    if !profile.takes(parameter) {
        return false;
    }
    profile.leave_out.push(parameter.to_owned());
    let other = MOST
        .iter()
        .find(|name| **name != parameter && profile.takes(name));
    if let Some(other) = other.filter(|_| profile.max_output_tokens == parameter) {
        profile.max_output_tokens = (*other).to_owned();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_request_carries_and_can_do_without_is_left_out() {
        let body = br#"{"model":"m","stream":true,"reasoning":{"effort":"low"},"temperature":0,"messages":[]}"#;
        for (parameter, expected) in [
            ("temperature", Some("temperature")),
            ("reasoning.effort", Some("reasoning")),
            ("messages[1].reasoning_content", None),
            ("model", None),
            ("stream", None),
            ("top_p", None),
            ("", None),
        ] {
            assert_eq!(named(body, parameter).as_deref(), expected, "{parameter}");
        }
        assert_eq!(named(b"[", "temperature"), None);
    }

    #[test]
    fn each_parameter_is_left_out_once() {
        let mut profile = ParameterProfile::default();
        let steps = [
            "temperature",
            "temperature",
            "max_completion_tokens",
            "max_completion_tokens",
            "max_tokens",
        ];
        let told: Vec<String> = steps
            .iter()
            .map(|name| {
                format!(
                    "{} {}",
                    leave_out(&mut profile, name),
                    profile.max_output_tokens
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                "true max_completion_tokens",
                "false max_completion_tokens",
                "true max_tokens",
                "false max_tokens",
                "true max_tokens"
            ]
        );
        assert_eq!(
            profile.leave_out,
            ["temperature", "max_completion_tokens", "max_tokens"]
        );
    }
}
