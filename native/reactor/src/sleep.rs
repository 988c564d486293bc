//! Waiting for a time, as a future.
//!
//! Thread: any; the timer itself belongs to the loop (I5) and is ordered there.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::desk::Order;
use crate::signal::Signal;
use crate::sync::Mutex;
use crate::task_loop::Handle;
use crate::timer::TimerKey;

/// The loop has ended: nothing will become due or ready any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stopped;

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the event loop has stopped")
    }
}

impl std::error::Error for Stopped {}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    New,
    Set(TimerKey),
    Done,
    Stopped,
}

/// What the loop and the waiting task share.
pub(crate) struct Timer {
    pub deadline: u64,
    pub signal: Signal,
    pub phase: Mutex<Phase>,
}

/// Ends when the time has come, never before; dropped, it takes its timer with it.
pub struct Sleep {
    handle: Handle,
    timer: Arc<Timer>,
    ordered: bool,
}

impl Sleep {
    pub(crate) fn new(handle: Handle, deadline: u64) -> Self {
        let timer = Arc::new(Timer {
            deadline,
            signal: Signal::default(),
            phase: Mutex::new(Phase::New),
        });
        Sleep {
            handle,
            timer,
            ordered: false,
        }
    }
}

impl Future for Sleep {
    type Output = Result<(), Stopped>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let fired = self.timer.signal.poll(context).is_ready();
        let phase = *self.timer.phase.lock();
        match phase {
            Phase::Stopped => return Poll::Ready(Err(Stopped)),
            Phase::Done => return Poll::Ready(Ok(())),
            Phase::New if !self.ordered => {
                self.ordered = true;
                let order = Order::SetTimer(self.timer.clone());
                if self.handle.order(order).is_err() {
                    return Poll::Ready(Err(Stopped));
                }
            }
            // Fired between the two looks: the phase was set before the signal.
            _ if fired => context.waker().wake_by_ref(),
            _ => {}
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let set = {
            let mut phase = self.timer.phase.lock();
            // A timer that is still on its way to the loop finds itself done there.
            std::mem::replace(&mut *phase, Phase::Done)
        };
        if let Phase::Set(key) = set {
            // Refused by a loop that has ended: its timers went with it.
            let _ = self.handle.order(Order::CancelTimer(key));
        }
    }
}
