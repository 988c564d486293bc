//! What the instructions of this Python mean for an interrupt, by their names in the module `opcode`.
//!
//! Read once, when Python starts: an interrupt imports nothing.

use std::sync::OnceLock;

use crate::container::DictCursor;
use crate::{Attached, PyResult, call};

/// What an instruction does, as far as interrupts are concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Other,
    /// Room that the instruction before it has for itself.
    Cache,
    /// The high bits of the next instruction's argument.
    Extended,
    /// The begin of a function, or what follows a `yield`. Looks for exceptions from outside.
    Resume,
    /// Calls, and looks afterwards.
    Call,
    /// The same where the arguments are a tuple.
    CallUnpacked,
    /// Python 3.11: may do all that the `Call` after it is for.
    Precall,
    /// Jumps back and looks.
    Back,
    /// Jumps back without a look.
    BackQuietly,
    /// Jumps back or goes on; looks if it jumps (Python 3.11).
    BranchBack,
    Jump,
    Branch,
    /// Leaves the frame without an exception.
    Return,
    /// Ends in an exception.
    Raise,
    Reraise,
    /// Calls `__enter__` or `__aenter__`.
    Enter,
    /// Python 3.14: finds `__enter__` or `__exit__`, which the `Call` after it calls.
    LoadSpecial,
    /// Calls `__exit__` after an exception.
    ExitRaised,
    Awaitable,
    Send,
    Yield,
    LoadConst,
    /// Python 3.11: finds a method.
    LoadMethod,
    LoadAttribute,
    LoadSuper,
    LoadGlobal,
    PushNull,
    PushException,
    Copy,
    PopException,
    Intrinsic,
}

static KINDS: OnceLock<[Kind; 256]> = OnceLock::new();

/// Reads the names. Called where nobody waits, before anything is interrupted.
pub fn prepare(py: Attached<'_>) -> PyResult<'_, ()> {
    if KINDS.get().is_some() {
        return Ok(());
    }
    let opcode = call::import_c(py, c"opcode")?;
    let mut kinds = [Kind::Other; 256];
    let jumps = opcode.getattr_c(c"hasjrel")?;
    for index in 0..jumps.list_len() {
        let number = jumps.list_item(index).map(|number| number.as_i64());
        if let Some(place) = number
            .transpose()?
            .flatten()
            .and_then(|n| at(&mut kinds, n))
        {
            *place = Kind::Branch;
        }
    }
    let names = opcode.getattr_c(c"opmap")?;
    let mut cursor = DictCursor::default();
    while let Some((name, number)) = names.dict_next(&mut cursor) {
        if let Some(number) = number.as_i64()?
            && let Some(kind) = named(name.as_utf8()?)
            && let Some(place) = at(&mut kinds, number)
        {
            *place = kind;
        }
    }
    let _ = KINDS.set(kinds);
    Ok(())
}

fn at(kinds: &mut [Kind; 256], number: i64) -> Option<&mut Kind> {
    // Larger ones are names for the compiler alone.
    kinds.get_mut(usize::try_from(number).ok()?)
}

/// `None` before `prepare`.
pub fn kinds() -> Option<&'static [Kind; 256]> {
    KINDS.get()
}

fn named(name: &str) -> Option<Kind> {
    Some(match name {
        "CACHE" => Kind::Cache,
        "EXTENDED_ARG" => Kind::Extended,
        "RESUME" => Kind::Resume,
        "CALL" | "CALL_KW" => Kind::Call,
        "CALL_FUNCTION_EX" => Kind::CallUnpacked,
        "PRECALL" => Kind::Precall,
        "JUMP_BACKWARD" => Kind::Back,
        "JUMP_BACKWARD_NO_INTERRUPT" => Kind::BackQuietly,
        "JUMP_FORWARD" => Kind::Jump,
        "RETURN_VALUE" | "RETURN_CONST" => Kind::Return,
        "RAISE_VARARGS" => Kind::Raise,
        "RERAISE" => Kind::Reraise,
        "BEFORE_WITH" | "BEFORE_ASYNC_WITH" => Kind::Enter,
        "LOAD_SPECIAL" => Kind::LoadSpecial,
        "WITH_EXCEPT_START" => Kind::ExitRaised,
        "GET_AWAITABLE" => Kind::Awaitable,
        "SEND" => Kind::Send,
        "YIELD_VALUE" => Kind::Yield,
        "LOAD_CONST" => Kind::LoadConst,
        "LOAD_METHOD" => Kind::LoadMethod,
        "LOAD_ATTR" => Kind::LoadAttribute,
        "LOAD_SUPER_ATTR" => Kind::LoadSuper,
        "LOAD_GLOBAL" => Kind::LoadGlobal,
        "PUSH_NULL" => Kind::PushNull,
        "PUSH_EXC_INFO" => Kind::PushException,
        "COPY" => Kind::Copy,
        "POP_EXCEPT" => Kind::PopException,
        "CALL_INTRINSIC_1" => Kind::Intrinsic,
        _ if name.starts_with("POP_JUMP_BACKWARD_IF") => Kind::BranchBack,
        _ => return None,
    })
}
