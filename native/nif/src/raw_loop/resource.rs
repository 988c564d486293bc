//! The handle of a raw loop, and the emulator's watch over its descriptor.
//!
//! A resource type of our own making: `enif_select` wants a stop function, which `rustler::Resource`
//! has not. While the emulator watches the descriptor it keeps the resource; it is told to stop when
//! the loop is destroyed, or when the process that gets the messages is gone.
//!
//! Thread: schedulers; `stop` and `down` any of them.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex};

use crew::sync::lock;
use pyrt::contain;
use reactor::poller::Waker;
use rustler::sys::{
    self, ERL_NIF_SELECT_READ, ERL_NIF_SELECT_STOP, ErlNifEnv, ErlNifEvent, ErlNifMonitor,
    ErlNifPid, ErlNifResourceFlags, ErlNifResourceType, ErlNifResourceTypeInit,
};
use rustler::{Env, LocalPid, Term};

use super::RawLoop;

/// A loop and who watches it.
pub struct Shared {
    state: Mutex<State>,
    waker: Arc<Waker>,
}

struct State {
    /// `None` once it is destroyed.
    raw: Option<RawLoop>,
    router: Option<LocalPid>,
    /// The emulator watches: the descriptor is closed by `stop` only.
    selected: bool,
}

/// One reference to the resource, as a NIF gets it.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
    resource: NonNull<c_void>,
}

static TYPE: AtomicPtr<ErlNifResourceType> = AtomicPtr::new(std::ptr::null_mut());

/// Makes the type; when the library is loaded.
pub fn open_type(env: Env<'_>) -> bool {
    let init = ErlNifResourceTypeInit {
        dtor: drop_shared as *const _,
        stop: stop as *const _,
        down: down as *const _,
        members: 3,
        dyncall: std::ptr::null(),
    };
    // SAFETY: called by `load`; a name that ends in NUL; the functions live as long as the library.
    let made = unsafe {
        sys::enif_init_resource_type(
            env.as_c_arg(),
            c"py_raw_loop".as_ptr(),
            &init,
            ErlNifResourceFlags::ERL_NIF_RT_CREATE,
            std::ptr::null_mut(),
        )
    };
    // Release, pairs with `kind`.
    TYPE.store(made.cast_mut(), Ordering::Release);
    !made.is_null()
}

fn kind() -> *mut ErlNifResourceType {
    TYPE.load(Ordering::Acquire)
}

/// The memory of a resource of this type is one `Arc<Shared>`.
fn body<'a>(object: *mut c_void) -> &'a Arc<Shared> {
    // SAFETY: only `new_term` makes objects of this type, and fills them before anyone has them.
    unsafe { &*object.cast::<Arc<Shared>>() }
}

unsafe extern "C" fn drop_shared(_env: *mut ErlNifEnv, object: *mut c_void) {
    // SAFETY: the emulator calls it once, at the end of the object.
    let shared = unsafe { object.cast::<Arc<Shared>>().read() };
    let _ = contain("raw loop", || drop(shared));
}

/// The emulator has let go of the descriptor.
unsafe extern "C" fn stop(
    _env: *mut ErlNifEnv,
    object: *mut c_void,
    _fd: ErlNifEvent,
    _direct: c_int,
) {
    let _ = contain("raw loop", || {
        let mut state = lock(&body(object).state);
        state.selected = false;
        state.raw = None;
    });
}

/// The process that gets the messages is gone: nobody drives the loop any more.
unsafe extern "C" fn down(
    env: *mut ErlNifEnv,
    object: *mut c_void,
    pid: *const ErlNifPid,
    _monitor: *const ErlNifMonitor,
) {
    let _ = contain("raw loop", || {
        let shared = body(object);
        // SAFETY: the emulator gives the pid of the process that ended.
        let gone = LocalPid::from_c_arg(unsafe { *pid });
        let watched = {
            let mut state = lock(&shared.state);
            let was = state.router == Some(gone);
            if was {
                state.router = None;
            }
            state.watched().filter(|_| was)
        };
        if let Some(fd) = watched {
            deselect(env, object, fd);
        }
    });
}

fn deselect(env: *mut ErlNifEnv, object: *mut c_void, fd: RawFd) {
    // SAFETY: a live resource whose descriptor the emulator watches; `stop` is called for it.
    unsafe {
        sys::enif_select(
            env,
            fd as ErlNifEvent,
            ERL_NIF_SELECT_STOP,
            object,
            std::ptr::null(),
            crate::atoms::undefined().as_c_arg(),
        )
    };
}

impl State {
    /// The descriptor, if the emulator watches it.
    fn watched(&self) -> Option<RawFd> {
        self.number().filter(|_| self.selected)
    }

    fn number(&self) -> Option<RawFd> {
        Some(self.raw.as_ref()?.fd()?.as_raw_fd())
    }
}

/// A user's descriptor, which he keeps open while it is watched. If he does not, the system says so.
pub fn lend<'a>(fd: RawFd) -> BorrowedFd<'a> {
    // SAFETY: not negative (`nifs::watch` sees to it); only given to `epoll_ctl`, which checks it.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// A new loop as a term.
pub fn new_term<'a>(env: Env<'a>, raw: RawLoop) -> Term<'a> {
    let shared = Arc::new(Shared {
        waker: raw.waker(),
        state: Mutex::new(State {
            raw: Some(raw),
            router: None,
            selected: false,
        }),
    });
    // SAFETY: the type was made at load; memory for one `Arc`.
    let object = unsafe { sys::enif_alloc_resource(kind(), size_of::<Arc<Shared>>()) };
    // SAFETY: fresh memory of that size, aligned for any type.
    unsafe { object.cast::<Arc<Shared>>().write(shared) };
    // SAFETY: a live resource; the term has its own reference.
    let term = unsafe { sys::enif_make_resource(env.as_c_arg(), object) };
    // SAFETY: gives back the reference of `enif_alloc_resource`.
    unsafe { sys::enif_release_resource(object) };
    // SAFETY: made in `env` just above.
    unsafe { Term::new(env, term) }
}

impl<'a> rustler::Decoder<'a> for Handle {
    fn decode(term: Term<'a>) -> rustler::NifResult<Self> {
        let mut object = MaybeUninit::<*const c_void>::uninit();
        // SAFETY: a term of its environment, the type made at load; writes the object if it is one.
        let is = unsafe {
            sys::enif_get_resource(
                term.get_env().as_c_arg(),
                term.as_c_arg(),
                kind(),
                object.as_mut_ptr(),
            )
        };
        if is == 0 {
            return Err(rustler::Error::BadArg);
        }
        // SAFETY: written, since it is one.
        let object = unsafe { object.assume_init() }.cast_mut();
        let resource = NonNull::new(object).ok_or(rustler::Error::BadArg)?;
        Ok(Handle {
            shared: body(object).clone(),
            resource,
        })
    }
}

impl Handle {
    /// Runs `body` with the loop; `None`: it was destroyed.
    pub fn with<T>(&self, body: impl FnOnce(&mut RawLoop) -> T) -> Option<T> {
        lock(&self.shared.state).raw.as_mut().map(body)
    }

    /// The descriptor once more, for who waits without the lock.
    pub fn duplicate(&self) -> Option<std::io::Result<OwnedFd>> {
        let state = lock(&self.shared.state);
        let fd = state.raw.as_ref()?.fd()?;
        Some(fd.try_clone_to_owned())
    }

    pub fn waker(&self) -> &Waker {
        &self.shared.waker
    }

    /// The process that is told of wakes from now on. `false`: there is no such process, or no loop.
    pub fn set_router(&self, env: Env<'_>, router: LocalPid) -> bool {
        let known = {
            let mut state = lock(&self.shared.state);
            if state.raw.is_none() {
                return false;
            }
            let known = state.router == Some(router);
            state.router = Some(router);
            known
        };
        (known || self.monitor(env, &router)) && self.arm(env)
    }

    fn monitor(&self, env: Env<'_>, pid: &LocalPid) -> bool {
        let mut monitor = MaybeUninit::<ErlNifMonitor>::uninit();
        // SAFETY: a live resource (the caller's term holds it); writes the monitor.
        let missed = unsafe {
            sys::enif_monitor_process(
                env.as_c_arg(),
                self.resource.as_ptr(),
                pid.as_c_arg(),
                monitor.as_mut_ptr(),
            )
        };
        missed == 0
    }

    /// The next wake is a message `{select, Loop, undefined, ready_input}`.
    pub fn arm(&self, env: Env<'_>) -> bool {
        let mut state = lock(&self.shared.state);
        let (Some(router), Some(fd)) = (state.router, state.number()) else {
            return false;
        };
        // SAFETY: a live resource of a type with a stop function, an open descriptor, a local pid.
        let armed = unsafe {
            sys::enif_select(
                env.as_c_arg(),
                fd as ErlNifEvent,
                ERL_NIF_SELECT_READ,
                self.resource.as_ptr(),
                router.as_c_arg(),
                crate::atoms::undefined().as_c_arg(),
            )
        };
        state.selected |= armed >= 0;
        armed >= 0
    }

    /// Ends the loop. Who waits for it is woken.
    pub fn destroy(&self, env: Env<'_>) {
        super::wake(&self.shared.waker);
        let watched = {
            let mut state = lock(&self.shared.state);
            let watched = state.watched();
            if watched.is_none() {
                state.raw = None;
            }
            watched
        };
        if let Some(fd) = watched {
            deselect(env.as_c_arg(), self.resource.as_ptr(), fd);
        }
    }
}
