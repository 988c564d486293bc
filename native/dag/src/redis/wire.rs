//! The bytes on the socket: as they are, or encrypted.
//!
//! Thread: the loop's. Never: blocks; keeps decrypted bytes back: the socket says nothing of them.

use std::io::{self, Read, Write};

use reactor::own::Own;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustls::ClientConnection;

use crate::redis::drive::CHUNK;
use crate::redis::failure::Failure;
use crate::redis::tls::Tls;

pub(crate) enum Wire {
    Plain,
    Tls(Box<ClientConnection>),
}

/// A socket that never blocks.
struct Socket<'a>(&'a Own);

impl Read for Socket<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            match recv(self.0, &mut *room, RecvFlags::empty()) {
                Ok((count, _)) => return Ok(count),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match send(self.0, bytes, SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                done => return Ok(done?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Wire {
    pub fn new(tls: Option<&Tls>) -> Result<Self, Failure> {
        let Some(tls) = tls else {
            return Ok(Wire::Plain);
        };
        let connection = ClientConnection::new(tls.client.clone(), tls.name.clone());
        let connection = connection.map_err(|error| Failure::Config(error.to_string()))?;
        Ok(Wire::Tls(Box::new(connection)))
    }

    /// Takes some of the bytes; all that was taken leaves with `push`.
    pub fn send(&mut self, socket: &Own, bytes: &[u8]) -> io::Result<usize> {
        if let Wire::Plain = self {
            return Socket(socket).write(bytes);
        }
        self.push(socket)?;
        let Wire::Tls(connection) = self else {
            return Ok(0);
        };
        connection.writer().write(bytes)
    }

    /// Sends what was taken; an error, `WouldBlock` too, while there is more.
    pub fn push(&mut self, socket: &Own) -> io::Result<()> {
        if let Wire::Tls(connection) = self {
            while connection.wants_write() {
                connection.write_tls(&mut Socket(socket))?;
            }
        }
        Ok(())
    }

    /// Appends what has come to `input` after `filled`. `false`: the server has closed.
    pub fn receive(
        &mut self,
        socket: &Own,
        input: &mut Vec<u8>,
        filled: &mut usize,
    ) -> io::Result<bool> {
        let Wire::Tls(connection) = self else {
            make_room(input, *filled);
            let count = Socket(socket).read(&mut input[*filled..])?;
            *filled += count;
            return Ok(count > 0);
        };
        if connection.read_tls(&mut Socket(socket))? == 0 {
            return Ok(false);
        }
        let state = connection.process_new_packets().map_err(io::Error::other)?;
        let mut left = state.plaintext_bytes_to_read();
        while left > 0 {
            make_room(input, *filled);
            let count = connection.reader().read(&mut input[*filled..])?;
            *filled += count;
            left -= count.min(left);
        }
        Ok(true)
    }
}

fn make_room(input: &mut Vec<u8>, filled: usize) {
    if input.len() - filled < CHUNK / 2 {
        input.resize(input.len() * 2, 0);
    }
}
