//! How long a server asks to wait: in headers, in members of its error, in words.
//!
//! Values that make no sense say nothing. Of several, the longest counts.

use crate::model::loose::whole;
use crate::transcript::At;

/// A wait beyond this makes no sense: a year.
const WAIT_MAX_MS: u64 = 366 * 24 * 3600 * 1000;
/// The longest wait until a limit is as if nothing had been asked that is kept: long before that,
/// there is room for a request again.
const RESET_MAX_MS: u64 = 60_000;

/// A header by which a server asks to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait<'a> {
    /// `retry-after-ms`.
    Milliseconds(&'a str),
    /// `retry-after`: seconds, a fraction, or an HTTP date.
    Seconds(&'a str),
    /// `x-ratelimit-reset` and the like, of a limit of which nothing remains: a duration, seconds,
    /// or a moment in seconds or milliseconds since 1970.
    Reset(&'a str),
}

/// The longest of the waits that a server asked for: in headers, in members of its error (read
/// already), in the words of its message, which is in lower case. When a limit is reset counts only
/// where nothing else is asked for.
pub(crate) fn asked_ms(
    headers: &[Wait<'_>],
    members: &[u64],
    message: &str,
    now: At,
) -> Option<u64> {
    let asked = headers.iter().filter_map(|wait| match wait {
        Wait::Milliseconds(text) => plain_ms(text, 1.0),
        Wait::Seconds(text) => plain_ms(text, 1000.0).or_else(|| until_ms(text, now)),
        Wait::Reset(_) => None,
    });
    let resets = headers.iter().filter_map(|wait| match wait {
        Wait::Reset(text) => reset_ms(text, now).filter(|ms| *ms <= RESET_MAX_MS),
        Wait::Milliseconds(_) | Wait::Seconds(_) => None,
    });
    asked
        .chain(members.iter().copied())
        .chain(told_ms(message))
        .filter(|ms| *ms <= WAIT_MAX_MS)
        .max()
        .or_else(|| resets.max())
}

/// The longest wait that a message asks for.
pub(crate) fn told_ms(message: &str) -> Option<u64> {
    let told = ["try again in ", "retry after ", "retry in ", "wait "];
    let waits = told
        .iter()
        .filter_map(|words| duration_ms(message.split_once(words)?.1));
    waits.max()
}

/// A number of units as milliseconds, rounded up.
pub(crate) fn plain_ms(text: &str, unit_ms: f64) -> Option<u64> {
    whole(text.trim().parse::<f64>().ok()? * unit_ms)
}

/// The time until a limit is reset.
fn reset_ms(text: &str, now: At) -> Option<u64> {
    // No limit is reset in thirty years: that is a moment.
    const MOMENT_S: u64 = 1_000_000_000;
    let until = |ms: u64| Some(At(i64::try_from(ms).ok()?).ms_since(now));
    match plain_ms(text, 1.0) {
        Some(ms) if ms >= MOMENT_S * 1000 => until(ms),
        Some(s) if s >= MOMENT_S => until(s * 1000),
        Some(_) => plain_ms(text, 1000.0),
        None => duration_ms(&text.to_lowercase()),
    }
}

/// The time until an HTTP date that lies ahead.
fn until_ms(date: &str, now: At) -> Option<u64> {
    let until = moment(date)?;
    (until > now).then(|| until.ms_since(now))
}

/// The moment of an HTTP date.
pub(crate) fn moment(date: &str) -> Option<At> {
    // The weekday says nothing that the date does not.
    const DATE: jiff::fmt::rfc2822::DateTimeParser =
        jiff::fmt::rfc2822::DateTimeParser::new().relaxed_weekday(true);
    let time = DATE.parse_timestamp(date.trim()).ok()?;
    Some(At(time.as_millisecond()))
}

/// A duration at the beginning of a text, such as `7m12.5s`, `345ms`, `20 seconds`.
pub(crate) fn duration_ms(text: &str) -> Option<u64> {
    let mut rest = text.trim_start();
    let mut sum = None;
    while rest.starts_with(|c: char| c.is_ascii_digit()) {
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, tail) = rest.split_at(end);
        let tail = tail.trim_start();
        let letters = tail
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(tail.len());
        let unit_ms = match &tail[..letters] {
            "ms" | "millisecond" | "milliseconds" => 1.0,
            "s" | "sec" | "secs" | "second" | "seconds" => 1000.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60_000.0,
            "h" | "hour" | "hours" => 3_600_000.0,
            _ => break,
        };
        let part = plain_ms(number.trim_end_matches('.'), unit_ms)?;
        sum = Some(sum.unwrap_or(0_u64).saturating_add(part));
        rest = tail[letters..].trim_start_matches([' ', ',']);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_rounded_up_and_the_longest_counts() {
        use Wait::{Milliseconds, Reset, Seconds};
        let now: At = "2026-11-21T20:00:00.500Z".parse().unwrap();
        for (headers, message, wait_ms) in [
            (vec![], "slow", None),
            (vec![Seconds("20")], "slow", Some(20_000)),
            (vec![Seconds("0")], "slow", Some(0)),
            (vec![Seconds(" 1.0005")], "slow", Some(1001)),
            (vec![Seconds("86400")], "slow", Some(86_400_000)),
            (vec![Seconds("-1")], "slow", None),
            (vec![Seconds("soon")], "slow", None),
            (vec![Seconds("NaN")], "slow", None),
            (vec![Seconds("1795291200")], "slow", None),
            (
                vec![Milliseconds("1500.2"), Seconds("1")],
                "slow",
                Some(1501),
            ),
            (
                vec![Seconds("Sat, 21 Nov 2026 20:01:00 GMT")],
                "slow",
                Some(59_500),
            ),
            (vec![Seconds("Sat, 21 Nov 2026 19:59:00 GMT")], "slow", None),
            (vec![], "please try again in 7m12.5s.", Some(432_500)),
            (vec![], "try again in 345ms", Some(345)),
            (
                vec![],
                "please retry after 12 seconds, or not",
                Some(12_000),
            ),
            (vec![], "try again in 1 hour, 2 minutes", Some(3_720_000)),
            (vec![], "try again in 20 apples", None),
            (vec![Seconds("5")], "try again in 20s", Some(20_000)),
            (vec![Seconds("5"), Reset("40s")], "", Some(5000)),
            (vec![Reset("1.5s"), Reset("200ms")], "", Some(1500)),
            (vec![Reset("7")], "", Some(7000)),
            (vec![Reset("1795291230")], "", Some(29_500)),
            (vec![Reset("1795291230000")], "", Some(29_500)),
            (vec![Reset("6m0s"), Reset("soon")], "", None),
        ] {
            assert_eq!(
                asked_ms(&headers, &[], message, now),
                wait_ms,
                "{headers:?} {message}"
            );
        }
        assert_eq!(
            asked_ms(&[Seconds("1")], &[2500, u64::MAX], "", now),
            Some(2500)
        );
    }
}
