//! What is secret in a variable, by its name and by how its value looks.

use serde_json::Value;

use crate::secret::plausible::{self, As};
use crate::secret::{encoded, masked};

/// How much a variable's name says of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    /// Its value is a password, whatever it looks like.
    Password,
    /// Its value is secret, unless it is plainly something else.
    Secret,
    /// Its value is secret if it looks like one: `SONAR_PROJECT_KEY` names a project.
    Perhaps,
    /// Nothing.
    Plain,
}

/// What is secret in a variable of this name and value.
pub(super) fn secrets(name: &str, value: &str, is_there: &dyn Fn(&str) -> bool) -> Vec<String> {
    judged(Name::of(name), name, value, is_there)
}

/// The same of a variable whose name says so much.
fn judged(named: Name, name: &str, value: &str, is_there: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut all: Vec<String> = masked::secrets(value)
        .into_iter()
        .map(str::to_owned)
        .collect();
    if is_address(value) {
        all.extend(of_address(value, named));
    }
    if value.starts_with(['{', '['])
        && let Ok(json) = serde_json::from_str(value)
    {
        of_json(named, name, &json, is_there, &mut all);
    }
    let whole = match named {
        Name::Password => !is_path(value, is_there),
        Name::Secret => !is_plain(name, value, is_there),
        Name::Perhaps => !is_plain(name, value, is_there) && looks_secret(value),
        Name::Plain => false,
    };
    if whole {
        all.push(value.to_owned());
    }
    all
}

impl Name {
    fn of(name: &str) -> Self {
        const PASSWORDS: [&str; 7] = [
            "PASSWORD",
            "PASSWD",
            "PASS",
            "PWD",
            "PSWD",
            "PASSPHRASE",
            "PIN",
        ];
        const SECRETS: [&str; 15] = [
            "APIKEY",
            "TOKEN",
            "TOKENS",
            "SECRET",
            "SECRETS",
            "CREDENTIAL",
            "CREDENTIALS",
            "CRED",
            "CREDS",
            "COOKIE",
            "DSN",
            "JWT",
            "BEARER",
            "PSK",
            "UNSEAL",
        ];
        const WITHIN: [&str; 9] = [
            "TOKEN",
            "SECRET",
            "PASSW",
            "PASSPHRASE",
            "APIKEY",
            "API_KEY",
            "ACCESSKEY",
            "ACCESS_KEY",
            "PRIVATE_KEY",
        ];
        let upper = name.to_ascii_uppercase().replace("TOKENIZ", "");
        let words: Vec<&str> = upper.split(['_', '-', '.']).collect();
        let last = words.last().copied().unwrap_or_default();
        let has = |all: &[&str]| words.iter().any(|word| all.contains(word));
        if upper == "PWD" {
            // Every shell says there where it is.
            Self::Plain
        } else if PASSWORDS.contains(&last) || is_password(last) {
            Self::Password
        } else if has(&PASSWORDS) || has(&SECRETS) || WITHIN.iter().any(|it| upper.contains(it)) {
            if is_about(last) {
                Self::Perhaps
            } else {
                Self::Secret
            }
        } else if has(&["KEY", "KEYS", "AUTH", "PAT", "SEED", "WEBHOOK"]) {
            Self::Perhaps
        } else {
            Self::Plain
        }
    }

    /// How much the name of a field says, where the name around it says so much.
    fn of_field(name: &str, around: Self) -> Self {
        let upper = name.to_ascii_uppercase();
        let last = upper.rsplit(['_', '-', '.']).next().unwrap_or_default();
        match Self::of(name) {
            Self::Plain if around != Self::Plain && !is_about(last) => Self::Perhaps,
            named @ (Self::Password | Self::Secret | Self::Perhaps | Self::Plain) => named,
        }
    }
}

/// Whether the last word of a name says that it holds a password: `DB_PW`, `SSHPASS`. At the
/// beginning `PW` stands for other things as well.
fn is_password(last: &str) -> bool {
    const OTHERS: [&str; 8] = [
        "ASKPASS",
        "BYPASS",
        "COMPASS",
        "KEEPASS",
        "MULTIPASS",
        "OVERPASS",
        "TRESPASS",
        "UNDERPASS",
    ];
    last == "PW" || last.ends_with("PASS") && !OTHERS.contains(&last)
}

/// Whether a name that ends in this word names the thing that a secret is for, kept in or found by.
fn is_about(last: &str) -> bool {
    const ABOUT: [&str; 21] = [
        "NAME",
        "TYPE",
        "FILE",
        "DIR",
        "PATH",
        "URL",
        "URI",
        "HOST",
        "ENDPOINT",
        "ID",
        "PROJECT",
        "STORE",
        "METHOD",
        "PROVIDER",
        "ISSUER",
        "AUDIENCE",
        "REGION",
        "USER",
        "EMAIL",
        "HELPER",
        "ALGORITHM",
    ];
    ABOUT.contains(&last)
}

/// What is secret in the strings of a value that is JSON, as the names of its fields say it.
fn of_json(
    named: Name,
    name: &str,
    json: &Value,
    is_there: &dyn Fn(&str) -> bool,
    all: &mut Vec<String>,
) {
    match json {
        Value::String(text) => all.extend(judged(named, name, text.trim(), is_there)),
        Value::Array(items) => {
            for item in items {
                of_json(named, name, item, is_there, all);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                of_json(Name::of_field(name, named), name, value, is_there, all);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What an address holds that is secret: who asks, if that is more than a name, and the password. If
/// a name says so, also what its query says that looks like a secret.
fn of_address(address: &str, named: Name) -> Vec<String> {
    let user = encoded::user(address).unwrap_or_default();
    let (user, password) = user.split_once(':').unwrap_or((user, ""));
    let mut parts = vec![password];
    parts.extend(Some(user).filter(|user| looks_secret(user)));
    if named != Name::Plain {
        let query = address.split_once('?').map_or("", |(_, query)| query);
        let pairs = query.split(['&', '#']);
        let values = pairs.filter_map(|pair| Some(pair.split_once('=')?.1));
        parts.extend(values.filter(|value| looks_secret(value)));
    }
    parts.into_iter().flat_map(encoded::read).collect()
}

/// Whether a value is plainly something else than a secret: an address, whose parts are judged by
/// themselves, a path, a way to a socket, or a number that counts something.
fn is_plain(name: &str, value: &str, is_there: &dyn Fn(&str) -> bool) -> bool {
    is_address(value)
        || is_path(value, is_there)
        || socket(value).is_some_and(|path| is_path(path, is_there))
        || is_count(name, value)
}

/// Whether it is an address: a scheme, and a host behind it.
fn is_address(value: &str) -> bool {
    value.split_once("://").is_some_and(|(scheme, rest)| {
        let mut letters = scheme.chars();
        let is_scheme = letters.next().is_some_and(|c| c.is_ascii_alphabetic())
            && letters.all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c));
        is_scheme && !rest.is_empty() && !value.contains(char::is_whitespace)
    })
}

/// Whether it is a path: one that is there, or one that reads like one. What is drawn at random may
/// begin with a slash as well.
fn is_path(value: &str, is_there: &dyn Fn(&str) -> bool) -> bool {
    let begins = value.starts_with(['/', '~', '.']);
    let parts = value.split(['/', ':']).filter(|part| {
        let stands_for_one = matches!(*part, "." | ".." | "~");
        stands_for_one || part.chars().any(|c| c.is_ascii_alphabetic()) && is_spoken(part)
    });
    let is_encoded = value.contains(['+', '=']);
    begins && (!is_encoded && parts.count() >= 2 || is_there(value))
}

/// The path of a socket: `unix:path=/run/user/1000/bus`.
fn socket(value: &str) -> Option<&str> {
    let at = value.find(":/").or_else(|| value.find("=/"))?;
    let (ahead, path) = value.split_at(at + 1);
    let is_said = |c: char| c.is_ascii_lowercase() || ":=".contains(c);
    ahead.chars().all(is_said).then_some(path)
}

/// Whether it is a number, and not one that is a secret: a short one, or one of which the name says
/// that it is a bound, a time or one of many.
fn is_count(name: &str, value: &str) -> bool {
    const SHORT: usize = 10;
    const LONG: usize = 16;
    let upper = name.to_ascii_uppercase();
    let mut words = upper.split(['_', '-', '.']);
    let bounds = [
        "MAX", "MIN", "LIMIT", "COUNT", "TOKENS", "TTL", "EXPIRES", "EXPIRY", "TIMEOUT", "ID",
        "AT", "MS", "TIME", "SIZE",
    ];
    value.chars().all(|c| c.is_ascii_digit())
        && (value.len() < SHORT || value.len() < LONG && words.any(|word| bounds.contains(&word)))
}

/// Whether it looks like a secret and not like a name.
fn looks_secret(value: &str) -> bool {
    let inner = value.trim_start_matches(['/', '~', '.', '@', '&']);
    plausible::is_secret(inner, As::Quoted) && !is_spoken(inner)
}

/// Whether it is made of words and short numbers alone, as names are: `acme-backend-2024`.
fn is_spoken(value: &str) -> bool {
    let mut parts = value.split(['.', '_', '-', '/', ':', ' ']);
    parts.all(|part| {
        let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = part.len() - letters.len();
        let capital = letters.chars().skip(1).filter(char::is_ascii_uppercase);
        let is_word = letters.chars().all(|c| c.is_ascii_alphabetic())
            && (capital.count() * 3 <= letters.len()
                || letters.chars().all(|c| c.is_ascii_uppercase()));
        is_word && digits <= 4
    })
}
