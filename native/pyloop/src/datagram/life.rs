//! The life of an endpoint: made, closed, lost.
//!
//! Thread: the loop's own.

use pyrt::{Attached, Obj, PyResult};

use super::{Datagram, Queue};
use crate::channel::Life;

impl Datagram {
    pub(crate) fn start<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        self.channel.start(this, || {
            self.watch(this.py());
            Ok(())
        })
    }

    pub(super) fn close(&self, this: &Obj<'_>) {
        if self.channel.life.get() != Life::Open {
            return;
        }
        self.channel.life.set(Life::Closing);
        if self.queue.borrow().packets.is_empty() {
            self.channel.lose(this, None);
        } else {
            self.watch(this.py());
        }
    }

    pub(super) fn abort<'py>(&self, this: &Obj<'py>, error: Option<Obj<'py>>) {
        *self.queue.borrow_mut() = Queue::default();
        self.channel.lose(this, error);
    }

    /// Another descriptor has the number of ours.
    pub(crate) fn lose_fd(&self) {
        self.channel.lose_fd();
    }

    pub(crate) fn let_go<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        self.channel.let_go(py)
    }

    /// This process is a child of the one whose endpoint it is.
    pub(crate) fn part_from_parent(&self) {
        self.channel.life.set(Life::Gone);
    }

    pub(crate) fn lost<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        self.channel
            .lost(this, || self.channel.close_file(this.py()))
    }
}
