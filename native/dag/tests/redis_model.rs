//! Answers and commands belong together, whatever the server and the callers do.
//!
//! Each command carries a word that no other has, which a server that behaves echoes. Servers with a script
//! answer late, in pieces, after news that nobody asked for, once too often, by half, or not at all, and close;
//! callers give up at any moment. A command may fail. It never gets the word of another, and never waits for ever.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

mod server;

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use dag::redis::{Address, Config, Failure, Redis, Reply};
use proptest::prelude::*;
use reactor::{TaskLoop, block_on};
use server::Server;

/// No event of ours takes longer on a machine that works.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a command may wait.
const TIMEOUT: Duration = Duration::from_millis(30);

/// What a server does with one command.
#[derive(Clone, Copy, Debug)]
enum Act {
    Answer,
    /// One byte after the other.
    InPieces,
    /// News before it; they are nobody's answer.
    AfterNews,
    /// After the command's time is up.
    Late,
    /// The answer, another one, and the end.
    OnceTooOften,
    Half,
    Close,
    /// Nothing, until the client gives up.
    Silence,
}

/// What a caller does.
#[derive(Clone, Copy, Debug)]
enum Call {
    Command,
    /// As a list of three.
    List,
    /// Equal ones of one turn may be sent once.
    Get,
    /// Gives up after so many looks.
    GivesUp(u8),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        12 => Just(Act::Answer),
        3 => Just(Act::InPieces),
        3 => Just(Act::AfterNews),
        1 => Just(Act::Late),
        1 => Just(Act::OnceTooOften),
        1 => Just(Act::Half),
        1 => Just(Act::Close),
        1 => Just(Act::Silence),
    ];
    proptest::collection::vec(act, 1..40)
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let call = prop_oneof![
        4 => Just(Call::Command),
        1 => Just(Call::List),
        1 => Just(Call::Get),
        2 => (1..4_u8).prop_map(Call::GivesUp),
    ];
    proptest::collection::vec(call, 1..120)
}

/// A server on a socket of its own that follows the script, one command after another, over all connections.
fn serve(script: Vec<Act>) -> PathBuf {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("dag-model-{}-{number}.sock", std::process::id());
    let path = std::env::temp_dir().join(name);
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    let (next, script) = (Arc::new(AtomicUsize::new(0)), Arc::new(script));
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let (next, script) = (next.clone(), script.clone());
            thread::spawn(move || connection(stream, &next, &script));
        }
    });
    path
}

/// Until an act ends it, or the client does.
fn connection(mut stream: UnixStream, next: &AtomicUsize, script: &[Act]) -> Option<()> {
    let mut input = Vec::new();
    loop {
        let words = read_command(&mut stream, &mut input)?;
        let answer = match words[0].as_slice() {
            b"HELLO" => b"%0\r\n".to_vec(),
            _ => bulk(words.last()?),
        };
        let index = next.fetch_add(1, Ordering::Relaxed);
        // Past its script a server behaves.
        match script.get(index).copied().unwrap_or(Act::Answer) {
            Act::Answer => stream.write_all(&answer).ok()?,
            Act::InPieces => {
                for byte in answer {
                    stream.write_all(&[byte]).ok()?;
                }
            }
            Act::AfterNews => {
                stream.write_all(b">2\r\n+invalidate\r\n:1\r\n").ok()?;
                stream.write_all(&answer).ok()?;
            }
            Act::Late => {
                thread::sleep(TIMEOUT + TIMEOUT / 2);
                stream.write_all(&answer).ok()?;
            }
            Act::OnceTooOften => {
                stream
                    .write_all(&[answer, b"+surplus\r\n".to_vec()].concat())
                    .ok()?;
                return None;
            }
            Act::Half => {
                stream.write_all(&answer[..answer.len() / 2]).ok()?;
                return None;
            }
            Act::Close => return None,
            Act::Silence => {
                while stream.read(&mut [0; 512]).ok()? > 0 {}
                return None;
            }
        }
    }
}

fn bulk(word: &[u8]) -> Vec<u8> {
    let head = format!("${}\r\n", word.len()).into_bytes();
    [&head[..], word, b"\r\n"].concat()
}

/// The words of the next command: an array of strings.
fn read_command(stream: &mut UnixStream, input: &mut Vec<u8>) -> Option<Vec<Vec<u8>>> {
    let count = read_count(stream, input)?;
    let words = (0..count).map(|_| {
        let len = read_count(stream, input)?;
        let mut word = take(stream, input, len + 2)?;
        word.truncate(len);
        Some(word)
    });
    words.collect()
}

fn read_count(stream: &mut UnixStream, input: &mut Vec<u8>) -> Option<usize> {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.extend(take(stream, input, 1)?);
    }
    std::str::from_utf8(&line[1..]).ok()?.trim().parse().ok()
}

fn take(stream: &mut UnixStream, input: &mut Vec<u8>, len: usize) -> Option<Vec<u8>> {
    while input.len() < len {
        let mut chunk = [0; 4096];
        let count = stream.read(&mut chunk).ok().filter(|count| *count > 0)?;
        input.extend_from_slice(&chunk[..count]);
    }
    Some(input.drain(..len).collect())
}

/// Words that no other command has.
fn fresh() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("word-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Its own word, the one that is nobody's, or a failure.
fn is_own(answer: &Result<Reply, Failure>, word: &str) -> bool {
    match answer {
        Ok(Reply::Bytes(bytes)) => bytes == word.as_bytes(),
        Ok(Reply::Simple(text)) => text == "surplus",
        Ok(_) => false,
        Err(_) => true,
    }
}

/// Makes one call; what is wrong with its answer.
async fn call(redis: Redis, call: Call) -> Option<String> {
    let word = fresh();
    let checked = |answer: Result<Reply, Failure>| {
        (!is_own(&answer, &word)).then(|| format!("{word}: {answer:?}"))
    };
    match call {
        Call::Command => checked(redis.cmd(["ECHO", &word]).await),
        Call::Get => checked(redis.cmd(["GET", &word]).await),
        Call::List => {
            let list = redis.pipeline().cmd(["MULTI"]).cmd(["ECHO", &word]);
            let answers = list.cmd(["EXEC"]).run().await;
            // The model answers each command with its last word.
            let words = ["MULTI", &word, "EXEC"];
            let mut wrong = answers
                .iter()
                .zip(words)
                .filter(|(answer, word)| !is_own(answer, word));
            wrong.next().map(|found| format!("{found:?}"))
        }
        Call::GivesUp(looks) => {
            let command = redis.cmd(["ECHO", word.as_str()]);
            let mut command = std::pin::pin!(command);
            let mut looks = looks;
            std::future::poll_fn(|context| {
                looks -= 1;
                match command.as_mut().poll(context) {
                    std::task::Poll::Ready(answer) => std::task::Poll::Ready(checked(answer)),
                    std::task::Poll::Pending if looks == 0 => std::task::Poll::Ready(None),
                    std::task::Poll::Pending => {
                        context.waker().wake_by_ref();
                        std::task::Poll::Pending
                    }
                }
            })
            .await
        }
    }
}

/// Makes the calls all at once, and waits for the end of each.
fn all(tasks: &TaskLoop, redis: &Redis, calls: &[Call]) -> Vec<String> {
    let (tell, told) = mpsc::channel();
    for one in calls {
        let (redis, one, tell) = (redis.clone(), *one, tell.clone());
        let body = async move { tell.send(call(redis, one).await).unwrap() };
        tasks.handle().spawn(body).ok().unwrap().detach();
    }
    let ends = calls.iter().map(|_| told.recv_timeout(PATIENCE).unwrap());
    ends.flatten().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_command_gets_the_answer_of_another(
        script in acts(),
        rounds in proptest::collection::vec(calls(), 1..4),
        in_flight in 1..20_usize,
        connections in 1..3_usize,
        resp3: bool,
        coalesce: bool,
    ) {
        let path = serve(script);
        let tasks = TaskLoop::start("test-model", 10_000).unwrap();
        let mut config = Config::new(Address::Unix(path.clone()));
        (config.timeout, config.backoff) = (TIMEOUT, Duration::from_millis(1));
        (config.longest_backoff, config.in_flight) = (Duration::from_millis(4), in_flight);
        (config.connections, config.resp3, config.coalesce) = (connections, resp3, coalesce);
        let redis = Redis::open(tasks.handle(), config).unwrap();
        for calls in &rounds {
            prop_assert_eq!(all(&tasks, &redis, calls), Vec::<String>::new());
        }
        let _ = std::fs::remove_file(path);
    }
}

/// Commands with words of their own against a real server, some of them given up.
#[test]
fn a_real_server_answers_each_command_with_its_own_word() {
    const AT_ONCE: usize = 2000;
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let wanted = std::env::var("REDIS_SOAK").ok();
    let wanted: usize = wanted.map_or(50_000, |count| count.parse().unwrap());
    let tasks = TaskLoop::start("test-soak", 10_000).unwrap();
    let mut config = Config::new(Address::Unix(server.socket()));
    (config.timeout, config.in_flight) = (PATIENCE, AT_ONCE / 4);
    let redis = Redis::open(tasks.handle(), config).unwrap();
    let mut left = wanted;
    while left > 0 {
        let count = left.min(AT_ONCE);
        let calls: Vec<_> = (0..count)
            .map(|n| match n % 16 {
                15 => Call::GivesUp(1 + (n / 16 % 3) as u8),
                _ => Call::Command,
            })
            .collect();
        assert_eq!(all(&tasks, &redis, &calls), Vec::<String>::new());
        left -= count;
    }
    assert_eq!(
        block_on(redis.cmd(["ECHO", "last"])),
        Ok(Reply::Bytes(b"last".to_vec()))
    );
    println!("{wanted} commands, each with its own answer");
}
