//! The laws, as properties of random transcripts, checked against the oracle.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::value::RawValue;

use undertext::exchange::Message;
use undertext::id::{CallId, Digest, EntryId};
use undertext::overlay::Layer;
use undertext::transcript::jsonl::{self, DamageKind, Item, Reader};
use undertext::transcript::{Entry, Event, Purpose, Transcript};
use undertext::view::{Content, Source, View};
use undertext::wire::judge::judge;

use crate::draft::note;
use crate::generate::{Written, cases, lifelike, wild};
use crate::oracle;
use crate::shelved;

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Lifelike and wild transcripts in equal parts.
fn any_kind() -> impl Strategy<Value = Written> {
    prop_oneof![lifelike(), wild()]
}

fn view(entries: &[Arc<Entry>]) -> View {
    let mut view = View::default();
    for entry in entries {
        view.take(Arc::clone(entry));
    }
    view
}

fn owned(messages: Vec<Message<'_>>) -> Vec<Message<'static>> {
    messages.into_iter().map(Message::into_owned).collect()
}

/// A run of entries as the bytes of a file.
fn file(entries: &[Arc<Entry>]) -> Vec<u8> {
    entries
        .iter()
        .flat_map(|entry| jsonl::encode(entry).unwrap())
        .collect()
}

proptest! {
    #![proptest_config(config())]

    /// Law 1.
    #[test]
    fn a_transcript_only_grows(Written(entries) in any_kind()) {
        let mut transcript = Transcript::default();
        let mut bytes = Vec::new();
        for (count, entry) in (1..).zip(&entries) {
            bytes.extend(jsonl::encode(entry).unwrap());
            prop_assert!(transcript.append(Arc::clone(entry)));
            prop_assert!(!transcript.append(Arc::clone(&entries[count / 2])));
            for (kept, given) in transcript.entries().iter().zip(&entries) {
                prop_assert!(Arc::ptr_eq(kept, given));
            }
            prop_assert_eq!(transcript.entries().len(), count);
        }
        prop_assert_eq!(file(&transcript.entries().to_vec()), bytes);
    }

    /// Law 2: a view depends on the entries alone, and on all of them.
    #[test]
    fn a_view_is_a_function(
        Written(entries) in any_kind(),
        asked in proptest::collection::vec(any::<bool>(), 8),
    ) {
        let mut view = View::default();
        for (place, entry) in entries.iter().enumerate() {
            view.take(Arc::clone(entry));
            // Looking at it, or handing it an entry that damage repeats, leaves no trace.
            if asked[place % 8] {
                std::hint::black_box((view.messages(), view.body(&Purpose::Round), view.may_ask()));
                view.take(Arc::clone(&entries[place / 2]));
            }
        }
        let other = self::view(&entries);
        let forgetful = shelved::view(&entries);
        prop_assert_eq!(forgetful.messages(), other.messages());
        prop_assert_eq!(forgetful.body(&Purpose::Round), other.body(&Purpose::Round));
        prop_assert!(forgetful.held() <= 1);
        prop_assert_eq!(view.messages(), other.messages());
        prop_assert_eq!(view.body(&Purpose::Round), other.body(&Purpose::Round));
        prop_assert_eq!(view.may_ask(), other.may_ask());
        prop_assert_eq!(view.transcript().entries().len(), entries.len());
    }

    /// Law 3, on what a run would record.
    #[test]
    fn a_lifelike_view_equals_the_oracle(Written(entries) in lifelike()) {
        equals_the_oracle(&entries)?;
    }

    /// Law 3, on anything that parses.
    #[test]
    fn a_wild_view_equals_the_oracle(Written(entries) in wild()) {
        equals_the_oracle(&entries)?;
    }

    /// Law 4.
    #[test]
    fn every_call_is_answered_in_every_request(Written(entries) in lifelike()) {
        let mut view = View::default();
        for entry in &entries {
            view.take(Arc::clone(entry));
            if view.may_ask() {
                let body = view.body(&Purpose::Round).unwrap();
                let judged = oracle::pairing(&body.bytes);
                prop_assert!(judged.is_ok(), "{judged:?} in {}", String::from_utf8_lossy(&body.bytes));
                let judged = judge(&body.bytes, &view.wire().unwrap().models.main);
                prop_assert!(judged.is_ok(), "{judged:?} in {}", String::from_utf8_lossy(&body.bytes));
            }
        }
    }

    /// Law 5.
    #[test]
    fn a_request_begins_as_the_one_before_it(Written(entries) in lifelike()) {
        begins_as_before(&entries)?;
    }

    /// Law 6.
    #[test]
    fn a_retracted_overlay_reads_as_a_note(Written(entries) in any_kind()) {
        reads_as_notes(&entries)?;
    }

    /// Law 11, for what we write.
    #[test]
    fn what_is_written_reads_back_as_the_same_bytes(Written(entries) in any_kind()) {
        for entry in &entries {
            let line = jsonl::encode(entry).unwrap();
            let read = read(&line)?;
            prop_assert_eq!(format!("{:?}", read.event), format!("{:?}", entry.event));
            prop_assert_eq!(jsonl::encode(&read).unwrap(), line);
        }
    }

    /// Law 11, for what others write: unknown lines are kept as bytes, known ones are understood.
    #[test]
    fn what_others_write_is_copied_or_understood(
        Written(entries) in any_kind(),
        (spaces, adds, turns) in any::<(bool, bool, bool)>(),
    ) {
        for entry in &entries {
            let ours = jsonl::encode(entry).unwrap();
            let foreign = foreign(entry, spaces, adds, turns);
            let again = jsonl::encode(&*read(&foreign)?).unwrap();
            let expected = if matches!(entry.event, Event::Unknown(_)) { foreign } else { ours };
            prop_assert_eq!(String::from_utf8(again), String::from_utf8(expected));
        }
    }

    /// Law 12, of what a view shows.
    #[test]
    fn what_is_stubbed_or_summarised_can_be_recalled(Written(entries) in any_kind()) {
        can_be_recalled(&view(&entries))?;
    }
}

/// Law 12, of what this view shows.
pub(crate) fn can_be_recalled(view: &View) -> Result<(), TestCaseError> {
    for message in view.messages() {
        match message {
            Message::User { text } if text.starts_with("[CONVERSATION HISTORY SUMMARY - ") => {
                summary_is_recalled(view.transcript(), &text)?;
            }
            Message::Tool { call, text } => result_is_recalled(view.transcript(), call, &text)?,
            Message::Assistant { calls, .. } => {
                for call in calls {
                    let whole = recorded(view.transcript(), call.id);
                    prop_assert!(whole.is_some_and(|whole| call.name == whole.0));
                }
            }
            Message::User { .. } => {}
        }
    }
    Ok(())
}

/// Each message names what it comes from, and exactly the contents that do not read in full there.
fn says_why_it_reads_so(view: &View) -> Result<(), TestCaseError> {
    let readings = view.readings();
    let messages: Vec<Message<'_>> = readings.iter().map(|it| it.message.clone()).collect();
    prop_assert_eq!(messages, view.messages());
    for reading in readings {
        let changed = |content| {
            let by = view.reads_as(content).overlay();
            let named = reading.changed.iter().find(|it| it.content == content);
            (by == named.map(|it| it.by)).then_some(by.is_some())
        };
        match (&reading.message, reading.source) {
            (Message::Tool { call, text }, Source::Result(of)) => {
                prop_assert_eq!(*call, of);
                let raw = view
                    .result_of(of)
                    .map(|(_, result)| result.content.as_str());
                let is_raw = raw.is_none_or(|raw| raw == text);
                prop_assert_eq!(changed(Content::Result(of)), Some(!is_raw), "{:?}", reading);
            }
            (Message::Assistant { calls, .. }, Source::Entry(entry)) => {
                let response = view.response(entry).unwrap();
                for (place, made) in (1..).zip(&response.calls) {
                    let call = CallId::new(entry, place);
                    let sent = calls.iter().find(|sent| sent.id == call);
                    let content = match sent {
                        Some(_) => Content::Arguments(call),
                        None => Content::Call(call),
                    };
                    let is_raw = sent.is_some_and(|sent| sent.arguments == made.arguments);
                    let may_differ = made.extra.is_some() && is_raw;
                    let said = changed(content);
                    prop_assert!(said == Some(!is_raw) || may_differ, "{:?}", reading);
                }
            }
            (Message::User { text }, Source::Entry(entry)) => {
                let attachments = &view.user(entry).unwrap().attachments;
                for (place, attachment) in (1..).zip(attachments) {
                    let is_raw = text.contains(&format!("\n{}", attachment.text));
                    let said = changed(Content::Attachment(entry, place));
                    prop_assert!(said.is_some() && (said == Some(!is_raw) || is_raw));
                }
            }
            (Message::User { .. }, Source::Summary(_) | Source::Carry(_))
            | (Message::Assistant { .. }, Source::Understood) => {
                prop_assert!(reading.changed.is_empty());
            }
            (message, source) => prop_assert!(false, "{message:?} from {source:?}"),
        }
    }
    Ok(())
}

/// Law 5, of these entries.
pub(crate) fn begins_as_before(entries: &[Arc<Entry>]) -> Result<(), TestCaseError> {
    let mut view = View::default();
    let mut before: Option<String> = None;
    for entry in entries {
        view.take(Arc::clone(entry));
        if let Event::Overlay(_) | Event::Retract(_) | Event::Setup(_) = &entry.event {
            before = None;
        }
        if view.may_ask() {
            let messages = &view.wire().unwrap().models.main.profile.messages;
            if messages.merges() {
                // What is added may become part of the last message.
                before = None;
                continue;
            }
            let now = parts(&view.body(&Purpose::Round).unwrap().bytes);
            if let Some(before) = before {
                let more = now.strip_prefix(&before);
                let whole = more.is_some_and(|more| more.is_empty() || more.starts_with(','));
                prop_assert!(whole, "{before}\nis not the beginning of\n{now}");
            }
            before = Some(now);
        }
    }
    Ok(())
}

/// Law 6, of these entries.
pub(crate) fn reads_as_notes(entries: &[Arc<Entry>]) -> Result<(), TestCaseError> {
    let noted = with_notes(entries);
    let without = view(&noted);
    for with in [view(entries), shelved::view(entries)] {
        prop_assert_eq!(with.messages(), without.messages());
        prop_assert_eq!(with.body(&Purpose::Round), without.body(&Purpose::Round));
    }
    Ok(())
}

/// Law 3, after each of these entries, whether they are held or let go.
pub(crate) fn equals_the_oracle(entries: &[Arc<Entry>]) -> Result<(), TestCaseError> {
    let mut view = View::default();
    let mut forgetful = shelved::forgetful(entries);
    for (count, entry) in (1..).zip(entries) {
        view.take(Arc::clone(entry));
        shelved::take(&mut forgetful, entry);
        let (past, last) = (&entries[..count], entry.id);
        prop_assert_eq!(
            forgetful.readings(),
            view.readings(),
            "after entry {}",
            last
        );
        prop_assert_eq!(forgetful.body(&Purpose::Round), view.body(&Purpose::Round));
        prop_assert_eq!(
            forgetful.estimate(),
            view.estimate(),
            "after entry {}",
            last
        );
        prop_assert_eq!(forgetful.ripe(), view.ripe(), "after entry {}", last);
        prop_assert!(forgetful.held() <= 1 && forgetful.transcript().lost().is_none());
        prop_assert_eq!(
            owned(view.messages()),
            oracle::messages(past),
            "after entry {}",
            last
        );
        says_why_it_reads_so(&view)?;
        prop_assert_eq!(
            view.may_ask(),
            oracle::may_ask(past),
            "after entry {}",
            last
        );
        if view.may_ask() {
            let text = |body: &[u8]| String::from_utf8(body.to_vec()).unwrap();
            let (body, expected) = (view.body(&Purpose::Round).unwrap(), oracle::body(past));
            prop_assert_eq!(
                Some(text(&body.bytes)),
                expected.as_deref().map(text),
                "after {}",
                last
            );
            prop_assert_eq!(body.sha256, Digest::of(&body.bytes), "after entry {}", last);
        }
    }
    Ok(())
}

/// The messages of a body, exactly as they stand there, the end of their array left out.
fn parts(body: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Body {
        messages: Box<RawValue>,
    }
    let body: Body = serde_json::from_slice(body).unwrap();
    body.messages.get().strip_suffix(']').unwrap().to_owned()
}

/// The entries with notes in the places of retracted overlays, and of retracts that then name none.
fn with_notes(entries: &[Arc<Entry>]) -> Vec<Arc<Entry>> {
    let is_overlay = |id: EntryId| {
        let mut entries = entries.iter();
        entries.any(|entry| entry.id == id && matches!(entry.event, Event::Overlay(_)))
    };
    let retracted = |id: EntryId| {
        entries.iter().any(|entry| {
            matches!(&entry.event, Event::Retract(retract)
                if entry.id > id && retract.overlays.contains(&id))
        })
    };
    let noted = |entry: &Arc<Entry>| {
        let mut noted = Entry::clone(entry);
        if let Event::Overlay(_) = entry.event
            && retracted(entry.id)
        {
            noted.event = note("an overlay stood here");
        }
        if let Event::Retract(retract) = &mut noted.event {
            let left = &mut retract.overlays;
            left.retain(|overlay| *overlay >= entry.id || !is_overlay(*overlay));
            if left.is_empty() {
                noted.event = note("a retract stood here");
            }
        }
        Arc::new(noted)
    };
    entries.iter().map(noted).collect()
}

/// Reads a line as part of a file.
fn read(line: &[u8]) -> Result<Arc<Entry>, TestCaseError> {
    let mut read = None;
    for item in Reader::new(line) {
        match item.unwrap() {
            Item::Entry { entry, .. } => read = Some(entry),
            // Read alone, a line misses those before it.
            Item::Damage(damage) if matches!(damage.kind, DamageKind::Missing { .. }) => {}
            other @ (Item::Damage(_) | Item::Torn(_)) => {
                return Err(TestCaseError::fail(format!("{other:?}")));
            }
        }
    }
    read.ok_or_else(|| TestCaseError::fail("no entry"))
}

/// The line of an entry as another program might write it.
fn foreign(entry: &Entry, spaces: bool, adds: bool, turns: bool) -> Vec<u8> {
    let json = serde_json::to_string(entry).unwrap();
    let mut members = members(&json);
    if adds {
        members.push(r#""später":{"a":[1, 2]}"#.to_owned());
    }
    if turns {
        members.reverse();
    }
    let (comma, end) = if spaces { (" ,\t", " ") } else { (",", "") };
    let mut line = format!("{{{}{end}", members.join(comma)).into_bytes();
    let crc = crc32c::crc32c(&line);
    line.extend_from_slice(format!(",\"crc\":\"{crc:08x}\"}}\n").as_bytes());
    line
}

/// The members of a JSON object, each as its exact text.
fn members(object: &str) -> Vec<String> {
    let inner = object
        .trim()
        .strip_prefix('{')
        .and_then(|it| it.strip_suffix('}'))
        .unwrap();
    let (mut members, mut depth, mut quoted, mut escaped) = (vec![String::new()], 0, false, false);
    for c in inner.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                members.push(String::new());
                continue;
            }
            _ => {}
        }
        members.last_mut().unwrap().push(c);
    }
    members
}

/// The handle that a text names.
fn handle(text: &str) -> Option<&str> {
    let (_, after) = text.split_once("Recall ")?;
    after.split(' ').next()
}

/// The name and the result of a call, as they stand in the transcript.
fn recorded(transcript: &Transcript, call: CallId) -> Option<(&str, Option<&str>)> {
    let Event::Response(response) = &transcript.get(call.response)?.event else {
        return None;
    };
    let name = &response
        .calls
        .get(usize::try_from(call.place).ok()?.checked_sub(1)?)?
        .name;
    let content = transcript.from(call.response).iter().find_map(|entry| {
        let Event::Result(result) = &entry.event else {
            return None;
        };
        (result.call == call).then_some(result.content.as_str())
    });
    Some((name, content))
}

fn result_is_recalled(
    transcript: &Transcript,
    call: CallId,
    text: &str,
) -> Result<(), TestCaseError> {
    match recorded(transcript, call) {
        None => prop_assert!(false, "no call {call}"),
        Some((_, None)) => prop_assert_eq!(text, "interrupted, effect unknown"),
        Some((_, Some(content))) if content == text => {}
        Some((_, Some(_))) => {
            let named = handle(text).and_then(|handle| handle.parse().ok());
            prop_assert_eq!(named, Some(call), "{}", text);
        }
    }
    Ok(())
}

fn summary_is_recalled(transcript: &Transcript, text: &str) -> Result<(), TestCaseError> {
    let says = text.lines().nth(1).unwrap_or_default();
    let named = says
        .split_once(". ")
        .and_then(|(_, after)| handle(after)?.parse().ok());
    let entry = named.and_then(|id| transcript.get(EntryId(id)));
    let Some(Event::Overlay(overlay)) = entry.map(|entry| &entry.event) else {
        return Err(TestCaseError::fail(format!("{text} names no overlay")));
    };
    let Layer::Summary(summary) = &overlay.layer else {
        return Err(TestCaseError::fail(format!("{text} names no summary")));
    };
    prop_assert!(text.contains(&summary.text));
    prop_assert!(!transcript.span(summary.span).is_empty());
    Ok(())
}
