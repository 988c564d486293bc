//! The client: against a real server, against servers that misbehave, and the embedded store.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

mod server;

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use dag::redis::{Address, Config, Failure, Redis, Reply};
use reactor::{TaskLoop, block_on};
use server::Server;

const SHORT: Duration = Duration::from_millis(30);

fn tasks() -> TaskLoop {
    TaskLoop::start("test-redis", 10_000).unwrap()
}

fn config(server: &Server) -> Config {
    Config::new(Address::Unix(server.socket()))
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    Some(text.as_bytes().to_vec())
}

/// What every backend must answer alike.
async fn converse(redis: &Redis) -> Result<(), Failure> {
    redis.set("a", "1").await?;
    assert_eq!(redis.get("a").await?, bytes("1"));
    assert_eq!(redis.get("none").await?, None);
    assert_eq!(redis.mget(["a", "none"]).await?, [bytes("1"), None]);
    redis.cmd(["HSET", "h", "x", "1", "y", "2"]).await?;
    assert_eq!(redis.hget("h", "y").await?, bytes("2"));
    assert_eq!(redis.hmget("h", ["x", "z"]).await?, [bytes("1"), None]);
    let pairs = [("x", "1"), ("y", "2")].map(|(k, v)| (k.into(), v.into()));
    assert_eq!(redis.hgetall("h").await?, pairs);
    redis.cmd(["RPUSH", "l", "a", "b", "c"]).await?;
    assert_eq!(redis.lrange("l", -2, -1).await?, [b"b", b"c"]);
    assert_eq!(redis.lrange("l", 5, 9).await?, Vec::<Vec<u8>>::new());
    redis.cmd(["SADD", "s", "m"]).await?;
    assert_eq!(redis.smembers("s").await?, [b"m"]);
    redis.cmd(["ZADD", "z", "2", "two", "1", "one"]).await?;
    assert_eq!(redis.zrange("z", 0, -1).await?, [b"one", b"two"]);
    assert_eq!(redis.cmd(["INCR", "n"]).await?, Reply::Int(1));
    assert_eq!(redis.cmd(["ECHO", "e"]).await?, Reply::Bytes(b"e".into()));
    let wrong = redis.cmd(["INCR", "h"]).await;
    assert!(matches!(wrong, Err(Failure::Server(text)) if text.starts_with("WRONGTYPE")));
    let unknown = redis.cmd(["NONSENSE"]).await;
    assert!(matches!(unknown, Err(Failure::Server(_))));
    let answers = redis
        .pipeline()
        .cmd(["GET", "a"])
        .cmd(["INCR", "h"])
        .cmd(["DEL", "a"]);
    let answers = answers.run().await;
    assert_eq!(answers[0], Ok(Reply::Bytes(b"1".to_vec())));
    assert!(answers[1].is_err());
    assert_eq!(answers[2], Ok(Reply::Int(1)));
    Ok(())
}

#[test]
fn the_embedded_store_answers_as_a_server_does() {
    block_on(converse(&Redis::embedded())).unwrap();
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let tasks = tasks();
    for resp3 in [false, true] {
        let mut config = config(&server);
        config.resp3 = resp3;
        let redis = Redis::open(tasks.handle(), config).unwrap();
        block_on(converse(&redis)).unwrap();
        let sum = redis.eval("return ARGV[1] + #KEYS", ["k"], ["4"]);
        assert_eq!(block_on(sum), Ok(Reply::Int(5)));
        block_on(redis.cmd(["FLUSHALL"])).unwrap();
    }
}

#[test]
fn a_key_of_the_embedded_store_is_gone_when_its_time_is_over() {
    let redis = Redis::embedded();
    block_on(redis.cmd(["SET", "k", "v", "PX", "0"])).unwrap();
    assert_eq!(block_on(redis.get("k")), Ok(None));
    assert_eq!(block_on(redis.cmd(["TTL", "k"])), Ok(Reply::Int(-2)));
}

#[test]
fn a_password_and_a_database_are_given_at_the_start() {
    let Some(server) = Server::start(&["--requirepass", "secret"]) else {
        return;
    };
    let tasks = tasks();
    for resp3 in [false, true] {
        let mut config = config(&server);
        (config.resp3, config.database) = (resp3, 3);
        let refused = Redis::open(tasks.handle(), config.clone()).unwrap();
        assert!(matches!(
            block_on(refused.get("a")),
            Err(Failure::Server(_))
        ));
        config.password = Some("secret".to_owned());
        let redis = Redis::open(tasks.handle(), config).unwrap();
        assert_eq!(block_on(redis.get("a")), Ok(None));
    }
}

#[test]
fn hundreds_of_gets_are_in_flight_and_each_has_its_own_value() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let tasks = tasks();
    let redis = Redis::open(tasks.handle(), config(&server)).unwrap();
    let gets: Vec<_> = (0..500)
        .map(|n| {
            let redis = redis.clone();
            let task = tasks.handle().spawn(async move {
                let key = format!("k{n}");
                redis.set(&key, &key).await?;
                redis.get(&key).await
            });
            task.ok().unwrap()
        })
        .collect();
    for (n, get) in gets.into_iter().enumerate() {
        assert_eq!(block_on(get).unwrap(), Ok(bytes(&format!("k{n}"))));
    }
}

#[test]
fn a_server_killed_and_started_again_fails_what_is_pending_and_serves_what_comes_later() {
    let Some(mut server) = Server::start(&[]) else {
        return;
    };
    let tasks = tasks();
    let redis = Redis::open(tasks.handle(), config(&server)).unwrap();
    assert_eq!(block_on(redis.get("a")), Ok(None));
    let spawn = |args: &'static [&'static str]| {
        let redis = redis.clone();
        let sent = async move { redis.cmd(args.iter().copied()).await };
        tasks.handle().spawn(sent).ok().unwrap()
    };
    let blocked = spawn(&["BLPOP", "never", "0"]);
    let other = Redis::open(tasks.handle(), config(&server)).unwrap();
    loop {
        let Ok(Reply::Bytes(text)) = block_on(other.cmd(["INFO", "clients"])) else {
            panic!("no information");
        };
        if String::from_utf8_lossy(&text).contains("blocked_clients:1") {
            break;
        }
    }
    // Behind the blocked one: answered only by the end of the connection.
    let behind = spawn(&["PING"]);
    server.kill();
    for pending in [blocked, behind] {
        assert!(matches!(block_on(pending), Ok(Err(Failure::Lost(_)))));
    }
    assert!(matches!(block_on(redis.get("a")), Err(Failure::Lost(_))));
    assert!(server.begin());
    while block_on(redis.get("a")).is_err() {}
}

/// A server of the test's own: `serve` gets each connection.
fn fake(serve: impl Fn(UnixStream) + Send + 'static) -> (PathBuf, Config) {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("dag-fake-{}-{number}.sock", std::process::id());
    let path = std::env::temp_dir().join(name);
    let listener = UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            serve(stream.unwrap());
        }
    });
    let mut config = Config::new(Address::Unix(path.clone()));
    config.timeout = SHORT;
    (path, config)
}

fn get_all(tasks: &TaskLoop, redis: &Redis, count: usize) -> Vec<(usize, Result<Reply, Failure>)> {
    let (tx, rx) = std::sync::mpsc::channel();
    for n in 0..count {
        let (redis, tx) = (redis.clone(), tx.clone());
        let task = tasks.handle().spawn(async move {
            let answer = redis.cmd(["GET".to_owned(), n.to_string()]).await;
            tx.send((n, answer)).unwrap();
        });
        task.ok().unwrap().detach();
    }
    drop(tx);
    rx.iter().collect()
}

#[test]
fn a_lost_connection_fails_every_pending_command_once_and_in_order() {
    let (path, config) = fake(|mut stream| {
        let _ = stream.read(&mut [0; 64]);
    });
    let tasks = tasks();
    let redis = Redis::open(tasks.handle(), config).unwrap();
    let answers = get_all(&tasks, &redis, 200);
    let order: Vec<_> = answers.iter().map(|(n, _)| *n).collect();
    assert_eq!(order, (0..200).collect::<Vec<_>>());
    let lost = |answer: &Result<Reply, Failure>| matches!(answer, Err(Failure::Lost(_)));
    assert!(answers.iter().all(|(_, answer)| lost(answer)));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_silent_server_times_out_each_command() {
    let (path, config) = fake(std::mem::forget);
    let tasks = tasks();
    let redis = Redis::open(tasks.handle(), config).unwrap();
    let answers = get_all(&tasks, &redis, 50);
    assert_eq!(answers.len(), 50);
    assert!(
        answers
            .iter()
            .all(|(_, answer)| *answer == Err(Failure::TimedOut))
    );
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_connection_that_stays_silent_is_given_up_and_made_anew() {
    let connections = AtomicUsize::new(0);
    let (path, config) = fake(move |mut stream| {
        if connections.fetch_add(1, Ordering::SeqCst) == 0 {
            return std::mem::forget(stream);
        }
        thread::spawn(move || {
            let mut input = [0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut input) {
                let commands = input[..count].iter().filter(|byte| **byte == b'*').count();
                stream.write_all(&b"+here\r\n".repeat(commands)).unwrap();
            }
        });
    });
    let tasks = tasks();
    let redis = Redis::open(tasks.handle(), config).unwrap();
    while block_on(redis.get("a")) != Ok(bytes("here")) {}
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_late_reply_goes_to_the_command_it_belongs_to() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let (path, config) = fake(move |mut stream| {
        let _ = stream.read(&mut [0; 64]);
        wait.lock().unwrap().recv().unwrap();
        stream.write_all(b"+late\r\n+on time\r\n").unwrap();
        std::mem::forget(stream);
    });
    let tasks = tasks();
    let redis = Redis::open(tasks.handle(), config).unwrap();
    assert_eq!(block_on(redis.get("a")), Err(Failure::TimedOut));
    let second = redis.clone();
    let second = tasks
        .handle()
        .spawn(async move { second.get("b").await })
        .ok()
        .unwrap();
    go.send(()).unwrap();
    // On a slow machine it may be too late for the second one, too.
    let second = block_on(second).unwrap();
    assert!(
        second == Ok(bytes("on time")) || second == Err(Failure::TimedOut),
        "{second:?}"
    );
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_server_that_reads_only_while_it_can_write_does_not_deadlock_the_client() {
    // Answers each command with more bytes than it took, and takes nothing while its own
    // buffer is full.
    let (path, mut config) = fake(|mut stream| {
        thread::spawn(move || {
            let mut input = [0; 4096];
            let reply = [b"$8000\r\n", &[b'x'; 8000][..], b"\r\n"].concat();
            while let Ok(count @ 1..) = stream.read(&mut input) {
                for _ in input[..count].iter().filter(|byte| **byte == b'*') {
                    if stream.write_all(&reply).is_err() {
                        return;
                    }
                }
            }
        });
    });
    config.timeout = Duration::from_secs(20);
    let tasks = tasks();
    let redis = Redis::open(tasks.handle(), config).unwrap();
    let value = "v".repeat(8000);
    let sets: Vec<_> = (0..2000)
        .map(|_| {
            let (redis, value) = (redis.clone(), value.clone());
            let set = async move { redis.cmd(["SET", "key", &value]).await };
            tasks.handle().spawn(set).ok().unwrap()
        })
        .collect();
    for set in sets {
        assert_eq!(block_on(set).unwrap(), Ok(Reply::Bytes(vec![b'x'; 8000])));
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn commands_without_room_wait_and_none_is_lost() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let tasks = tasks();
    let mut config = config(&server);
    config.in_flight = 4;
    let redis = Redis::open(tasks.handle(), config).unwrap();
    let answers = get_all(&tasks, &redis, 300);
    assert!(answers.len() == 300 && answers.iter().all(|(_, answer)| *answer == Ok(Reply::Nil)));
}

#[test]
fn equal_gets_of_one_turn_are_sent_once_but_never_across_a_write() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let (path, mut config) = fake(move |mut stream| {
        let counted = counted.clone();
        thread::spawn(move || {
            let mut input = [0; 65536];
            while let Ok(count @ 1..) = stream.read(&mut input) {
                let commands = input[..count].iter().filter(|byte| **byte == b'*').count();
                counted.fetch_add(commands, Ordering::SeqCst);
                stream.write_all(&b"+v\r\n".repeat(commands)).unwrap();
            }
        });
    });
    config.coalesce = true;
    config.timeout = Duration::from_secs(20);
    let tasks = tasks();
    let redis = Redis::open(tasks.handle(), config).unwrap();
    assert!(block_on(redis.cmd(["PING"])).is_ok());
    asked.store(0, Ordering::SeqCst);
    // On the loop, so that it is one turn.
    let own = redis.clone();
    let one_turn = async move {
        let all = own
            .pipeline()
            .cmd(["GET", "a"])
            .cmd(["GET", "a"])
            .cmd(["SET", "a", "1"]);
        all.cmd(["GET", "a"])
            .cmd(["GET", "b"])
            .cmd(["GET", "a"])
            .run()
            .await
    };
    let answers = block_on(tasks.handle().spawn(one_turn).ok().unwrap()).unwrap();
    assert!(
        answers
            .iter()
            .all(|answer| *answer == Ok(Reply::Simple("v".to_owned())))
    );
    // GET a, SET a, GET a, GET b.
    assert_eq!(asked.load(Ordering::SeqCst), 4);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_stopped_loop_answers_every_pending_command_as_closed() {
    let (path, mut config) = fake(std::mem::forget);
    config.timeout = Duration::from_secs(20);
    let tasks = tasks();
    let redis = Redis::open(tasks.handle(), config).unwrap();
    let waiting = redis.clone();
    let pending = thread::spawn(move || block_on(waiting.get("a")));
    tasks.stop();
    assert_eq!(pending.join().unwrap(), Err(Failure::Closed));
    assert_eq!(block_on(redis.get("b")), Err(Failure::Closed));
    std::fs::remove_file(path).unwrap();
}
