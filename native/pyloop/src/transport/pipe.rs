//! One end of a pipe as a transport: `connect_read_pipe`, `connect_write_pipe`.
//!
//! Thread: the loop's own. What differs from a socket is here; the rest is the same code.

use std::os::fd::{IntoRawFd, RawFd};

use pyrt::error::Builtin;
use pyrt::module::{END, Function};
use pyrt::native::{END_OF_GETTERS, Face, Getter};
use pyrt::{Obj, PyError, PyResult, getter, method};
use rustix::fs::FileType;
use rustix::io::Errno;

use super::attributes as own;
use super::{Medium, Stream, methods};
use crate::channel::{Channel, Life, attributes};
use crate::event_loop::LoopCore;
use crate::event_loop::watch::lend;

/// Makes the transport of one end of a pipe and has the loop call `connection_made`. `class` is
/// one of Python's that has the native one as its base.
pub(crate) fn open<'py>(
    event_loop: &Obj<'py>,
    class: &Obj<'py>,
    file: &Obj<'py>,
    fd: RawFd,
    protocol: &Obj<'py>,
    [waiter, extra]: [Option<Obj<'py>>; 2],
) -> PyResult<'py, Obj<'py>> {
    let py = event_loop.py();
    let types = &LoopCore::of(event_loop).types;
    let write = pyrt::native::derives(class, &types.write_pipe.get(py));
    if !write && !pyrt::native::derives(class, &types.read_pipe.get(py)) {
        let text = "the class must be derived from ReadPipe or WritePipe";
        return Err(PyError::new(py, Builtin::TypeError, text));
    }
    let medium = medium_of(event_loop, fd, write)?;
    rustix::io::ioctl_fionbio(lend(fd), true).map_err(|e| PyError::from_io(py, &e.into()))?;
    let extra = match extra {
        Some(extra) => extra,
        None => Obj::dict(py)?,
    };
    extra.dict_set_c(c"pipe", file)?;
    // One owner per descriptor on a loop: a second end on the same one has a descriptor of its own.
    let twin = if LoopCore::of(event_loop).has_owner(fd) {
        let twin = rustix::io::fcntl_dupfd_cloexec(lend(fd), 0);
        Some(twin.map_err(|errno| PyError::from_io(py, &errno.into()))?)
    } else {
        None
    };
    let fd = twin.as_ref().map_or(fd, std::os::fd::AsRawFd::as_raw_fd);
    let channel = Channel::new(event_loop, Some(file), fd, protocol, [waiter, Some(extra)])?;
    let transport = super::begin(class, channel, medium, None)?;
    if let Some(twin) = twin {
        Stream::of(&transport).flags.owns.set(true);
        let _ = twin.into_raw_fd();
    }
    Ok(transport)
}

/// As asyncio refuses what is no pipe.
fn medium_of<'py>(event_loop: &Obj<'py>, fd: RawFd, write: bool) -> PyResult<'py, Medium> {
    let py = event_loop.py();
    let status =
        rustix::fs::fstat(lend(fd)).map_err(|errno| PyError::from_io(py, &errno.into()))?;
    let text = match (FileType::from_raw_mode(status.st_mode), write) {
        (FileType::Fifo | FileType::Socket, true) => return Ok(Medium::Writer { hears: true }),
        (FileType::CharacterDevice, true) => return Ok(Medium::Writer { hears: false }),
        (FileType::Fifo | FileType::Socket | FileType::CharacterDevice, false) => {
            return Ok(Medium::Reader);
        }
        (_, true) => "Pipe transport is only for pipes, sockets and character devices",
        (_, false) => "Pipe transport is for pipes/sockets only.",
    };
    Err(PyError::new(py, Builtin::ValueError, text))
}

impl Stream {
    /// The other side has closed: the protocol hears of the end, then the transport is lost.
    pub(super) fn pipe_ended<'py>(
        &self,
        this: &Obj<'py>,
        protocol: &Obj<'py>,
    ) -> PyResult<'py, ()> {
        let py = this.py();
        self.channel.lose(this, None);
        let name = self.channel.core(py).types.names.eof_received.get(py);
        match protocol.call_named(&name, []) {
            Ok(_) => Ok(()),
            Err(error) => {
                let what = "Exception in callback eof_received";
                self.channel.report(this, error, what)
            }
        }
    }

    /// Nobody reads any more: what is queued has nowhere to go.
    pub(super) fn reader_gone<'py>(&self, this: &Obj<'py>) {
        let py = this.py();
        let unsent = !self.queue.borrow().chunks.is_empty();
        let error = unsent.then(|| PyError::from_io(py, &Errno::PIPE.into()).value().clone());
        self.abort(this, error);
    }

    /// A read that failed. A terminal whose other side is closed says EIO; others are reported.
    #[cold]
    pub(super) fn pipe_read_failed<'py>(&self, this: &Obj<'py>, errno: Errno) -> PyResult<'py, ()> {
        let error = PyError::from_io(this.py(), &errno.into());
        let value = error.value().clone();
        let reported = if errno == Errno::IO {
            Ok(())
        } else {
            let what = "Fatal read error on pipe transport";
            self.channel.report(this, error, what)
        };
        self.abort(this, Some(value));
        reported
    }
}

/// As asyncio prints its own.
pub(super) fn repr<'py>(this: &Obj<'py>, stream: &Stream) -> PyResult<'py, Obj<'py>> {
    let state = match stream.channel.life.get() {
        Life::Open => "",
        Life::Closing | Life::Lost => " closing",
        Life::Gone => " closed",
    };
    let (interest, fd) = (stream.interest(), stream.channel.fd());
    let writes = matches!(stream.flags.medium, Medium::Writer { .. });
    let polled = if writes {
        interest.writable
    } else {
        interest.readable
    };
    let watched = match (stream.channel.core(this.py()).is_ended(), polled) {
        (true, _) => "open",
        (false, true) => "polling",
        (false, false) => "idle",
    };
    let mut text = format!("<{}{state} fd={fd} {watched}", this.type_name());
    if writes {
        text += &format!(" bufsize={}", stream.queue.borrow().size);
    }
    Obj::text(this.py(), &(text + ">"))
}

/// What Python sees of the reading end.
pub(crate) static READER: Face = Face {
    name: c"erlang._native.ReadPipe",
    doc: c"The reading end of a pipe.",
    methods: &READER_METHODS,
    getters: &READER_GETTERS,
};

/// What Python sees of the writing end.
pub(crate) static WRITER: Face = Face {
    name: c"erlang._native.WritePipe",
    doc: c"The writing end of a pipe.",
    methods: &WRITER_METHODS,
    getters: &WRITER_GETTERS,
};

static READER_METHODS: [Function; 9] = [
    methods::PAUSE_READING,
    methods::RESUME_READING,
    methods::IS_READING,
    methods::CLOSE,
    methods::IS_CLOSING,
    methods::SET_PROTOCOL,
    methods::GET_PROTOCOL,
    methods::GET_EXTRA_INFO,
    END,
];

static WRITER_METHODS: [Function; 14] = [
    methods::WRITE,
    methods::WRITELINES,
    method!(
        Stream,
        c"write_eof",
        own::close,
        c"Closes, after what is queued."
    ),
    methods::CAN_WRITE_EOF,
    methods::ABORT,
    methods::SET_LIMITS,
    methods::GET_LIMITS,
    methods::GET_SIZE,
    methods::CLOSE,
    methods::IS_CLOSING,
    methods::SET_PROTOCOL,
    methods::GET_PROTOCOL,
    methods::GET_EXTRA_INFO,
    END,
];

const GET_LOOP: Getter = getter!(Stream, c"_loop", attributes::get_loop);
const GET_FD: Getter = getter!(Stream, c"_fileno", attributes::get_fd);
const GET_FILE: Getter = getter!(Stream, c"_pipe", attributes::get_file, set_file);
const GET_EXTRA: Getter = getter!(Stream, c"_extra", attributes::get_extra);

static READER_GETTERS: [Getter; 5] = [GET_LOOP, GET_FD, GET_FILE, GET_EXTRA, END_OF_GETTERS];

static WRITER_GETTERS: [Getter; 6] = [
    getter!(Stream, c"_protocol_paused", attributes::protocol_paused),
    GET_LOOP,
    GET_FD,
    GET_FILE,
    GET_EXTRA,
    END_OF_GETTERS,
];

/// `transport._pipe = ...`: whoever closes the file himself takes it away.
fn set_file<'py>(_this: &Obj<'py>, stream: &Stream, file: &Obj<'py>) -> PyResult<'py, ()> {
    let file = (!file.is_none()).then(|| file.clone());
    stream.channel.file.set(file);
    Ok(())
}
