//! The event stream: bytes in, events out, by the standard and independent of how the bytes are
//! cut into reads.
//!
//! Lenient in framing, because servers are not careful: a comment within a data line, a doubled
//! `data:`, an object on a line of its own, a plain JSON document where a stream was asked for.
//! What an event means is for `assemble`.

use std::mem;

/// The longest event in bytes, and the longest line.
pub(crate) const EVENT_MAX: usize = 16 << 20;
/// The longest plain document in bytes.
pub(crate) const DOCUMENT_MAX: usize = 64 << 20;
/// How much of a body is kept to be shown when nothing in it could be used.
const EXCERPT: usize = 2048;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its name; empty if it has none.
    pub(crate) name: String,
    /// Its data; never blank.
    pub(crate) data: String,
    /// Whether its bytes were no UTF-8; U+FFFD stands for what was none.
    pub(crate) damaged: bool,
    /// Whether it is a line that is none of a stream, but looks like a part of a reply.
    pub(crate) skipped: bool,
}

/// An event, or a plain document, is longer than it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// What the body turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Nothing but white space was seen.
    Unknown,
    /// An event stream.
    Lines,
    /// Plain JSON.
    Document,
}

/// Decodes one body.
#[derive(Debug)]
pub(crate) struct Decoder {
    form: Form,
    /// What is not decided or not whole yet: the beginning, a line, or a document.
    held: Vec<u8>,
    /// The data lines of the event so far.
    data: Option<Vec<u8>>,
    name: Vec<u8>,
    /// Whether the last byte was CR, so that an LF belongs to it.
    after_cr: bool,
    skipped: u64,
    excerpt: Vec<u8>,
}

impl Decoder {
    /// A decoder at the beginning of a body.
    pub(crate) fn new() -> Self {
        Self {
            form: Form::Unknown,
            held: Vec::new(),
            data: None,
            name: Vec::new(),
            after_cr: false,
            skipped: 0,
            excerpt: Vec::new(),
        }
    }

    /// Takes the next bytes and appends the events that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Result<(), TooLong> {
        let room = EXCERPT.saturating_sub(self.excerpt.len());
        self.excerpt.extend(bytes.iter().take(room));
        match self.form {
            Form::Unknown => {
                self.hold(bytes, EVENT_MAX)?;
                let Some((form, from)) = form(&self.held) else {
                    return Ok(());
                };
                self.form = form;
                let begun = mem::take(&mut self.held);
                let begun = begun.get(from..).unwrap_or_default();
                match form {
                    Form::Lines => self.lines(begun, events),
                    Form::Document | Form::Unknown => self.hold(begun, DOCUMENT_MAX),
                }
            }
            Form::Lines => self.lines(bytes, events),
            Form::Document => self.hold(bytes, DOCUMENT_MAX),
        }
    }

    /// Ends the body: what stands there unfinished is an event as well. Whoever reads it can tell
    /// whether it is whole.
    pub(crate) fn end(&mut self, events: &mut Vec<Event>) {
        let held = mem::take(&mut self.held);
        match self.form {
            Form::Unknown => {}
            Form::Lines => {
                self.line(&held, events);
                self.dispatch(events);
            }
            Form::Document => events.extend(event(b"", &held)),
        }
    }

    /// Whether the body is a plain document, which shows nothing before its end.
    pub(crate) fn is_document(&self) -> bool {
        self.form == Form::Document
    }

    /// The number of lines that were neither field nor comment.
    pub(crate) fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The beginning of the body.
    pub(crate) fn excerpt(&self) -> String {
        String::from_utf8_lossy(&self.excerpt).into_owned()
    }

    fn hold(&mut self, bytes: &[u8], max: usize) -> Result<(), TooLong> {
        let others = self.data.as_ref().map_or(0, Vec::len);
        if self.held.len() + others + bytes.len() > max {
            return Err(TooLong);
        }
        self.held.extend_from_slice(bytes);
        Ok(())
    }

    fn lines(&mut self, mut bytes: &[u8], events: &mut Vec<Event>) -> Result<(), TooLong> {
        while let Some(first) = bytes.first() {
            if mem::take(&mut self.after_cr) && *first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|b| matches!(b, b'\n' | b'\r')) else {
                return self.hold(bytes, EVENT_MAX);
            };
            self.hold(&bytes[..end], EVENT_MAX)?;
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            let mut line = mem::take(&mut self.held);
            self.line(&line, events);
            line.clear();
            self.held = line;
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8], events: &mut Vec<Event>) {
        let colon = line.iter().position(|b| *b == b':').unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"" if line.is_empty() => self.dispatch(events),
            b"data" => self.data_line(value),
            b"event" => self.name = value.to_vec(),
            // No field at all is a comment.
            b"" | b"id" | b"retry" => {}
            b"error" => events.extend(event(b"error", value)),
            _ if line.starts_with(b"{") => events.extend(event(b"", line)),
            _ => {
                self.skipped += 1;
                if line.windows(9).any(|part| part == b"\"choices\"") {
                    let skipped = true;
                    events.extend(event(b"", line).map(|event| Event { skipped, ..event }));
                }
            }
        }
    }

    fn data_line(&mut self, value: &[u8]) {
        let value = match value.strip_prefix(b"data:") {
            Some(doubled) => doubled.strip_prefix(b" ").unwrap_or(doubled),
            None => value,
        };
        if value.starts_with(b":") {
            return;
        }
        match &mut self.data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            None => self.data = Some(value.to_vec()),
        }
    }

    fn dispatch(&mut self, events: &mut Vec<Event>) {
        let name = mem::take(&mut self.name);
        if let Some(data) = self.data.take() {
            events.extend(event(&name, &data));
        }
    }
}

/// The event with this data, unless that is blank.
fn event(name: &[u8], data: &[u8]) -> Option<Event> {
    if data.trim_ascii().is_empty() {
        return None;
    }
    let text = String::from_utf8_lossy(data);
    Some(Event {
        name: String::from_utf8_lossy(name).into_owned(),
        damaged: matches!(text, std::borrow::Cow::Owned(_)),
        data: text.into_owned(),
        skipped: false,
    })
}

/// What a body that begins like this is, and where it begins after a byte-order mark. `None`
/// while that is open.
fn form(head: &[u8]) -> Option<(Form, usize)> {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    if head.len() < MARK.len() && MARK.starts_with(head) {
        return None;
    }
    let from = if head.starts_with(MARK) {
        MARK.len()
    } else {
        0
    };
    let first = head[from..].iter().find(|b| !b.is_ascii_whitespace())?;
    let form = match first {
        b'{' | b'[' => Form::Document,
        _ => Form::Lines,
    };
    Some((form, from))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::{prop_assert_eq, proptest};

    use super::*;

    fn decode(pieces: &[&[u8]]) -> (Vec<String>, u64) {
        let (mut decoder, mut events) = (Decoder::new(), Vec::new());
        for piece in pieces {
            decoder.push(piece, &mut events).unwrap();
        }
        decoder.end(&mut events);
        let show = |e: Event| match (e.name.as_str(), e.damaged) {
            ("", false) => e.data,
            (name, damaged) => format!("{name}|{}|{damaged}", e.data),
        };
        (events.into_iter().map(show).collect(), decoder.skipped())
    }

    /// Decodes the body whole, byte by byte, and cut in two at every place.
    fn check(body: &[u8], events: &[&str], skipped: u64) {
        let expected = (
            events.iter().map(|e| (*e).to_owned()).collect::<Vec<_>>(),
            skipped,
        );
        let shown = String::from_utf8_lossy(body);
        assert_eq!(decode(&[body]), expected, "{shown}");
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        assert_eq!(decode(&bytes), expected, "byte by byte: {shown}");
        for cut in 0..=body.len() {
            let (head, tail) = body.split_at(cut);
            assert_eq!(decode(&[head, tail]), expected, "cut at {cut}: {shown}");
        }
    }

    #[test]
    fn events_are_read_by_the_standard() {
        check(b"data: a\n\ndata:b\n\n", &["a", "b"], 0);
        check(b"data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"], 0);
        check(b"data: a\r\rdata: b\r\r", &["a", "b"], 0);
        check(b"\xef\xbb\xbfdata: a\n\n", &["a"], 0);
        check(b"data: a\ndata: b\n\n", &["a\nb"], 0);
        check(b"data: a\r\ndata: b\r\n\r\n", &["a\nb"], 0);
        check(b": keep-alive\n\ndata: a\n: more\n\n", &["a"], 0);
        check(
            b"event: error\ndata: a\nid: 7\nretry: 1\n\ndata: b\n\n",
            &["error|a|false", "b"],
            0,
        );
        check("data: aé漢😀\n\n".as_bytes(), &["aé漢😀"], 0);
        check(b"data:  a\n\n", &[" a"], 0);
        check(b"", &[], 0);
    }

    #[test]
    fn framing_is_lenient_and_counts_what_it_skips() {
        check(b"data\ndata:\n\ndata: a\n\n", &["a"], 0);
        check(b"data: data: a\n\n", &["a"], 0);
        check(b"data: : PROCESSING\n\ndata: a\n\n", &["a"], 0);
        check(b"data: a\n\n data: b\n\nx: c\n\n", &["a"], 2);
        check(b"data: a\n\n{\"error\":1}\n", &["a", "{\"error\":1}"], 0);
        check(
            b"data: a\n\nerror: {\"code\":1}\n",
            &["a", "error|{\"code\":1}|false"],
            0,
        );
        check(b"data: a\n\ndata: [DONE]", &["a", "[DONE]"], 0);
        check(b"<html>\n<p>\n", &[], 2);
        check(b"data: a\xffb\n\n", &["|a\u{fffd}b|true"], 0);
    }

    #[test]
    fn plain_json_is_one_event() {
        check(b"{\n\"a\": 1\n}\n", &["{\n\"a\": 1\n}\n"], 0);
        check(b"\xef\xbb\xbf \r\n[1]", &[" \r\n[1]"], 0);
    }

    /// The events of a body and the lines skipped, read again: the whole body at once, line by line,
    /// each byte a character.
    fn read_whole(body: &[u8]) -> (Vec<String>, u64) {
        let text: String = body.iter().copied().map(char::from).collect();
        let text = text.strip_prefix("\u{ef}\u{bb}\u{bf}").unwrap_or(&text);
        let (mut events, mut skipped) = (Vec::new(), 0);
        let mut add = |name: &str, data: &str| {
            let [name, data] = [name, data].map(|text| {
                let bytes: Vec<u8> = text.chars().map(|c| u8::try_from(c).unwrap()).collect();
                (
                    String::from_utf8_lossy(&bytes).into_owned(),
                    String::from_utf8(bytes).is_err(),
                )
            });
            if !data.0.bytes().all(|b| b.is_ascii_whitespace()) {
                events.push(match (name.0.as_str(), data.1) {
                    ("", false) => data.0,
                    (name, damaged) => format!("{name}|{}|{damaged}", data.0),
                });
            }
        };
        let begin = text.trim_start_matches(|c: char| c.is_ascii_whitespace());
        if begin.is_empty() || begin.starts_with(['{', '[']) {
            add("", text);
            return (events, 0);
        }
        let (mut name, mut data) = (String::new(), Vec::new());
        let lines = text.replace("\r\n", "\n").replace('\r', "\n");
        for line in lines.split('\n').chain([""]) {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "" if line.is_empty() => {
                    add(&name, &data.join("\n"));
                    (name, data) = (String::new(), Vec::new());
                }
                "data" => {
                    let inner = value.strip_prefix("data:");
                    let inner = inner.map(|inner| inner.strip_prefix(' ').unwrap_or(inner));
                    let value = inner.unwrap_or(value);
                    if !value.starts_with(':') {
                        data.push(value.to_owned());
                    }
                }
                "event" => value.clone_into(&mut name),
                "error" => add("error", value),
                "" | "id" | "retry" => {}
                _ if line.starts_with('{') => add("", line),
                _ => skipped += 1,
            }
        }
        (events, skipped)
    }

    proptest! {
        #[test]
        fn reads_cut_anywhere_give_what_the_whole_body_gives(
            parts in vec(0..PARTS.len(), 0..24),
            cuts in vec(0..200_usize, 0..12),
        ) {
            let body: Vec<u8> = parts.iter().flat_map(|part| PARTS[*part]).copied().collect();
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut < body.len()).collect();
            cuts.extend([0, body.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|two| &body[two[0]..two[1]]).collect();
            prop_assert_eq!(decode(&pieces), read_whole(&body));
        }
    }

    /// What bodies are made of.
    const PARTS: [&[u8]; 24] = [
        b"data: a",
        b"data:b",
        b"data: data: c",
        b"data: : d",
        b"data",
        b" data: e",
        b"event: error",
        b"error: {\"f\":1}",
        b"id: 7",
        b": on",
        b"{\"g\": 1}",
        b"[DONE]",
        b"x",
        b":",
        b" ",
        b"\n",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\xef\xbb\xbf",
        "\u{e9}\u{6f22}\u{1f600}".as_bytes(),
        b"\xff",
        b"\xf0\x9f",
    ];

    #[test]
    fn nothing_is_held_without_bound() {
        let piece = vec![b'x'; 1 << 20];
        for (head, pieces) in [
            ("", 17),
            ("data: ", 16),
            ("data: a\n\ndata: ", 16),
            ("{", 64),
        ] {
            let (mut decoder, mut events) = (Decoder::new(), Vec::new());
            decoder.push(head.as_bytes(), &mut events).unwrap();
            let taken = (0..100).take_while(|_| decoder.push(&piece, &mut events).is_ok());
            assert!(taken.count() <= pieces, "{head}");
        }
        let (mut decoder, mut events) = (Decoder::new(), Vec::new());
        let line = [b"data: ".as_slice(), &piece, b"\n"].concat();
        let taken = (0..100).take_while(|_| decoder.push(&line, &mut events).is_ok());
        assert!(taken.count() <= 16);
    }
}
