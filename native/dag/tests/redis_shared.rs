//! One connection for all callers: whatever one of them sends and whatever the server answers, nobody
//! gets the reply of another, and nobody waits for ever.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

mod server;

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use dag::redis::{Address, Config, Failure, Redis, Reply};
use reactor::{TaskLoop, block_on};
use server::Server;

const WAIT: Duration = Duration::from_secs(20);

fn tasks() -> TaskLoop {
    TaskLoop::start("test-redis", 10_000).unwrap()
}

fn open(tasks: &TaskLoop, socket: PathBuf) -> Redis {
    let mut config = Config::new(Address::Unix(socket));
    config.timeout = WAIT;
    Redis::open(tasks.handle(), config).unwrap()
}

fn bytes(text: &str) -> Reply {
    Reply::Bytes(text.as_bytes().to_vec())
}

/// Nothing is out of step: each of these gets its own word.
fn is_in_step(redis: &Redis) -> bool {
    (0..3).all(|n| {
        let word = format!("word {n}");
        block_on(redis.cmd(["ECHO", &word])) == Ok(bytes(&word))
    })
}

#[test]
fn an_empty_command_is_refused_and_the_next_reply_is_not_its_own() {
    let embedded = Redis::embedded();
    let none: [&str; 0] = [];
    assert!(block_on(embedded.cmd(none)).is_err());
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let tasks = tasks();
    let redis = open(&tasks, server.socket());
    // Sent by itself it would wait for a reply that is another's.
    let (tell, told) = mpsc::channel();
    let own = redis.clone();
    let empty = async move { tell.send(own.cmd(none).await).unwrap() };
    tasks.handle().spawn(empty).ok().unwrap().detach();
    assert!(is_in_step(&redis));
    assert!(told.recv_timeout(WAIT).unwrap().is_err());
    let list = redis.pipeline().cmd(["ECHO", "a"]).cmd(none);
    assert!(block_on(list.run()).iter().all(Result::is_err));
    assert!(is_in_step(&redis));
}

#[test]
fn a_command_that_changes_the_connection_of_all_is_refused_and_says_so() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let tasks = tasks();
    let redis = open(&tasks, server.socket());
    let commands = [
        "SUBSCRIBE c",
        "psubscribe c*",
        "UNSUBSCRIBE",
        "MONITOR",
        "MULTI",
        "WATCH k",
        "SELECT 1",
        "CLIENT REPLY OFF",
        "client reply skip",
        "CLIENT TRACKING ON",
        "AUTH password",
        "HELLO 3",
        "RESET",
        "QUIT",
        "SYNC",
    ];
    for command in commands {
        let words: Vec<_> = command.split(' ').collect();
        let answer = block_on(redis.cmd(words.clone()));
        let Err(why) = answer else {
            panic!("{command}: {answer:?}")
        };
        let why = why.to_string();
        assert!(why.contains(words[0]) && why.len() > 40, "{why}");
        assert!(!why.contains("password:"), "{why}");
        let list = redis.pipeline().cmd(["ECHO", "a"]).cmd(words);
        assert!(block_on(list.run()).iter().all(Result::is_err));
        assert!(is_in_step(&redis), "after {command}");
    }
    assert!(block_on(redis.cmd(["CLIENT", "ID"])).is_ok());
}

#[test]
fn a_transaction_is_whole_though_other_threads_send_all_the_time() {
    const ROUNDS: i64 = 300;
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let tasks = tasks();
    let mut config = Config::new(Address::Unix(server.socket()));
    // So little room that most have to wait for it.
    (config.timeout, config.in_flight) = (WAIT, 4);
    let redis = Redis::open(tasks.handle(), config).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let others: Vec<_> = (0..3)
        .map(|n| {
            let (redis, over) = (redis.clone(), over.clone());
            thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let word = format!("thread {n}");
                    let answers = redis.pipeline().cmd(["ECHO", &word]).cmd(["ECHO", &word]);
                    let answers = block_on(answers.run());
                    assert_eq!(answers, [Ok(bytes(&word)), Ok(bytes(&word))]);
                }
            })
        })
        .collect();
    let queued = || Ok(Reply::Simple("QUEUED".into()));
    for round in 1..=ROUNDS {
        let list = redis.pipeline().cmd(["MULTI"]).cmd(["INCR", "n"]);
        let answers = block_on(list.cmd(["INCR", "n"]).cmd(["EXEC"]).run());
        let both = Reply::Array(vec![Reply::Int(2 * round - 1), Reply::Int(2 * round)]);
        let begun = Ok(Reply::Simple("OK".into()));
        assert_eq!(answers, [begun, queued(), queued(), Ok(both)]);
    }
    over.store(true, Ordering::Relaxed);
    for other in others {
        other.join().unwrap();
    }
}

/// A server with a script: for each connection what it says to each thing it reads.
fn says(name: &str, connections: Vec<Vec<&'static [u8]>>) -> PathBuf {
    let path = std::env::temp_dir().join(format!("dag-{name}-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        let mut open: Vec<UnixStream> = Vec::new();
        for replies in connections {
            let (mut stream, _) = listener.accept().unwrap();
            for reply in replies {
                let count = stream.read(&mut [0; 512]).unwrap();
                assert!(count > 0);
                stream.write_all(reply).unwrap();
            }
            open.push(stream);
        }
        thread::park();
    });
    path
}

fn asked(tasks: &TaskLoop, redis: &Redis) -> Result<Reply, Failure> {
    let (tell, told) = mpsc::channel();
    let redis = redis.clone();
    let ask = async move { tell.send(redis.cmd(["PING"]).await).unwrap() };
    tasks.handle().spawn(ask).ok().unwrap().detach();
    told.recv_timeout(WAIT).unwrap()
}

#[test]
fn a_reply_too_many_ends_the_connection_after_those_before_it_were_given() {
    let tasks = tasks();
    let path = says("surplus", vec![vec![b":1\r\n:2\r\n"], vec![b":3\r\n"]]);
    let redis = open(&tasks, path.clone());
    assert_eq!(asked(&tasks, &redis), Ok(Reply::Int(1)));
    // By a new connection, or lost with the old one; never the reply too many.
    loop {
        match asked(&tasks, &redis) {
            Ok(reply) => break assert_eq!(reply, Reply::Int(3)),
            Err(why) => assert!(matches!(why, Failure::Protocol(_)), "{why:?}"),
        }
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_reply_before_bytes_that_are_none_reaches_who_asked() {
    let tasks = tasks();
    let path = says("nonsense", vec![vec![b":1\r\n?\r\n"]]);
    let redis = open(&tasks, path.clone());
    assert_eq!(asked(&tasks, &redis), Ok(Reply::Int(1)));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn what_a_server_says_unasked_in_its_greeting_answers_no_command() {
    let tasks = tasks();
    let greeting = b">1\r\n+unasked\r\n%0\r\n";
    let surplus = b"%0\r\n+too much\r\n";
    let path = says("greeting", vec![vec![surplus], vec![greeting, b":7\r\n"]]);
    let mut config = Config::new(Address::Unix(path.clone()));
    (config.timeout, config.resp3) = (WAIT, true);
    let redis = Redis::open(tasks.handle(), config).unwrap();
    // The first connection may be over before anything is asked.
    loop {
        match asked(&tasks, &redis) {
            Ok(reply) => break assert_eq!(reply, Reply::Int(7)),
            Err(why) => assert!(matches!(why, Failure::Protocol(_)), "{why:?}"),
        }
    }
    std::fs::remove_file(path).unwrap();
}
