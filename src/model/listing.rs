//! What a server says of its models, where it says anything.
//!
//! Servers list them in much the same way and tell of windows in many; a list is an aid to people and
//! never decides what a run does.

use std::time::Duration;

use reqwest::Response;
use serde_json::Value;

use crate::model::Fault;
use crate::model::{connect, reading};
use crate::transcript::FaultClass;

/// The longest list that is read, in bytes.
const LIST_MAX: usize = 16 << 20;

/// A model as its server lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name, as requests give it.
    pub name: String,
    /// The context window in tokens, if the server tells it.
    pub window: Option<u64>,
    /// Whom it belongs to, in the server's words; servers for one's own machine name themselves.
    pub owner: Option<String>,
}

/// Reads the list, or says why there is none.
pub(crate) async fn read(mut response: Response, limit: Duration) -> Result<Vec<Listed>, Fault> {
    if !response.status().is_success() {
        return Err(reading::failure(response, 0, false, limit).await);
    }
    let status = response.status().as_u16();
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(connect::unsent)? {
        body.extend_from_slice(&bytes);
        if body.len() > LIST_MAX {
            break;
        }
    }
    models(&body).ok_or_else(|| {
        let begins = String::from_utf8_lossy(&body);
        let is_page = begins.trim_start().starts_with('<');
        let what = if is_page {
            "a web page"
        } else {
            "no list of models"
        };
        let mut fault = Fault::new(FaultClass::Permanent, format!("the server sent {what}"));
        fault.status = Some(status);
        fault
    })
}

/// The models of a list: below `data` or `models`, or at the top.
fn models(body: &[u8]) -> Option<Vec<Listed>> {
    let list: Value = serde_json::from_slice(body).ok()?;
    let models = list.get("data").or_else(|| list.get("models"));
    let models = models.unwrap_or(&list).as_array()?;
    Some(models.iter().filter_map(listed).collect())
}

fn listed(model: &Value) -> Option<Listed> {
    let name = ["id", "name", "model"]
        .iter()
        .find_map(|key| model.get(key)?.as_str())?;
    let places = [
        "/context_length",
        "/max_model_len",
        "/context_window",
        "/max_context_length",
        "/inputTokenLimit",
        "/limits/max_context_window_tokens",
        "/meta/n_ctx",
        "/meta/n_ctx_train",
    ];
    let windows = places.iter().filter_map(|at| model.pointer(at)?.as_u64());
    let owner = model.get("owned_by").and_then(Value::as_str);
    Some(Listed {
        name: name.strip_prefix("models/").unwrap_or(name).to_owned(),
        window: windows.into_iter().find(|window| *window > 0),
        owner: owner.map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_found_wherever_servers_tell_them() {
        let check = |body: &str, expected: &[(&str, Option<u64>)]| {
            let found = models(body.as_bytes()).unwrap();
            let found: Vec<_> = found.iter().map(|m| (m.name.as_str(), m.window)).collect();
            assert_eq!(found, expected);
        };
        check(
            r#"{"data":[{"id":"a","max_model_len":4096},{"id":"b","context_length":0},{"x":1}]}"#,
            &[("a", Some(4096)), ("b", None)],
        );
        check(
            r#"{"models":[{"name":"models/gemini","inputTokenLimit":9}]}"#,
            &[("gemini", Some(9))],
        );
        check(
            r#"[{"id":"c","meta":{"n_ctx_train":32768}}]"#,
            &[("c", Some(32_768))],
        );
        for body in ["<html>", "{}", "", "{\"data\":1}"] {
            assert_eq!(models(body.as_bytes()), None, "{body}");
        }
    }
}
