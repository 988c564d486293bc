//! The life of one job, seen by whoever may cancel it: queued, running, replying, done.
//!
//! Thread: any. The steps themselves are `crew::Life`'s: a job is answered once or cancelled (I4).

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

pub use crew::Why;
use crew::sync::lock;
use crew::{Meet, Met};

use crate::erts::Raw;
use crate::event_loop::Loop;
use crate::here::Thread;
use crate::interp::Interp;
use crate::job::Job;
use crate::label::Label;
use crate::{deadline, watch};

pub struct Ticket {
    /// What is known of it without Python and Erlang.
    own: crew::Ticket<Box<Job>>,
    /// Something of this job went through the courier: all that follows must, too.
    couriered: AtomicBool,
    /// Where it runs, while it does.
    place: Mutex<Option<Place>>,
    /// Where the caller waits for a moment before it goes to sleep.
    pub meet: Meet<Answered>,
    /// `{TraceId, ReplyTo, Metadata}`, encoded, where the caller has one of them.
    about: OnceLock<Arc<[u8]>>,
    /// It may have a deadline; the caller said so when it was submitted.
    timed: bool,
    due: OnceLock<Instant>,
}

/// A job that is done, with its answer in its own environment.
pub struct Answered {
    pub job: Box<Job>,
    pub body: Raw,
}

/// Where a job runs.
enum Place {
    Thread(Arc<Thread>, Arc<Interp>, Label),
    /// In the queue of that loop, or a task of it.
    Loop(Arc<Loop>),
}

impl Deref for Ticket {
    type Target = crew::Ticket<Box<Job>>;

    fn deref(&self) -> &Self::Target {
        &self.own
    }
}

impl Ticket {
    pub fn new(timed: bool) -> Arc<Self> {
        Arc::new(Ticket {
            own: crew::Ticket::default(),
            couriered: AtomicBool::new(false),
            place: Mutex::new(None),
            meet: Meet::default(),
            about: OnceLock::new(),
            timed,
            due: OnceLock::new(),
        })
    }

    pub fn set_about(&self, about: Arc<[u8]>) {
        let _ = self.about.set(about);
    }

    pub fn about(&self) -> Option<&Arc<[u8]>> {
        self.about.get()
    }

    /// Queued → running. `false`: cancelled before it ran, and it never will. `interp`: the thread's; a job that
    /// nests may be one of another interpreter's pool.
    pub fn start(&self, thread: &Arc<Thread>, interp: &Interp, job: &Job) -> bool {
        let place = |interp| Place::Thread(thread.clone(), interp, Label::of(job));
        *lock(&self.place) = interp.shared().map(place);
        self.life().start()
    }

    /// It waits for its loop, or is about to be a task of it.
    pub fn enter_loop(&self, event_loop: &Arc<Loop>) {
        *lock(&self.place) = Some(Place::Loop(event_loop.clone()));
    }

    /// The same as `start`, for a task of the loop it has entered.
    pub fn start_task(&self) -> bool {
        self.life().start()
    }

    /// The task is over: a reference to it may live for long, the loop shall not with it.
    pub fn leave_loop(&self) {
        *lock(&self.place) = None;
    }

    pub fn begin_reply(&self) -> bool {
        self.life().begin_reply()
    }

    pub fn continue_run(&self) {
        self.life().continue_run();
    }

    pub fn pause(&self) -> bool {
        self.life().pause()
    }

    pub fn finish(&self) {
        self.life().finish();
        self.settle();
    }

    /// It is over: so is its deadline.
    fn settle(&self) {
        if self.timed {
            deadline::over(self);
        }
    }

    /// When its time is up. `false`: it has none, or one already.
    pub fn set_due(&self, due: Instant) -> bool {
        self.timed && self.due.set(due).is_ok()
    }

    pub fn due(&self) -> Option<Instant> {
        self.due.get().copied()
    }

    pub fn is_over(&self) -> bool {
        self.life().is_over()
    }

    pub fn is_cancelled(&self) -> bool {
        self.life().is_cancelled()
    }

    pub fn set_couriered(&self) {
        // Relaxed: read by the same thread.
        self.couriered.store(true, Ordering::Relaxed);
    }

    pub fn is_couriered(&self) -> bool {
        self.couriered.load(Ordering::Relaxed)
    }

    pub fn thread(&self) -> Option<Arc<Thread>> {
        self.place().map(|(thread, _)| thread)
    }

    pub fn place(&self) -> Option<(Arc<Thread>, Arc<Interp>)> {
        match &*lock(&self.place) {
            Some(Place::Thread(thread, interp, _)) => Some((thread.clone(), interp.clone())),
            _ => None,
        }
    }

    /// What it is called in a log, if a thread runs it.
    pub fn label(&self) -> Option<String> {
        match &*lock(&self.place) {
            Some(Place::Thread(_, _, label)) => Some(label.text()),
            _ => None,
        }
    }

    /// The loop that has it now.
    pub fn event_loop(&self) -> Option<Arc<Loop>> {
        match &*lock(&self.place) {
            Some(Place::Loop(event_loop)) => Some(event_loop.clone()),
            _ => None,
        }
    }

    fn tell_to_stop(self: &Arc<Self>) {
        match self.event_loop() {
            Some(event_loop) => event_loop.cancel(self.id()),
            None => watch::stop_job(self.clone()),
        }
    }

    /// After this nothing is sent for the job. Queued: it never runs. Running: it is told to stop.
    /// `false`: it was over already.
    pub fn cancel(self: &Arc<Self>) -> bool {
        match self.own.cancel() {
            Met::Queued => {}
            Met::Running => self.tell_to_stop(),
            Met::Over => return false,
        }
        self.settle();
        true
    }

    /// Running: tells it to stop, and its caller why. `false`: not running.
    pub fn stop(self: &Arc<Self>, why: Why) -> bool {
        let stops = self.own.stop(why);
        if stops {
            self.tell_to_stop();
        }
        stops
    }
}
