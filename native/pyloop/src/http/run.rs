//! The application's coroutine runs as a task; how it ended decides what the peer sees.
//!
//! Where Python can (3.12), the task starts at once: an application that has nothing to wait for
//! is done before the loop turns.
//! Thread: the loop's own.

use pyrt::call::import_c;
use pyrt::error::Builtin;
use pyrt::{Attached, Member, Obj, PyError, PyResult};

use super::connection::Connection;
use super::request::Request;
use super::ws::code;

/// Calls the application for the request that waits for it, if there is one.
pub fn start<'py>(connection: &Connection, this: &Obj<'py>) -> PyResult<'py, ()> {
    let py = this.py();
    let Some(scope) = connection.pending.take(py) else {
        return Ok(());
    };
    let Some(request) = connection.request.get(py) else {
        return Ok(());
    };
    let server = connection.server(py);
    let live = &server.live;
    live.in_flight.set(live.in_flight.get() + 1);
    let own = Request::of(&request);
    let names = &server.types.names;
    let task = match task(connection, &request, &scope) {
        Ok(task) => task,
        Err(error) => {
            count_out(own, py);
            return failed(own, &request, error);
        }
    };
    if task.call_named(&names.done.get(py), [])?.is_truthy()? {
        return ended(own, &request, &task);
    }
    own.task.set(server.number());
    live.tasks
        .borrow_mut()
        .insert(own.task.get(), Member::new(task.clone()));
    let callback = request.getattr(&names.app_done.get(py))?;
    task.call_named(&names.add_done_callback.get(py), [&callback])?;
    Ok(())
}

fn task<'py>(
    connection: &Connection,
    request: &Obj<'py>,
    scope: &Obj<'py>,
) -> PyResult<'py, Obj<'py>> {
    let py = request.py();
    let server = connection.server(py);
    let names = &server.types.names;
    let receive = request.getattr(&names.receive.get(py))?;
    let send = request.getattr(&names.send.get(py))?;
    let given = server.app(py)?.call(&[scope, &receive, &send])?;
    let coroutine = match given.is_coroutine() {
        true => given,
        false => awaited(&given)?,
    };
    let event_loop = server.event_loop(py)?;
    if pyrt::BUILT_FOR < (3, 12) {
        return event_loop.call_named(&names.create_task.get(py), [&coroutine]);
    }
    let class = server.loops.asyncio(py)?.task.obj(py);
    let yes = Obj::bool(py, true);
    class.call_few(
        [&coroutine, &event_loop, &yes],
        Some(&server.types.eager.get(py)),
    )
}

/// A coroutine of what the application returned that is none: a class with `__await__`.
#[cold]
fn awaited<'py>(given: &Obj<'py>) -> PyResult<'py, Obj<'py>> {
    import_c(given.py(), c"erlang.serve._load")?.call_method(c"awaited", &[given])
}

fn count_out(own: &Request, py: Attached<'_>) {
    let live = &own.connection(py).server(py).live;
    live.in_flight.set(live.in_flight.get().saturating_sub(1));
    live.served.set(live.served.get() + 1);
}

/// The application's task is done.
pub fn ended<'py>(own: &Request, this: &Obj<'py>, task: &Obj<'py>) -> PyResult<'py, ()> {
    let py = this.py();
    count_out(own, py);
    let server = own.connection(py).server(py);
    let names = &server.types.names;
    if task.call_named(&names.cancelled.get(py), [])?.is_truthy()? {
        return if own.gone.get() || own.out.borrow().is_done() {
            Ok(())
        } else {
            give_up(own, py)
        };
    }
    let exception = task.call_named(&names.exception.get(py), [])?;
    if !exception.is_none() {
        return failed(own, this, PyError::from_value(exception));
    }
    if own.gone.get() || own.out.borrow().is_done() {
        return Ok(());
    }
    if let Some(session) = &own.socket
        && !session.borrow().is_asked()
    {
        return super::ws::close(own, session, py, code::NORMAL, "");
    }
    let text = if own.socket.is_some() {
        "the application returned before it accepted or closed the WebSocket"
    } else if own.out.borrow().is_fresh() {
        "the application returned without http.response.start"
    } else {
        "the application returned before its response was complete"
    };
    server
        .owner(py)?
        .call_method(c"complain", &[&Obj::text(py, text)?])?;
    give_up(own, py)
}

/// The application raised.
#[cold]
fn failed<'py>(own: &Request, this: &Obj<'py>, error: PyError<'py>) -> PyResult<'py, ()> {
    let py = this.py();
    if error.is_a(Builtin::KeyboardInterrupt) {
        return Err(error);
    }
    let owner = own.connection(py).server(py).owner(py)?;
    let session = own.socket.as_ref();
    let left = session.is_some_and(|session| session.borrow().is_left());
    let gone = Obj::bool(py, own.gone.get() || left);
    owner.call_method(c"failed", &[error.value(), &gone])?;
    if own.gone.get() || own.out.borrow().is_done() {
        return Ok(());
    }
    give_up(own, py)
}

/// The answer will not come: 500 if nothing was sent, else the connection ends in the middle of it.
#[cold]
fn give_up<'py>(own: &Request, py: Attached<'py>) -> PyResult<'py, ()> {
    let connection = own.connection(py);
    if let Some(session) = &own.socket
        && !session.borrow().is_asked()
    {
        return super::ws::close(own, session, py, code::FAILED, "");
    }
    own.gone.set(true);
    connection.request.set(None);
    let begun = own.out.borrow().status();
    if let Some(status) = begun {
        super::respond::log_access(own, py, status)?;
        return connection.end(py);
    }
    super::respond::log_access(own, py, 500)?;
    connection.refuse(py, 500)
}
