//! The loopback of a network of one's own, which is down at first.

use std::io;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::sandbox::Unenforceable;

/// Sets the loopback up, so that tools may serve each other.
pub(super) fn raise() -> Result<(), Unenforceable> {
    let failed = |error| Unenforceable::Namespaces("cannot set up the loopback", error);
    ask().map_err(failed)
}

/// Asks the kernel to set link 1 up: a header, then the link with its flag.
fn ask() -> io::Result<()> {
    const NEW_LINK: u16 = 16;
    const REQUEST_AND_ANSWER: u16 = 5;
    const UP: u32 = 1;
    let mut message = Vec::with_capacity(32);
    message.extend(32u32.to_ne_bytes());
    message.extend(NEW_LINK.to_ne_bytes());
    message.extend(REQUEST_AND_ANSWER.to_ne_bytes());
    message.extend(1u32.to_ne_bytes());
    message.extend(0u32.to_ne_bytes());
    message.extend([0; 4]);
    message.extend(1i32.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        // `NETLINK_ROUTE`
        None,
    )?;
    rustix::net::send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0u8; 256];
    let (read, _) = rustix::net::recv(&socket, &mut answer, RecvFlags::empty())?;
    // The answer is a header and then a number: 0, or what went wrong, below 0.
    let number: [u8; 4] = answer[..read]
        .get(16..20)
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| io::Error::other("the answer is too short"))?;
    match i32::from_ne_bytes(number) {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}
