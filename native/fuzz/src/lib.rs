//! Throws mutated inputs at a parser. Every test run replays the kept inputs, `test/corpus/NAME`;
//! `./dev fuzz NAME SECONDS` goes on with mutations of them, and keeps the input that fails.
//!
//! There is no coverage: the body says what kind of outcome an input had, and an input with a kind
//! that was not seen yet is mutated further.

use std::collections::HashSet;
use std::fs;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The most inputs that are mutated further.
const MOST_INPUTS: usize = 4096;
/// The longest input that is made.
const LONGEST: usize = 64 << 10;
/// An input that takes longer is a failure.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that parsers treat in a special way.
const SPECIAL: [&[u8]; 12] = [
    b"\0",
    b"\xff",
    b"\r\n",
    b"\r",
    b"\n",
    b":",
    b"-1",
    b"0",
    b"\x7f",
    b"\x80",
    b"\xff\xff\xff\xff",
    b"\0\0\0\0",
];

/// Gives `body` the kept inputs, and their mutations for `$FUZZ_SECONDS`. `body` panics if an input
/// shows a defect, and says else what kind of outcome it had.
///
/// # Panics
/// With the panic of the body; the input is a file then, whose name is printed.
pub fn fuzz<K: Hash>(name: &str, body: impl Fn(&[u8]) -> K) {
    let folder = folder(name);
    let mut inputs = kept(&folder);
    assert!(!inputs.is_empty(), "no inputs in {}", folder.display());
    let mut seen = HashSet::new();
    for input in &inputs {
        seen.insert(run(&folder, input, &body));
    }
    let Some(limit) = seconds() else { return };
    let mut random = Random::new();
    println!("fuzz {name}: FUZZ_SEED={}", random.0);
    let (start, mut count) = (Instant::now(), 0u64);
    while start.elapsed() < limit {
        let input = random.mutate(&inputs);
        if seen.insert(run(&folder, &input, &body)) && inputs.len() < MOST_INPUTS {
            if std::env::var_os("FUZZ_KEEP").is_some() {
                keep(&folder, "kind", &input);
            }
            inputs.push(input);
        }
        count += 1;
    }
    println!(
        "fuzz {name}: {count} inputs, {} kinds of outcome",
        seen.len()
    );
}

/// `test/corpus/NAME` of the project.
fn folder(name: &str) -> PathBuf {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    project.join("test/corpus").join(name)
}

fn kept(folder: &Path) -> Vec<Vec<u8>> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    // Whatever order the system gives them in, a seed repeats a run.
    paths.sort();
    paths.iter().flat_map(fs::read).collect()
}

fn seconds() -> Option<Duration> {
    let text = std::env::var("FUZZ_SECONDS").ok()?;
    text.parse().ok().map(Duration::from_secs)
}

/// Runs the body; an input that fails is kept.
fn run<K: Hash>(folder: &Path, input: &[u8], body: &impl Fn(&[u8]) -> K) -> u64 {
    let start = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let kind = body(input);
        assert!(start.elapsed() < PATIENCE, "took {:?}", start.elapsed());
        kind
    }));
    match outcome {
        Ok(kind) => digest(&kind),
        Err(panic) => {
            keep(folder, "failed", input);
            resume_unwind(panic)
        }
    }
}

fn keep(folder: &Path, why: &str, input: &[u8]) {
    let path = folder.join(format!("{why}-{:016x}", digest(&input)));
    match fs::write(&path, input) {
        Ok(()) => println!("kept {}", path.display()),
        Err(error) => println!("not kept: {}: {error}", path.display()),
    }
}

fn digest(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Xorshift: fast, and the same numbers for the same seed.
struct Random(u64);

impl Random {
    fn new() -> Self {
        let given = std::env::var("FUZZ_SEED").ok();
        let seed = given.and_then(|text| text.parse().ok());
        Random(
            seed.unwrap_or_else(|| RandomState::new().hash_one(0))
                .max(1),
        )
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn mutate(&mut self, inputs: &[Vec<u8>]) -> Vec<u8> {
        let mut input = inputs[self.below(inputs.len())].clone();
        for _ in 0..=self.below(4) {
            let at = self.below(input.len() + 1);
            match self.below(6) {
                0 if at < input.len() => input[at] = self.next() as u8,
                1 if at < input.len() => input[at] ^= 1 << self.below(8),
                2 => input.truncate(at),
                3 => {
                    let end = at + self.below(input.len() - at + 1);
                    drop(input.drain(at..end));
                }
                4 => {
                    let other = inputs[self.below(inputs.len())].as_slice();
                    let start = self.below(other.len() + 1);
                    let end = start + self.below(other.len() - start + 1);
                    input.splice(at..at, other[start..end].iter().copied());
                }
                _ => {
                    let special = SPECIAL[self.below(SPECIAL.len())];
                    input.splice(at..at, special.iter().copied());
                }
            }
        }
        input.truncate(LONGEST);
        input
    }
}
