//! Where in its code a frame is, and what an exception from outside would do there.
//!
//! Python looks for such exceptions at a few instructions only: where a function begins, after a call,
//! where a loop starts over. So it is known where one is raised that is sent to a thread which rests.

use super::opcode::Kind;

#[cfg(test)]
mod tests;

/// Functions after whose return a lock is held that nobody gives back yet.
const TAKING: [&str; 6] = [
    "acquire",
    "acquire_lock",
    "__enter__",
    "_acquireLock",
    "_acquire_restore",
    "_release_save",
];
/// Functions that must run to their end once they were called.
const WHOLE: [&str; 6] = [
    "release",
    "release_lock",
    "__exit__",
    "_releaseLock",
    "__aenter__",
    "__aexit__",
];
/// Functions that wait and never fail.
const UNFAILING: [&str; 2] = ["sleep", "acquire"];
/// `GET_AWAITABLE` of `async with`: of its begin and of its end.
const ASYNC_WITH: [u32; 2] = [1, 2];
/// Before Python 3.14 a `with` calls `__exit__` with one argument less: another one is where a method has
/// its object.
const EXIT_ARGUMENTS: u32 = if crate::BUILT_FOR.1 >= 14 { 3 } else { 2 };
/// Instructions that are looked at for one answer.
const FAR: usize = 256;

/// A frame, as far as it has run.
pub struct Place<'a> {
    /// `co_code`: two bytes an instruction.
    pub code: &'a [u8],
    /// `co_exceptiontable`
    pub handlers: &'a [u8],
    pub kinds: &'static [Kind; 256],
    /// The instruction it runs, by its number.
    pub at: usize,
    /// `co_names`
    pub name: &'a dyn Fn(usize) -> Option<String>,
}

/// Where the next looks are.
#[derive(Default, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ahead {
    /// At least one is where an exception does harm.
    pub harmful: bool,
    /// The frame may return before it looks.
    pub returns: bool,
}

/// The instruction at which a frame is, where it is the innermost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stands {
    /// At a look: an exception is raised here and now.
    Looks,
    /// At a call, and looks after it, if the call does not fail.
    Calls,
    /// At something else that takes long.
    Between,
    /// An exception would do harm.
    Edge,
}

impl Place<'_> {
    fn kind(&self, at: usize) -> Kind {
        match self.code.get(at * 2) {
            Some(&code) => self.kinds[usize::from(code)],
            None => Kind::Raise,
        }
    }

    /// The argument of an instruction, with the bits before it.
    fn argument(&self, at: usize) -> u32 {
        let byte = |at: usize| u32::from(self.code.get(at * 2 + 1).copied().unwrap_or(0));
        let mut value = byte(at);
        let (mut before, mut shift) = (at, 8);
        while before > 0 && shift < 32 && self.kind(before - 1) == Kind::Extended {
            before -= 1;
            value |= byte(before) << shift;
            shift += 8;
        }
        value
    }

    /// The instruction that what is at `at` belongs to.
    fn whole(&self, mut at: usize) -> usize {
        while at > 0 && self.kind(at) == Kind::Cache {
            at -= 1;
        }
        while self.kind(at) == Kind::Extended {
            at += 1;
        }
        at
    }

    fn after(&self, at: usize) -> usize {
        let mut next = at + 1;
        while self.kind(next) == Kind::Cache {
            next += 1;
        }
        next
    }

    /// The instruction before; a `PRECALL` is a part of its `CALL`.
    fn before(&self, at: usize) -> Option<usize> {
        let mut before = at.checked_sub(1)?;
        while matches!(
            self.kind(before),
            Kind::Cache | Kind::Extended | Kind::Precall
        ) {
            before = before.checked_sub(1)?;
        }
        Some(before)
    }

    /// Where an instruction that jumps goes to.
    fn target(&self, at: usize) -> usize {
        let (from, by) = (self.after(at), self.argument(at) as usize);
        match self.kind(at) {
            Kind::Back | Kind::BackQuietly | Kind::BranchBack => from.saturating_sub(by),
            _ => from + by,
        }
    }

    /// The name of a function that is loaded as any value is; since 3.13 that is before its `PUSH_NULL`.
    fn plain(&self, at: usize) -> Option<u32> {
        match self.kind(at) {
            Kind::LoadAttribute | Kind::LoadGlobal if crate::BUILT_FOR.1 >= 13 => {
                Some(self.argument(at) >> 1)
            }
            _ => None,
        }
    }

    /// The name of what a call calls, where it is a method or a global.
    fn callee(&self, call: usize) -> Option<String> {
        let attribute = |argument: u32, bits: u32| (argument & 1 == 1).then_some(argument >> bits);
        let (mut at, mut inner) = (call, 0usize);
        for _ in 0..FAR {
            at = self.before(at)?;
            let argument = self.argument(at);
            let name = match self.kind(at) {
                Kind::Call | Kind::CallUnpacked => {
                    inner += 1;
                    continue;
                }
                Kind::PushNull => self.before(at).and_then(|function| self.plain(function)),
                Kind::LoadMethod => Some(argument),
                Kind::LoadGlobal => match attribute(argument, 1) {
                    Some(name) => Some(name),
                    None => continue,
                },
                Kind::LoadAttribute if crate::BUILT_FOR.1 >= 12 => match attribute(argument, 1) {
                    Some(name) => Some(name),
                    None => continue,
                },
                Kind::LoadSuper => match attribute(argument, 2) {
                    Some(name) => Some(name),
                    None => continue,
                },
                _ => continue,
            };
            if inner == 0 {
                return (self.name)(name? as usize);
            }
            inner -= 1;
        }
        None
    }

    /// Whether a call is that of `__enter__` in a `with`, which is an instruction of its own before 3.14.
    fn enters(&self, call: usize) -> bool {
        self.kind(call) == Kind::Call
            && self
                .before(call)
                .is_some_and(|before| self.kind(before) == Kind::LoadSpecial)
    }

    /// Whether a call is that of `__exit__` at the end of a `with`: three times `None`, for no function
    /// that was loaded just before.
    fn exits(&self, call: usize) -> bool {
        if self.argument(call) != EXIT_ARGUMENTS {
            return false;
        }
        let mut at = call;
        let mut constant = None;
        for _ in 0..3 {
            let Some(before) = self.before(at) else {
                return false;
            };
            let argument = self.argument(before);
            if self.kind(before) != Kind::LoadConst || *constant.get_or_insert(argument) != argument
            {
                return false;
            }
            at = before;
        }
        let loads = |at| match self.kind(at) {
            Kind::PushNull | Kind::LoadMethod => true,
            Kind::LoadAttribute | Kind::LoadSuper | Kind::LoadGlobal => self.argument(at) & 1 == 1,
            _ => false,
        };
        EXIT_ARGUMENTS == 2 || !self.before(at).is_some_and(loads)
    }

    /// Whether what is awaited here is the begin or the end of an `async with`.
    fn awaits_with(&self, at: usize) -> bool {
        let mut at = at;
        while matches!(
            self.kind(at),
            Kind::Send | Kind::Yield | Kind::Resume | Kind::BackQuietly | Kind::LoadConst
        ) {
            match self.before(at) {
                Some(before) => at = before,
                None => return false,
            }
        }
        self.kind(at) == Kind::Awaitable && ASYNC_WITH.contains(&self.argument(at))
    }

    fn calls_one_of(&self, call: usize, names: &[&str]) -> bool {
        self.callee(call)
            .is_some_and(|name| names.contains(&name.as_str()))
    }

    /// Whether what the frame has called must not be interrupted.
    pub fn is_edge(&self) -> bool {
        self.is_edge_at(self.whole(self.at))
    }

    fn is_edge_at(&self, at: usize) -> bool {
        match self.kind(at) {
            Kind::Enter | Kind::ExitRaised | Kind::LoadSpecial => true,
            Kind::Awaitable | Kind::Send | Kind::Yield | Kind::Resume | Kind::BackQuietly => {
                self.awaits_with(at)
            }
            Kind::Call | Kind::Precall => {
                self.enters(at)
                    || self.exits(at)
                    || self.calls_one_of(at, &TAKING)
                    || self.calls_one_of(at, &WHOLE)
            }
            _ => false,
        }
    }

    /// Whether this is a call inside of a `try`: its `finally` or `except` gives back what it took.
    pub fn is_protected_wait(&self) -> bool {
        let at = self.whole(self.at);
        matches!(self.kind(at), Kind::Call | Kind::Precall)
            && match self.callee(at).as_deref() {
                Some("acquire") => self.handler(self.at).is_some(),
                name => name == Some("join"),
            }
    }

    /// For the innermost frame. `waits`: what is acquired here is given back by the function itself.
    pub fn stands(&self, waits: bool) -> Stands {
        let at = self.whole(self.at);
        match self.kind(at) {
            Kind::Back | Kind::BranchBack => Stands::Looks,
            Kind::Resume if !self.awaits_with(at) => Stands::Looks,
            Kind::Call | Kind::Precall => {
                if self.enters(at) || !waits && self.calls_one_of(at, &TAKING) {
                    Stands::Edge
                } else {
                    Stands::Calls
                }
            }
            Kind::CallUnpacked => Stands::Calls,
            Kind::ExitRaised => Stands::Edge,
            _ if self.awaits_with(at) => Stands::Edge,
            _ => Stands::Between,
        }
    }

    /// Where the frame looks next, once its instruction is done.
    pub fn ahead(&self) -> Ahead {
        let mut ahead = Ahead::default();
        let mut seen = vec![false; self.code.len() / 2 + 1];
        let mut todo = vec![self.after(self.whole(self.at))];
        for _ in 0..FAR {
            let Some(at) = todo.pop() else {
                return ahead;
            };
            let at = self.whole(at);
            if std::mem::replace(seen.get_mut(at).unwrap_or(&mut true), true) {
                continue;
            }
            match self.kind(at) {
                Kind::Resume | Kind::Back | Kind::CallUnpacked => {}
                Kind::Call | Kind::Precall | Kind::ExitRaised => {
                    ahead.harmful |= self.is_edge_at(at);
                }
                Kind::Return | Kind::Yield => ahead.returns = true,
                Kind::Raise | Kind::Reraise => {}
                Kind::Jump | Kind::BackQuietly => todo.push(self.target(at)),
                Kind::Branch | Kind::Send => todo.extend([self.target(at), self.after(at)]),
                _ => todo.push(self.after(at)),
            }
        }
        // Too far to say.
        ahead.harmful = true;
        ahead
    }

    /// If the call fails: whether its exception ends a `with` first (`Some(true)`), meets an `except` or a
    /// `finally`, or leaves the frame (`None`). A `with` calls `__exit__`, which may look where it begins.
    pub fn fails_into_with(&self) -> Option<bool> {
        let mut at = self.at;
        if self.calls_one_of(self.whole(at), &UNFAILING) {
            return Some(false);
        }
        for _ in 0..16 {
            let handler = self.handler(at)?;
            let next = self.after(handler);
            match (self.kind(handler), self.kind(next)) {
                (Kind::PushException, Kind::ExitRaised) => return Some(true),
                // What only cleans up and raises again.
                (Kind::Copy, Kind::PopException) => at = self.after(next),
                (Kind::Intrinsic, Kind::Reraise) => at = next,
                (Kind::PushException, _) => return Some(false),
                _ => at = handler,
            }
        }
        Some(true)
    }

    /// The handler of an exception at `at`.
    fn handler(&self, at: usize) -> Option<usize> {
        let mut bytes = self.handlers.iter().copied();
        while let Some(start) = number(&mut bytes) {
            let (length, target) = (number(&mut bytes)?, number(&mut bytes)?);
            number(&mut bytes)?;
            if start > at {
                return None;
            }
            if at < start + length {
                return Some(target);
            }
        }
        None
    }
}

/// A number of the exception table: six bits a byte, the highest first.
fn number(bytes: &mut impl Iterator<Item = u8>) -> Option<usize> {
    let mut value = 0;
    loop {
        let byte = bytes.next()?;
        value = value << 6 | usize::from(byte & 63);
        if byte & 64 == 0 {
            return Some(value);
        }
    }
}
