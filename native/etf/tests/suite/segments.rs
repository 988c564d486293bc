//! Input in pieces: cut anywhere, it means the same; large binaries are lent, not copied.

use std::cell::Cell;
use std::sync::Arc;

use etf::{Host, Input, NoNode};
use pyrt::buffer::Memory;

use crate::harness::{python, repr, term, why};

/// `[{bytes, <<1,2,3>>}, <<"text">>, 1.5, 300, -1 bsl 70, #{a => "xyz"}]`
fn sample() -> Vec<u8> {
    let mut bytes = vec![108, 0, 0, 0, 6, 104, 2, 119, 5];
    bytes.extend(b"bytes");
    bytes.extend([109, 0, 0, 0, 3, 1, 2, 3, 109, 0, 0, 0, 4]);
    bytes.extend(b"text");
    bytes.extend([70, 63, 248, 0, 0, 0, 0, 0, 0, 98, 0, 0, 1, 44]);
    bytes.extend([110, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0, 64]);
    bytes.extend([
        116, 0, 0, 0, 1, 119, 1, b'a', 107, 0, 3, b'x', b'y', b'z', 106,
    ]);
    term(&bytes)
}

#[test]
fn a_term_cut_anywhere_is_the_same_term() {
    let bytes = sample();
    python(|bound| {
        let whole = repr(&etf::decode(bound, &NoNode, Input::one(&bytes)).unwrap());
        for cut in 0..=bytes.len() {
            for next in cut..=bytes.len() {
                let parts = [&bytes[..cut], &bytes[cut..next], &[], &bytes[next..]];
                let object = etf::decode(bound, &NoNode, Input::segments(&parts)).unwrap();
                assert_eq!(repr(&object), whole);
            }
        }
        let bits: Vec<&[u8]> = bytes.chunks(1).collect();
        let object = etf::decode(bound, &NoNode, Input::segments(&bits)).unwrap();
        assert_eq!(repr(&object), whole);
        let error = etf::decode(bound, &NoNode, Input::segments(&bits[..20])).unwrap_err();
        assert_eq!(why(&error), "bad argument: the term ends too early");
        let error = etf::decode(bound, &NoNode, Input::segments(&[])).unwrap_err();
        assert_eq!(why(&error), "bad argument: the term ends too early");
    });
}

struct Owner {
    memory: Arc<Box<[u8]>>,
    asked: Cell<Option<usize>>,
}

impl Host for Owner {
    fn segment_owner(&self, segment: usize) -> Option<Arc<dyn Memory>> {
        self.asked.set(Some(segment));
        Some(self.memory.clone())
    }
}

#[test]
fn a_view_shows_the_memory_of_its_segment_and_keeps_it() {
    let memory: Arc<Box<[u8]>> = Arc::new(vec![65; 100_000].into_boxed_slice());
    let host = Owner {
        memory: memory.clone(),
        asked: Cell::new(None),
    };
    let head = [&[131, 104, 2, 119, 4][..], b"view", &[109, 0, 1, 134, 160]].concat();
    python(|bound| {
        let parts: [&[u8]; 2] = [&head, &memory];
        let view = etf::decode(bound, &host, Input::segments(&parts)).unwrap();
        assert_eq!(host.asked.get(), Some(1));
        // This test's, the host's, and the one that the view has.
        assert_eq!(Arc::strong_count(&memory), 3);
        let part = view.call_method(
            c"__getitem__",
            &[&crate::harness::eval(bound.py(), "slice(5)")],
        );
        drop(view);
        assert_eq!(Arc::strong_count(&memory), 3);
        assert_eq!(
            repr(&part.unwrap().call_method(c"tobytes", &[]).unwrap()),
            "b'AAAAA'"
        );
        assert_eq!(Arc::strong_count(&memory), 2);
    });
}

#[test]
fn a_view_of_memory_that_the_owner_does_not_have_is_a_copy() {
    let host = Owner {
        memory: Arc::new(vec![0; 3].into_boxed_slice()),
        asked: Cell::new(None),
    };
    let bytes = [
        &[131, 104, 2, 119, 4][..],
        b"view",
        &[109, 0, 0, 0, 2, 7, 8],
    ]
    .concat();
    python(|bound| {
        let view = etf::decode(bound, &host, Input::one(&bytes)).unwrap();
        assert_eq!(
            repr(&view.call_method(c"tobytes", &[]).unwrap()),
            "b'\\x07\\x08'"
        );
        assert_eq!(Arc::strong_count(&host.memory), 1);
    });
}

#[test]
fn both_directions_stop_when_cancelled() {
    struct Cancelled;
    impl Host for Cancelled {
        fn cancelled(&self) -> bool {
            true
        }
    }
    python(|bound| {
        let list = crate::harness::eval(bound.py(), "list(range(5000))");
        let mut out = vec![131];
        let error = etf::encode(bound, &Cancelled, &list, &mut out).unwrap_err();
        assert_eq!(why(&error), "cancelled");
        etf::encode(bound, &NoNode, &list, &mut out).unwrap();
        let error = etf::decode(bound, &Cancelled, Input::one(&out)).unwrap_err();
        assert_eq!(why(&error), "cancelled");
        let endless = crate::harness::x(
            bound.py(),
            "import itertools\nclass S(set):\n  def __iter__(self): return itertools.count()\nx = S()",
        );
        let error = etf::encode(bound, &Cancelled, &endless, &mut out).unwrap_err();
        assert_eq!(why(&error), "cancelled");
    });
}
