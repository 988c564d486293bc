//! `erlang.Atom`.

use crate::harness::{encoded, exec, python, repr, there_and_back, x};

#[test]
fn an_atom_is_a_str_that_becomes_an_atom() {
    let source = |text: &str| format!("from erlang import Atom\nx = {text}");
    assert_eq!(
        encoded(&source("Atom('ok')")).unwrap(),
        [119, 2, b'o', b'k']
    );
    assert_eq!(encoded(&source("Atom('')")).unwrap(), [119, 0]);
    let long = encoded(&source("Atom('é' * 255)")).unwrap();
    assert_eq!(long[..3], [118, 1, 254]);
    assert_eq!(
        there_and_back(&source("{Atom('a'): Atom('日本')}")),
        "{'a': '日本'}"
    );
}

#[test]
fn atoms_are_made_once_and_equal_their_text() {
    python(|bound| {
        let checks = x(
            bound.py(),
            "import pickle, copy\nfrom erlang import Atom\na = Atom('abc')\n\
             x = [a is Atom('abc'), a == 'abc', hash(a) == hash('abc'), isinstance(a, str),\n\
             pickle.loads(pickle.dumps(a)) is a, copy.deepcopy(a) is a, Atom(a) is a,\n\
             repr(a) == \"erlang.Atom('abc')\", str(a) == 'abc', {a: 1}['abc'] == 1,\n\
             Atom.__module__ == 'erlang']",
        );
        assert_eq!(repr(&checks), format!("[{}]", ["True"; 11].join(", ")));
    });
}

#[test]
fn what_is_no_atom_is_refused() {
    python(|bound| {
        let refused = x(
            bound.py(),
            "from erlang import Atom\nx = []\n\
             def tries(f):\n  try: f()\n  except Exception as e: x.append(type(e).__name__)\n\
             tries(lambda: Atom('a' * 256))\n\
             tries(lambda: Atom(5))\n\
             tries(lambda: Atom())\n\
             tries(lambda: Atom('\\ud800'))\n\
             tries(lambda: type('B', (Atom,), {}))\n\
             tries(lambda: setattr(Atom('a'), 'x', 1))\n",
        );
        let expected = "['ValueError', 'TypeError', 'TypeError', 'UnicodeEncodeError', 'TypeError', 'AttributeError']";
        assert_eq!(repr(&refused), expected);
    });
}

/// One test, since the maker belongs to the whole interpreter; it accepts all names of other tests.
#[test]
fn the_maker_decides_also_for_atoms_that_went_around_the_constructor() {
    python(|bound| {
        let checks = exec(
            bound.py(),
            "import erlang._native as n\nfrom erlang import Atom\nasked = []\n\
             def maker(text):\n  asked.append(text)\n  if text.startswith('refused'): raise LookupError(text)\n\
             n._set_atom_maker(maker)\n\
             Atom('accepted'); Atom('accepted')\n\
             assert asked.count('accepted') == 1\n\
             try: Atom('refused'); assert False\n\
             except LookupError: pass\n\
             around = str.__new__(Atom, 'refused2')\n\
             try: n.term_to_bytes(around); assert False\n\
             except LookupError: pass\n\
             fine = str.__new__(Atom, 'fine')\n\
             assert n.term_to_bytes(fine) == b'\\x83w\\x04fine'\n\
             assert asked.count('fine') == 1\n\
             n._set_atom_maker(None)\n\
             Atom('refused')\n",
        );
        drop(checks);
    });
}
