//! Cases 20 to 24: what the end of a reply says of its text and its calls.

use super::reply::{DONE, STOP, TEXT, call, finish, whole};
use super::server::{Answer, Last};
use super::{Manner, check, check_in};

const LENGTH: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#;
const FILTER: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}"#;

#[test]
fn case_20_valid_calls_run_whatever_the_word() {
    for word in ["stop", "tool_calls", "function_call", "done"] {
        let told = format!(
            "Complete {word}: Change{{\"path\":\"a\"}} Show{{\"path\":\"b\"}}
            result, ok: a s
            result, ok: b s
            Complete stop: Hé 漢😀
            end, finished: Hé 漢😀
            ran Change a, Show b
            requests 2"
        );
        let calls = [
            call(0, "Change", r#"{"path":"#),
            call(0, "", r#""a"}"#),
            call(1, "Show", r#"{"path":"b"}"#),
        ];
        let [one, two, three] = &calls;
        check(
            20,
            word,
            &[
                Answer::events(&[one, two, three, &finish(word), DONE]),
                whole(),
            ],
            &told,
        );
    }
    // One call of which a part is missing: none runs.
    check(
        20,
        "half a call",
        &[
            Answer::events(&[
                &call(0, "Change", r#"{"path":"a"}"#),
                &call(1, "Show", r#"{"path":"#),
                STOP,
                DONE,
            ]),
            whole(),
        ],
        r#"
        Complete stop: Change{"path":"a"} Show{"path":
        result, error: not run: another call of this reply was malformed
        result, error: The call of Show did not run: the arguments are not valid JSON: EOF while parsing a value at line 1 column 8.
        Complete stop: Hé 漢😀
        end, finished: Hé 漢😀
        requests 2"#,
    );
}

#[test]
fn cases_21_and_22_a_cut_reply_is_kept_and_nothing_of_it_runs() {
    let told = "told: [undertext, not the user] Your last reply was cut off at the limit of output tokens. Go on from where it ends.";
    let cut = || Answer::events(&[TEXT, LENGTH, DONE]);
    check(
        21,
        "once",
        &[cut(), whole()],
        &format!(
            "Cut length: Hé 漢😀
            {told}
            Complete stop: Hé 漢😀
            end, finished: Hé 漢😀
            requests 2"
        ),
    );
    check(
        21,
        "again and again",
        &vec![cut(); 3],
        &format!(
            "Cut length: Hé 漢😀
            {told}
            Cut length: Hé 漢😀
            {told}
            Cut length: Hé 漢😀
            end, stuck: the model's replies were cut again and again; resume with a larger model.max_output_tokens
            requests 3"
        ),
    );
    let answered = "result, error: [undertext] Your reply was cut off at the limit of output tokens, so this call did not run. Make it again with shorter arguments, or split the work into smaller steps.";
    for (name, arguments) in [
        ("open arguments", r#"{"path":"#),
        ("arguments that happen to close", r#"{"path":"a"}"#),
    ] {
        check(
            22,
            name,
            &[
                Answer::events(&[&call(0, "Change", arguments), LENGTH, DONE]),
                whole(),
            ],
            &format!(
                "Cut length: Change{arguments}
                {answered}
                Complete stop: Hé 漢😀
                end, finished: Hé 漢😀
                requests 2"
            ),
        );
    }
    // A harmless word does not take back an earlier one.
    check(
        22,
        "two words",
        &[
            Answer::events(&[&call(0, "Change", r#"{"path":"a"}"#), LENGTH, STOP, DONE]),
            whole(),
        ],
        &format!(
            "Cut length: Change{{\"path\":\"a\"}}
            {answered}
            Complete stop: Hé 漢😀
            end, finished: Hé 漢😀
            requests 2"
        ),
    );
    let mut manner = Manner::default();
    manner.setup.wire.models.main.parameters.max_output_tokens = Some(50);
    let counts = r#"{"choices":[],"usage":{"prompt_tokens":240,"completion_tokens":50}}"#;
    check_in(
        22,
        "as much as was asked for",
        &manner,
        &[
            Answer::events(&[&call(0, "Change", r#"{"path":"a"}"#), STOP, counts, DONE]),
            whole(),
        ],
        &format!(
            "Cut stop 240/-/50: Change{{\"path\":\"a\"}}
            {answered}
            Complete stop: Hé 漢😀
            end, finished: Hé 漢😀
            requests 2"
        ),
    );
}

#[test]
fn case_23_a_filter_ends_the_run_and_keeps_the_text() {
    let end = "end, refused: the model or a content filter refused; resume and ask in other words\nrequests 1";
    check(
        23,
        "in the middle",
        &[Answer::events(&[TEXT, FILTER, DONE])],
        &format!("Filtered content_filter: Hé 漢😀\n{end}"),
    );
    check(
        23,
        "before anything",
        &[Answer::events(&[FILTER, DONE])],
        &format!("Filtered content_filter:\n{end}"),
    );
    check(
        23,
        "and then another word",
        &[Answer::events(&[TEXT, FILTER, STOP])],
        &format!("Filtered content_filter: Hé 漢😀\n{end}"),
    );
    check(
        23,
        "behind a call",
        &[Answer::events(&[
            &call(0, "Change", r#"{"path":"a"}"#),
            FILTER,
            DONE,
        ])],
        r#"
        Filtered content_filter: Change{"path":"a"}
        result, error: [undertext] Your reply was not completed, so this call did not run.
        end, refused: the model or a content filter refused; resume and ask in other words
        requests 1"#,
    );
    let error =
        r#"{"error":{"message":"The response was filtered","code":"content_filter","status":400}}"#;
    for (name, answer) in [
        ("as a status", Answer::json(400, error)),
        ("as an error", Answer::events(&[error])),
    ] {
        check(
            23,
            name,
            &[answer],
            &format!("failed, content_filter: The response was filtered\n{end}"),
        );
    }
    check(
        23,
        "as an error after some text",
        &[Answer::events(&[TEXT, error, DONE])],
        &format!("Filtered: Hé 漢😀\n{end}"),
    );
}

#[test]
fn case_24_an_error_within_a_reply_is_one() {
    let busy = r#"{"error":{"message":"busy","type":"overloaded_error"}}"#;
    let retried = "
        retried, overload: busy
        Complete stop: Hé 漢😀
        end, finished: Hé 漢😀
        requests 2";
    check(
        24,
        "first",
        &[Answer::events(&[busy]).ends(Last::Stay), whole()],
        retried,
    );
    check(
        24,
        "after some text",
        &[Answer::events(&[TEXT, busy]).ends(Last::Stay), whole()],
        retried,
    );
    check(
        24,
        "after a call and a finish reason",
        &[
            Answer::events(&[&call(0, "Change", r#"{"path":"a"}"#), STOP, busy]),
            whole(),
        ],
        retried,
    );
    check(
        24,
        "before an end marker",
        &[Answer::events(&[TEXT, busy, STOP, DONE]), whole()],
        retried,
    );
    for (name, body, told) in [
        (
            "an event's name",
            "event: error\ndata: {\"message\":\"busy\",\"type\":\"overloaded\"}\n\n",
            "retried, overload: busy",
        ),
        (
            "a field's name",
            "error: {\"message\":\"busy\",\"code\":503}\n\n",
            "retried, overload: busy",
        ),
        (
            "text",
            "data: {\"error\":\"rate limit reached\"}\n\n",
            "retried, rate: rate limit reached",
        ),
        (
            "a number",
            "data: {\"error\":{\"code\":429,\"message\":\"slow\"}}\n\n",
            "retried, rate: slow",
        ),
        (
            "a line of JSON",
            "{\"error\":{\"code\":500,\"message\":\"oops\"}}\n",
            "retried, server: oops",
        ),
        (
            "an array",
            "data: [{\"error\":{\"code\":503,\"message\":\"busy\"}}]\n\n",
            "retried, overload: busy",
        ),
        (
            "flat",
            "data: {\"object\":\"error\",\"message\":\"oops\",\"code\":500}\n\n",
            "retried, server: oops",
        ),
        (
            "in a choice",
            "data: {\"choices\":[{\"error\":{\"code\":502,\"message\":\"up\"},\"finish_reason\":\"error\"}]}\n\n",
            "retried, server: up",
        ),
        (
            "in a corner",
            "data: {\"choices\":[],\"x_groq\":{\"error\":\"over capacity\"}}\n\n",
            "retried, overload: over capacity",
        ),
    ] {
        let told = format!("{told}\nComplete stop: Hé 漢😀\nend, finished: Hé 漢😀\nrequests 2");
        check(24, name, &[Answer::stream(body), whole()], &told);
    }
    let wrong = r#"{"error":{"message":"no such model","code":"model_not_found","type":"invalid_request_error"}}"#;
    check(
        24,
        "one that stays",
        &[Answer::events(&[wrong])],
        "
        failed, permanent: no such model
        end, provider: the provider failed for good: no such model; resume to go on
        requests 1",
    );
}
