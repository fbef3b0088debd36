use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::setup::{CacheMarkers, CallIds, OutputFormat, Removable, SchemaForm, SendBack};

/// `profile: why`, as `doctor` says it.
fn chosen(base_url: &str, model: &str) -> String {
    let Choice { profile, why } = choose(&[], base_url, model);
    format!("{}: {why}", profile.name)
}

#[test]
fn a_profile_is_chosen_by_host_and_model() {
    let router = "https://openrouter.ai/api/v1";
    for (url, model, expected) in [
        (
            "https://api.openai.com/v1",
            "gpt-5",
            "openai: the host is api.openai.com",
        ),
        (
            "https://API.OpenAI.com:443/v1",
            "m",
            "openai: the host is api.openai.com",
        ),
        (
            "https://me.openai.azure.com/openai/v1",
            "m",
            "azure: the host is me.openai.azure.com",
        ),
        (
            router,
            "Anthropic/Claude-Opus-5",
            "openrouter-anthropic: the host is openrouter.ai, the model anthropic/*",
        ),
        (
            router,
            "google/gemini-2.5-pro",
            "openrouter-signed: the host is openrouter.ai, the model google/*",
        ),
        (
            router,
            "qwen/qwen3-coder",
            "openrouter: the host is openrouter.ai",
        ),
        (
            "https://eu-aiplatform.googleapis.com/v1beta1/x",
            "m",
            "gemini: the host is eu-aiplatform.googleapis.com",
        ),
        (
            "https://api.openai.com.evil.org/v1",
            "m",
            "compatible: no profile is for this server",
        ),
        (
            "http://127.0.0.1:11434/v1",
            "qwen3",
            "compatible: no profile is for this server",
        ),
        (
            "http://[::1]:8080/v1",
            "m",
            "compatible: no profile is for this server",
        ),
        ("nonsense", "m", "compatible: no profile is for this server"),
    ] {
        assert_eq!(chosen(url, model), expected);
    }
    let mine = Candidate {
        models: vec!["qwen*-coder".to_owned()],
        ..Candidate::default()
    };
    let choice = choose(&[mine], router, "qwen3-a-coder");
    assert_eq!(choice.why.to_string(), "the model is qwen*-coder");
}

/// The file can be read, holds no key that is not known, and no name twice.
#[test]
fn every_profile_says_what_is_understood() {
    let file = include_str!("profiles.yaml");
    let read: Vec<Candidate> = serde_saphyr::from_str(file).unwrap();
    assert_eq!(read, built_in());
    let said: Vec<Value> = serde_saphyr::from_str(file).unwrap();
    for (said, read) in said.iter().zip(&read) {
        let written = serde_json::to_value(&read.profile).unwrap();
        for (key, value) in said["profile"].as_object().unwrap() {
            match value.as_object() {
                None => assert_eq!(&written[key], value),
                Some(members) => {
                    for (member, value) in members {
                        assert_eq!(&written[key][member], value, "{key}.{member}");
                    }
                }
            }
        }
    }
    let names: BTreeSet<String> = names().into_iter().collect();
    assert_eq!(names.len(), read.len());
    assert!(names.contains(UNKNOWN));
}

#[test]
fn what_providers_do_differently_is_in_their_profiles() {
    let profile = |name: &str| named(name).unwrap();
    let mistral = profile("mistral");
    assert_eq!(mistral.calls.ids, CallIds::Nine);
    assert!(!mistral.messages.user_after_tool && mistral.messages.merges());
    assert_eq!(profile("deepseek").reasoning.removable, Removable::Never);
    assert_eq!(profile("deepseek").output.format, OutputFormat::JsonObject);
    assert_eq!(profile("groq").reasoning.send_back, SendBack::Never);
    assert!(!profile("groq").output.beside_tools);
    assert_eq!(profile("gemini").tools.schema, SchemaForm::Plain);
    let marked = profile("openrouter-anthropic");
    assert_eq!(marked.cache.markers, CacheMarkers::Request);
    assert!(profile("openai").cache.key && !openai().cache.key);
    assert!(!profile("ollama").parameters.takes("tool_choice"));
    assert_eq!(
        profile("compatible").parameters.max_output_tokens,
        "max_tokens"
    );
}

#[test]
fn of_a_server_scheme_host_and_port_are_recorded() {
    for (address, expected) in [
        (
            "https://API.example.org/v1",
            Some("https://api.example.org"),
        ),
        (
            "http://127.0.0.1:8080/v1?key=sk",
            Some("http://127.0.0.1:8080"),
        ),
        ("http://[::1]:8080/v1", Some("http://[::1]:8080")),
        ("https://h?key=sk#x", Some("https://h")),
        ("https://me:pa/ss@h/v1", None),
        ("https://", None),
        ("h/v1", None),
    ] {
        assert_eq!(origin(address).as_deref(), expected, "{address}");
    }
    assert!(is_azure(
        "https://me.openai.azure.com/openai/deployments/m?api-version=1"
    ));
    assert!(!is_azure("https://me.openai.azure.com/openai/v1"));
    assert!(!is_azure("https://h/openai/deployments/m"));
}

/// `provider window output, input cached write output` in micro-dollars.
fn shown(profile: &str, model: &str) -> Option<String> {
    let known = known(profile, model)?;
    let prices = known.prices;
    Some(format!(
        "{} {} {:?}, {} {} {} {}",
        known.provider,
        known.window,
        known.output,
        prices.input_usd_micro,
        prices.cached_usd_micro,
        prices.cache_write_usd_micro,
        prices.output_usd_micro,
    ))
}

#[test]
fn models_are_known_by_name_and_provider() {
    let gpt = "openai 272000 Some(128000), 1250000 125000 1250000 10000000";
    let opus = "anthropic 200000 Some(64000), 5000000 500000 6250000 25000000";
    for (profile, model, expected) in [
        ("openai", "gpt-5", Some(gpt)),
        ("openai", "GPT-5-2025-08-07", Some(gpt)),
        ("azure", "gpt-5", Some(gpt)),
        ("compatible", "gpt-5", Some(gpt)),
        ("openrouter-signed", "openai/gpt-5", Some(gpt)),
        ("litellm", "openai/gpt-5", Some(gpt)),
        (
            "openrouter-anthropic",
            "anthropic/claude-opus-4.5",
            Some(opus),
        ),
        ("anthropic", "claude-opus-4-5-20251101", Some(opus)),
        (
            "groq",
            "openai/gpt-oss-20b",
            Some("groq 131072 Some(65536), 75000 37500 75000 300000"),
        ),
        (
            "litellm",
            "deepseek/deepseek-v4-pro",
            Some("deepseek 1000000 Some(393216), 1320000 44000 1320000 3960000"),
        ),
        // What others serve has their own prices.
        ("compatible", "deepseek-v4-pro", None),
        ("openrouter", "openai/gpt-5:free", None),
        ("openai", "gpt-5-2025", None),
        ("openai", "", None),
    ] {
        assert_eq!(
            shown(profile, model).as_deref(),
            expected,
            "{profile} {model}"
        );
    }
    let known = known("openai", "gpt-5.4").unwrap();
    assert_eq!(known.dearer_above, Some(272_000));
    assert_eq!(known.as_of, "2026-09-06");
}

#[test]
fn no_proxy_stands_between_this_machine_and_itself() {
    for (url, here) in [
        ("http://localhost:1/v1", true),
        ("http://llm.localhost/v1", true),
        ("http://127.9.9.9/", true),
        ("https://[::1]:8080/", true),
        ("http://0.0.0.0:8000/v1", true),
        ("http://10.0.0.1/", false),
        ("http://localhost.example/", false),
        ("https://example.com/", false),
    ] {
        assert_eq!(is_here(url), here, "{url}");
    }
}
