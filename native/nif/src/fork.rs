//! A process that Python code has made by `fork`: a copy of the node's memory with one thread, and
//! none of the emulator's.
//!
//! Before any other code of the child runs, the emulator's signal handlers are gone (they write into
//! a pipe that the parent reads: a signal to the child would shut the node down) and its descriptors
//! are closed. From there on the child is a Python process like any other, which must not come back
//! to our code: nobody waits for it there.
//!
//! Thread: `prepare` and `in_parent` the one that forks; `in_child` the child's only one. Never in
//! the child: takes a lock of the emulator or of ours (a thread that is not there may have it).

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use pyrt::error::Builtin;
use pyrt::{Attached, PyError, PyResult};

static CHILD: AtomicBool = AtomicBool::new(false);
static EMULATOR: OnceLock<Emulator> = OnceLock::new();

thread_local! {
    /// The signals that the thread blocked before its fork. Nothing to drop, nothing to make.
    static MASK: Cell<Option<libc::sigset_t>> = const { Cell::new(None) };
}

/// What is the emulator's in this process.
struct Emulator {
    /// Where its code is, and so its signal handlers.
    code: Range<usize>,
    files: Vec<File>,
}

/// A descriptor; the number alone may be another file's by now.
#[derive(PartialEq)]
struct File {
    fd: c_int,
    device: libc::dev_t,
    inode: libc::ino_t,
}

/// The last signal that Linux has.
const LAST_SIGNAL: c_int = 64;
const STDERR: c_int = 2;

const CAME_BACK: &str = "erlang_python: a process made by os.fork() came back from its call and \
    ends here: Erlang is in its parent. End it with os._exit(), or use multiprocessing or \
    subprocess.\n";
const REFUSED: &str = "this process was made by os.fork(), and Erlang is in its parent: give the \
    result to the parent (multiprocessing does), or use the start method 'spawn' and a node of \
    its own";

/// Called before Python starts: whatever is open by then is the emulator's.
pub fn watch() -> Result<(), String> {
    let mut fresh = false;
    EMULATOR.get_or_init(|| {
        fresh = true;
        Emulator {
            code: program(),
            files: open_files(),
        }
    });
    if !fresh {
        return Ok(());
    }
    // SAFETY: three functions of this library, which is never unloaded.
    let done = unsafe { libc::pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) };
    match done {
        0 => Ok(()),
        _ => Err("no memory for the functions that run at a fork".to_owned()),
    }
}

/// Whether this process is a child.
#[inline]
pub fn is_child() -> bool {
    // Relaxed: written before any code of the child runs, by its only thread.
    CHILD.load(Ordering::Relaxed)
}

/// Where Python comes back to our code: a child ends here.
#[inline]
pub fn end_if_child() {
    if is_child() {
        end();
    }
}

#[cold]
fn end() -> ! {
    say(CAME_BACK);
    // SAFETY: no precondition; runs nothing of the parent's end.
    unsafe { libc::_exit(1) }
}

/// A line on the child's own standard error.
pub fn say(text: &str) {
    // SAFETY: reads the bytes of the text. Whether they could be written changes nothing.
    unsafe { libc::write(STDERR, text.as_ptr().cast(), text.len()) };
}

/// What needs Erlang is an error in a child.
pub fn refuse_child(py: Attached<'_>) -> PyResult<'_, ()> {
    match is_child() {
        true => Err(PyError::new(py, Builtin::RuntimeError, REFUSED)),
        false => Ok(()),
    }
}

/// No signal may come between the fork and the end of the emulator's handlers.
extern "C" fn prepare() {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: fills the set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: a filled set, and memory for the old one.
    let done =
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    if done == 0 {
        // SAFETY: filled, since it was done.
        MASK.set(Some(unsafe { before.assume_init() }));
    }
}

extern "C" fn in_parent() {
    if let Some(before) = MASK.take() {
        // SAFETY: a set as the system gave it.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut()) };
    }
}

extern "C" fn in_child() {
    CHILD.store(true, Ordering::Relaxed);
    if let Some(emulator) = EMULATOR.get() {
        (1..=LAST_SIGNAL).for_each(|signal| emulator.give_back(signal));
        emulator.files.iter().for_each(close);
    }
    in_parent();
}

impl Emulator {
    /// The default for a signal that the emulator handles.
    fn give_back(&self, signal: c_int) {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: only asks; writes the action when it answers zero.
        if unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) } != 0 {
            return;
        }
        // SAFETY: all zeros is an action, and the system has filled it.
        let mut action = unsafe { action.assume_init() };
        if self.code.contains(&action.sa_sigaction) {
            action.sa_sigaction = libc::SIG_DFL;
            action.sa_flags = 0;
            // SAFETY: a whole action.
            unsafe { libc::sigaction(signal, &action, ptr::null_mut()) };
        }
    }
}

fn close(file: &File) {
    if file.fd > STDERR && identify(file.fd).as_ref() == Some(file) {
        // SAFETY: the emulator's descriptor, which nothing in the child uses.
        unsafe { libc::close(file.fd) };
    }
}

fn identify(fd: c_int) -> Option<File> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: writes the status when it answers zero.
    if unsafe { libc::fstat(fd, status.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: filled, since it was done.
    let status = unsafe { status.assume_init() };
    Some(File {
        fd,
        device: status.st_dev,
        inode: status.st_ino,
    })
}

/// What is open now. The descriptor of the listing itself is closed again, and so not among them.
fn open_files() -> Vec<File> {
    let numbers: Vec<c_int> = match std::fs::read_dir("/proc/self/fd") {
        Ok(entries) => entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .collect(),
        Err(_) => Vec::new(),
    };
    numbers.into_iter().filter_map(identify).collect()
}

/// Where the program itself is in memory.
fn program() -> Range<usize> {
    let mut found = 0..0;
    let place: *mut Range<usize> = &mut found;
    // SAFETY: calls `first` with the place, which outlives it.
    unsafe { libc::dl_iterate_phdr(Some(first), place.cast()) };
    found
}

/// The first object is the program; nothing after it is looked at.
unsafe extern "C" fn first(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    place: *mut c_void,
) -> c_int {
    // SAFETY: the loader's description of an object, valid during the call.
    let info = unsafe { &*info };
    // SAFETY: as many headers as it says.
    let headers =
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let loaded = headers
        .iter()
        .filter(|header| header.p_type == libc::PT_LOAD);
    let ends = loaded.map(|header| {
        let start = info.dlpi_addr as usize + header.p_vaddr as usize;
        (start, start + header.p_memsz as usize)
    });
    let (start, end) = ends.fold((usize::MAX, 0), |all, (start, end)| {
        (start.min(all.0), end.max(all.1))
    });
    let range = start..end;
    // SAFETY: `program` gave it.
    unsafe { *place.cast::<Range<usize>>() = range };
    1
}
