//! The host of a loop of tasks: runs functions, polls futures, serves their orders.
//!
//! Thread: the loop's own. Never: lets a panic of one task keep the orders of others (I7).

use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{BorrowedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::clock::Moment;
use crate::desk::{self, Order};
use crate::key::Key;
use crate::poller::Readiness;
use crate::sleep::{Phase, Stopped, Timer};
use crate::task_loop::Living;
use crate::turn::{Host, Post, Reactor};
use crate::watch::Source;

type Turning = Reactor<Order, Arc<Source>>;

pub(crate) struct Runner {
    post: Post<Order>,
    living: Arc<Living>,
    /// The sources by descriptor, for an epoll set that is made anew.
    lent: HashMap<RawFd, Arc<Source>>,
    stopping: bool,
    /// Kept to be reused.
    orders: Vec<Order>,
}

impl Runner {
    pub fn new(post: Post<Order>, living: Arc<Living>) -> Self {
        Runner {
            post,
            living,
            lent: HashMap::new(),
            stopping: false,
            orders: Vec::new(),
        }
    }

    fn serve(&mut self, reactor: &mut Turning, order: Order) {
        match order {
            Order::Call(call) => contain(call),
            Order::Start(task) => contain(|| _ = task.run()),
            Order::Wake(task) if self.stopping => drop(task),
            Order::Wake(task) => contain(|| _ = task.run()),
            Order::Due(timer) => {
                *timer.phase.lock() = Phase::Done;
                timer.signal.fire();
            }
            order => self.arrange(reactor, order),
        }
    }

    /// Serves what runs no foreign code; the rest is ready from now on.
    fn arrange(&mut self, reactor: &mut Turning, order: Order) {
        match order {
            Order::SetTimer(timer) => set_timer(reactor, timer),
            Order::CancelTimer(key) => drop(reactor.cancel_timer(key)),
            Order::Watch(source) => self.watch(reactor, source),
            order => reactor.push(order),
        }
    }

    fn watch(&mut self, reactor: &mut Turning, source: Arc<Source>) {
        let (closed, key, interest) = {
            let wanted = source.wanted.lock();
            (wanted.closed, wanted.key, wanted.interest)
        };
        let done = match key {
            Some(key) if closed => {
                self.lent.remove(&source.raw());
                source.wanted.lock().key = None;
                drop(reactor.unregister(key, source.fd()));
                Ok(())
            }
            _ if closed => Ok(()),
            Some(key) => reactor.watch(key, source.fd(), interest),
            None => match reactor.register(source.fd(), interest, source.clone()) {
                Ok(key) => {
                    self.lent.insert(source.raw(), source.clone());
                    source.wanted.lock().key = Some(key);
                    Ok(())
                }
                Err(error) => Err(error),
            },
        };
        if let Err(error) = done {
            source.fail(error);
        }
    }

    fn clear_desk(&mut self, reactor: &mut Turning) {
        let mut orders = std::mem::take(&mut self.orders);
        desk::clear(&mut orders);
        for order in orders.drain(..) {
            self.arrange(reactor, order);
        }
        self.orders = orders;
    }

    /// The loop ends: whatever is suspended is dropped as cancelled, here.
    fn end(&mut self, reactor: &mut Turning) {
        let (ready, timers, sources) = reactor.clear();
        for order in ready.into_iter().chain(timers) {
            end_order(order);
        }
        for source in sources {
            source.fail(io::Error::other(Stopped));
        }
        self.lent.clear();
        self.cancel();
    }

    fn cancel(&mut self) {
        self.stopping = true;
        for waker in self.living.take() {
            waker.wake();
        }
        // Each dropped future may wake others.
        loop {
            let mut orders = Vec::new();
            desk::clear(&mut orders);
            if orders.is_empty() {
                break;
            }
            orders.into_iter().for_each(end_order);
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        // Again, for a loop whose epoll set failed; from here on orders are refused.
        self.post.stop();
        self.cancel();
        desk::close();
    }
}

fn contain(body: impl FnOnce()) {
    // The panic was reported by the hook; whoever awaits the task sees it cancelled.
    let _ = catch_unwind(AssertUnwindSafe(body));
}

fn set_timer(reactor: &mut Turning, timer: Arc<Timer>) {
    let mut phase = timer.phase.lock();
    if *phase == Phase::New {
        let key = reactor.set_timer(Moment::at_nanos(timer.deadline), Order::Due(timer.clone()));
        *phase = Phase::Set(key);
    }
}

/// Drops an order of a loop that has ended; who waits for it is told.
fn end_order(order: Order) {
    match order {
        Order::SetTimer(timer) | Order::Due(timer) => {
            let was = std::mem::replace(&mut *timer.phase.lock(), Phase::Stopped);
            if was != Phase::Done {
                timer.signal.fire();
            }
        }
        Order::Watch(source) => source.fail(io::Error::other(Stopped)),
        order => contain(|| drop(order)),
    }
}

impl Host<Order, Arc<Source>> for Runner {
    fn run(&mut self, reactor: &mut Turning, work: Order) -> ControlFlow<()> {
        self.serve(reactor, work);
        self.clear_desk(reactor);
        ControlFlow::Continue(())
    }

    fn ready(&mut self, reactor: &mut Turning, key: Key, is: Readiness) -> ControlFlow<()> {
        let Some(source) = reactor.source(key).cloned() else {
            return ControlFlow::Continue(());
        };
        if let Some(interest) = source.ready(is)
            && let Err(error) = reactor.watch(key, source.fd(), interest)
        {
            source.fail(error);
        }
        self.clear_desk(reactor);
        ControlFlow::Continue(())
    }

    fn turn_end(&mut self, reactor: &mut Turning) -> ControlFlow<()> {
        if self.post.is_stopped() {
            self.stopping = true;
            if reactor.is_drained() {
                self.end(reactor);
            }
        }
        ControlFlow::Continue(())
    }

    fn lend(&self, fd: RawFd) -> BorrowedFd<'_> {
        self.lent[&fd].fd()
    }
}
