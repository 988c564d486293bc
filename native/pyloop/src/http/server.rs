//! `HttpServer`: an application, its limits, and the connections that are open now.
//!
//! Made and started by `erlang.serve`, in a node and outside of one; knows nothing of listening.
//! Thread: the loop's own.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use pyrt::error::Builtin;
use pyrt::native::{Governor, Native};
use pyrt::{Attached, Flag, Member, Number, Obj, Place, PyError, PyResult, Visit};

use super::config::Config;
use super::connection::Connection;
use super::home::Home;
use super::log::AccessLog;
use super::share::Membership;
use super::types::Types;

mod attributes;

/// What `start` gave.
pub struct Parts {
    pub app: Place,
    pub home: Home,
    /// Logs, and hears when the last connection is gone.
    pub owner: Place,
    /// What the application's lifespan left; `None` where it has none.
    pub state: Place,
    /// `scope["asgi"]`
    pub asgi: Place,
    /// The same for WebSockets.
    pub socket_asgi: Place,
    /// `scope["extensions"]`
    pub extensions: Place,
    /// The same for WebSockets.
    pub socket_extensions: Place,
    pub config: Config,
    pub log: Option<AccessLog>,
}

/// What changes. All but the loop's thread see what is an atomic only.
#[derive(Default)]
pub struct Live {
    pub connections: RefCell<HashMap<u64, Member>>,
    /// Their number, for other servers of the same socket, and whoever asks.
    open: Arc<AtomicUsize>,
    share: RefCell<Option<Membership>>,
    /// Tasks of applications that did not end at once.
    pub tasks: RefCell<HashMap<u64, Member>>,
    next: Cell<u64>,
    pub in_flight: Number,
    pub served: Number,
    /// Counts the looks at the timeouts: the clock of all connections.
    pub tick: Cell<u32>,
    ticking: Cell<bool>,
    pub draining: Flag,
    /// The header `date` with its line end.
    date: RefCell<String>,
}

pub struct Server {
    pub types: Arc<Types>,
    pub loops: Arc<crate::types::Types>,
    parts: OnceLock<Parts>,
    pub live: Live,
}

impl Live {
    fn note_open(&self) {
        // Relaxed: a number for others, who have no other interest in them.
        self.open
            .store(self.connections.borrow().len(), Ordering::Relaxed);
    }

    fn open(&self) -> usize {
        // Relaxed: as above.
        self.open.load(Ordering::Relaxed)
    }
}

impl Server {
    pub fn of<'a>(server: &'a Obj<'_>) -> &'a Server {
        // SAFETY: called with objects of this class only.
        unsafe { pyrt::native::body(server) }
    }

    pub fn parts<'py>(&self, py: Attached<'py>) -> PyResult<'py, &Parts> {
        self.parts.get().ok_or_else(|| {
            let text = "the server was not started: call start() first";
            PyError::new(py, Builtin::RuntimeError, text)
        })
    }

    pub fn event_loop<'py>(&self, py: Attached<'py>) -> PyResult<'py, Obj<'py>> {
        Ok(self.parts(py)?.home.object().obj(py))
    }

    pub fn owner<'py>(&self, py: Attached<'py>) -> PyResult<'py, Obj<'py>> {
        self.parts(py)?.owner.get(py).ok_or_else(|| gone(py))
    }

    pub fn app<'py>(&self, py: Attached<'py>) -> PyResult<'py, Obj<'py>> {
        self.parts(py)?.app.get(py).ok_or_else(|| gone(py))
    }

    /// The loop, once the server was started.
    pub fn home(&self) -> Option<&Home> {
        self.parts.get().map(|parts| &parts.home)
    }

    /// Whether this is the loop's thread.
    pub fn is_here(&self, py: Attached<'_>) -> bool {
        self.home().is_none_or(|home| home.is_here(py))
    }

    /// A number for a connection or a task.
    pub fn number(&self) -> u64 {
        self.live.next.replace(self.live.next.get() + 1)
    }

    /// Whether one more connection is within the limit.
    pub fn has_room(&self, config: &Config) -> bool {
        let most = config.given.max_connections;
        most == 0 || (self.live.connections.borrow().len() as u64) < most
    }

    pub fn joined<'py>(
        &self,
        this: &Obj<'py>,
        id: u64,
        connection: &Obj<'py>,
    ) -> PyResult<'py, ()> {
        let member = Member::new(connection.clone());
        self.live.connections.borrow_mut().insert(id, member);
        self.live.note_open();
        if !self.live.ticking.get() {
            self.set_date();
            self.tick_later(this)?;
        }
        Ok(())
    }

    pub fn left<'py>(&self, py: Attached<'py>, id: u64) -> PyResult<'py, ()> {
        let left = self.live.connections.borrow_mut().remove(&id);
        self.live.note_open();
        drop(left);
        self.tell_if_empty(py)
    }

    /// The owner of a server that ends hears when nothing is open any more.
    pub fn tell_if_empty<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        let live = &self.live;
        let empty = live.connections.borrow().is_empty() && live.tasks.borrow().is_empty();
        if live.draining.get() && empty {
            self.owner(py)?.call_method(c"emptied", &[])?;
        }
        Ok(())
    }

    fn tick_later<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        let py = this.py();
        self.live.ticking.set(true);
        let delay = Obj::float(py, self.parts(py)?.config.ticks.length)?;
        let tick = this.getattr_c(c"_tick")?;
        let event_loop = self.event_loop(py)?;
        event_loop.call_method(c"call_later", &[&delay, &tick])?;
        Ok(())
    }

    /// Looks at the timeouts of all connections.
    fn tick<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        let py = this.py();
        self.live.tick.set(self.live.tick.get().wrapping_add(1));
        self.set_date();
        for connection in self.all(py) {
            Connection::of(&connection).look_at_time(&connection)?;
        }
        if self.live.connections.borrow().is_empty() {
            self.live.ticking.set(false);
            return Ok(());
        }
        self.tick_later(this)
    }

    /// References of their own: what is done with them may change the table.
    fn all<'py>(&self, py: Attached<'py>) -> Vec<Obj<'py>> {
        let connections = self.live.connections.borrow();
        connections.values().map(|member| member.obj(py)).collect()
    }

    /// The tasks of applications, in the same way.
    fn running<'py>(&self, py: Attached<'py>) -> Vec<Obj<'py>> {
        let tasks = self.live.tasks.borrow();
        tasks.values().map(|member| member.obj(py)).collect()
    }

    /// The task of that number, while it runs.
    pub fn task<'py>(&self, py: Attached<'py>, number: u64) -> Option<Obj<'py>> {
        let tasks = self.live.tasks.borrow();
        tasks.get(&number).map(|member| member.obj(py))
    }

    fn set_date(&self) {
        let date = httpdate::fmt_http_date(SystemTime::now());
        *self.live.date.borrow_mut() = format!("date: {date}\r\n");
    }

    /// The value of the header `server`.
    pub fn name(&self) -> Option<&str> {
        let name = self.parts.get()?.config.given.server_header.as_str();
        (!name.is_empty()).then_some(name)
    }

    pub fn add_date(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.live.date.borrow().as_bytes());
    }
}

#[cold]
fn gone(py: Attached<'_>) -> PyError<'_> {
    PyError::new(py, Builtin::RuntimeError, "the server is gone")
}

impl Native for Server {
    const NAME: &'static std::ffi::CStr = c"erlang._native.HttpServer";
    const DOC: &'static std::ffi::CStr = c"An application and its open connections.";

    type Governor = Home;

    fn methods() -> &'static [pyrt::module::Function] {
        &attributes::METHODS
    }

    fn getters() -> &'static [pyrt::native::Getter] {
        &attributes::GETTERS
    }

    fn new<'py>(class: &Obj<'py>) -> PyResult<'py, Self> {
        let py = class.py();
        let Some(state) = crate::state_of_class(class) else {
            let text = "erlang._native is not initialised";
            return Err(PyError::new(py, Builtin::SystemError, text));
        };
        state.loops.asyncio(py)?;
        Ok(Server {
            types: Arc::clone(&state.http),
            loops: Arc::clone(&state.loops),
            parts: OnceLock::new(),
            live: Live::default(),
        })
    }

    fn governor(&self, _py: Attached<'_>) -> Option<&Self::Governor> {
        self.home()
    }

    fn traverse(&self, visit: &mut Visit) {
        if let Some(parts) = self.parts.get() {
            visit.member(parts.home.object());
            for place in parts.places() {
                visit.place(place);
            }
        }
        for table in [&self.live.connections, &self.live.tasks] {
            if let Ok(table) = table.try_borrow() {
                for member in table.values() {
                    visit.member(member);
                }
            }
        }
    }

    fn clear(&self, _py: Attached<'_>) {
        if let Some(parts) = self.parts.get() {
            for place in parts.places() {
                place.set(None);
            }
        }
        drop(self.live.share.take());
        drop(self.live.connections.take());
        drop(self.live.tasks.take());
    }
}

impl Parts {
    fn places(&self) -> [&Place; 7] {
        [
            &self.app,
            &self.owner,
            &self.state,
            &self.asgi,
            &self.socket_asgi,
            &self.extensions,
            &self.socket_extensions,
        ]
    }
}
