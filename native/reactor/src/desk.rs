//! What tasks ask of their loop: to be polled, to set a timer, to watch a descriptor.
//!
//! A task can't borrow the reactor that runs it, so on the loop's own thread orders are laid on a
//! desk that the host clears after each piece of work; from other threads they are posted.
//!
//! Thread: `lay` any; the rest the loop's own.

use std::cell::RefCell;
use std::sync::Arc;

use async_task::Runnable;

use crate::sleep::Timer;
use crate::timer::TimerKey;
use crate::watch::Source;

/// A function that runs once on the loop.
pub type Call = Box<dyn FnOnce() + Send>;

/// A piece of work of a loop of tasks.
pub(crate) enum Order {
    Call(Call),
    /// The first poll of a task: an accepted post, so it runs even when the loop stops.
    Start(Runnable),
    /// A later poll: on a loop that stops, the task is dropped instead.
    Wake(Runnable),
    SetTimer(Arc<Timer>),
    CancelTimer(TimerKey),
    Due(Arc<Timer>),
    /// The epoll set follows what the source is awaited for.
    Watch(Arc<Source>),
}

struct Desk {
    /// Which loop this thread is.
    owner: usize,
    orders: Vec<Order>,
}

thread_local! {
    static DESK: RefCell<Option<Desk>> = const { RefCell::new(None) };
}

/// Makes this thread the loop `owner`.
pub(crate) fn open(owner: usize) {
    let orders = Vec::new();
    DESK.with(|desk| *desk.borrow_mut() = Some(Desk { owner, orders }));
}

/// Gives the order back if this thread is not the loop `owner`.
pub(crate) fn lay(owner: usize, order: Order) -> Result<(), Order> {
    // A thread whose locals are gone is no loop any more.
    let mut order = Some(order);
    let _ = DESK.try_with(|desk| {
        if let Some(desk) = &mut *desk.borrow_mut()
            && desk.owner == owner
        {
            desk.orders.extend(order.take());
        }
    });
    match order {
        None => Ok(()),
        Some(order) => Err(order),
    }
}

/// Swaps the laid orders with an empty list.
pub(crate) fn clear(into: &mut Vec<Order>) {
    DESK.with(|desk| {
        if let Some(desk) = &mut *desk.borrow_mut() {
            std::mem::swap(&mut desk.orders, into);
        }
    });
}

/// From now on this thread is nobody's loop.
pub(crate) fn close() {
    let desk = DESK.with(|desk| desk.borrow_mut().take());
    drop(desk);
}
