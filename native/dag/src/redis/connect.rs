//! A connected socket, without ever blocking the loop.

use std::io;
use std::os::fd::OwnedFd;

use reactor::{Handle, Watch};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use crate::redis::config::Address;

pub(crate) async fn connect(io: &Handle, address: &Address) -> io::Result<Watch<OwnedFd>> {
    let family = match address {
        Address::Tcp(address) if address.is_ipv4() => AddressFamily::INET,
        Address::Tcp(_) => AddressFamily::INET6,
        Address::Unix(_) => AddressFamily::UNIX,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
    let begun = match address {
        Address::Tcp(address) => {
            // Commands are joined already: waiting for more to join only costs time.
            sockopt::set_tcp_nodelay(&socket, true)?;
            net::connect(&socket, address)
        }
        Address::Unix(path) => net::connect(&socket, &SocketAddrUnix::new(path)?),
    };
    let watch = Watch::new(io, socket);
    match begun {
        Ok(()) => Ok(watch),
        Err(Errno::INPROGRESS) => {
            watch.writable().await?;
            match sockopt::socket_error(watch.get_ref())? {
                Ok(()) => Ok(watch),
                Err(error) => Err(error.into()),
            }
        }
        Err(error) => Err(error.into()),
    }
}
