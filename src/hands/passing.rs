//! Passing an open listener from the confined process to the brain.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::AsFd;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

/// The byte that goes with it: nothing can be passed alone.
const BYTE: [u8; 1] = *b"L";

/// Passes it.
pub(super) fn send(socket: impl AsFd, listener: &TcpListener) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    let passed = [listener.as_fd()];
    if !beside.push(SendAncillaryMessage::ScmRights(&passed)) {
        return Err(io::Error::other("there is no room for it"));
    }
    rustix::net::sendmsg(
        socket,
        &[IoSlice::new(&BYTE)],
        &mut beside,
        SendFlags::empty(),
    )?;
    Ok(())
}

/// Receives it; nothing is waited for.
pub(super) fn receive(socket: impl AsFd) -> io::Result<TcpListener> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0; 1];
    let slices = &mut [IoSliceMut::new(&mut byte)];
    rustix::net::recvmsg(socket, slices, &mut beside, RecvFlags::CMSG_CLOEXEC)?;
    let passed = beside.drain().find_map(|message| {
        if let RecvAncillaryMessage::ScmRights(mut passed) = message {
            passed.next()
        } else {
            None
        }
    });
    let listener = TcpListener::from(passed.ok_or(io::ErrorKind::InvalidData)?);
    listener.set_nonblocking(true)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn what_is_passed_is_the_same_listener() {
        let (here, there) = UnixStream::pair().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        send(&here, &listener).unwrap();
        let address = receive(&there).unwrap().local_addr().unwrap();
        assert_eq!(address, listener.local_addr().unwrap());
        drop(here);
        assert!(receive(&there).is_err());
    }
}
