//! Frames made of a few instructions, by what these mean: their numbers differ from Python to Python.

use super::*;

const MEANT: [Kind; 31] = [
    Kind::Other,
    Kind::Cache,
    Kind::Extended,
    Kind::Resume,
    Kind::Call,
    Kind::CallUnpacked,
    Kind::Precall,
    Kind::Back,
    Kind::BackQuietly,
    Kind::BranchBack,
    Kind::Jump,
    Kind::Branch,
    Kind::Return,
    Kind::Raise,
    Kind::Reraise,
    Kind::Enter,
    Kind::LoadSpecial,
    Kind::ExitRaised,
    Kind::Awaitable,
    Kind::Send,
    Kind::Yield,
    Kind::LoadConst,
    Kind::LoadMethod,
    Kind::LoadAttribute,
    Kind::LoadSuper,
    Kind::LoadGlobal,
    Kind::PushNull,
    Kind::PushException,
    Kind::Copy,
    Kind::PopException,
    Kind::Intrinsic,
];

/// The number of an instruction is that of its kind.
static KINDS: [Kind; 256] = {
    let mut kinds = [Kind::Other; 256];
    let mut index = 0;
    while index < MEANT.len() {
        kinds[MEANT[index] as usize] = MEANT[index];
        index += 1;
    }
    kinds
};

/// Instructions with their arguments, in a frame whose names are `f`, `acquire`, `sleep`, `join`, `release`.
struct Made {
    code: Vec<u8>,
    handlers: Vec<u8>,
}

const F: u8 = 0;
const ACQUIRE: u8 = 1;
const SLEEP: u8 = 2;
const JOIN: u8 = 3;
const RELEASE: u8 = 4;

fn name(index: usize) -> Option<String> {
    let names = ["f", "acquire", "sleep", "join", "release"];
    names.get(index).map(|name| (*name).to_owned())
}

fn made(code: &[(Kind, u8)]) -> Made {
    Made {
        code: code
            .iter()
            .flat_map(|&(kind, argument)| [kind as u8, argument])
            .collect(),
        handlers: Vec::new(),
    }
}

impl Made {
    /// Each: where it starts, for how many instructions, its handler.
    fn with(mut self, handlers: &[[u8; 3]]) -> Self {
        self.handlers = handlers
            .iter()
            .flat_map(|&[start, length, target]| [start, length, target, 0])
            .collect();
        self
    }

    fn at(&self, at: usize) -> Place<'_> {
        Place {
            code: &self.code,
            handlers: &self.handlers,
            kinds: &KINDS,
            at,
            name: &name,
        }
    }
}

/// Loads a global function of that name for the call behind it.
fn load(name: u8) -> (Kind, u8) {
    (Kind::LoadGlobal, name << 1 | 1)
}

fn op(kind: Kind) -> (Kind, u8) {
    (kind, 0)
}

#[test]
fn an_argument_has_the_bits_of_what_extends_it() {
    let code = made(&[
        (Kind::Extended, 1),
        (Kind::Extended, 2),
        (Kind::Jump, 3),
        (Kind::Jump, 4),
    ]);
    assert_eq!(code.at(0).argument(2), 0x010203);
    assert_eq!(code.at(0).argument(3), 4);
}

#[test]
fn a_frame_in_the_room_or_the_extension_of_an_instruction_is_at_it() {
    let code = made(&[
        op(Kind::Extended),
        op(Kind::Call),
        op(Kind::Cache),
        op(Kind::Cache),
    ]);
    for at in 0..4 {
        assert_eq!(code.at(at).whole(at), 1, "at {at}");
        assert_eq!(code.at(at).stands(false), Stands::Calls);
    }
    assert_eq!(code.at(0).after(1), 4);
}

#[test]
fn python_looks_at_the_begin_of_a_function_and_where_a_loop_starts_over() {
    let stands = |kind| made(&[op(kind)]).at(0).stands(false);
    for kind in [Kind::Resume, Kind::Back, Kind::BranchBack] {
        assert_eq!(stands(kind), Stands::Looks, "{kind:?}");
    }
    for kind in [Kind::Call, Kind::Precall, Kind::CallUnpacked] {
        assert_eq!(stands(kind), Stands::Calls, "{kind:?}");
    }
    for kind in [Kind::BackQuietly, Kind::LoadGlobal, Kind::Other] {
        assert_eq!(stands(kind), Stands::Between, "{kind:?}");
    }
    assert_eq!(stands(Kind::ExitRaised), Stands::Edge);
}

#[test]
fn who_takes_a_lock_is_at_an_edge_unless_it_gives_it_back_itself() {
    let calls = |name| made(&[load(name), op(Kind::Call)]);
    assert!(calls(ACQUIRE).at(1).is_edge());
    assert_eq!(calls(ACQUIRE).at(1).stands(false), Stands::Edge);
    assert_eq!(calls(ACQUIRE).at(1).stands(true), Stands::Calls);
    assert!(calls(RELEASE).at(1).is_edge(), "it runs to its end");
    assert!(!calls(F).at(1).is_edge());
    assert_eq!(calls(F).at(1).stands(false), Stands::Calls);
}

#[test]
fn the_name_of_a_call_is_found_past_the_calls_among_its_arguments() {
    let code = made(&[
        load(ACQUIRE),
        load(F),
        op(Kind::Call),
        (Kind::LoadMethod, SLEEP),
        op(Kind::Precall),
        op(Kind::Call),
        op(Kind::Call),
    ]);
    let callee = |at: usize| code.at(at).callee(at);
    assert_eq!(callee(2).as_deref(), Some("f"));
    assert_eq!(callee(5).as_deref(), Some("sleep"));
    assert_eq!(callee(6).as_deref(), Some("acquire"));
    assert_eq!(
        made(&[op(Kind::Other), op(Kind::Call)]).at(1).callee(1),
        None
    );
}

#[test]
fn a_with_is_entered_and_left_at_edges() {
    let enters = made(&[op(Kind::LoadSpecial), op(Kind::Call)]);
    assert!(enters.at(1).is_edge());
    assert_eq!(enters.at(1).stands(true), Stands::Edge);
    assert!(made(&[op(Kind::Enter)]).at(0).is_edge());
    assert!(made(&[op(Kind::ExitRaised)]).at(0).is_edge());
    let leaves = |first: Kind, last: u8| {
        let call = (Kind::Call, EXIT_ARGUMENTS as u8);
        let none = (Kind::LoadConst, 7);
        made(&[op(first), none, none, (Kind::LoadConst, last), call])
    };
    assert!(leaves(Kind::Other, 7).at(4).is_edge());
    assert!(
        !leaves(Kind::Other, 8).at(4).is_edge(),
        "three constants, not one"
    );
    if EXIT_ARGUMENTS == 3 {
        assert!(
            !leaves(Kind::PushNull, 7).at(4).is_edge(),
            "f(None, None, None)"
        );
    }
}

#[test]
fn what_an_async_with_awaits_is_an_edge() {
    let awaits = |what| {
        made(&[
            (Kind::Awaitable, what),
            op(Kind::LoadConst),
            op(Kind::Send),
            op(Kind::Yield),
            op(Kind::Resume),
            op(Kind::BackQuietly),
        ])
    };
    for what in ASYNC_WITH {
        let code = awaits(what as u8);
        for at in 2..6 {
            assert!(code.at(at).is_edge(), "{what} at {at}");
            assert_eq!(code.at(at).stands(false), Stands::Edge);
        }
    }
    assert!(!awaits(0).at(3).is_edge());
    assert_eq!(awaits(0).at(4).stands(false), Stands::Looks);
}

#[test]
fn the_next_looks_are_found_on_every_way() {
    let ways = |name| {
        let code = made(&[
            op(Kind::Other),
            (Kind::Branch, 2),
            op(Kind::Other),
            op(Kind::Return),
            load(name),
            op(Kind::Call),
            op(Kind::Return),
        ]);
        let ahead = code.at(0).ahead();
        (ahead.harmful, ahead.returns)
    };
    assert_eq!(ways(F), (false, true));
    assert_eq!(ways(ACQUIRE), (true, true));
}

#[test]
fn the_ways_end_at_a_look_and_in_a_loop_without_one() {
    let looks = made(&[
        op(Kind::Other),
        op(Kind::Back),
        load(ACQUIRE),
        op(Kind::Call),
    ]);
    assert_eq!(looks.at(0).ahead(), Ahead::default());
    let circles = made(&[op(Kind::Other), op(Kind::Other), (Kind::BackQuietly, 2)]);
    assert_eq!(circles.at(0).ahead(), Ahead::default());
    let jumps = made(&[
        op(Kind::Other),
        (Kind::Jump, 1),
        op(Kind::Enter),
        op(Kind::Return),
    ]);
    assert!(jumps.at(0).ahead().returns);
    let raises = made(&[op(Kind::Other), op(Kind::Raise), op(Kind::Return)]);
    assert_eq!(raises.at(0).ahead(), Ahead::default());
    let far = made(&[op(Kind::Other); FAR + 2]);
    assert!(far.at(0).ahead().harmful, "too far to say");
}

#[test]
fn a_failing_call_meets_a_with_an_except_or_nothing() {
    let call = |handler: [Kind; 2]| {
        let [first, second] = handler;
        made(&[load(F), op(Kind::Call), op(first), op(second)])
    };
    let with = [Kind::PushException, Kind::ExitRaised];
    assert_eq!(
        call(with).at(1).fails_into_with(),
        None,
        "it leaves the frame"
    );
    let guarded = |handler| call(handler).with(&[[0, 2, 2]]).at(1).fails_into_with();
    assert_eq!(guarded(with), Some(true));
    assert_eq!(guarded([Kind::PushException, Kind::Other]), Some(false));
    let sleeps = made(&[load(SLEEP), op(Kind::Call), op(with[0]), op(with[1])]);
    assert_eq!(
        sleeps.with(&[[0, 2, 2]]).at(1).fails_into_with(),
        Some(false)
    );
}

#[test]
fn a_handler_that_only_cleans_up_hands_on_to_the_next() {
    let code = made(&[
        load(F),
        op(Kind::Call),
        op(Kind::Copy),
        op(Kind::PopException),
        op(Kind::Reraise),
        op(Kind::PushException),
        op(Kind::ExitRaised),
    ]);
    let code = code.with(&[[0, 2, 2], [2, 3, 5]]);
    assert_eq!(code.at(1).fails_into_with(), Some(true));
    let outer = [
        code.at(1).handler(1),
        code.at(1).handler(4),
        code.at(1).handler(5),
    ];
    assert_eq!(outer, [Some(2), Some(5), None]);
}

#[test]
fn a_wait_is_protected_where_a_handler_gives_back_what_it_takes() {
    let waits = |name| made(&[load(name), op(Kind::Call), op(Kind::PushException)]);
    assert!(!waits(ACQUIRE).at(1).is_protected_wait());
    assert!(waits(ACQUIRE).with(&[[0, 2, 2]]).at(1).is_protected_wait());
    assert!(waits(JOIN).at(1).is_protected_wait(), "it takes nothing");
    assert!(!waits(F).with(&[[0, 2, 2]]).at(1).is_protected_wait());
    assert!(!waits(JOIN).at(0).is_protected_wait());
}

#[test]
fn numbers_of_the_exception_table_have_six_bits_a_byte() {
    let read = |bytes: &[u8]| number(&mut bytes.iter().copied());
    assert_eq!(read(&[5]), Some(5));
    assert_eq!(read(&[64 | 1, 6]), Some(70));
    assert_eq!(
        read(&[128 | 64 | 1, 64, 2]),
        Some(1 << 12 | 2),
        "the first has a mark"
    );
    assert_eq!(read(&[64 | 1]), None, "cut off");
    assert_eq!(read(&[]), None);
}

#[test]
fn behind_the_code_there_is_nothing_to_interrupt() {
    let code = made(&[op(Kind::Other)]);
    assert_eq!(code.at(5).kind(5), Kind::Raise);
    assert_eq!(code.at(0).ahead(), Ahead::default());
}
