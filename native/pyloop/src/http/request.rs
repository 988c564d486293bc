//! One request: what the application's `receive` and `send` work on.
//!
//! It outlives its connection where the application does, and then tells it that the peer left.
//! Thread: the loop's own; `receive` and `send` may be called by any, and then do nothing yet.

use std::cell::{Cell, RefCell};

use pyrt::error::Builtin;
use pyrt::module::{Args, END, Function};
use pyrt::native::{END_OF_GETTERS, Getter, Native};
use pyrt::{Attached, Member, Obj, PyError, PyResult, Visit, method};

use super::connection::{Connection, HIGH};
use super::head::Facts;
use super::home::Home;
use super::log::{self, Entry};
use super::respond::Outgoing;
use super::wait::{Need, Wait};
use super::ws::{self, Session};
use super::{respond, run};

type Answer<'py> = PyResult<'py, Obj<'py>>;

/// The part of the body that the application has not taken.
#[derive(Default)]
struct Inbox {
    data: Vec<u8>,
    total: u64,
    /// All of it has come.
    ended: bool,
    /// The application knows that it has ended.
    told: bool,
}

pub struct Request {
    pub connection: Member,
    pub facts: Facts,
    inbox: RefCell<Inbox>,
    pub out: RefCell<Outgoing>,
    /// The peer left, or the connection was given up.
    pub gone: Cell<bool>,
    /// `100 Continue` was sent, or is not wanted.
    pub continued: Cell<bool>,
    waiters: RefCell<Vec<Member>>,
    /// For the log, until its line is written.
    pub entry: Cell<Option<Box<Entry>>>,
    /// Its number among the tasks of the server.
    pub task: Cell<u64>,
    /// What it is for a WebSocket.
    pub socket: Option<Box<RefCell<Session>>>,
}

pub fn make<'py>(
    connection: &Obj<'py>,
    facts: Facts,
    entry: Option<Box<Entry>>,
    socket: Option<Session>,
) -> Answer<'py> {
    let py = connection.py();
    let server = Connection::of(connection).server(py);
    let request = Request {
        connection: Member::new(connection.clone()),
        facts,
        inbox: RefCell::default(),
        out: RefCell::new(Outgoing::new(facts.keep_alive)),
        gone: Cell::new(false),
        continued: Cell::new(!facts.expects),
        waiters: RefCell::default(),
        entry: Cell::new(entry),
        task: Cell::new(0),
        socket: socket.map(|session| Box::new(RefCell::new(session))),
    };
    let class = server.types.request.obj(py);
    // SAFETY: the class of `Request`.
    unsafe { pyrt::native::instance(&class, request) }
}

impl Request {
    pub fn of<'a>(request: &'a Obj<'_>) -> &'a Request {
        // SAFETY: called with objects of this class only.
        unsafe { pyrt::native::body(request) }
    }

    pub fn connection<'a>(&'a self, py: Attached<'_>) -> &'a Connection {
        let connection = self.connection.get(py);
        let body: *const Connection = Connection::of(&connection);
        // SAFETY: `connection` keeps the object, and so its body, as long as `self`.
        unsafe { &*body }
    }

    /// More of the body; how much came in all.
    pub fn push(&self, data: &[u8]) -> u64 {
        let mut inbox = self.inbox.borrow_mut();
        inbox.data.extend_from_slice(data);
        inbox.total += data.len() as u64;
        inbox.total
    }

    /// The body is complete.
    pub fn end<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        self.inbox.borrow_mut().ended = true;
        self.continued.set(true);
        self.wake(py)
    }

    pub fn unread(&self) -> usize {
        match &self.socket {
            Some(session) => session.borrow().unread(),
            None => self.inbox.borrow().data.len(),
        }
    }

    /// Whether something of the answer was sent.
    pub fn has_begun(&self) -> bool {
        self.out.borrow().has_begun()
    }

    pub fn peer_left<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        let py = this.py();
        let status = self.out.borrow().status().unwrap_or(log::LEFT);
        respond::log_access(self, py, status)?;
        self.gone.set(true);
        self.wake(py)
    }

    /// The server ends: this is the last request of its connection.
    pub fn stop<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        self.out.borrow_mut().keep_alive = false;
        match &self.socket {
            Some(session) => ws::stop(self, session, this.py()),
            None => Ok(()),
        }
    }

    /// The peer has read what was sent.
    pub fn has_room<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        if let Some(session) = &self.socket {
            ws::answer_ping(self.connection(py), session, py)?;
        }
        self.wake(py)
    }

    /// Whether what was sent waits for the peer to read. A complete answer keeps nobody: its connection
    /// is the next request's, which waits in its place.
    fn must_wait(&self, py: Attached<'_>) -> bool {
        let paused = self.connection(py).flags.write_paused.get();
        paused && !self.gone.get() && !self.out.borrow().is_done()
    }

    /// Whoever waits looks again.
    pub fn wake<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        if self.waiters.borrow().is_empty() {
            return Ok(());
        }
        let names = &self.connection(py).server(py).types.names;
        for waiter in self.waiters.take() {
            let waiter = waiter.obj(py);
            if !waiter.call_named(&names.done.get(py), [])?.is_truthy()? {
                waiter.call_named(&names.set_result.get(py), [&Obj::none(py)])?;
            }
        }
        Ok(())
    }

    /// A future that `wake` will resolve.
    pub fn new_waiter<'py>(&self, this: &Obj<'py>) -> Answer<'py> {
        let py = this.py();
        let server = self.connection(py).server(py);
        let asyncio = server.loops.asyncio(py)?;
        let event_loop = server.event_loop(py)?;
        let names = asyncio.loop_only.get(py);
        let future = asyncio
            .future
            .get(py)
            .call_few([&event_loop], Some(&names))?;
        self.waiters.borrow_mut().push(Member::new(future.clone()));
        Ok(future)
    }

    /// Nobody waits for this future any more.
    pub fn forget_waiter(&self, waiter: &Obj<'_>) {
        let mut waiters = self.waiters.borrow_mut();
        let place = waiters.iter().position(|other| other.is(waiter));
        // Dropped when nothing is borrowed: that may run code.
        let gone = place.map(|at| waiters.swap_remove(at));
        drop(waiters);
        drop(gone);
    }

    /// What is needed, if it is there; `None` is the value where there is nothing to give.
    pub fn take<'py>(&self, this: &Obj<'py>, need: Need) -> PyResult<'py, Option<Obj<'py>>> {
        let py = this.py();
        match need {
            Need::Nothing => Ok(Some(Obj::none(py))),
            Need::Room => Ok((!self.must_wait(py)).then(|| Obj::none(py))),
            Need::Event => match &self.socket {
                Some(session) => ws::event(self, session, py),
                None => self.event(py),
            },
        }
    }

    fn event<'py>(&self, py: Attached<'py>) -> PyResult<'py, Option<Obj<'py>>> {
        let connection = self.connection(py);
        let names = &connection.server(py).types.names;
        let (data, more) = {
            let mut inbox = self.inbox.borrow_mut();
            if inbox.data.is_empty() && (inbox.told || !inbox.ended) {
                drop(inbox);
                if self.gone.get() || self.out.borrow().is_done() {
                    let event = Obj::dict(py)?;
                    event.dict_set(&names.kind.get(py), &names.http_disconnect.get(py))?;
                    return Ok(Some(event));
                }
                if !self.continued.replace(true) && !self.has_begun() {
                    connection.write(py, b"HTTP/1.1 100 Continue\r\n\r\n")?;
                }
                return Ok(None);
            }
            inbox.told = inbox.ended;
            (std::mem::take(&mut inbox.data), !inbox.ended)
        };
        let event = Obj::dict(py)?;
        event.dict_set(&names.kind.get(py), &names.http_request.get(py))?;
        event.dict_set(&names.body.get(py), &Obj::bytes(py, &data)?)?;
        event.dict_set(&names.more_body.get(py), &Obj::bool(py, more))?;
        if data.len() > HIGH / 2 {
            connection.flow(py)?;
        }
        Ok(Some(event))
    }
}

fn receive<'py>(this: &Obj<'py>, own: &Request, args: &Args<'_, 'py>) -> Answer<'py> {
    let py = args.py();
    let class = own.connection(py).server(py).types.wait.obj(py);
    Wait::make(&class, Some(this), Need::Event)
}

fn send<'py>(this: &Obj<'py>, own: &Request, args: &Args<'_, 'py>) -> Answer<'py> {
    let py = args.py();
    let message = args.want(0, "message")?;
    let server = own.connection(py).server(py);
    if !server.is_here(py) {
        return Wait::to_send(&server.types.wait.obj(py), this, &message);
    }
    match &own.socket {
        Some(session) => ws::message(own, session, &message)?,
        None if respond::is_path(own, &message)? => {
            return respond::more::path(own, this, &message);
        }
        None => respond::message(own, &message)?,
    }
    let connection = own.connection(py);
    let types = &connection.server(py).types;
    if own.must_wait(py) {
        return Wait::make(&types.wait.obj(py), Some(this), Need::Room);
    }
    Ok(types.done.obj(py))
}

fn app_done<'py>(this: &Obj<'py>, own: &Request, args: &Args<'_, 'py>) -> Answer<'py> {
    let py = args.py();
    let server = own.connection(py).server(py);
    let kept = server.live.tasks.borrow_mut().remove(&own.task.get());
    drop(kept);
    let task = args.want(0, "task")?;
    run::ended(own, this, &task)?;
    server.tell_if_empty(py)?;
    Ok(Obj::none(py))
}

static METHODS: [Function; 6] = [
    method!(
        Request,
        c"receive",
        receive,
        c"receive()\n--\n\nThe next event.",
        anywhere
    ),
    method!(
        Request,
        c"send",
        send,
        c"send(event)\n--\n\nSends an event.",
        anywhere
    ),
    method!(
        Request,
        c"_app_done",
        app_done,
        c"The application has returned."
    ),
    method!(
        Request,
        c"_file_begins",
        respond::more::file_begins,
        c"Sends the head before a file."
    ),
    method!(
        Request,
        c"_file_ended",
        respond::more::file_ended,
        c"A file was sent."
    ),
    END,
];

static GETTERS: [Getter; 1] = [END_OF_GETTERS];

impl Native for Request {
    const NAME: &'static std::ffi::CStr = c"erlang._native.HttpRequest";
    const DOC: &'static std::ffi::CStr = c"One request of an HttpConnection.";

    type Governor = Home;

    fn methods() -> &'static [Function] {
        &METHODS
    }

    fn getters() -> &'static [Getter] {
        &GETTERS
    }

    fn new<'py>(class: &Obj<'py>) -> PyResult<'py, Self> {
        let text = "made by an HttpConnection only";
        Err(PyError::new(class.py(), Builtin::TypeError, text))
    }

    fn governor(&self, py: Attached<'_>) -> Option<&Self::Governor> {
        self.connection(py).server(py).home()
    }

    fn traverse(&self, visit: &mut Visit) {
        visit.member(&self.connection);
        if let Ok(waiters) = self.waiters.try_borrow() {
            for waiter in waiters.iter() {
                visit.member(waiter);
            }
        }
    }

    fn clear(&self, _py: Attached<'_>) {
        drop(self.waiters.take());
    }
}
