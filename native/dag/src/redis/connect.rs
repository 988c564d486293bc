//! A connected socket, without ever blocking the loop.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use reactor::own::Own;
use reactor::{Handle, Watch};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

pub(crate) async fn tcp(io: &Handle, address: &SocketAddr) -> io::Result<Watch<Own>> {
    let socket = socket(match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    })?;
    // Commands are joined already: waiting for more to join only costs time.
    sockopt::set_tcp_nodelay(&socket, true)?;
    let begun = net::connect(&socket, address);
    connected(Watch::new(io, socket), begun).await
}

pub(crate) async fn unix(io: &Handle, path: &Path) -> io::Result<Watch<Own>> {
    let socket = socket(AddressFamily::UNIX)?;
    let begun = net::connect(&socket, &SocketAddrUnix::new(path)?);
    connected(Watch::new(io, socket), begun).await
}

fn socket(family: AddressFamily) -> Result<Own, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    net::socket_with(family, SocketType::STREAM, flags, None).map(Own::from)
}

async fn connected(watch: Watch<Own>, begun: Result<(), Errno>) -> io::Result<Watch<Own>> {
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
