//! Errors of the system by the names that Erlang knows them by.

use std::io;

use rustler::types::atom::Atom;

use crate::atoms;

/// The name of an error; what has none here is `einval` to whoever reads only the name.
pub fn atom(error: &io::Error) -> Atom {
    use rustix::io::Errno;
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::BADF) => atoms::ebadf(),
        Some(Errno::PERM) => atoms::eperm(),
        Some(Errno::ACCESS) => atoms::eacces(),
        Some(Errno::MFILE) => atoms::emfile(),
        Some(Errno::NFILE) => atoms::enfile(),
        Some(Errno::NOMEM) => atoms::enomem(),
        Some(Errno::NOSPC) => atoms::enospc(),
        Some(Errno::ADDRINUSE) => atoms::eaddrinuse(),
        Some(Errno::ADDRNOTAVAIL) => atoms::eaddrnotavail(),
        Some(Errno::MSGSIZE) => atoms::emsgsize(),
        Some(Errno::NETUNREACH) => atoms::enetunreach(),
        Some(Errno::CONNREFUSED) => atoms::econnrefused(),
        _ => atoms::einval(),
    }
}
