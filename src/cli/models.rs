//! The models of a run: which server they are asked at, what is known of them, and what of it a
//! person is told.

use undertext::id::RunId;
use undertext::profile::{self, Known, known};
use undertext::setup::{Models, Prices, Setup};

use crate::cli::amount;
use crate::cli::exit::Failure;
use crate::cli::start::Start;

/// The models of a run that is begun or taken up. A run that is taken up keeps its model unless
/// another one is named, and what was learned of that model's window.
pub(super) fn models(start: &Start, before: Option<&Setup>, run: RunId) -> Result<Models, Failure> {
    let mut settings = start.settings.clone();
    let main = before.map(|before| &before.wire.models.main);
    if let Some(main) = main {
        let model = &mut settings.model;
        let name = model.name.get_or_insert_with(|| main.name.clone());
        if *name == main.name {
            model.window = model.window.or(main.window);
        }
    }
    let Some(mut models) = settings.models(start.server()) else {
        return Err(Failure::usage("the run names no model; name one with -m"));
    };
    // A fork finds in the cache what its parent left there.
    let key = main.and_then(|main| main.parameters.cache_key.clone());
    let key = key.unwrap_or_else(|| run.to_string());
    let Models {
        main,
        summary,
        fallback,
    } = &mut models;
    let each = [Some(main), summary.as_mut(), fallback.as_mut()];
    for model in each.into_iter().flatten() {
        let wanted = model.profile.cache.key;
        model.parameters.cache_key = wanted.then(|| key.clone());
    }
    Ok(models)
}

/// What tokens cost: as the settings say, else as is known of the model; and the line that tells it.
/// Nobody is let run up to a sum that cannot be counted.
pub(super) fn prices(
    start: &Start,
    models: &Models,
) -> Result<(Option<Prices>, Option<String>), Failure> {
    let main = &models.main;
    let known = start
        .server()
        .and_then(|_| known(&main.profile.name, &main.name));
    match (&start.settings.policy.prices, known) {
        (Some(prices), _) => {
            let told = format!("prices: {}, as your settings say", listed(prices));
            Ok((Some(prices.clone()), Some(told)))
        }
        (None, Some(known)) => {
            let told = format!("prices: {}", of_known(&known));
            Ok((Some(known.prices), Some(told)))
        }
        (None, None) if start.settings.policy.limits.cost_usd_micro.is_some() => {
            Err(Failure::usage(format!(
                "prices unknown: cost is not counted for {}, so that limits.cost cannot hold; give \
                 model.prices.input and model.prices.output",
                main.name
            )))
        }
        (None, None) => Ok((None, None)),
    }
}

/// `$1.25 read, $0.125 cached, $10 written, per million tokens (2026-09-06)`
pub(super) fn of_known(known: &Known) -> String {
    let more = known.dearer_above.map_or_else(String::new, |above| {
        format!("; requests above {} tokens cost more", amount::count(above))
    });
    format!(
        "{}, as listed on {}{more}",
        listed(&known.prices),
        known.as_of
    )
}

/// `$1.25 in, $0.125 cached, $10 out per million tokens`
pub(super) fn listed(prices: &Prices) -> String {
    let Prices {
        input_usd_micro: input,
        cached_usd_micro: cached,
        cache_write_usd_micro: written,
        output_usd_micro: output,
    } = prices;
    let differs = |price: &u64, word: &str| {
        let text = format!(", {} {word}", dollars(*price));
        if price == input { String::new() } else { text }
    };
    format!(
        "{} in{}{}, {} out per million tokens",
        dollars(*input),
        differs(cached, "cached"),
        differs(written, "written to the cache"),
        dollars(*output)
    )
}

/// `$0.125`
fn dollars(micro: u64) -> String {
    let text = format!("${}.{:06}", micro / 1_000_000, micro % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What a person should know where a run goes on at another server than it may have been begun at.
pub(super) fn moved(start: &Start, before: Option<&Setup>) -> Option<String> {
    let before = before?;
    let asked = profile::origin(start.server()?);
    let guessed = start.settings.server.base_url.is_none();
    match &before.wire.models.main.server {
        Some(server) if Some(server) != asked.as_ref() => Some(format!(
            "this run asked {server} before; name it with --base-url to ask there again"
        )),
        Some(_) => None,
        None => guessed.then(|| {
            "this run does not record which server it used before; name one with --base-url if \
             it was another"
                .to_owned()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_told_in_a_line() {
        let prices = |input, cached, written, output| Prices {
            input_usd_micro: input,
            cached_usd_micro: cached,
            cache_write_usd_micro: written,
            output_usd_micro: output,
        };
        for (prices, expected) in [
            (
                prices(1_250_000, 125_000, 1_250_000, 10_000_000),
                "$1.25 in, $0.125 cached, $10 out per million tokens",
            ),
            (
                prices(3_000_000, 300_000, 3_750_000, 15_000_000),
                "$3 in, $0.3 cached, $3.75 written to the cache, $15 out per million tokens",
            ),
            (prices(0, 0, 0, 0), "$0 in, $0 out per million tokens"),
        ] {
            assert_eq!(listed(&prices), expected);
        }
        assert_eq!(
            of_known(&known("openai", "gpt-5.4").unwrap()),
            "$2.5 in, $0.25 cached, $15 out per million tokens, as listed on 2026-09-06; \
             requests above 272,000 tokens cost more"
        );
    }
}
