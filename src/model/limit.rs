//! Which limit was reached: one that passes, one that lasts, or one that is paid for.
//!
//! A code decides, then the words. Where they leave it open, nothing is taken for certain.

use crate::model::said::Said;
use crate::transcript::FaultClass;

/// What kind of limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// One that ends within minutes.
    Passing,
    /// One of which nothing tells whether it ends.
    Unclear,
    /// One of a day or longer.
    Lasting,
    /// One that is paid for.
    Unpaid,
}

impl Limit {
    /// The class of a request that reached it.
    pub(crate) fn class(self) -> FaultClass {
        match self {
            Self::Passing | Self::Unclear => FaultClass::Rate,
            Self::Lasting | Self::Unpaid => FaultClass::Permanent,
        }
    }
}

impl Said {
    /// The limit that it tells of; `None` for anything else.
    pub(crate) fn limit(
        &self,
        status: Option<u16>,
        message: &str,
        says_when: bool,
    ) -> Option<Limit> {
        let rates = ["rate_limit", "ratelimit", "too_many_requests", "throttl"];
        let is_rate = self.any_word(&rates);
        let unpaid = [
            "insufficient_quota",
            "billing",
            "insufficient_credits",
            "payment_required",
        ];
        if self.any_word(&unpaid) || status == Some(402) {
            return Some(Limit::Unpaid);
        }
        if !is_rate && status != Some(429) && !self.any_word(&["resource_exhausted"]) {
            return None;
        }
        let lasting = [
            "per day",
            "per-day",
            "daily",
            "(rpd)",
            "(tpd)",
            "per month",
            "monthly",
        ];
        let spent = ["credit", "insufficient balance"];
        let either = ["quota", "check your plan", "billing", "usage limit"];
        let passing = [
            "per minute",
            "per second",
            "rate limit",
            "too many requests",
        ];
        let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
        // A limit that says when it ends is no empty purse, whatever else it says.
        Some(if has(&lasting) || self.any_word(&["perday"]) {
            Limit::Lasting
        } else if has(&spent) && !says_when {
            Limit::Unpaid
        } else if has(&either) && !says_when && !is_rate && !has(&passing) {
            Limit::Unclear
        } else {
            Limit::Passing
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::classify::{Failure, fault};
    use crate::model::wait::Wait;

    #[test]
    fn a_limit_is_told_apart_where_it_can_be() {
        use Limit::{Lasting, Passing, Unclear, Unpaid};
        for (message, code, wait, limit) in [
            ("", "", false, Passing),
            ("slow down", "", false, Passing),
            (
                "You exceeded your current quota, please check your plan and billing details.",
                "insufficient_quota",
                true,
                Unpaid,
            ),
            (
                "You exceeded your current quota, please check your plan and billing details.",
                "",
                false,
                Unclear,
            ),
            (
                "You exceeded your current quota, please check your plan and billing details.",
                "RESOURCE_EXHAUSTED",
                false,
                Unclear,
            ),
            (
                "You exceeded your current quota, please check your plan and billing details.",
                "RESOURCE_EXHAUSTED",
                true,
                Passing,
            ),
            (
                "Quota exceeded for tokens per minute",
                "RESOURCE_EXHAUSTED",
                false,
                Passing,
            ),
            ("Usage limit reached", "", false, Unclear),
            ("quota", "rate_limit_exceeded", false, Passing),
            (
                "Requests per day (RPD) reached",
                "rate_limit_exceeded",
                true,
                Lasting,
            ),
            ("Insufficient Balance", "", false, Unpaid),
            ("You have run out of credits", "", false, Unpaid),
        ] {
            let body = format!(r#"{{"error":{{"message":"{message}","code":"{code}"}}}}"#);
            let waits: &[Wait<'_>] = if wait { &[Wait::Seconds("30")] } else { &[] };
            let fault = fault(&Failure {
                status: Some(429),
                waits,
                body: &body,
                ..Failure::default()
            });
            assert_eq!(
                (fault.class, fault.unclear),
                (limit.class(), limit == Unclear),
                "{body}"
            );
            let told = wait && limit != Unpaid;
            assert_eq!(fault.wait_ms, told.then_some(30_000), "{body}");
        }
    }
}
