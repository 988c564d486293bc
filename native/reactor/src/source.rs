//! Sources: descriptors a loop watches, by key.
//!
//! Thread: the loop's own. A descriptor number is not an identity (I6): the key is.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use crate::key::Key;
use crate::poller::Readiness;
use crate::turn::{Host, Reactor};

pub(crate) struct Source<S> {
    pub(crate) fd: RawFd,
    pub(crate) interest: Readiness,
    /// Watched for one event at a time: it is out of sight after each.
    pub(crate) once: bool,
    pub(crate) load: S,
}

impl<W, S> Reactor<W, S> {
    /// Watches a descriptor until `unregister`, which must come before it is closed.
    pub fn register(
        &mut self,
        fd: BorrowedFd<'_>,
        interest: Readiness,
        load: S,
    ) -> io::Result<Key> {
        let key = self.sources.insert(Source {
            fd: fd.as_raw_fd(),
            interest: Readiness::NONE,
            once: false,
            load,
        });
        match self.watch(key, fd, interest) {
            Ok(()) => Ok(key),
            Err(error) => {
                self.sources.remove(key);
                Err(error)
            }
        }
    }

    /// What the source is watched for from now on. A source that is watched for nothing is out of
    /// the epoll set, else its hang-up would fire for ever.
    pub fn watch(&mut self, key: Key, fd: BorrowedFd<'_>, interest: Readiness) -> io::Result<()> {
        let Some(source) = self.sources.get_mut(key) else {
            return Ok(());
        };
        if source.interest == interest {
            return Ok(());
        }
        if source.interest.is_none() {
            self.poller.add(fd, key, interest)?;
            self.watched += 1;
        } else if interest.is_none() {
            self.poller.delete(fd)?;
            self.watched -= 1;
        } else {
            self.poller.modify(fd, key, interest)?;
        }
        source.interest = interest;
        Ok(())
    }

    /// As `watch`, but asks the system even where nothing changes: a number that stands for another
    /// descriptor by now is not in the set, which is `ENOENT`.
    pub fn watch_again(
        &mut self,
        key: Key,
        fd: BorrowedFd<'_>,
        interest: Readiness,
    ) -> io::Result<()> {
        if self.interest(key) == interest && !interest.is_none() {
            return self.poller.modify(fd, key, interest);
        }
        self.watch(key, fd, interest)
    }

    /// Watches for one event. The descriptor may have been closed and opened anew since the last
    /// one: it is looked up again each time, by one system call. Whether it is a new one.
    pub fn watch_once(
        &mut self,
        key: Key,
        fd: BorrowedFd<'_>,
        interest: Readiness,
    ) -> io::Result<bool> {
        let Some(source) = self.sources.get_mut(key) else {
            return Ok(false);
        };
        let new = self.poller.arm(fd, key, interest)?;
        if source.interest.is_none() {
            self.watched += 1;
        }
        source.interest = interest;
        source.once = true;
        Ok(new)
    }

    /// As `watch_once`, but a number that stands for another descriptor by now is `ENOENT`.
    pub fn rewatch_once(
        &mut self,
        key: Key,
        fd: BorrowedFd<'_>,
        interest: Readiness,
    ) -> io::Result<()> {
        let Some(source) = self.sources.get_mut(key) else {
            return Ok(());
        };
        self.poller.rearm(fd, key, interest)?;
        if source.interest.is_none() {
            self.watched += 1;
        }
        source.interest = interest;
        source.once = true;
        Ok(())
    }

    pub fn interest(&self, key: Key) -> Readiness {
        self.sources
            .get(key)
            .map_or(Readiness::NONE, |source| source.interest)
    }

    /// The descriptor of a source.
    pub fn fd(&self, key: Key) -> Option<RawFd> {
        self.sources.get(key).map(|source| source.fd)
    }

    pub fn source(&self, key: Key) -> Option<&S> {
        self.sources.get(key).map(|source| &source.load)
    }

    pub fn source_mut(&mut self, key: Key) -> Option<&mut S> {
        self.sources.get_mut(key).map(|source| &mut source.load)
    }

    /// What every descriptor stands for.
    pub fn loads(&self) -> impl Iterator<Item = &S> {
        self.sources.iter().map(|source| &source.load)
    }

    /// A source that is the one looked for.
    pub fn find(&self, is: impl Fn(&S) -> bool) -> Option<Key> {
        self.sources.find(|source| is(&source.load))
    }

    /// Forgets a source. A descriptor that was closed too early is out of the set already.
    pub fn unregister(&mut self, key: Key, fd: BorrowedFd<'_>) -> Option<S> {
        let source = self.sources.remove(key)?;
        if !source.interest.is_none() {
            self.watched -= 1;
        }
        if source.once || !source.interest.is_none() {
            let _ = self.poller.delete(fd);
        }
        Some(source.load)
    }

    /// A descriptor that was closed while a twin of it lives goes on firing and can't be removed:
    /// only a new set is free of it.
    pub(crate) fn rebuild<H: Host<W, S>>(&mut self, host: &H) -> io::Result<()> {
        self.poller.reset()?;
        self.watched = 0;
        for (key, source) in self.sources.iter_mut() {
            if source.interest.is_none() {
                continue;
            }
            let fd = host.lend(source.fd);
            let added = if source.once {
                self.poller.arm(fd, key, source.interest).map(drop)
            } else {
                self.poller.add(fd, key, source.interest)
            };
            match added {
                Ok(()) => self.watched += 1,
                // Closed behind our back: it can't become ready any more.
                Err(_) => source.interest = Readiness::NONE,
            }
        }
        Ok(())
    }
}
