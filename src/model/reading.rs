//! Reading an answer under its timers, from the first byte to the judgement.

use std::error::Error;
use std::time::Duration;

use reqwest::Response;
use reqwest::header::{HeaderMap, LOCATION};
use tokio::time::timeout;

use crate::model::assemble::{End, Progress};
use crate::model::classify::{self, Failure};
use crate::model::intake::Intake;
use crate::model::said::one_line;
use crate::model::timers::{Late, Timers};
use crate::model::wait::{self, Wait};
use crate::model::{Ask, Delta, Fault, Reply};
use crate::transcript::{At, FaultClass};

/// How long to wait for the end of the body after the end marker, so that the connection can be
/// used again.
const DRAIN: Duration = Duration::from_millis(20);
/// How much of a failure's body is read, in bytes.
const FAILURE_MAX: usize = 64 << 10;

/// How far a request is.
pub(crate) enum Stage {
    /// It waits to be sent.
    Unsent(Box<Ask>),
    /// Its answer is being read.
    Reading(Box<Reading>),
    /// Everything was told.
    Over,
}

/// An answer that is being read.
pub(crate) struct Reading {
    response: Response,
    intake: Intake,
    timers: Timers,
    request: Option<String>,
}

impl Reading {
    /// Begins to read the body of an answer.
    pub(crate) fn new(response: Response, timers: Timers, intake: Intake) -> Self {
        Self {
            request: header(response.headers(), &["x-request-id", "request-id"]),
            response,
            intake,
            timers,
        }
    }

    /// Reads on and appends what is worth telling. `None` until the body has ended.
    pub(crate) async fn read(&mut self, deltas: &mut Vec<Delta>) -> Option<Result<Reply, Fault>> {
        let end = match self.timers.wait(self.response.chunk()).await {
            Some(Ok(Some(bytes))) => {
                if let Err(fault) = self.take(&bytes, deltas) {
                    return Some(Err(fault));
                }
                if self.intake.is_over() {
                    // What follows does not matter, only that it ends.
                    timeout(DRAIN, self.response.chunk()).await.ok();
                    End::Closed
                } else {
                    stopped(self.timers.late()?)
                }
            }
            Some(Ok(None)) => End::Closed,
            Some(Err(error)) => End::Lost(format!(
                "the connection was lost: {}",
                one_line(&chain(&error.without_url()))
            )),
            None => stopped(self.timers.late()?),
        };
        Some(self.end(end, deltas))
    }

    fn take(&mut self, bytes: &[u8], deltas: &mut Vec<Delta>) -> Result<(), Fault> {
        self.timers.bytes_came();
        if self.intake.take(bytes, deltas)? == Progress::Made {
            self.timers.progress_made();
            self.timers.reply_goes_on();
        }
        if self.intake.is_finished() {
            self.timers.finish_came();
        }
        Ok(())
    }

    fn end(&mut self, end: End, deltas: &mut Vec<Delta>) -> Result<Reply, Fault> {
        let mut reply = self.intake.end(end, deltas)?;
        reply.provider_request = self.request.take().or(reply.provider_request);
        Ok(reply)
    }
}

/// The fault of an answer whose status is none of success. `sent` is the size of the request.
pub(crate) async fn failure(
    mut response: Response,
    sent: usize,
    is_long: bool,
    limit: Duration,
) -> Fault {
    let status = response.status();
    let headers = response.headers().clone();
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(bytes)) = response.chunk().await {
            let room = FAILURE_MAX - body.len();
            body.extend(bytes.iter().take(room));
            if body.len() == FAILURE_MAX {
                break;
            }
        }
    };
    // What came in time may tell enough.
    timeout(limit, read).await.ok();
    let all = |name: &str| {
        headers
            .get_all(name)
            .into_iter()
            .filter_map(|value| value.to_str().ok())
    };
    let waits = all("retry-after-ms").map(Wait::Milliseconds);
    let waits = waits.chain(all("retry-after").map(Wait::Seconds));
    let waits: Vec<Wait<'_>> = waits.chain(resets(&headers).map(Wait::Reset)).collect();
    let date = header(&headers, &["date"]);
    let mut fault = classify::fault(&Failure {
        status: Some(status.as_u16()),
        waits: &waits,
        body: &String::from_utf8_lossy(&body),
        is_long,
        now: date
            .and_then(|date| wait::moment(&date))
            .unwrap_or_else(now),
    });
    if status.is_redirection() {
        let to = header(&headers, &[LOCATION.as_str()]).unwrap_or_default();
        let to = one_line(&to);
        fault.message = format!("redirects are not followed (status {status}, to `{to}`)");
    } else if status.as_u16() == 413 && fault.class == FaultClass::Permanent {
        fault.message = format!("{} (the request has {sent} bytes)", fault.message);
    }
    fault
}

/// When the limits are reset of which nothing remains.
fn resets(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let text = |name: String| headers.get(name)?.to_str().ok();
    ["", "-requests", "-tokens"]
        .into_iter()
        .filter_map(move |what| {
            let remaining = text(format!("x-ratelimit-remaining{what}"))?;
            let is_spent = remaining
                .trim()
                .parse::<f64>()
                .is_ok_and(|left| left <= 0.0);
            text(format!("x-ratelimit-reset{what}")).filter(|_| is_spent)
        })
}

/// How a body has ended when a timer ran out.
fn stopped(late: Late) -> End {
    match late {
        Late::End => End::Closed,
        Late::Byte(limit) => End::Stalled(format!("nothing came for {} s", limit.as_secs_f64())),
        Late::Progress(limit) => End::Stalled(format!(
            "neither text nor reasoning nor a call came for {} s",
            limit.as_secs_f64()
        )),
    }
}

/// An error and its causes.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        source = cause.source();
    }
    text
}

/// The first of these headers that is text.
fn header(headers: &HeaderMap, names: &[&str]) -> Option<String> {
    let mut values = names.iter().filter_map(|name| headers.get(*name));
    values.find_map(|value| Some(value.to_str().ok()?.to_owned()))
}

/// The time of day, for a server that sends a date to wait for but not its own.
#[expect(
    clippy::disallowed_methods,
    reason = "a date in a header means nothing without the time of day, and a request carries none"
)]
fn now() -> At {
    At(jiff::Timestamp::now().as_millisecond())
}
