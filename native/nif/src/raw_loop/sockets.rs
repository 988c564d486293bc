//! UDP sockets by number, for tests and examples of loops that Erlang drives.
//!
//! Thread: the caller's scheduler. Only sockets made here can be used or closed here: a number from
//! outside could be anybody's.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Mutex};

use crew::sync::lock;
use rustler::types::atom::Atom;
use rustler::types::binary::NewBinary;
use rustler::{Binary, Encoder, Env, Term};

use super::nifs::failed;
use crate::atoms;

static SOCKETS: Mutex<Option<HashMap<RawFd, Arc<UdpSocket>>>> = Mutex::new(None);

/// The largest datagram there is.
const LARGEST: usize = 65_535;

fn socket(fd: RawFd) -> io::Result<Arc<UdpSocket>> {
    let known = lock(&SOCKETS)
        .as_ref()
        .and_then(|all| all.get(&fd).cloned());
    known.ok_or_else(|| rustix::io::Errno::BADF.into())
}

fn answer<'a>(env: Env<'a>, done: io::Result<Term<'a>>) -> Term<'a> {
    match done {
        Ok(value) => value,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            (atoms::error(), atoms::would_block()).encode(env)
        }
        Err(error) => failed(env, &error),
    }
}

#[rustler::nif]
fn create_test_udp_socket(env: Env<'_>, port: u16) -> Term<'_> {
    let made = || {
        let socket = UdpSocket::bind(("127.0.0.1", port))?;
        socket.set_nonblocking(true)?;
        let (fd, port) = (socket.as_raw_fd(), socket.local_addr()?.port());
        lock(&SOCKETS)
            .get_or_insert_default()
            .insert(fd, Arc::new(socket));
        Ok((atoms::ok(), (fd, port)).encode(env))
    };
    answer(env, made())
}

#[rustler::nif]
fn sendto_test_udp<'a>(
    env: Env<'a>,
    fd: RawFd,
    data: Binary<'a>,
    host: Binary<'a>,
    port: u16,
) -> Term<'a> {
    let sent = || {
        let host = std::str::from_utf8(&host).ok();
        let host: Option<IpAddr> = host.and_then(|host| host.parse().ok());
        // An address, not a name: looking that up could take long.
        let host = host.ok_or(rustix::io::Errno::INVAL)?;
        socket(fd)?.send_to(&data, (host, port))?;
        Ok(atoms::ok().encode(env))
    };
    answer(env, sent())
}

#[rustler::nif]
fn recvfrom_test_udp(env: Env<'_>, fd: RawFd, max: usize) -> Term<'_> {
    let received = || {
        let mut bytes = vec![0; max.min(LARGEST)];
        let (count, from) = socket(fd)?.recv_from(&mut bytes)?;
        let mut data = NewBinary::new(env, count);
        data.copy_from_slice(&bytes[..count]);
        let data: Term<'_> = data.into();
        let host = from.ip().to_string();
        Ok((atoms::ok(), (data, (host, from.port()))).encode(env))
    };
    answer(env, received())
}

#[rustler::nif]
fn set_udp_broadcast(env: Env<'_>, fd: RawFd, on: bool) -> Term<'_> {
    let set = || {
        socket(fd)?.set_broadcast(on)?;
        Ok(atoms::ok().encode(env))
    };
    answer(env, set())
}

#[rustler::nif]
fn close_test_fd(fd: RawFd) -> Atom {
    drop(lock(&SOCKETS).as_mut().and_then(|all| all.remove(&fd)));
    atoms::ok()
}
