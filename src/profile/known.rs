//! What is known of models: the most tokens they take and give, and what these cost.
//!
//! The facts stand in `models.yaml` with their source and the date they were right. They count where
//! the settings say nothing, and whoever uses them says from when they are.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::profile::embedded;
use crate::setup::Prices;

/// What is known of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its provider, as the profile is called.
    pub provider: &'static str,
    /// The most tokens of a request.
    pub window: u64,
    /// The most tokens of a response; absent: not told.
    pub output: Option<u64>,
    /// What tokens cost.
    pub prices: Prices,
    /// The size of a request, in tokens, above which they cost more than that.
    pub dearer_above: Option<u64>,
    /// The day on which this was right.
    pub as_of: &'static str,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// Where the facts are from.
    #[serde(rename = "source")]
    _source: String,
    as_of: String,
    models: BTreeMap<String, Vec<Row>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    window: u64,
    output: Option<u64>,
    dearer_above: Option<u64>,
    prices: Listed,
}

/// Prices in US dollars per million tokens.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    input: f64,
    cached: Option<f64>,
    cache_write: Option<f64>,
    output: f64,
}

/// Makers whose models cost the same wherever they are served: who passes requests on to them passes
/// on their prices.
const MAKERS: [(&str, &str); 4] = [
    ("openai", "openai"),
    ("anthropic", "anthropic"),
    ("google", "gemini"),
    ("x-ai", "xai"),
];

/// What is known of a model that is spoken to by this profile.
pub fn known(profile: &str, model: &str) -> Option<Known> {
    let model = plain(model);
    let provider = match profile {
        "azure" => "openai",
        profile if profile.starts_with("openrouter") => "openrouter",
        profile => profile,
    };
    if let Some(known) = row(provider, &model) {
        return Some(known);
    }
    let (prefix, name) = match model.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, model.as_str()),
    };
    // LiteLLM's names begin with the provider.
    if let ("litellm", Some(prefix)) = (provider, prefix)
        && let Some(known) = row(prefix, name)
    {
        return Some(known);
    }
    MAKERS
        .iter()
        .filter(|(maker, _)| prefix.is_none_or(|prefix| prefix == *maker))
        .find_map(|(_, provider)| row(provider, name))
}

fn table() -> &'static Table {
    static TABLE: LazyLock<Table> = LazyLock::new(|| {
        // That it can be read is tested.
        embedded(include_str!("models.yaml")).unwrap_or_default()
    });
    &TABLE
}

fn row(provider: &str, model: &str) -> Option<Known> {
    let table = table();
    let (provider, rows) = table.models.get_key_value(provider)?;
    let row = rows.iter().find(|row| plain(&row.name) == model)?;
    let prices = row.prices;
    let input = micro(prices.input);
    Some(Known {
        provider,
        window: row.window,
        output: row.output,
        prices: Prices {
            input_usd_micro: input,
            cached_usd_micro: prices.cached.map_or(input, micro),
            cache_write_usd_micro: prices.cache_write.map_or(input, micro),
            output_usd_micro: micro(prices.output),
        },
        dearer_above: row.dearer_above,
        as_of: &table.as_of,
    })
}

/// Dollars as micro-dollars.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "prices of the table, which are small and positive"
)]
fn micro(dollars: f64) -> u64 {
    (dollars * 1e6).round() as u64
}

/// A name as it is compared: in lower case, with hyphens for dots, without the day of a release.
fn plain(name: &str) -> String {
    let name = name.to_lowercase().replace('.', "-");
    let is_day = |day: &str| {
        let digits = day.replace('-', "");
        digits.len() == 8
            && digits.starts_with("20")
            && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    // 20250929, or 2025-08-07.
    for length in [8, 10] {
        let at = name.len().saturating_sub(length);
        if let Some((base, day)) = name.split_at_checked(at)
            && is_day(day)
            && let Some(base) = base.strip_suffix('-')
        {
            return base.to_owned();
        }
    }
    name
}
