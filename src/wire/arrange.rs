//! Messages as a strict provider wants them to follow one another.
//!
//! Most providers take any order in which calls stand before their results. Some want user and
//! assistant to take turns, or no user's message after a result. For these, neighbours become one
//! message; nothing is left out.

use std::borrow::Cow;

use crate::exchange::Message;
use crate::setup::{MessageOrder, MessageProfile};
use crate::words;

/// What stands between texts that become one.
const BETWEEN: &str = "\n\n";

/// The messages in an order that the provider takes.
pub fn arrange<'a>(messages: Vec<Message<'a>>, profile: &MessageProfile) -> Vec<Message<'a>> {
    arranged(messages, profile).0
}

/// The same, and for each message that was given the place of the one that it became.
pub fn arranged<'a>(
    messages: Vec<Message<'a>>,
    profile: &MessageProfile,
) -> (Vec<Message<'a>>, Vec<usize>) {
    if !profile.merges() {
        let places = (0..messages.len()).collect();
        return (messages, places);
    }
    let mut arranged: Vec<Message<'a>> = Vec::with_capacity(messages.len() + 1);
    let mut places = Vec::with_capacity(messages.len());
    for message in messages {
        put(&mut arranged, message, profile);
        places.push(arranged.len() - 1);
    }
    (arranged, places)
}

/// Puts a message behind the others, or into the last one.
fn put<'a>(arranged: &mut Vec<Message<'a>>, message: Message<'a>, profile: &MessageProfile) {
    let alternate = profile.order == MessageOrder::Alternate;
    match (arranged.last_mut(), message) {
        (Some(Message::Tool { text: result, .. }), Message::User { text })
            if !profile.user_after_tool =>
        {
            join(result, &words::after_result(&text));
        }
        (Some(Message::User { text: before }), Message::User { text }) if alternate => {
            join(before, &text);
        }
        (Some(before @ Message::Assistant { .. }), after @ Message::Assistant { .. })
            if alternate =>
        {
            go_on(before, after);
        }
        (None, message @ Message::Assistant { .. }) if alternate => {
            let text = Cow::Borrowed(words::LEFT_OUT_BEFORE);
            arranged.push(Message::User { text });
            arranged.push(message);
        }
        (_, message) => arranged.push(message),
    }
}

fn join(before: &mut Cow<'_, str>, text: &str) {
    let before = before.to_mut();
    before.push_str(BETWEEN);
    before.push_str(text);
}

/// Adds to an assistant's message without calls the one that follows.
fn go_on<'a>(before: &mut Message<'a>, after: Message<'a>) {
    let (
        Message::Assistant {
            text,
            reasoning,
            calls,
            extra,
        },
        Message::Assistant {
            text: more_text,
            reasoning: more_reasoning,
            calls: more_calls,
            extra: more_extra,
        },
    ) = (before, after)
    else {
        return;
    };
    match (text.is_empty(), more_text.is_empty()) {
        (_, true) => {}
        (true, false) => *text = more_text,
        (false, false) => join(text, &more_text),
    }
    if !more_reasoning.is_empty() {
        reasoning.to_mut().extend(more_reasoning.into_owned());
    }
    calls.extend(more_calls);
    if extra.is_none() {
        *extra = more_extra;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{Reasoning, SentCall};
    use crate::id::{CallId, EntryId};

    fn user(text: &str) -> Message<'_> {
        Message::User { text: text.into() }
    }

    fn tool(text: &str) -> Message<'_> {
        Message::Tool {
            call: CallId::new(EntryId(5), 1),
            text: text.into(),
        }
    }

    fn assistant<'a>(text: &'a str, call: &'a str) -> Message<'a> {
        let thought = Reasoning::Text {
            field: "reasoning".into(),
            text: format!("on {text}"),
        };
        let call = (!call.is_empty()).then(|| SentCall {
            id: CallId::new(EntryId(5), 1),
            name: call.into(),
            arguments: "{}".into(),
            extra: None,
        });
        Message::Assistant {
            text: text.into(),
            reasoning: vec![thought].into(),
            calls: call.into_iter().collect(),
            extra: None,
        }
    }

    /// A message as a line: `u one`, `a two(on two) Read`, `t three`.
    fn line(message: &Message<'_>) -> String {
        match message {
            Message::User { text } => format!("u {text}"),
            Message::Tool { text, .. } => format!("t {text}"),
            Message::Assistant {
                text,
                reasoning,
                calls,
                ..
            } => {
                let thoughts: Vec<String> = reasoning
                    .iter()
                    .map(|block| match block {
                        Reasoning::Text { text, .. } => text.clone(),
                        Reasoning::Raw { raw, .. } => raw.clone(),
                    })
                    .collect();
                let calls: Vec<&str> = calls.iter().map(|call| &*call.name).collect();
                format!("a {text}({}) {}", thoughts.join(","), calls.join(","))
            }
        }
    }

    fn check(profile: &MessageProfile, messages: &[Message<'_>], expected: &[&str]) {
        let arranged = arrange(messages.to_vec(), profile);
        let lines: Vec<String> = arranged.iter().map(line).collect();
        assert_eq!(lines, expected);
        assert_eq!(
            arrange(arranged.clone(), profile),
            arranged,
            "once is enough"
        );
    }

    #[test]
    fn case_48_neighbours_become_one_where_roles_take_turns() {
        let profile = MessageProfile {
            order: MessageOrder::Alternate,
            ..MessageProfile::default()
        };
        check(
            &profile,
            &[
                user("a"),
                user("b"),
                assistant("c", ""),
                assistant("d", "Read"),
                tool("e"),
                user("f"),
            ],
            &["u a\n\nb", "a c\n\nd(on c,on d) Read", "t e", "u f"],
        );
        check(
            &profile,
            &[assistant("", "Read"), tool("e")],
            &[
                "u [undertext, not the user] What was said before this is left out.",
                "a (on ) Read",
                "t e",
            ],
        );
    }

    #[test]
    fn case_48_what_a_user_says_after_a_result_is_part_of_it() {
        let profile = MessageProfile {
            user_after_tool: false,
            ..MessageProfile::default()
        };
        check(
            &profile,
            &[
                user("a"),
                user("b"),
                assistant("", "Read"),
                tool("c"),
                user("d"),
                user("e"),
            ],
            &[
                "u a",
                "u b",
                "a (on ) Read",
                "t c\n\n[undertext: this is no part of the result, it was said after it]\nd\n\n\
                 [undertext: this is no part of the result, it was said after it]\ne",
            ],
        );
    }

    #[test]
    fn other_providers_get_messages_as_they_are() {
        let messages = [
            assistant("a", ""),
            user("b"),
            user("c"),
            tool("d"),
            user("e"),
        ];
        let arranged = arrange(messages.to_vec(), &MessageProfile::default());
        assert_eq!(arranged, messages);
    }
}
