//! What an address says of its server.

/// The host of an address, in lower case; nothing where there is none, or where it holds what may be a
/// password.
pub(super) fn host(address: &str) -> Option<String> {
    let origin = origin(address)?;
    let (_, authority) = origin.split_once("://")?;
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        Some(_) | None => authority,
    };
    Some(host.to_owned())
}

/// Scheme, host and port of an address: what may be recorded of it. Nothing where it holds what may
/// be a password.
pub fn origin(address: &str) -> Option<String> {
    let (scheme, rest) = address.trim().split_once("://")?;
    // A password may hold any character, so that whatever stands before an `@` may be one.
    if rest.contains('@') {
        return None;
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    (!authority.is_empty()).then(|| format!("{scheme}://{authority}").to_lowercase())
}

/// Whether the address is that of a deployment at Azure, which wants its key in a header of its own.
/// What is below `/openai/v1` takes it as everybody does.
pub fn is_azure(address: &str) -> bool {
    let azure = host(address).is_some_and(|host| host.ends_with(".azure.com"));
    azure && address.to_lowercase().contains("/openai/deployments/")
}

/// Whether an address is that of this very machine, where no proxy could reach it.
pub fn is_here(address: &str) -> bool {
    let host = host(address).unwrap_or_default();
    let number = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost"
        || host.ends_with(".localhost")
        || number.is_ok_and(|number| number.is_loopback() || number.is_unspecified())
}
