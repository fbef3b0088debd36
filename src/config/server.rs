//! The server, and the key that goes to it and to no other.

use std::fmt;

use crate::config::read::{ConfigError, MeaningError};
use crate::config::{Environment, PUBLIC_SERVER, Settings};

/// A server as it is named in settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// Its address.
    pub base_url: Option<String>,
    /// The variable that holds the key.
    pub api_key_env: Option<String>,
}

/// A server and the key for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its address, without a slash at the end.
    pub base_url: String,
    /// The key, if one is sent.
    pub key: Option<Key>,
}

/// A key, and the variable it came from. It is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    /// The variable.
    pub variable: String,
    secret: String,
}

impl Key {
    /// The key itself.
    pub fn secret(&self) -> &str {
        &self.secret
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key(${})", self.variable)
    }
}

/// There is no key for the server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The variable that was named holds nothing.
    #[error("variable {0}, which should hold the key for {1}, is not set")]
    NamedKey(String, String),
    /// Nothing was named, and the usual variable holds nothing either.
    #[error("no key for {PUBLIC_SERVER}: variable OPENAI_API_KEY is not set")]
    UsualKey,
}

impl Settings {
    /// The server and its key. A server that is named without a key's variable gets no key; without
    /// one named, the usual two variables of OpenAI's own clients are used together.
    pub fn endpoint(&self, environment: &Environment) -> Result<Endpoint, ConfigError> {
        let variable = |name: &str| environment.get(name).filter(|text| !text.is_empty());
        let key = |name: &str| {
            variable(name).map(|secret| Key {
                variable: name.to_owned(),
                secret: secret.trim().to_owned(),
            })
        };
        let usual = variable("OPENAI_BASE_URL").map(|url| url.trim_end_matches('/').to_owned());
        if let (None, Some(url)) = (&self.server.base_url, &usual)
            && check_address(url).is_err()
        {
            return Err(MeaningError::UsualAddress(public_part(url)).into());
        }
        let (base_url, named) = match (&self.server.base_url, &self.server.api_key_env) {
            (Some(url), named) => (url.trim_end_matches('/').to_owned(), named.as_deref()),
            (None, named) => {
                let url = usual.unwrap_or_else(|| PUBLIC_SERVER.to_owned());
                (url, Some(named.as_deref().unwrap_or("OPENAI_API_KEY")))
            }
        };
        check_address(&base_url)?;
        let key = match named {
            None => None,
            Some(name) => match key(name) {
                Some(key) => Some(key),
                None if self.server.api_key_env.is_some() => {
                    let server = public_part(&base_url);
                    return Err(EndpointError::NamedKey(shown(name).to_owned(), server).into());
                }
                None if base_url == PUBLIC_SERVER => return Err(EndpointError::UsualKey.into()),
                None => None,
            },
        };
        Ok(Endpoint { base_url, key })
    }
}

/// What stands for the name of a variable that is not shown.
pub(crate) const UNSHOWN: &str = "named by api_key_env";

/// The name of a variable as it may be shown: what has small letters may be a key after all.
pub(crate) fn shown(name: &str) -> &str {
    if name.contains(|c: char| c.is_ascii_lowercase()) {
        UNSHOWN
    } else {
        name
    }
}

/// The part of a server's address that may be shown: without a query, which may hold a key, and
/// with a mark in place of a user and a password.
pub fn public_part(address: &str) -> String {
    let (scheme, rest) = match address.find("://") {
        Some(at) => address.split_at(at + "://".len()),
        None => ("", address),
    };
    // A password may hold any character, so what looks like a query may be part of one.
    let (user, rest) = match rest.rsplit_once('@') {
        Some((_, rest)) => ("…@", rest),
        None => ("", rest),
    };
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    format!("{scheme}{user}{}", &rest[..end])
}

pub(crate) fn check_address(address: &str) -> Result<(), ConfigError> {
    let host = ["http://", "https://"]
        .iter()
        .find_map(|scheme| address.strip_prefix(scheme));
    match host {
        Some(host) if !host.is_empty() && !host.starts_with('/') => Ok(()),
        _ => Err(MeaningError::Address(public_part(address)).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::public_part;

    #[test]
    fn of_an_address_only_what_is_no_secret_is_shown() {
        for (address, shown) in [
            ("https://h:8080/v1", "https://h:8080/v1"),
            ("https://h/v1?key=sk-secret#x", "https://h/v1"),
            ("https://me:pass@h/v1?key=sk", "https://…@h/v1"),
            ("https://me:p@s/s?w#ord@h/v1", "https://…@h/v1"),
            ("https://h/v1?mail=me@secret", "https://…@secret"),
            ("me:pass@h", "…@h"),
        ] {
            assert_eq!(public_part(address), shown);
        }
    }
}
