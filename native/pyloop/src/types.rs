//! The classes, names and parts of asyncio that the loops of one interpreter share.
//!
//! asyncio is imported when the first loop is made, not with this module: it costs 80 ms.

use std::sync::{Arc, OnceLock};

use pyrt::call::import_c;
use pyrt::module::add;
use pyrt::{Attached, Member, Obj, PyResult, deferred, native};

use crate::datagram::Datagram;
use crate::event_loop::LoopCore;
use crate::handle::{Plain, Timer};
use crate::tls::Tls;
use crate::transport::{Stream, pipe};

/// Declares `Names`: one interned `str` per name the loop looks up or compares.
macro_rules! names {
    ($($name:ident),* $(,)?) => {
        pub struct Names { $(pub $name: Member),* }

        impl Names {
            fn make(py: Attached<'_>) -> PyResult<'_, Self> {
                Ok(Names { $($name: Member::new(Obj::interned(py, stringify!($name))?)),* })
            }
        }
    };
}

names! {
    context, _run, _cancelled, _callback_failed, _debug_call_soon, _debug_call_at,
    _debug_create_task, _debug_run, connection_made, data_received, eof_received,
    connection_lost, get_buffer, buffer_updated, pause_writing, resume_writing, _fill_extra,
    _detach_transport,
    datagram_received,
    error_received,
    _resolve_datagram,
    _attach_transport,
    _interrupted,
    pending,
}

pub struct Types {
    pub core: Member,
    pub handle: Member,
    pub timer: Member,
    pub stream: Member,
    pub read_pipe: Member,
    pub write_pipe: Member,
    pub datagram: Member,
    pub tls: Member,
    pub names: Names,
    asyncio: OnceLock<Asyncio>,
    /// The tuple `("context",)` that asyncio's tasks call `call_soon` with: always the same one,
    /// but its text is not the interned one.
    pub task_names: OnceLock<Member>,
}

// SAFETY: filled once, then only read, and only by threads attached to its interpreter (I1).
unsafe impl Send for Types {}
// SAFETY: as above.
unsafe impl Sync for Types {}

/// What the loop uses of asyncio.
pub struct Asyncio {
    pub future: Member,
    pub task: Member,
    pub buffered_protocol: Member,
    /// Keyword names for the classes above.
    pub loop_only: Member,
    pub loop_context: Member,
    /// The empty tuple.
    pub nothing: Member,
}

impl Types {
    pub fn make<'py>(module: &Obj<'py>) -> PyResult<'py, Arc<Self>> {
        let core = native::make::<LoopCore>(module)?;
        add(module, c"LoopCore", &core)?;
        let read_pipe = native::make_as::<Stream>(module, &pipe::READER)?;
        add(module, c"ReadPipe", &read_pipe)?;
        let write_pipe = native::make_as::<Stream>(module, &pipe::WRITER)?;
        add(module, c"WritePipe", &write_pipe)?;
        Ok(Arc::new(Types {
            core: Member::new(core),
            handle: Member::new(deferred::make::<Plain>(module)?),
            timer: Member::new(deferred::make::<Timer>(module)?),
            stream: Member::new(native::make::<Stream>(module)?),
            read_pipe: Member::new(read_pipe),
            write_pipe: Member::new(write_pipe),
            datagram: Member::new(native::make::<Datagram>(module)?),
            tls: Member::new(native::make::<Tls>(module)?),
            names: Names::make(module.py())?,
            asyncio: OnceLock::new(),
            task_names: OnceLock::new(),
        }))
    }

    pub fn asyncio<'py>(&self, py: Attached<'py>) -> PyResult<'py, &Asyncio> {
        if let Some(asyncio) = self.asyncio.get() {
            return Ok(asyncio);
        }
        let asyncio = Asyncio::find(py)?;
        // Another thread may have been first; then this one is dropped.
        Ok(self.asyncio.get_or_init(|| asyncio))
    }
}

impl Asyncio {
    /// Whether a program has put other classes of futures and tasks in their place.
    pub fn is_replaced<'py>(&self, py: Attached<'py>) -> PyResult<'py, bool> {
        let module = import_c(py, c"asyncio")?;
        let task = module.getattr_c(c"Task")?;
        Ok(!self.task.is(&task) || !self.future.is(&module.getattr_c(c"Future")?))
    }

    fn find(py: Attached<'_>) -> PyResult<'_, Self> {
        let module = import_c(py, c"asyncio")?;
        let member = |name| module.getattr_c(name).map(Member::new);
        let (loop_name, context) = (Obj::interned(py, "loop")?, Obj::interned(py, "context")?);
        let loop_only = Obj::tuple(py, [loop_name.clone()].into_iter())?;
        let loop_context = Obj::tuple(py, [loop_name, context].into_iter())?;
        Ok(Asyncio {
            future: member(c"Future")?,
            task: member(c"Task")?,
            buffered_protocol: member(c"BufferedProtocol")?,
            loop_only: Member::new(loop_only),
            loop_context: Member::new(loop_context),
            nothing: Member::new(Obj::tuple(py, std::iter::empty())?),
        })
    }
}
