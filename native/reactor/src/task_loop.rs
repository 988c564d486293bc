//! An event loop of tasks: functions and futures, posted and spawned from any thread.
//!
//! It is `EventLoop` with a host that polls futures: same queue, same poller, same end. When it
//! stops, accepted functions run, accepted futures are polled once, and whatever is suspended is
//! dropped, on the loop's thread, as cancelled.
//!
//! Thread: `Handle` and `Spawned` any; `Runner` (file `runner`) the loop's own.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_task::{FallibleTask, Runnable};

use crate::clock;
use crate::desk::{self, Call, Order};
use crate::event_loop::EventLoop;
use crate::inbox::Refused;
use crate::key::{Key, Table};
use crate::runner::Runner;
use crate::sleep::{Sleep, Stopped};
use crate::sync::Mutex;
use crate::turn::Post;

/// A task that will give no value: it was cancelled, its loop stopped, or it panicked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cancelled;

impl std::fmt::Display for Cancelled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the task was cancelled")
    }
}

impl std::error::Error for Cancelled {}

/// The tasks that live, so that those suspended at the end of the loop are found.
pub(crate) struct Living(Mutex<Table<Option<Waker>>>);

impl Living {
    pub(crate) fn take(&self) -> Vec<Waker> {
        let mut table = self.0.lock();
        let wakers = table.iter_mut().filter_map(|(_, waker)| waker.take());
        wakers.collect()
    }
}

/// Takes a task off the list of the living when its future is dropped.
struct Grave {
    living: Arc<Living>,
    key: Key,
}

impl Drop for Grave {
    fn drop(&mut self) {
        let waker = self.living.0.lock().remove(self.key);
        // Outside of the lock: it may be the last of its task.
        drop(waker);
    }
}

/// A running task. Dropped, it cancels the task; `detach` lets it live on its own.
pub struct Spawned<T>(FallibleTask<T>);

impl<T> Spawned<T> {
    pub fn detach(self) {
        self.0.detach();
    }

    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl<T> Future for Spawned<T> {
    type Output = Result<T, Cancelled>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let output = Pin::new(&mut self.0).poll(context);
        output.map(|output| output.ok_or(Cancelled))
    }
}

/// Reaches the loop from any thread.
#[derive(Clone)]
pub struct Handle {
    post: Post<Order>,
    living: Arc<Living>,
}

impl Handle {
    /// Runs `call` on the loop; refused when too many wait or when the loop has stopped.
    pub fn post(&self, call: impl FnOnce() + Send + 'static) -> Result<(), Refused<Call>> {
        match self.post.post(Order::Call(Box::new(call))) {
            Ok(()) => Ok(()),
            Err(Refused::Full(Order::Call(call))) => Err(Refused::Full(call)),
            Err(Refused::Stopped(Order::Call(call))) => Err(Refused::Stopped(call)),
            // What comes back is what was posted.
            Err(_) => Ok(()),
        }
    }

    /// Runs `future` on the loop.
    pub fn spawn<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<Spawned<T>, Refused<()>> {
        let (runnable, task) = self.prepare(future);
        match self.post.post(Order::Start(runnable)) {
            Ok(()) => Ok(task),
            Err(Refused::Full(_)) => Err(Refused::Full(())),
            Err(Refused::Stopped(_)) => Err(Refused::Stopped(())),
        }
    }

    /// As `spawn`, for work whose bound was kept when it was admitted: never refused as too much. On
    /// the loop's own thread it takes no room from posts.
    pub fn spawn_admitted<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<Spawned<T>, Stopped> {
        let (runnable, task) = self.prepare(future);
        if self.is_stopped() {
            return Err(Stopped);
        }
        self.order(Order::Start(runnable)).map(|()| task)
    }

    fn prepare<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> (Runnable, Spawned<T>) {
        let key = self.living.0.lock().insert(None);
        let grave = Grave {
            living: self.living.clone(),
            key,
        };
        let buried = async move {
            let _grave = grave;
            future.await
        };
        let handle = self.clone();
        let wake = move |runnable| {
            // A loop that has ended refuses it: dropped here, the task is cancelled.
            let _ = handle.order(Order::Wake(runnable));
        };
        let (runnable, task) = async_task::spawn(buried, wake);
        if let Some(waker) = self.living.0.lock().get_mut(key) {
            *waker = Some(runnable.waker());
        }
        (runnable, Spawned(task.fallible()))
    }

    /// Ends after `time`, rounded up: never early.
    pub fn sleep(&self, time: Duration) -> Sleep {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.sleep_until(clock::now().saturating_add(nanos))
    }

    /// Ends when the clock of `clock::now` has reached `deadline`.
    pub fn sleep_until(&self, deadline: u64) -> Sleep {
        Sleep::new(self.clone(), deadline)
    }

    /// Refuses posts from now on, without waiting for the end.
    pub fn stop(&self) {
        self.post.stop();
    }

    pub fn is_stopped(&self) -> bool {
        self.post.is_stopped()
    }

    pub(crate) fn order(&self, order: Order) -> Result<(), Stopped> {
        match desk::lay(self.id(), order) {
            Ok(()) => Ok(()),
            Err(order) => self.post.post_admitted(order).map_err(|_| Stopped),
        }
    }

    fn id(&self) -> usize {
        Arc::as_ptr(&self.living) as usize
    }
}

/// A loop of tasks with its thread. Dropped, it stops; dropped by its own work, the thread ends by
/// itself.
///
/// ```
/// use std::future::pending;
/// use std::sync::mpsc;
/// use reactor::{Cancelled, TaskLoop, block_on};
/// # if reactor::MODELLED { return Ok(()); }
///
/// let tasks = TaskLoop::start("example", 100)?;
/// let (tell, told) = mpsc::channel();
/// assert!(tasks.handle().post(move || tell.send("posted").unwrap_or(())).is_ok());
/// assert_eq!(told.recv()?, "posted");
/// // What is suspended when the loop stops is dropped as cancelled.
/// let never = tasks.handle().spawn_admitted(pending::<()>())?;
/// tasks.stop();
/// assert_eq!(block_on(never), Err(Cancelled));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TaskLoop {
    inner: EventLoop<Order>,
    handle: Handle,
}

impl TaskLoop {
    /// At most `bound` posts wait at any time (I8).
    pub fn start(name: &str, bound: usize) -> io::Result<Self> {
        let living = Arc::new(Living(Mutex::new(Table::default())));
        let shared = living.clone();
        let inner = EventLoop::start(name, bound, move |reactor| {
            desk::open(Arc::as_ptr(&shared) as usize);
            Runner::new(reactor.poster(), shared)
        })?;
        let post = inner.poster();
        Ok(TaskLoop {
            inner,
            handle: Handle { post, living },
        })
    }

    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Whether the caller runs on the loop's own thread.
    pub fn is_here(&self) -> bool {
        self.inner.is_here()
    }

    /// Refuses posts, runs the accepted ones, drops what is suspended. Off the loop's thread it
    /// returns after the thread has ended; on it at once.
    pub fn stop(&self) {
        self.inner.stop();
    }
}
