//! How long conversions take, in µs: the best of many runs, beside the budget where there is one.
//!
//! `PYO3_PYTHON=… LD_LIBRARY_PATH=… cargo run --release -p etf --example timing`
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::time::Instant;

use etf::{Bound, Input, NoNode};
use pyrt::call::{Source, builtins, compile, run_code};
use pyrt::embed::{Inbuilt, initialize};
use pyrt::{Attached, Obj};

const CASES: [(&str, &str, &str); 9] = [
    ("10 000 ints", "list(range(10_000))", "in 200, out 80"),
    (
        "10 000 ints of 60 bits",
        "list(range(2**60, 2**60 + 10_000))",
        "",
    ),
    ("10 000 floats", "[float(i) for i in range(10_000)]", ""),
    (
        "10 000 short texts",
        "[f'text{i}' for i in range(10_000)]",
        "",
    ),
    (
        "dict of 1000 str: int",
        "{f'key{i}': i for i in range(1000)}",
        "100 both",
    ),
    (
        "1000 small dicts",
        "[{'name': 'a', 'age': i, 'ok': True} for i in range(1000)]",
        "",
    ),
    ("1000 tuples", "[(i, 'x', 1.5) for i in range(1000)]", ""),
    ("text of 100 KB, not ASCII", "'é€' * 25_000", ""),
    ("3 arguments", "[1, 'two', 3.0]", "0.3"),
];

fn main() {
    let program = std::env::var("PYO3_PYTHON").unwrap_or("python3".to_owned());
    let native = Inbuilt {
        name: c"erlang._native",
        init: pyloop::init,
    };
    let mut state = initialize(&program, &[native]).unwrap();
    state.attached(|py| {
        let module = pyloop::load(py).unwrap();
        let bound = pyloop::state(&module).unwrap().types.bind(py);
        println!("{:28} {:>9} {:>9}  budget", "µs", "decode", "encode");
        // `timing dict` runs the cases that have "dict" in their name.
        let only = std::env::args().nth(1).unwrap_or_default();
        for (name, source, budget) in CASES {
            if !name.contains(&only) {
                continue;
            }
            let (decode, encode) = time(&bound, &eval(py, source));
            println!("{name:28} {decode:9.2} {encode:9.2}  {budget}");
        }
        let call = call(&bound);
        println!("{:28} {call:9.2} {:9}  0.3", "call with 3 arguments", "");
    });
    // Python ends with the process.
    std::mem::forget(state);
}

fn time<'py>(bound: &Bound<'_, 'py>, object: &Obj<'py>) -> (f64, f64) {
    let mut out = vec![131];
    etf::encode(bound, &NoNode, object, &mut out).unwrap();
    let decode = best(|| {
        black_box(etf::decode(bound, &NoNode, Input::one(&out)).unwrap());
    });
    let mut again = Vec::with_capacity(out.len());
    let encode = best(|| {
        again.clear();
        black_box(etf::encode(bound, &NoNode, object, &mut again).unwrap());
    });
    (decode, encode)
}

fn call(bound: &Bound<'_, '_>) -> f64 {
    let mut term = vec![131, 104, 4, 119, 8];
    term.extend(b"operator");
    term.extend([119, 3]);
    term.extend(b"add");
    let object = eval(bound.py(), "[1, 'two', 3.0]");
    etf::encode(bound, &NoNode, &object, &mut term).unwrap();
    term.extend([116, 0, 0, 0, 0]);
    let mut args = Vec::new();
    best(|| {
        black_box(etf::decode_call(bound, &NoNode, Input::one(&term), &mut args).unwrap());
    })
}

/// The best of 300 rounds, each long enough for the clock.
fn best(mut body: impl FnMut()) -> f64 {
    let once = Instant::now();
    body();
    let rounds = (20_000 / (once.elapsed().as_nanos() as u64).max(1)).clamp(1, 200);
    (0..300)
        .map(|_| {
            let start = Instant::now();
            (0..rounds).for_each(|_| body());
            start.elapsed().as_nanos() as f64 / 1000.0 / rounds as f64
        })
        .fold(f64::INFINITY, f64::min)
}

fn eval<'py>(py: Attached<'py>, source: &str) -> Obj<'py> {
    let globals = Obj::dict(py).unwrap();
    globals.dict_set_c(c"__builtins__", &builtins(py)).unwrap();
    let code = compile(py, source.as_bytes(), c"<timing>", Source::Expression).unwrap();
    run_code(&code, &globals, &globals).unwrap()
}
