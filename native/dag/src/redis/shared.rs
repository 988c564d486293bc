//! Which commands may go out on a connection that all callers share.
//!
//! Replies are matched to commands by their order alone. A command that Redis does not answer, or
//! answers more than once, gives every later caller the reply of another; one that changes the
//! connection (its database, its user, a transaction left open) changes what others are answered.

use crate::redis::failure::Failure;

/// Longer than any name that is looked for.
const LONGEST: usize = 12;

const ONE_OF_ITS_OWN: &str =
    "it changes the connection that all commands share; use a client of your own for it";
const IN_THE_URL: &str = "it changes the connection that all commands share; say it in the URL";
const ONE_LIST: &str =
    "a transaction is one list of commands, from MULTI (or WATCH) to EXEC or DISCARD";
const EMPTY: &str = "a command needs at least one word";

/// What a command does to the connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    None,
    Refused(&'static str),
    Multi,
    Watch,
    Unwatch,
    /// EXEC and DISCARD.
    Ends,
}

fn effect<A: AsRef<[u8]>>(args: &[A]) -> Effect {
    let Some(name) = args.first().map(AsRef::as_ref) else {
        return Effect::Refused(EMPTY);
    };
    if name.len() > LONGEST {
        return Effect::None;
    }
    let mut upper = [0; LONGEST];
    let upper = &mut upper[..name.len()];
    upper.copy_from_slice(name);
    upper.make_ascii_uppercase();
    match &*upper {
        b"SUBSCRIBE" | b"PSUBSCRIBE" | b"SSUBSCRIBE" | b"UNSUBSCRIBE" | b"PUNSUBSCRIBE"
        | b"SUNSUBSCRIBE" | b"MONITOR" | b"SYNC" | b"PSYNC" | b"REPLCONF" | b"QUIT" | b"RESET"
        | b"READONLY" | b"READWRITE" | b"ASKING" => Effect::Refused(ONE_OF_ITS_OWN),
        b"SELECT" | b"AUTH" | b"HELLO" => Effect::Refused(IN_THE_URL),
        b"CLIENT" if is_second(args, &[b"REPLY", b"TRACKING", b"CACHING"]) => {
            Effect::Refused(ONE_OF_ITS_OWN)
        }
        b"SCRIPT" if is_second(args, &[b"DEBUG"]) => Effect::Refused(ONE_OF_ITS_OWN),
        b"MULTI" => Effect::Multi,
        b"WATCH" => Effect::Watch,
        // With more words they are errors that end nothing.
        b"UNWATCH" if args.len() == 1 => Effect::Unwatch,
        b"EXEC" | b"DISCARD" if args.len() == 1 => Effect::Ends,
        _ => Effect::None,
    }
}

fn is_second<A: AsRef<[u8]>>(args: &[A], words: &[&[u8]]) -> bool {
    let second = args.get(1).map(AsRef::as_ref);
    second.is_some_and(|second| words.iter().any(|word| second.eq_ignore_ascii_case(word)))
}

/// Whether a command may go by itself.
pub(crate) fn check<A: AsRef<[u8]>>(args: &[A]) -> Result<(), Failure> {
    match effect(args) {
        Effect::Refused(why) => Err(refused(args, why)),
        Effect::Multi | Effect::Watch => Err(refused(args, ONE_LIST)),
        Effect::None | Effect::Unwatch | Effect::Ends => Ok(()),
    }
}

/// What a list of commands is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum List {
    Plain,
    /// It has a transaction: nobody else's command may come between its own.
    Whole,
}

/// Whether a list of commands leaves the connection as it was. Where it does not, none is sent.
pub(crate) fn check_list<A: AsRef<[u8]>>(commands: &[Vec<A>]) -> Result<List, Failure> {
    let (mut multi, mut watch, mut list) = (None, None, List::Plain);
    for command in commands {
        match effect(command) {
            Effect::None => {}
            Effect::Refused(why) => return Err(refused(command, why)),
            Effect::Multi => multi = Some(command),
            Effect::Watch => watch = Some(command),
            // Inside of a transaction it is only queued.
            Effect::Unwatch if multi.is_none() => watch = None,
            Effect::Unwatch => {}
            Effect::Ends => (multi, watch) = (None, None),
        }
        if multi.is_some() || watch.is_some() {
            list = List::Whole;
        }
    }
    match multi.or(watch) {
        Some(open) => Err(refused(open, ONE_LIST)),
        None => Ok(list),
    }
}

fn refused<A: AsRef<[u8]>>(args: &[A], why: &str) -> Failure {
    // No more than the name: the second word may be a password.
    let name = args
        .first()
        .map(|name| String::from_utf8_lossy(name.as_ref()));
    Failure::Refused(match name {
        Some(name) => format!("{name}: {why}"),
        None => why.to_owned(),
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn list(commands: &[&str]) -> Result<List, Failure> {
        let split = |command: &&str| command.split(' ').map(str::to_owned).collect();
        let commands: Vec<Vec<String>> = commands.iter().map(split).collect();
        check_list(&commands)
    }

    #[test]
    fn a_list_that_leaves_a_transaction_open_is_refused() {
        let whole = Ok(List::Whole);
        assert_eq!(list(&["GET a", "SET a 1"]), Ok(List::Plain));
        assert_eq!(list(&["multi", "INCR a", "exec"]), whole);
        assert_eq!(list(&["WATCH a", "MULTI", "INCR a", "DISCARD"]), whole);
        assert_eq!(list(&["WATCH a", "UNWATCH"]), whole);
        assert_eq!(list(&["WATCH a", "MULTI", "UNWATCH", "EXEC"]), whole);
        for open in [
            &["MULTI", "INCR a"][..],
            &["MULTI", "EXEC now"],
            &["MULTI", "UNWATCH"],
            &["WATCH a", "GET a"],
            &["MULTI", "EXEC", "MULTI"],
        ] {
            assert!(matches!(list(open), Err(Failure::Refused(_))), "{open:?}");
        }
        assert!(
            matches!(list(&["GET a", "Select 1"]), Err(Failure::Refused(text))
            if text.starts_with("Select: it changes the connection"))
        );
    }
}
