//! A value that is looked at and replaced where it lies: nobody finds its place empty because another one looks.
//!
//! Thread: any that is attached. The lock is held for a look, which runs no code of Python's (I3).

#[cfg(any(test, not(Py_GIL_DISABLED)))]
use std::cell::RefCell;
#[cfg(any(test, Py_GIL_DISABLED))]
use std::sync::{Mutex, MutexGuard, PoisonError};

/// With a GIL one thread comes here at a time.
#[cfg(not(Py_GIL_DISABLED))]
pub(crate) type Held<T> = Alone<T>;
#[cfg(Py_GIL_DISABLED)]
pub(crate) type Held<T> = Shared<T>;

#[cfg(any(test, not(Py_GIL_DISABLED)))]
pub(crate) struct Alone<T>(RefCell<Option<T>>);

#[cfg(any(test, not(Py_GIL_DISABLED)))]
impl<T> Alone<T> {
    pub fn new(value: Option<T>) -> Self {
        Alone(RefCell::new(value))
    }

    #[inline]
    pub fn look<R>(&self, look: impl FnOnce(Option<&T>) -> R) -> R {
        look(self.0.borrow().as_ref())
    }

    /// The value before. Dropping it is the caller's business: that may run Python.
    #[inline]
    pub fn replace(&self, value: Option<T>) -> Option<T> {
        self.0.replace(value)
    }
}

#[cfg(any(test, Py_GIL_DISABLED))]
pub(crate) struct Shared<T>(Mutex<Option<T>>);

#[cfg(any(test, Py_GIL_DISABLED))]
impl<T> Shared<T> {
    pub fn new(value: Option<T>) -> Self {
        Shared(Mutex::new(value))
    }

    pub fn look<R>(&self, look: impl FnOnce(Option<&T>) -> R) -> R {
        look(self.lock().as_ref())
    }

    /// As above.
    pub fn replace(&self, value: Option<T>) -> Option<T> {
        std::mem::replace(&mut *self.lock(), value)
    }

    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_in_its_place_and_locked_while_one_looks_at_it() {
        let (alone, shared) = (Alone::new(Some(1)), Shared::new(Some(1)));
        assert!(alone.look(|_| alone.0.try_borrow().is_ok_and(|value| value.is_some())));
        assert!(alone.look(|_| alone.0.try_borrow_mut().is_err()));
        assert!(shared.look(|_| shared.0.try_lock().is_err()));
    }

    #[test]
    fn one_thread_looks_and_replaces_in_the_same_way() {
        let (alone, shared) = (Alone::new(Some(1)), Shared::new(Some(1)));
        assert_eq!(alone.look(|value| value.copied()), Some(1));
        assert_eq!(shared.look(|value| value.copied()), Some(1));
        assert_eq!(
            (alone.replace(None), shared.replace(None)),
            (Some(1), Some(1))
        );
        assert!(alone.look(|value| value.is_none()));
        assert!(shared.look(|value| value.is_none()));
        assert_eq!(
            (alone.replace(Some(2)), shared.replace(Some(2))),
            (None, None)
        );
    }
}
