//! Socket addresses and the tuples Python has for them.
//!
//! The tuples of the last peers are kept: who answers a datagram gives back the very tuple that
//! came with it, and neither is made or read again.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};

use pyrt::error::Builtin;
use pyrt::{Attached, Member, Obj, PyResult};

const PLACES: usize = 16;

struct Entry {
    address: SocketAddr,
    tuple: Member,
}

#[derive(Default)]
pub(super) struct Addresses(RefCell<[Option<Entry>; PLACES]>);

fn place(address: &SocketAddr) -> usize {
    address.port() as usize % PLACES
}

impl Addresses {
    /// The tuple of an address.
    pub(super) fn tuple<'py>(
        &self,
        py: Attached<'py>,
        address: SocketAddr,
    ) -> PyResult<'py, Obj<'py>> {
        if let Some(entry) = &self.0.borrow()[place(&address)]
            && entry.address == address
        {
            return Ok(entry.tuple.obj(py));
        }
        let tuple = make(py, address)?;
        let entry = Entry {
            address,
            tuple: Member::new(tuple.clone()),
        };
        let old = self.0.borrow_mut()[place(&address)].replace(entry);
        drop(old);
        Ok(tuple)
    }

    /// The address of a tuple; `None` if it is not a numeric one.
    pub(super) fn address<'py>(
        &self,
        tuple: &Obj<'py>,
        ipv6: bool,
    ) -> PyResult<'py, Option<SocketAddr>> {
        if !tuple.is_tuple() {
            return Ok(None);
        }
        let (Some(host), Some(port)) = (tuple.tuple_item(0), tuple.tuple_item(1)) else {
            return Ok(None);
        };
        let port = if port.is_int() { port.as_i64()? } else { None };
        let Some(port) = port.and_then(|port| u16::try_from(port).ok()) else {
            return Ok(None);
        };
        if let Some(entry) = &self.0.borrow()[port as usize % PLACES]
            && entry.tuple.is(tuple)
        {
            return Ok(Some(entry.address));
        }
        if !host.is_text() {
            return Ok(None);
        }
        let number = |index| match tuple.tuple_item(index) {
            Some(number) if number.is_int() => number.as_i64(),
            _ => Ok(Some(0)),
        };
        let text = host.as_utf8()?;
        let scope = number(3)?.unwrap_or(0) as u32;
        // The interface in the text counts only where the number is there too.
        let ip = match text.split_once('%') {
            Some((ip, _)) if scope != 0 => ip,
            _ => text,
        };
        Ok(match (ip.parse(), ipv6) {
            (Ok(IpAddr::V4(ip)), false) => Some(SocketAddrV4::new(ip, port).into()),
            (Ok(IpAddr::V6(ip)), true) => {
                let flow = number(2)?.unwrap_or(0) as u32;
                Some(SocketAddrV6::new(ip, port, flow, scope).into())
            }
            _ => None,
        })
    }
}

/// The tuple Python has for an address.
pub(crate) fn make(py: Attached<'_>, address: SocketAddr) -> PyResult<'_, Obj<'_>> {
    let port = Obj::int(py, i64::from(address.port()))?;
    match address {
        SocketAddr::V4(v4) => {
            let host = Obj::text(py, &v4.ip().to_string())?;
            Obj::tuple(py, [host, port].into_iter())
        }
        SocketAddr::V6(v6) => {
            let mut host = v6.ip().to_string();
            let scope = Obj::int(py, i64::from(v6.scope_id()))?;
            if v6.scope_id() != 0 {
                let sockets = pyrt::call::import_c(py, c"socket")?;
                let name = match sockets.call_method(c"if_indextoname", &[&scope]) {
                    // The interface is gone. As the system's own functions print it.
                    Err(error) if error.is_a(Builtin::OSError) => scope.display(),
                    name => name?.display(),
                };
                host = format!("{host}%{name}");
            }
            let flow = Obj::int(py, i64::from(v6.flowinfo()))?;
            let host = Obj::text(py, &host)?;
            Obj::tuple(py, [host, port, flow, scope].into_iter())
        }
    }
}
