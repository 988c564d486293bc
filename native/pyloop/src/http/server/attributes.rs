//! What Python sees of a server.

use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use pyrt::error::Builtin;
use pyrt::module::{Args, END, Function};
use pyrt::native::{END_OF_GETTERS, Getter};
use pyrt::{Obj, Place, PyError, PyResult, getter, method};

use super::{Parts, Server};
use crate::event_loop::watch::want_fd;
use crate::http::config::{Config, access_log};
use crate::http::connection::{self, Connection};
use crate::http::home::Home;
use crate::http::log::AccessLog;
use crate::http::share::Membership;
use crate::visit::Visitors;

type Answer<'py> = PyResult<'py, Obj<'py>>;

pub(super) static METHODS: [Function; 16] = [
    method!(
        Server,
        c"start",
        start,
        c"start(loop, app, state, owner, options)\n--\n\nConnections may come from now on."
    ),
    method!(
        Server,
        c"connection",
        new_connection,
        c"connection()\n--\n\nThe protocol of one connection, for loop.create_server."
    ),
    method!(
        Server,
        c"share",
        share,
        c"share(number, taker)\n--\n\nOther servers of that number pass connections to `taker`."
    ),
    method!(
        Server,
        c"pass_on",
        pass_on,
        c"pass_on(fd)\n--\n\nWhether another server has taken this connection."
    ),
    method!(
        Server,
        c"settle",
        settle,
        c"settle()\n--\n\nNo connection waits to be accepted now."
    ),
    method!(
        Server,
        c"reload",
        reload,
        c"reload(app, state)\n--\n\nAnother application for the requests from now on."
    ),
    method!(
        Server,
        c"stop",
        stop,
        c"stop()\n--\n\nEvery connection ends when its request is answered."
    ),
    method!(
        Server,
        c"restart",
        restart,
        c"restart(tasks)\n--\n\nCloses the WebSockets that these tasks serve."
    ),
    method!(
        Server,
        c"cancel",
        cancel,
        c"cancel()\n--\n\nCancels what runs for requests; connections end with their answers."
    ),
    method!(
        Server,
        c"abort",
        abort,
        c"abort()\n--\n\nEnds all connections."
    ),
    method!(
        Server,
        c"tasks",
        tasks,
        c"tasks()\n--\n\nWhat runs for requests and WebSockets now."
    ),
    method!(
        Server,
        c"info",
        info,
        c"info()\n--\n\nNumbers of this moment.",
        anywhere
    ),
    method!(
        Server,
        c"flush_log",
        flush_log,
        c"flush_log(seconds)\n--\n\nWhether the lines of the access log are written; waits for it."
    ),
    method!(
        Server,
        c"take_log",
        take_log,
        c"take_log()\n--\n\nLines of the access log that wait for the owner, and how many are missing."
    ),
    method!(Server, c"_tick", tick, c"Looks at the timeouts."),
    END,
];

pub(super) static GETTERS: [Getter; 2] = [getter!(Server, c"draining", draining), END_OF_GETTERS];

fn start<'py>(this: &Obj<'py>, server: &Server, args: &Args<'_, 'py>) -> Answer<'py> {
    let py = args.py();
    let names = &server.types.names;
    let asgi = |spec_version| {
        let asgi = Obj::dict(py)?;
        asgi.dict_set(&names.version.get(py), &Obj::text(py, "3.0")?)?;
        asgi.dict_set(&names.spec_version.get(py), &Obj::text(py, spec_version)?)?;
        Ok(Place::new(Some(asgi)))
    };
    let given = |index, name| {
        args.want(index, name)
            .map(|value| Place::new(Some(value.clone())))
    };
    let options = args.want(4, "options")?;
    let config = Config::from(&options)?;
    let extensions = options.dict_get(&names.extensions.get(py))?;
    let socket_extensions = options.dict_get(&Obj::text(py, "socket_extensions")?)?;
    let parts = Parts {
        home: Home::new(&*args.want(0, "loop")?, &server.loops),
        app: given(1, "app")?,
        state: Place::new(args.given(2)),
        owner: given(3, "owner")?,
        // From 2.4 on Starlette leaves a stream alone that has nothing to send when its client leaves.
        asgi: asgi("2.3")?,
        socket_asgi: asgi("2.5")?,
        extensions: Place::new(extensions),
        socket_extensions: Place::new(socket_extensions),
        log: access_log(&options, &config.given)?,
        config,
    };
    if server.parts.set(parts).is_err() {
        let text = "start() was called before";
        return Err(PyError::new(py, Builtin::RuntimeError, text));
    }
    Ok(this.clone())
}

fn new_connection<'py>(this: &Obj<'py>, server: &Server, args: &Args<'_, 'py>) -> Answer<'py> {
    // Whose thread its methods are for is known from the start on.
    server.parts(args.py())?;
    connection::make(this)
}

fn share<'py>(_this: &Obj<'py>, server: &Server, args: &Args<'_, 'py>) -> Answer<'py> {
    let py = args.py();
    let number = args.want(0, "number")?.as_i64()?.unwrap_or_default();
    let taker = args.want(1, "taker")?;
    let Some(way) = Visitors::to(&server.loops, &server.event_loop(py)?) else {
        let text = "connections are shared on loops of this package only";
        return Err(PyError::new(py, Builtin::TypeError, text));
    };
    let open = Arc::clone(&server.live.open);
    let share = Membership::new(number, open, way, &taker);
    let before = server.live.share.replace(Some(share));
    drop(before);
    Ok(Obj::none(py))
}

fn pass_on<'py>(_this: &Obj<'py>, server: &Server, args: &Args<'_, 'py>) -> Answer<'py> {
    let fd = want_fd(args)?;
    let Some(share) = &*server.live.share.borrow() else {
        return Ok(Obj::bool(args.py(), false));
    };
    // SAFETY: the caller owns it, and has nothing else that closes it.
    let connection = unsafe { OwnedFd::from_raw_fd(fd) };
    let passed = share.pass_on(connection).map_err(|kept| kept.into_raw_fd());
    Ok(Obj::bool(args.py(), passed.is_ok()))
}

fn settle<'py>(_this: &Obj<'py>, server: &Server, args: &Args<'_, 'py>) -> Answer<'py> {
    if let Some(share) = &*server.live.share.borrow() {
        share.settle();
    }
    Ok(Obj::none(args.py()))
}

fn reload<'py>(_this: &Obj<'py>, server: &Server, args: &Args<'_, 'py>) -> Answer<'py> {
    let py = args.py();
    let parts = server.parts(py)?;
    parts.app.set(Some(args.want(0, "app")?.clone()));
    parts.state.set(args.given(1));
    Ok(Obj::none(py))
}

fn stop<'py>(_this: &Obj<'py>, server: &Server, args: &Args<'_, 'py>) -> Answer<'py> {
    let py = args.py();
    server.live.draining.set(true);
    drop(server.live.share.take());
    for connection in server.all(py) {
        Connection::of(&connection).stop(&connection)?;
    }
    server.tell_if_empty(py)?;
    Ok(Obj::none(py))
}

fn restart<'py>(_this: &Obj<'py>, server: &Server, args: &Args<'_, 'py>) -> Answer<'py> {
    let py = args.py();
    let tasks = args.want(0, "tasks")?;
    let mut ending = Vec::new();
    let given = tasks.iter()?;
    while let Some(task) = given.next()? {
        ending.push(task);
    }
    for connection in server.all(py) {
        Connection::of(&connection).restart(py, &ending)?;
    }
    Ok(Obj::none(py))
}

fn cancel<'py>(_this: &Obj<'py>, server: &Server, args: &Args<'_, 'py>) -> Answer<'py> {
    for task in server.running(args.py()) {
        task.call_method(c"cancel", &[])?;
    }
    Ok(Obj::none(args.py()))
}

fn abort<'py>(_this: &Obj<'py>, server: &Server, args: &Args<'_, 'py>) -> Answer<'py> {
    let py = args.py();
    for connection in server.all(py) {
        Connection::of(&connection).abort(&connection)?;
    }
    Ok(Obj::none(py))
}

fn tasks<'py>(_this: &Obj<'py>, server: &Server, args: &Args<'_, 'py>) -> Answer<'py> {
    let py = args.py();
    Obj::tuple(py, server.running(py).into_iter())
}

fn info<'py>(_this: &Obj<'py>, server: &Server, args: &Args<'_, 'py>) -> Answer<'py> {
    let (py, live) = (args.py(), &server.live);
    let info = Obj::dict(py)?;
    info.dict_set_c(c"connections", &Obj::int(py, live.open() as i64)?)?;
    info.dict_set_c(c"in_flight", &Obj::int(py, live.in_flight.get() as i64)?)?;
    info.dict_set_c(c"served", &Obj::int(py, live.served.get() as i64)?)?;
    Ok(info)
}

fn flush_log<'py>(_this: &Obj<'py>, server: &Server, args: &Args<'_, 'py>) -> Answer<'py> {
    let py = args.py();
    let seconds = args.want(0, "seconds")?.as_f64()?;
    let most = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let flushed = match server.parts.get().and_then(|parts| parts.log.as_ref()) {
        None => true,
        Some(log) => log.flush(py, most),
    };
    Ok(Obj::bool(py, flushed))
}

fn take_log<'py>(_this: &Obj<'py>, server: &Server, args: &Args<'_, 'py>) -> Answer<'py> {
    let py = args.py();
    let log = &server.parts(py)?.log;
    let (lines, missing) = log.as_ref().map(AccessLog::take).unwrap_or_default();
    let missing = i64::try_from(missing).unwrap_or(i64::MAX);
    let taken = [Obj::bytes(py, &lines)?, Obj::int(py, missing)?];
    Obj::tuple(py, taken.into_iter())
}

fn tick<'py>(this: &Obj<'py>, server: &Server, args: &Args<'_, 'py>) -> Answer<'py> {
    server.tick(this)?;
    Ok(Obj::none(args.py()))
}

fn draining<'py>(this: &Obj<'py>, server: &Server) -> Answer<'py> {
    Ok(Obj::bool(this.py(), server.live.draining.get()))
}
