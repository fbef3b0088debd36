//! The size of the view over the requests of a run, drawn: one panel a run, one line a policy.

use std::fmt::Write as _;

use crate::lab::{Outcome, ratio};
use crate::words::grouped;

/// The size of a panel's drawing, and what stands around it.
const PANEL: (u32, u32) = (640, 200);
const LEFT: u32 = 72;
const ABOVE: u32 = 34;
const BELOW: u32 = 34;

/// The most points of a line: more cannot be told apart.
const POINTS: usize = 1280;

/// The length of the line that a single request is drawn as.
const ONE: u32 = 12;

/// The colours of lines, which can be told apart on white and on black, and by most eyes.
const COLOURS: [&str; 8] = [
    "#888888", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#9467bd",
];

/// A run, and what it comes to under each policy.
#[derive(Clone, Debug)]
pub struct Panel<'a> {
    /// The run's name.
    pub name: &'a str,
    /// The policies, each with what the run comes to under it.
    pub lines: Vec<(&'a str, &'a Outcome)>,
}

/// The drawing, as one SVG document without scripts, fonts or anything to load.
pub fn svg(panels: &[Panel<'_>]) -> String {
    let lines = panels.first().map_or(&[][..], |panel| &panel.lines[..]);
    let legend = 20 * u32::try_from(lines.len()).unwrap_or(0) + 46;
    let each = PANEL.1 + ABOVE + BELOW;
    let count = u32::try_from(panels.len()).unwrap_or(u32::MAX / each);
    let (width, height) = (LEFT + PANEL.0 + 24, legend + each.saturating_mul(count));
    let mut out = String::new();
    write!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">
<title>Tokens of each request, by policy</title>
<style>
svg {{ background: #fff; color: #222; font: 12px system-ui, sans-serif }}
text {{ fill: currentColor }}
.axis {{ stroke: currentColor; stroke-opacity: .35; fill: none }}
.line {{ fill: none; stroke-width: 1.5; stroke-linejoin: round }}
.name {{ font-weight: 600 }}
@media (prefers-color-scheme: dark) {{ svg {{ background: #161616; color: #ddd }} }}
</style>
<text class="name" x="{LEFT}" y="22">Tokens of each request; a dot marks a compaction before it</text>
"#
    )
    .ok();
    for (place, (name, _)) in lines.iter().enumerate() {
        let y = 42 + 20 * place;
        let (x, text) = (LEFT + 34, LEFT + 42);
        writeln!(
            out,
            r#"<path class="line" stroke="{}" d="M{LEFT} {y}H{x}"/><text x="{text}" y="{}">{}</text>"#,
            colour(place),
            y + 4,
            escaped(name)
        )
        .ok();
    }
    for (place, panel) in panels.iter().enumerate() {
        let top = legend + each * u32::try_from(place).unwrap_or(0) + ABOVE;
        draw(panel, top, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

fn draw(panel: &Panel<'_>, top: u32, out: &mut String) {
    let sizes = |outcome: &Outcome| outcome.sizes.iter().copied().max().unwrap_or(0);
    let peak = panel.lines.iter().map(|(_, outcome)| sizes(outcome)).max();
    let peak = peak.unwrap_or(0).max(1);
    let most = panel.lines.iter().map(|(_, outcome)| outcome.sizes.len());
    let most = most.max().unwrap_or(0).max(1);
    let (right, bottom) = (LEFT + PANEL.0, top + PANEL.1);
    writeln!(
        out,
        r#"<g><text class="name" x="{LEFT}" y="{}">{}</text><path class="axis" d="M{LEFT} {top}V{bottom}H{right}"/>"#,
        top - 10,
        escaped(panel.name)
    )
    .ok();
    for (tokens, y) in [(peak, top + 4), (peak / 2, top + PANEL.1 / 2 + 4)] {
        let x = LEFT - 8;
        let tokens = grouped(tokens);
        writeln!(
            out,
            r#"<text x="{x}" y="{y}" text-anchor="end">{tokens}</text>"#
        )
        .ok();
    }
    let y = bottom + 18;
    let requests = match most {
        1 => format!(r#"<text x="{LEFT}" y="{y}">1 request</text>"#),
        _ => format!(
            r#"<text x="{LEFT}" y="{y}">1</text><text x="{right}" y="{y}" text-anchor="end">{} requests</text>"#,
            grouped(most as u64)
        ),
    };
    writeln!(out, "{requests}").ok();
    for (place, (_, outcome)) in panel.lines.iter().enumerate() {
        let at = |index: usize, tokens: u64| {
            let x = f64::from(LEFT)
                + f64::from(PANEL.0) * ratio(index as u64, most.saturating_sub(1) as u64);
            let y = f64::from(bottom) - f64::from(PANEL.1) * ratio(tokens, peak);
            (x, y)
        };
        let every = outcome.sizes.len().div_ceil(POINTS).max(1);
        let mut path = String::new();
        for (index, tokens) in outcome.sizes.iter().enumerate().step_by(every) {
            let (x, y) = at(index, *tokens);
            let letter = if path.is_empty() { 'M' } else { 'L' };
            write!(path, "{letter}{x:.1} {y:.1}").ok();
        }
        // A line of one point would not be seen.
        if outcome.sizes.len() == 1 {
            write!(path, "h{ONE}").ok();
        }
        let colour = colour(place);
        writeln!(out, r#"<path class="line" stroke="{colour}" d="{path}"/>"#).ok();
        for request in &outcome.pass_at {
            let index = usize::try_from(request.saturating_sub(1)).unwrap_or(0);
            let Some(tokens) = outcome.sizes.get(index) else {
                continue;
            };
            let (x, y) = at(index, *tokens);
            writeln!(
                out,
                r#"<circle cx="{x:.1}" cy="{y:.1}" r="2" fill="{colour}"/>"#
            )
            .ok();
        }
    }
    out.push_str("</g>\n");
}

fn colour(place: usize) -> &'static str {
    COLOURS[place % COLOURS.len()]
}

/// Text as it may stand in an SVG document.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // No XML document may hold these, not even escaped.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_text_and_nothing_else() {
        let outcome = Outcome {
            sizes: vec![10, 40, 20],
            pass_at: vec![3],
            ..Outcome::default()
        };
        let name = "a\u{1}<script>alert('x & y')</script>\".jsonl";
        let drawn = svg(&[Panel {
            name,
            lines: vec![("none", &outcome)],
        }]);
        let safe = "a\u{fffd}&lt;script&gt;alert(&#39;x &amp; y&#39;)&lt;/script&gt;&quot;.jsonl";
        assert!(drawn.contains(safe), "{drawn}");
        assert!(
            drawn.contains("M72.0 250.0L392.0 100.0L712.0 200.0"),
            "{drawn}"
        );
        assert!(
            drawn.contains(r#"<circle cx="712.0" cy="200.0""#),
            "{drawn}"
        );
        let outcome = Outcome {
            sizes: vec![10],
            ..Outcome::default()
        };
        let lines = vec![("none", &outcome)];
        let one = svg(&[Panel { name, lines }]);
        assert!(one.contains("M72.0 100.0h12"), "{one}");
        assert!(one.contains(">1 request</text>"), "{one}");
        for word in ["<script", "href", "url(", "onload"] {
            assert!(!drawn.contains(word), "{word}");
        }
    }
}
