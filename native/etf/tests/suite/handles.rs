//! Pids, references, ports and funs, with bytes as OTP 25 makes them.

use etf::{Input, NoNode, NodeId};

use crate::harness::{Node, decode, eval, exec, python, repr, shown, term, text, why};

/// `list_to_pid("<0.123.0>")`, `make_ref()`, a port and `fun lists:map/2` of nonode@nohost.
const PID: &str = "5864000D6E6F6E6F6465406E6F686F73740000007B0000000000000000";
const REF: &str = "5A000364000D6E6F6E6F6465406E6F686F7374000000000000DBD9B2C400027D45790D";
const PORT: &str = "5964000D6E6F6E6F6465406E6F686F73740000000000000000";
const EXPORT: &str = "716400056C697374736400036D61706102";
/// A fun that holds `{list_to_pid("<0.123.0>"), abc}`.
const FUN: &str = "700000006F0123D1E82E47115DD469B0984B6911D179000000000000000164000665746667656E61\
    0062011E8F415864000D6E6F6E6F6465406E6F686F73740000000900000000000000006802586400\
    0D6E6F6E6F6465406E6F686F73740000007B0000000000000000640003616263";
/// `list_to_pid("<0.123.0>")` of a@host with creation 7.
const FAR: &str = "58770761406C6F63616C0000007B0000000000000007";

pub fn unhex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

#[test]
fn handles_come_back_byte_for_byte() {
    python(|bound| {
        for hex in [PID, REF, PORT, EXPORT, FUN, FAR] {
            let bytes = unhex(hex);
            let object = decode(bound, &bytes).unwrap();
            assert_eq!(
                crate::harness::encode(bound, &object).unwrap(),
                bytes,
                "{hex}"
            );
        }
    });
}

#[test]
fn old_forms_are_read_and_kept() {
    let atom = [100, 0, 1, b'n'];
    for bytes in [
        [&[103][..], &atom, &[0, 0, 0, 1, 0, 0, 0, 2, 3]].concat(),
        [&[102][..], &atom, &[0, 0, 0, 1, 3]].concat(),
        [&[101][..], &atom, &[0, 0, 0, 1, 3]].concat(),
        [&[114, 0, 2][..], &atom, &[3, 0, 0, 0, 1, 0, 0, 0, 2]].concat(),
        [&[120][..], &atom, &[0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 3]].concat(),
    ] {
        python(|bound| {
            let object = decode(bound, &bytes).unwrap();
            assert_eq!(crate::harness::encode(bound, &object).unwrap(), bytes);
        });
    }
}

#[test]
fn handles_show_what_they_are() {
    assert_eq!(shown(&unhex(PID)), "<erlang.Pid 0.123.0>");
    assert_eq!(shown(&unhex(FAR)), "<erlang.Pid a@local.123.0>");
    assert_eq!(
        shown(&unhex(REF)),
        "<erlang.Ref 0.2101704973.2999189506.56281>"
    );
    assert_eq!(shown(&unhex(PORT)), "<erlang.Port 0.0>");
    assert_eq!(shown(&unhex(EXPORT)), "<erlang.Fun lists:map/2>");
    assert_eq!(shown(&unhex(FUN)), "<erlang.Fun etfgen.0.18779969>");
}

#[test]
fn local_handles_are_written_with_the_name_of_now_and_stay_equal() {
    let before = Node(NodeId::default());
    let after = Node::named("a@host.example", 1234);
    python(|bound| {
        for hex in [PID, REF, PORT, FUN] {
            let bytes = unhex(hex);
            let old = etf::decode(bound, &before, Input::one(&term(&bytes))).unwrap();
            let mut renamed = Vec::new();
            let summary = etf::encode(bound, &after, &old, &mut renamed).unwrap();
            assert_eq!(summary.local_funs, hex == FUN);
            assert!(!contains(&renamed, b"nonode@nohost"), "{hex}");
            assert!(contains(&renamed, b"a@host.example"), "{hex}");
            if hex == FUN {
                let size = u32::from_be_bytes(renamed[1..5].try_into().unwrap());
                assert_eq!(size as usize, renamed.len() - 1);
            }
            let new = etf::decode(bound, &after, Input::one(&term(&renamed))).unwrap();
            let pair = [&old, &new];
            let globals = exec(
                bound.py(),
                "def same(a, b): return a == b and hash(a) == hash(b)",
            );
            let same = globals
                .dict_get(&text(bound.py(), "same"))
                .unwrap()
                .unwrap();
            assert_eq!(same.call(&pair).unwrap().as_bool(), Some(true), "{hex}");
            // Seen by another node it is somebody else's, and stays as it was.
            let far = etf::decode(bound, &NoNode, Input::one(&term(&renamed))).unwrap();
            assert_eq!(same.call(&[&old, &far]).unwrap().as_bool(), Some(false));
            let mut kept = Vec::new();
            etf::encode(bound, &after, &far, &mut kept).unwrap();
            assert_eq!(kept, renamed);
        }
    });
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn handles_cannot_be_made_or_pickled_by_python() {
    python(|bound| {
        let py = bound.py();
        let classes = eval(
            py,
            "[__import__('erlang._native')._native.__dict__[n] for n in ('Pid', 'Ref', 'Port', 'Fun')]",
        );
        for index in 0..4 {
            let class = classes.list_item(index).unwrap();
            assert!(class.call(&[]).is_err());
        }
        let pid = decode(bound, &unhex(PID)).unwrap();
        let pickle = eval(py, "__import__('pickle').dumps");
        let error = pickle.call(&[&pid]).unwrap_err();
        assert_eq!(error.value().display(), "cannot pickle 'Pid' object");
        let copy = eval(py, "__import__('copy').copy");
        assert!(copy.call(&[&pid]).is_err());
    });
}

#[test]
fn handles_in_bytes_of_a_user_are_refused() {
    python(|bound| {
        for hex in [PID, REF, PORT, EXPORT, FUN, FAR] {
            let bytes = term(&unhex(hex));
            let error = etf::decode_plain(bound, &NoNode, Input::one(&bytes)).unwrap_err();
            let text = "bad argument: a pid, reference, port or fun cannot be made from bytes";
            assert_eq!(why(&error), text);
        }
        let reference = [
            &[131, 104, 5, 119, 7][..],
            b"$py_ref",
            &[97, 0, 97, 0, 97, 0, 97, 0],
        ];
        let error = etf::decode_plain(bound, &NoNode, Input::one(&reference.concat()));
        assert!(why(&error.unwrap_err()).contains("cannot be made from bytes"));
    });
}

#[test]
fn a_pid_is_a_good_dict_key() {
    python(|bound| {
        let pid = decode(bound, &unhex(PID)).unwrap();
        let same = decode(bound, &unhex(PID)).unwrap();
        let dict = pyrt::Obj::dict(bound.py()).unwrap();
        dict.dict_set(&pid, &text(bound.py(), "found")).unwrap();
        assert_eq!(repr(&dict.dict_get(&same).unwrap().unwrap()), "'found'");
    });
}

#[test]
fn an_object_reference_is_the_object_itself() {
    struct One<'a>(&'a pyrt::Kept);
    impl etf::Host for One<'_> {
        fn object<'py>(
            &self,
            py: pyrt::Attached<'py>,
            interp: u64,
            index: u64,
            generation: u64,
        ) -> Option<pyrt::Obj<'py>> {
            ((interp, index, generation) == (1, 2, 3))
                .then(|| self.0.get(py))
                .flatten()
        }
    }
    python(|bound| {
        let object = eval(bound.py(), "object()");
        let kept = pyrt::Kept::new(object.clone());
        let reference = |generation| {
            let numbers = [97, 1, 97, 2, 97, generation];
            [
                &[131, 104, 5, 119, 7][..],
                b"$py_ref",
                &numbers,
                &unhex(REF),
            ]
            .concat()
        };
        let found = etf::decode(bound, &One(&kept), Input::one(&reference(3))).unwrap();
        assert!(found.is(&object));
        let stale = etf::decode(bound, &One(&kept), Input::one(&reference(4))).unwrap_err();
        assert!(why(&stale).starts_with("bad argument: an object reference whose object is gone"));
        kept.release(bound.py());
    });
}
