//! Numbers as people read them.

/// A number with its thousands apart: `118,000`.
pub(crate) use undertext::words::grouped as count;

/// A number and its noun: `1 call`, `2 calls`.
pub(crate) fn of(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number))
}

/// `1 entry`, `2 entries`.
pub(crate) fn entries(number: u64) -> String {
    match number {
        1 => "1 entry".to_owned(),
        more => format!("{} entries", count(more)),
    }
}

/// A length of time: `300 ms`, `2.1 s`, `5m 03s`, `2h 05m`.
pub(crate) fn time(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0 => format!("{ms} ms"),
        1..60 => format!("{seconds}.{} s", ms % 1_000 / 100),
        60..3_600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        3_600.. => format!("{}h {:02}m", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// How long ago something was: `just now`, `5m ago`, `3h ago`, `12d ago`.
pub(crate) fn ago(ms: u64) -> String {
    let minutes = ms / 60_000;
    match minutes {
        0 => "just now".to_owned(),
        1..60 => format!("{minutes}m ago"),
        60..2_880 => format!("{}h ago", minutes / 60),
        2_880.. => format!("{}d ago", count(minutes / 1_440)),
    }
}

/// Money: `$0.0123`, `$12.34`.
pub(crate) fn money(usd_micro: u64) -> String {
    let dollars = usd_micro / 1_000_000;
    let rest = usd_micro % 1_000_000;
    if dollars == 0 {
        format!("$0.{:04}", rest / 100)
    } else {
        format!("${}.{:02}", count(dollars), rest / 10_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_for_people() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(count(number), text);
        }
        assert_eq!([of(1, "call"), of(0, "call")], ["1 call", "0 calls"]);
        assert_eq!([entries(1), entries(1_200)], ["1 entry", "1,200 entries"]);
        for (ms, text) in [
            (300, "300 ms"),
            (2_149, "2.1 s"),
            (303_000, "5m 03s"),
            (7_500_000, "2h 05m"),
        ] {
            assert_eq!(time(ms), text);
        }
        for (minutes, text) in [
            (0, "just now"),
            (59, "59m ago"),
            (60, "1h ago"),
            (2_879, "47h ago"),
            (2_880, "2d ago"),
        ] {
            assert_eq!(ago(minutes * 60_000), text);
        }
        for (micro, text) in [(12_345, "$0.0123"), (12_345_678, "$12.34")] {
            assert_eq!(money(micro), text);
        }
    }
}
