//! Extensions of a response: early hints, trailers, and files by their path.
//!
//! Thread: the loop's own.

use pyrt::error::Builtin;
use pyrt::module::Args;
use pyrt::{Obj, PyError, PyResult};
use rustix::io::Errno;

use super::{Framing, Stage, finish, head, wrong};
use crate::http::request::Request;

/// `http.response.early_hint`: links, before the response itself.
pub fn early_hint<'py>(own: &Request, message: &Obj<'py>) -> PyResult<'py, ()> {
    let py = message.py();
    if own.out.borrow().stage != Stage::Fresh {
        return wrong(
            py,
            "http.response.early_hint came after http.response.start",
        );
    }
    // An old client would take it for the response.
    if !own.facts.modern || own.gone.get() {
        return Ok(());
    }
    let mut out = b"HTTP/1.1 103 Early Hints\r\n".to_vec();
    let links = message.dict_get(&Obj::text(py, "links")?)?;
    if let Some(links) = links {
        let links = links.iter()?;
        while let Some(link) = links.next()? {
            let Some(link) = link.as_bytes() else {
                let text = "the links of http.response.early_hint are bytes";
                return Err(PyError::new(py, Builtin::TypeError, text));
            };
            head::check(py, b"link", link)?;
            head::line(&mut out, b"link", link);
        }
    }
    out.extend_from_slice(b"\r\n");
    own.connection(py).write(py, &out)
}

/// `http.response.trailers`: fields after the body, for a client that takes them.
pub fn trailers<'py>(own: &Request, message: &Obj<'py>) -> PyResult<'py, ()> {
    let py = message.py();
    let names = &own.connection(py).server(py).types.names;
    if own.gone.get() {
        return Err(PyError::from_io(py, &Errno::CONNRESET.into()));
    }
    if own.out.borrow().stage != Stage::Trailers {
        let text = "http.response.trailers comes after the body of a response that announced it";
        return wrong(py, text);
    }
    let sends = own.out.borrow().framing == Framing::Chunked;
    let mut out = Vec::new();
    if let Some(headers) = message.dict_get(&names.headers.get(py))? {
        head::each(&headers, |name, value| {
            head::check(py, name, value)?;
            if own.facts.trailers {
                head::line(&mut out, name, value);
            }
            Ok(())
        })?;
    }
    let more = message.dict_get(&Obj::text(py, "more_trailers")?)?;
    let more = more.map_or(Ok(false), |more| more.is_truthy())?;
    if !more {
        out.extend_from_slice(b"\r\n");
    }
    if sends && !out.is_empty() {
        own.connection(py).write(py, &out)?;
    }
    if more { Ok(()) } else { finish(own, py) }
}

/// `http.response.pathsend`: what to await, a coroutine of the owner's that opens and sends.
pub fn path<'py>(own: &Request, this: &Obj<'py>, message: &Obj<'py>) -> PyResult<'py, Obj<'py>> {
    let py = this.py();
    let connection = own.connection(py);
    let server = connection.server(py);
    let Some(path) = message.dict_get(&server.types.names.path.get(py))? else {
        return Err(PyError::new(py, Builtin::KeyError, "path"));
    };
    let Some(transport) = connection.transport.get(py).filter(|_| !own.gone.get()) else {
        return Err(PyError::from_io(py, &Errno::CONNRESET.into()));
    };
    if own.out.borrow().stage != Stage::Ready {
        return wrong(py, "http.response.pathsend comes after http.response.start");
    }
    // Others send it piece by piece: what such a transport has sent of a file nobody can tell.
    let direct = connection.flags.direct.get();
    let transport = if direct { transport } else { Obj::none(py) };
    server
        .owner(py)?
        .call_method(c"send_file", &[this, &transport, &path])
}

/// `_file_begins(size)`: sends the head; whether the body is to follow.
pub fn file_begins<'py>(
    _this: &Obj<'py>,
    own: &Request,
    args: &Args<'_, 'py>,
) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    let size = args.want(0, "size")?.as_i64()?.unwrap_or(0);
    let size = usize::try_from(size).unwrap_or(0);
    let out = {
        let mut state = own.out.borrow_mut();
        if state.stage != Stage::Ready {
            return wrong(py, "http.response.pathsend came twice");
        }
        if state.length.is_some_and(|length| length != size as u64) {
            return wrong(py, "the file is not as long as its content-length");
        }
        // A file has its length, after which there is no place for them.
        state.trailers = false;
        state.framing = head::framing(&state, own, size, false);
        head::seal(&mut state, own, own.connection(py).server(py), size, false);
        state.stage = Stage::Body;
        std::mem::take(&mut state.head)
    };
    own.connection(py).write(py, &out)?;
    let follows = own.out.borrow().framing != Framing::Nothing;
    Ok(Obj::bool(py, follows))
}

/// `_file_ended()`: the response is complete.
pub fn file_ended<'py>(
    _this: &Obj<'py>,
    own: &Request,
    args: &Args<'_, 'py>,
) -> PyResult<'py, Obj<'py>> {
    if !own.gone.get() {
        // What the system has sent by itself.
        let mut state = own.out.borrow_mut();
        if let Framing::Length(size) = state.framing {
            state.sent += size;
        }
        drop(state);
        finish(own, args.py())?;
    }
    Ok(Obj::none(args.py()))
}
