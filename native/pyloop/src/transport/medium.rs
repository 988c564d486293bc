//! The system calls of a stream's descriptor: a socket, or one end of a pipe.
//!
//! Thread: the loop's own.

use std::io::IoSlice;
use std::os::fd::RawFd;

use rustix::io::{Errno, read, write, writev};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};

use crate::event_loop::watch::lend;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Medium {
    Socket,
    Reader,
    /// `hears`: the system tells when the other end is closed.
    Writer {
        hears: bool,
    },
}

impl Medium {
    pub(super) fn is_pipe(self) -> bool {
        self != Medium::Socket
    }

    pub(super) fn receive(self, fd: RawFd, buffer: &mut [u8]) -> Result<usize, Errno> {
        if self.is_pipe() {
            return read(lend(fd), buffer);
        }
        recv(lend(fd), buffer, RecvFlags::empty()).map(|(_, len)| len)
    }

    pub(super) fn send(self, fd: RawFd, data: &[u8]) -> Result<usize, Errno> {
        if self.is_pipe() {
            return write(lend(fd), data);
        }
        send(lend(fd), data, SendFlags::NOSIGNAL)
    }

    pub(super) fn send_pieces(self, fd: RawFd, pieces: &[IoSlice<'_>]) -> Result<usize, Errno> {
        if self.is_pipe() {
            return writev(lend(fd), pieces);
        }
        let mut no_control = SendAncillaryBuffer::default();
        sendmsg(lend(fd), pieces, &mut no_control, SendFlags::NOSIGNAL)
    }
}
