//! Connections to a server: how they are made, and what it means when none can be had.
//!
//! Proxies and, on Linux, the certificates that are trusted come from the environment; nothing
//! else does. No redirect is followed and nothing is sent twice.

use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::Url;

use crate::model::reading::chain;
use crate::model::said::one_line;
use crate::model::{ClientError, Fault};
use crate::profile;
use crate::transcript::FaultClass;

/// What to do about an authority that is not known.
#[cfg(not(any(target_vendor = "apple", windows)))]
const AUTHORITY: &str = "SSL_CERT_FILE can name a file of authorities to trust";
/// What to do about an authority that is not known.
#[cfg(any(target_vendor = "apple", windows))]
const AUTHORITY: &str = "this machine can be told to trust its authority";

/// The connections to one server.
#[derive(Debug)]
pub(crate) struct Connections {
    base: Url,
    timeout: Duration,
    open: Mutex<reqwest::Client>,
}

impl Connections {
    /// Connections that have no limit on the total time.
    pub(crate) fn new(base: Url, timeout: Duration) -> Result<Self, ClientError> {
        // Whoever installed another provider first has chosen it.
        rustls::crypto::ring::default_provider()
            .install_default()
            .ok();
        let open = Mutex::new(build(&base, timeout).map_err(ClientError::Setup)?);
        Ok(Self {
            base,
            timeout,
            open,
        })
    }

    /// What sends requests, over a connection that is open already if there is one.
    pub(crate) fn get(&self) -> reqwest::Client {
        self.open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Leaves what is open to whoever still uses it. Over HTTP/2 the next request would go out on
    /// the very connection on which the last one found no answer.
    pub(crate) fn begin_anew(&self) {
        if let Ok(new) = build(&self.base, self.timeout) {
            *self.open.lock().unwrap_or_else(PoisonError::into_inner) = new;
        }
    }
}

fn build(base: &Url, timeout: Duration) -> Result<reqwest::Client, reqwest::Error> {
    let builder = || {
        reqwest::Client::builder()
            .connect_timeout(timeout)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .user_agent(concat!(
                env!("CARGO_PKG_NAME"),
                "/",
                env!("CARGO_PKG_VERSION")
            ))
    };
    // Certificates are many and slow to read.
    let plain = || builder().tls_certs_only([]);
    match (base.scheme(), profile::is_here(base.as_str())) {
        ("https", true) => builder().no_proxy().build(),
        ("https", false) => builder().build(),
        (_, true) => plain().no_proxy().build(),
        // A proxy may be spoken to over TLS; a machine without certificates does without.
        (_, false) => builder().build().or_else(|_| plain().build()),
    }
}

/// The fault of a request that got no answer.
pub(crate) fn unsent(error: reqwest::Error) -> Fault {
    let error = error.without_url();
    if let Some(wrong) = certificate(&error) {
        return Fault::new(FaultClass::Permanent, untrusted(wrong));
    }
    if error.is_builder() {
        return Fault::new(FaultClass::Local, one_line(&chain(&error)));
    }
    let what = if error.is_connect() {
        "cannot connect"
    } else {
        "the connection was lost before an answer"
    };
    if error.is_timeout() {
        return Fault::new(
            FaultClass::Transport,
            format!("{what}: nothing came in time"),
        );
    }
    // The layers that pass it on say nothing.
    let layer = error.source().unwrap_or(&error);
    let cause = chain(layer.source().unwrap_or(layer));
    Fault::new(FaultClass::Transport, one_line(&format!("{what}: {cause}")))
}

/// What is wrong with the server's certificate, if that is why there is no connection.
fn certificate<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::CertificateError> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(rustls::Error::InvalidCertificate(wrong)) = error.downcast_ref() {
            return Some(wrong);
        }
        // The source of an error of this kind is not the error it was made of.
        let within = error.downcast_ref::<std::io::Error>();
        let within = within.and_then(std::io::Error::get_ref);
        next = match within {
            Some(within) => Some(within),
            None => error.source(),
        };
    }
    None
}

/// The same for people. Asking again does not change a certificate.
fn untrusted(wrong: &rustls::CertificateError) -> String {
    let message = format!("the server's certificate is not trusted: {wrong}");
    if *wrong == rustls::CertificateError::UnknownIssuer {
        return one_line(&format!("{message}; {AUTHORITY}"));
    }
    one_line(&message)
}
