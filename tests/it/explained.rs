//! What explanations say, held against what stood in each request.

use std::sync::Arc;

use proptest::prelude::*;

use undertext::exchange::Message;
use undertext::explain::{Holds, How, Kind, Life, Moment, Stretch, Subject, blame, compare, lives};
use undertext::id::EntryId;
use undertext::record::runs;
use undertext::transcript::{Entry, Event, Purpose};
use undertext::view::{As, Content, Source, View};

use crate::generate::{Written, cases, lifelike, wild};

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: cases().div_ceil(2),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn golden() -> Vec<Arc<Entry>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/transcripts/demo.jsonl");
    let loaded = runs::read(path.as_ref()).unwrap();
    loaded.view.transcript().entries().to_vec()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_life_is_what_each_request_says(Written(entries) in prop_oneof![lifelike(), wild()]) {
        lives_are_true(&entries)?;
    }

    #[test]
    fn two_requests_part_where_their_bytes_do(Written(entries) in prop_oneof![lifelike(), wild()]) {
        comparisons_are_true(&entries)?;
    }
}

#[test]
fn the_golden_run_is_explained_truly() {
    let entries = golden();
    lives_are_true(&entries).unwrap();
    comparisons_are_true(&entries).unwrap();
}

/// Follows every entry and call, and looks at each request by itself.
fn lives_are_true(entries: &[Arc<Entry>]) -> Result<(), TestCaseError> {
    let whole = View::of(entries.iter().cloned());
    let calls = entries.iter().flat_map(|entry| match &entry.event {
        Event::Response(reply) => (0..reply.calls.len())
            .map(|index| undertext::id::CallId::at(entry.id, index))
            .collect(),
        _ => Vec::new(),
    });
    let subjects: Vec<Subject> = calls
        .map(Subject::Call)
        .chain(entries.iter().map(|entry| Subject::Entry(entry.id)))
        .collect();
    let lives = lives(whole.transcript(), &subjects);
    prop_assert_eq!(lives.len(), subjects.len());
    let mut asked = Vec::new();
    let mut view = View::default();
    for entry in entries {
        if let Event::Request(request) = &entry.event
            && matches!(request.purpose, Purpose::Round | Purpose::Repair { .. })
        {
            for life in &lives {
                is_so(&view, entry.id, at(life, entry.id), life.subject)?;
            }
            asked.push(entry.id);
        }
        view.take(Arc::clone(entry));
    }
    for life in &lives {
        is_so(
            &view,
            EntryId(u64::MAX),
            life.stretches.last(),
            life.subject,
        )?;
        is_in_order(life, &asked)?;
    }
    Ok(())
}

/// The stretch that a request belongs to.
fn at(life: &Life, request: EntryId) -> Option<&Stretch> {
    let mut stretches = life.stretches.iter();
    stretches.find(|stretch| {
        stretch.from.is_some_and(|from| from.request <= request)
            && stretch.to.is_none_or(|to| request <= to.request)
    })
}

/// Whether what is said of a request is what its messages say.
fn is_so(
    view: &View,
    request: EntryId,
    said: Option<&Stretch>,
    subject: Subject,
) -> Result<(), TestCaseError> {
    let context = format!("{subject:?} in {request}: {said:?}");
    let source = match subject {
        Subject::Call(call) => {
            let Some(stretch) = said else {
                prop_assert!(request < call.response, "{}", context);
                return Ok(());
            };
            let is_sent = view.messages().iter().any(|message| match message {
                Message::Assistant { calls, .. } => calls.iter().any(|sent| sent.id == call),
                Message::User { .. } | Message::Tool { .. } => false,
            });
            prop_assert_eq!(
                stretch.reads == How::Reads(As::Full),
                is_sent,
                "{}",
                context
            );
            return Ok(());
        }
        Subject::Entry(id) => match view.transcript().get(id).map(|entry| &entry.event) {
            Some(Event::User(_) | Event::Response(_)) => Source::Entry(id),
            Some(Event::Result(result)) => Source::Result(result.call),
            Some(Event::Overlay(_)) => Source::Summary(id),
            Some(_) => return Ok(()),
            None => {
                prop_assert!(said.is_none(), "{}", context);
                return Ok(());
            }
        },
    };
    let readings = view.readings();
    let of = |source| readings.iter().find(|reading| reading.source == source);
    let reads = match (source, subject) {
        // A second result of a call is none.
        (Source::Result(call), Subject::Entry(id)) => {
            let is_first = view.result_of(call).is_some_and(|(first, _)| first == id);
            of(source).filter(|_| is_first)
        }
        // A correction stands where the reply that it corrects was.
        (Source::Entry(id), _) => readings
            .iter()
            .find(|it| matches!(it.source, Source::Entry(other) if view.corrected(other) == id)),
        _ => of(source),
    };
    let said_reads = match said.map(|stretch| stretch.reads) {
        None | Some(How::Holds(Holds::NoMore)) => As::Absent,
        Some(How::Reads(reads)) => reads,
        Some(How::Holds(Holds::InForce)) => As::Full,
        Some(How::Holds(Holds::Replaced(by))) => As::Summarised(by),
    };
    let stub = reads.is_some_and(|it| matches!(it.message, Message::Tool { .. }));
    let stub = stub && reads.is_some_and(|it| !it.changed.is_empty());
    match said_reads {
        As::Full => {
            let is_other = matches!(source, Source::Summary(_)) && {
                let layers = view.overlays();
                let Source::Summary(id) = source else {
                    return Ok(());
                };
                layers.contains(&id)
            };
            prop_assert!(reads.is_some() && !stub || is_other, "{}", context);
            if let (Some(reading), Some(stretch)) = (reads, said) {
                prop_assert_eq!(&reading.changed, &stretch.parts, "{}", context);
            }
        }
        As::Stub(by) => {
            prop_assert!(stub, "{}", context);
            prop_assert_eq!(
                reads.and_then(|it| it.changed.first()).map(|it| it.by),
                Some(by)
            );
        }
        As::Summarised(by) => {
            prop_assert!(reads.is_none(), "{}", context);
            prop_assert!(of(Source::Summary(by)).is_some(), "{}", context);
        }
        As::Hidden(by) => {
            prop_assert!(reads.is_none(), "{}", context);
            prop_assert!(view.overlays().contains(&by), "{}", context);
        }
        As::Corrected(by) => prop_assert!(view.response(by).is_some(), "{}", context),
        As::Open => {
            let open = matches!(source, Source::Result(call)
                if view.reads_as(Content::Result(call)) == As::Open);
            prop_assert!(open, "{}", context);
        }
        As::Absent => prop_assert!(reads.is_none(), "{}", context),
    }
    if let Some(summary) = said.and_then(|stretch| stretch.again) {
        prop_assert!(of(Source::Carry(summary)).is_some(), "{}", context);
    }
    Ok(())
}

/// Stretches follow one another without gaps, and neighbours are not alike.
fn is_in_order(life: &Life, asked: &[EntryId]) -> Result<(), TestCaseError> {
    for pair in life.stretches.windows(2) {
        let [one, next] = pair else { continue };
        let (to, from) = (one.to.map(|it| it.request), next.from.map(|it| it.request));
        let place = asked.iter().position(|it| Some(*it) == to);
        let after = place.and_then(|place| asked.get(place + 1)).copied();
        prop_assert_eq!(after, from, "{:?}", life);
        let alike = one.reads == next.reads && one.parts == next.parts && one.again == next.again;
        prop_assert!(!alike, "{:?}", life);
    }
    let last = life.stretches.last();
    prop_assert!(last.is_none_or(|last| last.to.is_none()), "{:?}", life);
    Ok(())
}

/// Holds neighbouring requests against each other, and the first against the last, both ways.
fn comparisons_are_true(entries: &[Arc<Entry>]) -> Result<(), TestCaseError> {
    let whole = View::of(entries.iter().cloned());
    let requests = entries
        .iter()
        .filter(|it| matches!(it.event, Event::Request(_)));
    let moments: Vec<Moment> = requests
        .filter_map(|it| Moment::of(whole.transcript(), it.id))
        .collect();
    for moment in &moments {
        is_taken_apart(moment)?;
    }
    for pair in moments.windows(2) {
        is_compared(&pair[0], &pair[1])?;
    }
    if let (Some(first), Some(last)) = (moments.first(), moments.last()) {
        is_compared(first, last)?;
        is_compared(last, first)?;
    }
    Ok(())
}

/// The parts of a body are its bytes, and each names its source.
fn is_taken_apart(moment: &Moment) -> Result<(), TestCaseError> {
    let body = moment.view.body(&moment.request.purpose);
    let anatomy = moment.anatomy();
    prop_assert_eq!(
        body.as_ref().map(|body| &body.bytes[..]),
        anatomy.as_ref().map(|anatomy| &anatomy.bytes[..])
    );
    let (Some(anatomy), Some(blamed)) = (anatomy, blame(moment)) else {
        return Ok(());
    };
    if moment.request.purpose == Purpose::Round {
        let readings: Vec<_> = anatomy
            .messages
            .iter()
            .map(|it| it.reading.clone())
            .collect();
        prop_assert_eq!(readings, moment.view.readings());
    }
    prop_assert_eq!(blamed.len(), anatomy.messages.len());
    let mut end: Option<std::ops::Range<usize>> = None;
    for (message, placed) in blamed.iter().zip(&anatomy.messages) {
        prop_assert_eq!(message.source, placed.reading.source);
        prop_assert_eq!(&message.changed, &placed.reading.changed);
        let at = placed.at.clone();
        // Neighbours that became one message have one place.
        let follows = end
            .as_ref()
            .is_none_or(|end| *end == at || end.end + 1 == at.start);
        prop_assert!(follows, "{:?} behind {:?}", at, end);
        let text = std::str::from_utf8(&anatomy.bytes[at.clone()]).unwrap();
        prop_assert!(text.starts_with('{') && text.ends_with('}'), "{text}");
        end = Some(at);
    }
    if let Some(end) = end {
        prop_assert_eq!(&anatomy.bytes[end.end..], b"]}");
    }
    Ok(())
}

fn is_compared(a: &Moment, b: &Moment) -> Result<(), TestCaseError> {
    let bodies = [a, b].map(|moment| moment.view.body(&moment.request.purpose));
    let [Some(of_a), Some(of_b)] = bodies else {
        prop_assert!(compare(a, b).is_none());
        return Ok(());
    };
    let told = compare(a, b).unwrap();
    let (of_a, of_b) = (&of_a.bytes[..], &of_b.bytes[..]);
    let mut first = 0;
    while first < of_a.len() && first < of_b.len() && of_a[first] == of_b[first] {
        first += 1;
    }
    let differ = of_a != of_b;
    let offset = told.first.map(|it| usize::try_from(it.offset).unwrap());
    prop_assert_eq!(offset, differ.then_some(first));
    prop_assert_eq!(told.common.bytes, first as u64);
    // Without what closes a body, the parts make it up.
    let lost = of_a.len().saturating_sub(2).saturating_sub(first);
    let anew = of_b.len().saturating_sub(2).saturating_sub(first);
    prop_assert_eq!(
        [told.lost.bytes, told.anew.bytes],
        [lost as u64, anew as u64]
    );
    let count = |kind| told.differences.iter().filter(|it| it.kind == kind).count() as u64;
    let (came, went, changed) = (count(Kind::Came), count(Kind::Went), count(Kind::Changed));
    prop_assert_eq!(
        told.messages,
        [told.same + went + changed, told.same + came + changed]
    );
    for difference in &told.differences {
        let expected = match difference.kind {
            Kind::Came => (false, true),
            Kind::Went => (true, false),
            Kind::Changed => (true, true),
        };
        prop_assert_eq!((difference.a.is_some(), difference.b.is_some()), expected);
    }
    if let Some(message) = told.first.and_then(|it| it.message) {
        let place = usize::try_from(message).unwrap() - 1;
        let within = |moment: &Moment| {
            let anatomy = moment.anatomy()?;
            let placed = anatomy.messages.get(place)?;
            // The comma before it belongs to it.
            Some((placed.at.start.saturating_sub(1)..placed.at.end).contains(&first))
        };
        prop_assert!(
            within(a) == Some(true) || within(b) == Some(true),
            "{:?}",
            told.first
        );
    }
    Ok(())
}
