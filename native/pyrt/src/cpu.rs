//! Which processor a thread runs on, and leaving it.

use std::mem::MaybeUninit;

/// The processor the calling thread runs on at this moment; -1 if the system does not tell.
pub fn current() -> i32 {
    // SAFETY: no precondition.
    unsafe { libc::sched_getcpu() }
}

/// Moves the calling thread off processor `cpu` to one that `suits`, if it may run on such a one. It
/// stays free to come back: only the present place is changed.
pub fn leave(cpu: i32, suits: impl Fn(usize) -> bool) -> bool {
    let size = size_of::<libc::cpu_set_t>();
    let mut allowed = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: the calling thread itself (0), and memory for one set.
    if unsafe { libc::sched_getaffinity(0, size, allowed.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: zeroed and filled above.
    let allowed = unsafe { allowed.assume_init() };
    let mut others = allowed;
    for other in 0..libc::CPU_SETSIZE as usize {
        // SAFETY: a number within a filled set.
        let allowed = unsafe { libc::CPU_ISSET(other, &allowed) };
        if allowed && (i32::try_from(other) == Ok(cpu) || !suits(other)) {
            // SAFETY: a number within the set.
            unsafe { libc::CPU_CLR(other, &mut others) };
        }
    }
    // SAFETY: a filled set.
    if unsafe { libc::CPU_COUNT(&others) } == 0 {
        return false;
    }
    // SAFETY: the calling thread itself, a filled set; the kernel moves it before it returns.
    let moved = unsafe { libc::sched_setaffinity(0, size, &others) } == 0;
    // SAFETY: as above, with the set it had.
    unsafe { libc::sched_setaffinity(0, size, &allowed) };
    moved
}
