//! The memory that Python's allocators give to one interpreter: what of it stays when that ends, and a
//! bound on it.
//!
//! Counted are the arenas that small objects lie in, 1 MiB each, and with a bound every larger block, too;
//! not counted is what C libraries take from the system by themselves. The hook for blocks is put in place
//! with the first bound: without one they cost nothing more.
//!
//! Thread: the hooks run on whatever thread allocates. Never: run Python code, allocate from it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use pyo3_ffi as ffi;

/// What one interpreter has, and may have. Lives for ever, as the hooks may look at it at any time.
#[derive(Debug)]
pub struct Budget {
    used: AtomicIsize,
    limit: AtomicIsize,
    /// Bytes of arenas, also those that are given back when the interpreter is half gone.
    arenas: AtomicIsize,
}

/// Over the limit only blocks smaller than this are given, for the code that handles the error...
const SMALL: usize = 4096;
/// ... up to so many bytes.
const SLACK: isize = 1 << 20;

impl Budget {
    /// Counts arenas, and refuses nothing before `enforce`.
    pub fn new() -> &'static Self {
        if CAN_COUNT.load(Ordering::Relaxed) {
            hook_arenas();
        }
        Box::leak(Box::new(Budget {
            used: AtomicIsize::new(0),
            limit: AtomicIsize::new(isize::MAX - 2 * SLACK),
            arenas: AtomicIsize::new(0),
        }))
    }

    /// From now on blocks are counted, too. An error says why this Python can't.
    pub fn count_blocks(&self) -> Result<(), &'static str> {
        if !CAN_COUNT.load(Ordering::Relaxed) {
            return Err("memory is counted with Python's own allocators only");
        }
        hook_blocks();
        Ok(())
    }

    pub fn enforce(&self, limit: usize) {
        let most = isize::MAX - 2 * SLACK;
        let limit = isize::try_from(limit).unwrap_or(most).min(most);
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// `(used, limit)`, in bytes.
    pub fn figures(&self) -> (usize, usize) {
        let limit = self.limit.load(Ordering::Relaxed);
        (self.used().max(0) as usize, limit.max(0) as usize)
    }

    /// Bytes of the arenas it has; after its end, of those that stay for ever.
    pub fn arenas(&self) -> usize {
        self.arenas.load(Ordering::Relaxed).max(0) as usize
    }

    fn used(&self) -> isize {
        // Relaxed, here and below: a sum, nothing is published through it.
        self.used.load(Ordering::Relaxed)
    }

    fn take(&self, size: usize) -> bool {
        let wanted = size as isize;
        let used = self.used.fetch_add(wanted, Ordering::Relaxed) + wanted;
        let limit = self.limit.load(Ordering::Relaxed);
        let fits = used <= limit || (size < SMALL && used <= limit + SLACK);
        if !fits {
            self.give(size);
        }
        fits
    }

    fn give(&self, size: usize) {
        self.used.fetch_sub(size as isize, Ordering::Relaxed);
    }
}

/// Whether blocks come from the system as they are: then it knows their sizes.
static CAN_COUNT: AtomicBool = AtomicBool::new(false);

/// Before Python starts: its environment chooses its allocators.
pub(crate) fn note_environment() {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let plain = cfg!(all(Py_3_12, not(Py_GIL_DISABLED)))
        && !cfg!(py_sys_config = "Py_DEBUG")
        && !is_set("PYTHONMALLOC")
        && !is_set("PYTHONDEVMODE");
    CAN_COUNT.store(plain, Ordering::Relaxed);
}

/// Interpreters with a bound, by their addresses.
static BUDGETS: Mutex<Vec<(usize, &'static Budget)>> = Mutex::new(Vec::new());
/// Counts the changes of `BUDGETS`.
static CHANGES: AtomicU64 = AtomicU64::new(1);

#[derive(Clone, Copy)]
struct Seen {
    interp: usize,
    change: u64,
    budget: Option<&'static Budget>,
}

thread_local! {
    static SEEN: Cell<Seen> = const { Cell::new(Seen { interp: 0, change: 0, budget: None }) };
    /// For the interpreter that this thread makes, until it is known by its address.
    static NEWBORN: Cell<Option<&'static Budget>> = const { Cell::new(None) };
}

/// What `body` allocates in a new interpreter is counted to `budget`. `body` gives its address.
#[cfg(Py_3_12)]
pub(crate) fn count_birth<T>(
    budget: &'static Budget,
    body: impl FnOnce() -> Result<(T, usize), String>,
) -> Result<T, String> {
    NEWBORN.set(Some(budget));
    change(|_| ());
    let born = body();
    if let Ok((_, address)) = &born {
        change(|budgets| budgets.push((*address, budget)));
    }
    NEWBORN.set(None);
    born.map(|(value, _)| value)
}

/// An interpreter that was there has ended. Another one may have come to its address already.
pub(crate) fn forget(address: usize) {
    change(|budgets| {
        if let Some(index) = budgets.iter().position(|(other, _)| *other == address) {
            budgets.remove(index);
        }
    });
}

fn change(body: impl FnOnce(&mut Vec<(usize, &'static Budget)>)) {
    if let Ok(mut budgets) = BUDGETS.lock() {
        body(&mut budgets);
        // Release, pairs with the acquire in `current`: who sees the count looks at the list.
        CHANGES.fetch_add(1, Ordering::Release);
    }
}

/// The budget of the interpreter that the calling thread is attached to.
fn current() -> Option<&'static Budget> {
    // SAFETY: may be called by any thread at any time once Python is initialised.
    let state = unsafe { ffi::compat::PyThreadState_GetUnchecked() };
    if state.is_null() {
        return None;
    }
    // SAFETY: the state this thread is attached with.
    let interp = unsafe { ffi::PyThreadState_GetInterpreter(state) } as usize;
    let (seen, change) = (SEEN.get(), CHANGES.load(Ordering::Acquire));
    if seen.interp == interp && seen.change == change {
        return seen.budget;
    }
    let budget = find(interp);
    SEEN.set(Seen {
        interp,
        change,
        budget,
    });
    budget
}

fn find(interp: usize) -> Option<&'static Budget> {
    // SAFETY: no precondition.
    let is_main = unsafe { ffi::PyInterpreterState_Main() } as usize == interp;
    if is_main {
        return None;
    }
    NEWBORN.get().or_else(|| {
        let budgets = BUDGETS.lock().ok()?;
        // The last one: one that ends at this moment may have left its address.
        let found = budgets.iter().rfind(|(address, _)| *address == interp);
        found.map(|(_, budget)| *budget)
    })
}

/// The allocators that were there before.
struct Original {
    raw: ffi::PyMemAllocatorEx,
    arena: ffi::PyObjectArenaAllocator,
}

// SAFETY: tables of functions; their context is Python's own and handed back to them alone.
unsafe impl Send for Original {}
// SAFETY: as above.
unsafe impl Sync for Original {}

static ORIGINAL: OnceLock<Original> = OnceLock::new();

fn hook_blocks() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        let original = ORIGINAL.get_or_init(Original::get);
        let mut raw = ffi::PyMemAllocatorEx {
            ctx: original.raw.ctx,
            malloc: Some(raw_malloc),
            calloc: Some(raw_calloc),
            realloc: Some(raw_realloc),
            free: Some(raw_free),
        };
        let domain = ffi::PyMemAllocatorDomain::PYMEM_DOMAIN_RAW;
        // SAFETY: a whole table. Blocks stay as they are, so a thread that still reads the old table
        // and one that reads this one may free each other's.
        unsafe { ffi::PyMem_SetAllocator(domain, &mut raw) };
    });
}

fn hook_arenas() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        let original = ORIGINAL.get_or_init(Original::get);
        let mut arena = ffi::PyObjectArenaAllocator {
            ctx: original.arena.ctx,
            alloc: Some(arena_alloc),
            free: Some(arena_free),
        };
        // SAFETY: as for blocks.
        unsafe { ffi::PyObject_SetArenaAllocator(&mut arena) };
    });
}

/// Whose the arenas are: when they are freed, nobody may be attached to their interpreter any more.
static ARENAS: Mutex<BTreeMap<usize, &'static Budget>> = Mutex::new(BTreeMap::new());

impl Original {
    fn get() -> Self {
        let mut original = Original {
            raw: ffi::PyMemAllocatorEx {
                ctx: std::ptr::null_mut(),
                malloc: None,
                calloc: None,
                realloc: None,
                free: None,
            },
            arena: ffi::PyObjectArenaAllocator {
                ctx: std::ptr::null_mut(),
                alloc: None,
                free: None,
            },
        };
        let domain = ffi::PyMemAllocatorDomain::PYMEM_DOMAIN_RAW;
        // SAFETY: a place for the table.
        unsafe { ffi::PyMem_GetAllocator(domain, &mut original.raw) };
        // SAFETY: a place for the table.
        unsafe { ffi::PyObject_GetArenaAllocator(&mut original.arena) };
        original
    }
}

/// The size of a block as the system has it.
fn size_of(block: *mut c_void) -> usize {
    // SAFETY: NULL, or a block of the system's own allocator (`CAN_COUNT`).
    unsafe { libc::malloc_usable_size(block) }
}

/// Gives `size` bytes by `body`, if the interpreter may have them; counts what it got.
fn give(size: usize, body: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let Some(budget) = current() else {
        return body();
    };
    if !budget.take(size) {
        return std::ptr::null_mut();
    }
    let block = body();
    // What was not given is 0 here.
    let got = size_of(block) as isize;
    budget
        .used
        .fetch_add(got - size as isize, Ordering::Relaxed);
    block
}

extern "C" fn raw_malloc(ctx: *mut c_void, size: usize) -> *mut c_void {
    match ORIGINAL.get().and_then(|original| original.raw.malloc) {
        Some(malloc) => give(size, || malloc(ctx, size)),
        None => std::ptr::null_mut(),
    }
}

extern "C" fn raw_calloc(ctx: *mut c_void, count: usize, each: usize) -> *mut c_void {
    match ORIGINAL.get().and_then(|original| original.raw.calloc) {
        Some(calloc) => give(count.saturating_mul(each), || calloc(ctx, count, each)),
        None => std::ptr::null_mut(),
    }
}

extern "C" fn raw_realloc(ctx: *mut c_void, block: *mut c_void, size: usize) -> *mut c_void {
    let Some(realloc) = ORIGINAL.get().and_then(|original| original.raw.realloc) else {
        return std::ptr::null_mut();
    };
    let Some(budget) = current() else {
        return realloc(ctx, block, size);
    };
    let old = size_of(block);
    let more = size.saturating_sub(old);
    if more > 0 && !budget.take(more) {
        return std::ptr::null_mut();
    }
    let moved = realloc(ctx, block, size);
    let now = if moved.is_null() { old } else { size_of(moved) };
    let change = now as isize - old as isize - more as isize;
    budget.used.fetch_add(change, Ordering::Relaxed);
    moved
}

extern "C" fn raw_free(ctx: *mut c_void, block: *mut c_void) {
    if let Some(budget) = current() {
        budget.give(size_of(block));
    }
    if let Some(free) = ORIGINAL.get().and_then(|original| original.raw.free) {
        free(ctx, block);
    }
}

extern "C" fn arena_alloc(ctx: *mut c_void, size: usize) -> *mut c_void {
    let Some(alloc) = ORIGINAL.get().and_then(|original| original.arena.alloc) else {
        return std::ptr::null_mut();
    };
    let budget = current();
    if budget.is_some_and(|budget| !budget.take(size)) {
        return std::ptr::null_mut();
    }
    let arena = alloc(ctx, size);
    if let Some(budget) = budget {
        if arena.is_null() {
            budget.give(size);
        } else if let Ok(mut arenas) = ARENAS.lock() {
            budget.arenas.fetch_add(size as isize, Ordering::Relaxed);
            arenas.insert(arena as usize, budget);
        }
    }
    arena
}

extern "C" fn arena_free(ctx: *mut c_void, arena: *mut c_void, size: usize) {
    let owner = ARENAS.lock().ok();
    if let Some(budget) = owner.and_then(|mut arenas| arenas.remove(&(arena as usize))) {
        budget.arenas.fetch_sub(size as isize, Ordering::Relaxed);
        budget.give(size);
    }
    if let Some(free) = ORIGINAL.get().and_then(|original| original.arena.free) {
        free(ctx, arena, size);
    }
}
