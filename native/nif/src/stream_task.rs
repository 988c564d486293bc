//! A stream of `async for`: a task of a loop takes the items, and waits while the reader has enough.
//!
//! Thread: `settle` a pool's; the rest the loop's own, attached, in a step of the task.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use crew::sync::lock;
use pyloop::Visitors;
use pyrt::class::{self, Class};
use pyrt::error::Builtin;
use pyrt::{Attached, Kept, Obj, PyError, PyResult};
use rustler::{LocalPid, ResourceArc};

use crate::ask::Asked;
use crate::callback::{self, Answer, NoAnswer};
use crate::courier::Wanted;
use crate::event_loop::{self, Loop};
use crate::failure::Failure;
use crate::interp::World;
use crate::job::{Flags, Job, Op, Reply, TicketRef};
use crate::py_module::NodeHost;
use crate::slot::Slot;
use crate::stream::{self, Stream};
use crate::ticket::Ticket;
use crate::{log, reply, runtime};

/// What a call gave, which only `async for` takes: the loop of its context will, or one of the node. A
/// thread of a named pool, or one that is bound, runs a loop whenever an item is wanted.
pub fn settle<'py>(
    world: &World<'_, 'py>,
    job: &mut Job,
    items: Obj<'py>,
) -> Result<Obj<'py>, Failure<'py>> {
    if job.event_loop.is_none() {
        let main = runtime::main_pool().is_some_and(|pool| Arc::ptr_eq(&pool, &job.pool));
        if !main {
            return Ok(event_loop::helpers(world.py)?.call_method(c"drive", &[&items])?);
        }
        job.event_loop = Some(ask_for_loop(world)?);
    }
    job.op = Op::AsyncStream;
    Ok(items)
}

/// The caller's loop, started now if there is none.
fn ask_for_loop<'py>(world: &World<'_, 'py>) -> Result<Arc<Loop>, Failure<'py>> {
    const NO_ARGS: [u8; 2] = [etf::tag::VERSION, etf::tag::NIL];
    match callback::call(world.py, world.interp, "$loop", &NO_ARGS) {
        Ok((Answer::Value(bytes), _named)) => {
            let found = log::with_env(|env| env.resource_of(env.decode(&bytes)?));
            found
                .map(|found| event_loop::of_resource(&found))
                .ok_or(Failure::Died)
        }
        Ok(_) | Err(NoAnswer::NotRunning) => Err(Failure::Died),
        Err(NoAnswer::Stopped) => Err(Failure::Cancelled),
    }
}

/// What an interpreter needs for such tasks.
pub struct Classes {
    outlet: Kept,
    room: Kept,
}

impl Classes {
    pub fn make<'py>(module: &Obj<'py>) -> PyResult<'py, Self> {
        Ok(Classes {
            outlet: Kept::new(class::make::<Outlet>(module)?),
            room: Kept::new(class::make::<Room>(module)?),
        })
    }

    /// The coroutine that takes the items of a job: `pump(items, outlet, room)`.
    pub fn pump<'py>(
        &self,
        this: &Arc<Loop>,
        event_loop: &Obj<'py>,
        job: &Job,
        items: &Obj<'py>,
    ) -> Result<Obj<'py>, Failure<'py>> {
        let py = items.py();
        let Reply::Stream {
            to,
            stream,
            reference,
        } = &job.reply
        else {
            return Err(Failure::Died);
        };
        let interp = this.interp();
        let way = interp
            .native(py)
            .and_then(|native| Visitors::of(&native, event_loop));
        let (Some(way), Some(outlet), Some(room)) = (way, self.outlet.get(py), self.room.get(py))
        else {
            return Err(Failure::Died);
        };
        let link = Arc::new(Link {
            event_loop: this.clone(),
            ticket: job.ticket.clone(),
            slot: job.slot.clone(),
            flags: job.flags,
            to: *to,
            reference: reference.clone(),
            stream: stream.0.clone(),
            way,
            since: Mutex::new(Instant::now()),
        });
        let outlet = class::instance(&outlet, Outlet(link.clone()))?;
        let room = class::instance(&room, Room(link))?;
        Ok(event_loop::helpers(py)?.call_method(c"pump", &[items, &outlet, &room])?)
    }
}

/// What ties a task to the reader of its stream.
struct Link {
    event_loop: Arc<Loop>,
    ticket: Arc<Ticket>,
    slot: ResourceArc<Slot>,
    flags: Flags,
    to: LocalPid,
    reference: ResourceArc<TicketRef>,
    stream: Arc<Stream>,
    way: Visitors,
    /// When others of the loop had their turn last.
    since: Mutex<Instant>,
}

impl Link {
    /// Sends an item.
    fn send<'py>(&self, py: Attached<'py>, item: &Obj<'py>) -> Result<(), Failure<'py>> {
        let interp = self.event_loop.interp();
        let host = NodeHost {
            interp,
            current: None,
        };
        let encoded = interp.with(py, |world| reply::item(world, &host, item));
        let (bytes, widest) = encoded.ok_or(Failure::Died)??;
        reply::courier_room(py, &self.ticket, widest);
        if self.ticket.begin_reply() {
            self.tell(reply::Answer::Bytes(bytes, widest), Wanted::Item);
            self.ticket.continue_run();
            self.stream.credits.take();
        }
        Ok(())
    }

    /// The last message: why there will be no more.
    fn fail(&self, failure: &Failure<'_>) {
        let answer = reply::reason(&self.slot, &self.ticket, self.flags, failure);
        if self.ticket.begin_reply() {
            self.tell(answer, Wanted::Answer);
            self.ticket.finish();
        }
    }

    fn tell(&self, answer: reply::Answer, wanted: Wanted) {
        log::with_env(|env| {
            let head = stream::head(env, &self.reference);
            reply::send_to_user(env, &self.ticket, &self.to, head, answer, wanted)
        });
    }

    /// Whether the task has kept the loop for long enough.
    fn time_is_up(&self) -> bool {
        let mut since = lock(&self.since);
        let up = since.elapsed() > stream::SLICE;
        if up {
            *since = Instant::now();
        }
        up
    }
}

/// Takes an item. `None`: go on. `True`: after others had their turn. `False`: when there is room.
struct Outlet(Arc<Link>);

/// Completes a future when the reader wants more.
struct Room(Arc<Link>);

impl Class for Outlet {
    const NAME: &'static std::ffi::CStr = c"erlang._node.Outlet";
    const DOC: &'static std::ffi::CStr = c"Sends the items of a stream to its reader.";

    fn repr(&self) -> String {
        format!("<erlang stream {}>", self.0.ticket.id())
    }

    fn hash(&self) -> u64 {
        self.0.ticket.id()
    }

    fn equal(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    const CALL: Option<for<'a, 'py> fn(&Obj<'py>, &Obj<'py>) -> PyResult<'py, Obj<'py>>> =
        Some(|this, args| {
            let py = this.py();
            let (Some(Outlet(link)), Some(item)) =
                (class::body(this, &this.type_of()), args.tuple_item(0))
            else {
                return Ok(Obj::none(py));
            };
            if let Err(failure) = link.send(py, &item) {
                link.fail(&failure);
                let text = "an item of a stream could not be sent";
                return Err(PyError::new(py, Builtin::RuntimeError, text));
            }
            if !link.stream.credits.has() || link.ticket.must_stop() {
                return Ok(Obj::bool(py, false));
            }
            Ok(match link.time_is_up() {
                true => Obj::bool(py, true),
                false => Obj::none(py),
            })
        });
}

impl Class for Room {
    const NAME: &'static std::ffi::CStr = c"erlang._node.Room";
    const DOC: &'static std::ffi::CStr = c"Tells when the reader of a stream wants more.";

    fn repr(&self) -> String {
        format!("<erlang stream {}>", self.0.ticket.id())
    }

    fn hash(&self) -> u64 {
        self.0.ticket.id()
    }

    fn equal(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    const CALL: Option<for<'a, 'py> fn(&Obj<'py>, &Obj<'py>) -> PyResult<'py, Obj<'py>>> =
        Some(|this, args| {
            if let (Some(Room(link)), Some(future)) =
                (class::body(this, &this.type_of()), args.tuple_item(0))
            {
                let interp = link.event_loop.interp().clone();
                let future = Kept::new((*future).clone());
                link.stream
                    .wait_for_room(Asked::new(link.way.clone(), interp, future));
            }
            Ok(Obj::none(this.py()))
        });
}
