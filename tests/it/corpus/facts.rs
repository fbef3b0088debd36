//! Facts planted in a recording: `label: value`, at places that its name decides.

use super::recording::{Call, Recording, Round, Turn};

/// How many facts are planted in a recording.
const FACTS: u64 = 30;

/// How many messages of the user are added for facts of their own.
const MESSAGES: usize = 3;

/// Something that must not be lost.
#[derive(Clone, Debug)]
pub(super) struct Fact {
    pub(super) label: String,
    pub(super) value: String,
}

impl Fact {
    fn line(&self) -> String {
        format!("{}: {}", self.label, self.value)
    }
}

/// Numbers that look like chance and are the same each time (`SplitMix64`).
struct Dice(u64);

impl Dice {
    fn of(name: &str) -> Self {
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(name.bytes().fold(0xcbf2_9ce4_8422_2325, hash))
    }

    fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one.
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.throw() % end.max(1) as u64).unwrap()
    }
}

/// The recording with facts in results, in what the agent says and in messages of the user, and
/// the facts. Some messages are added: recorded ones are few.
pub(super) fn planted(recording: &Recording) -> (Recording, Vec<Fact>) {
    let mut recording = recording.clone();
    let mut dice = Dice::of(&recording.name);
    (0..MESSAGES).for_each(|_| interrupt(&mut recording, &mut dice));
    let facts: Vec<Fact> = (0..FACTS).map(|number| fact(number, &mut dice)).collect();
    for fact in &facts {
        let mut places = places(&mut recording, dice.below(3));
        let place = dice.below(places.len());
        // Not into another fact.
        let torn = |old: &str, new: &str| {
            let all = facts.iter().map(Fact::line);
            all.into_iter()
                .any(|line| old.contains(&line) && !new.contains(&line))
        };
        let planted = (0..).map(|_| plant(places[place], &fact.line(), &mut dice));
        let text = planted.into_iter().find(|new| !torn(places[place], new));
        *places[place] = text.unwrap();
    }
    (recording, facts)
}

fn fact(number: u64, dice: &mut Dice) -> Fact {
    const NAMES: [&str; 8] = [
        "quill", "ember", "fjord", "lathe", "mango", "onyx", "prism", "tulip",
    ];
    let name = NAMES[dice.below(NAMES.len())];
    let bird = ["kestrel", "plover", "heron", "siskin"][dice.below(4)];
    Fact {
        label: format!("{name}-{:03x}{number:02x}", dice.throw() % 0x1000),
        value: format!("{:04}-{bird}", dice.throw() % 10_000),
    }
}

/// The user speaks up in the middle of a turn, when it has one.
fn interrupt(recording: &mut Recording, dice: &mut Dice) {
    let turn = dice.below(recording.turns.len());
    let rounds = &mut recording.turns[turn].rounds;
    if rounds.len() < 4 {
        return;
    }
    let rest = rounds.split_off(1 + dice.below(rounds.len() - 2));
    rounds.push(Round {
        text: "Go on?".to_owned(),
        ..Round::default()
    });
    let later = Turn {
        user: "Yes. Keep this in mind:".to_owned(),
        rounds: rest,
    };
    recording.turns.insert(turn + 1, later);
}

/// Texts in which a fact may stand: results, what the agent says, or later messages of the user.
/// Where a recording has none of a kind, all of its texts.
fn places(recording: &mut Recording, kind: usize) -> Vec<&mut String> {
    let mut kinds: [Vec<&mut String>; 3] = Default::default();
    for (number, turn) in recording.turns.iter_mut().enumerate() {
        let Turn { user, rounds } = turn;
        // The task is another promise, held at every request.
        kinds[2].extend((number > 0).then_some(user));
        for Round { text, calls, .. } in rounds {
            kinds[1].push(text);
            let results = calls.iter_mut().filter_map(result);
            kinds[0].extend(results);
        }
    }
    let [results, texts, messages] = kinds;
    match kind {
        0 if !results.is_empty() => results,
        2 if !messages.is_empty() => messages,
        _ => texts,
    }
}

fn result(call: &mut Call) -> Option<&mut String> {
    call.result.as_mut().map(|(text, _)| text)
}

/// The text with a line between two others, or anywhere within one.
fn plant(text: &str, line: &str, dice: &mut Dice) -> String {
    let mut at = text.floor_char_boundary(dice.below(text.len() + 1));
    let whole = dice.below(2) == 0;
    if whole {
        at = text[at..].find('\n').map_or(text.len(), |end| at + end);
    }
    let (before, after) = text.split_at(at);
    if whole {
        format!("{before}\n{line}{after}")
    } else {
        format!("{before} {line} {after}")
    }
}
