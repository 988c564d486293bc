//! Several connections, replies in pieces, and graphs that live through the death of a server.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

mod server;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use dag::redis::{Address, Config, Failure, Redis, Reply};
use dag::{Graph, Lanes, Node, Options, Outcome, Reason, Value};
use reactor::{TaskLoop, block_on};
use server::Server;

const NO_INPUTS: [(&str, Value); 0] = [];

fn config(server: &Server) -> Config {
    Config::new(Address::Unix(server.socket()))
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

#[test]
fn every_address_of_a_name_is_tried() {
    let port = free_port();
    let options = ["--port", &port.to_string(), "--bind", "127.0.0.1"];
    let Some(server) = Server::start(&options) else {
        return;
    };
    let tasks = TaskLoop::start("redis", 1000).unwrap();
    // Nobody listens there.
    let refuses = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let listens = SocketAddr::from(([127, 0, 0, 1], port));
    let config = Config::new(Address::Tcp(vec![refuses, listens]));
    let redis = Redis::open(tasks.handle(), config).unwrap();
    assert_eq!(block_on(redis.get("a")), Ok(None));
    drop(server);
}

#[test]
fn a_password_with_signs_is_given_as_it_is() {
    let port = free_port();
    let options = [
        "--port",
        &port.to_string(),
        "--bind",
        "127.0.0.1",
        "--requirepass",
        "p@ss/word",
        "--user",
        "some@body",
        "on",
        ">s:cret%",
        "~*",
        "+@all",
    ];
    let Some(server) = Server::start(&options) else {
        return;
    };
    let tasks = TaskLoop::start("redis", 1000).unwrap();
    for login in [":p%40ss%2Fword", "some%40body:s%3Acret%25"] {
        for protocol in [2, 3] {
            let url = format!("redis://{login}@127.0.0.1:{port}/1?protocol={protocol}");
            let redis = Redis::open(tasks.handle(), Config::parse(&url).unwrap()).unwrap();
            assert_eq!(block_on(redis.get("a")), Ok(None), "{login}");
        }
    }
    drop(server);
}

#[test]
fn a_command_that_blocks_keeps_only_its_own_connection_busy() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let tasks = TaskLoop::start("test-redis", 100).unwrap();
    let mut config = config(&server);
    config.connections = 3;
    config.timeout = Duration::from_secs(20);
    let redis = Redis::open(tasks.handle(), config).unwrap();
    let own = redis.clone();
    let blocked = async move { own.cmd(["BLPOP", "list", "0"]).await };
    let mut blocked = tasks.handle().spawn(blocked).ok().unwrap();
    // With the first connection blocked, two of three commands are answered.
    let (tell, told) = mpsc::channel();
    for _ in 0..3 {
        let (redis, tell) = (redis.clone(), tell.clone());
        let ask = async move { tell.send(redis.get("key").await).unwrap() };
        tasks.handle().spawn(ask).ok().unwrap().detach();
    }
    for _ in 0..2 {
        assert_eq!(
            told.recv_timeout(Duration::from_secs(20)).unwrap(),
            Ok(None)
        );
    }
    assert!(!blocked.is_finished());
    // One of these meets a free connection, and frees the blocked one.
    for _ in 0..2 {
        let redis = redis.clone();
        let push = async move { redis.cmd(["RPUSH", "list", "x"]).await };
        tasks.handle().spawn(push).ok().unwrap().detach();
    }
    let popped = Reply::Array(vec![
        Reply::Bytes(b"list".into()),
        Reply::Bytes(b"x".into()),
    ]);
    assert_eq!(block_on(&mut blocked).unwrap(), Ok(popped));
    assert_eq!(
        told.recv_timeout(Duration::from_secs(20)).unwrap(),
        Ok(None)
    );
}

#[test]
fn a_pipeline_stays_in_order_on_one_of_several_connections() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let tasks = TaskLoop::start("test-redis", 100).unwrap();
    let mut config = config(&server);
    config.connections = 4;
    let redis = Redis::open(tasks.handle(), config).unwrap();
    for round in 1..20_i64 {
        let mut pipeline = redis.pipeline().cmd(["DEL", "n"]);
        for _ in 0..50 {
            pipeline = pipeline.cmd(["INCR", "n"]);
        }
        let answers = block_on(pipeline.run());
        let counted: Vec<_> = answers.into_iter().skip(1).map(Result::unwrap).collect();
        let expected: Vec<_> = (1..=50).map(Reply::Int).collect();
        assert_eq!(counted, expected, "round {round}");
    }
    let Ok(Reply::Bytes(info)) = block_on(redis.cmd(["INFO", "clients"])) else {
        panic!("no information");
    };
    assert!(
        String::from_utf8(info)
            .unwrap()
            .contains("connected_clients:4")
    );
}

#[test]
fn replies_that_come_cut_at_every_byte_reach_who_asked() {
    const REPLIES: &[u8] = b"$3\r\nabc\r\n*2\r\n:1\r\n$-1\r\n+OK\r\n-ERR no\r\n";
    let path = std::env::temp_dir().join(format!("dag-cut-{}.sock", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        for (cut, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut seen = 0;
            while seen < 4 {
                let mut input = [0; 512];
                let count = stream.read(&mut input).unwrap();
                seen += input[..count].iter().filter(|byte| **byte == b'*').count();
            }
            let (first, rest) = REPLIES.split_at(cut % REPLIES.len());
            stream.write_all(first).unwrap();
            // So that the client has read the first part before the rest is there.
            thread::sleep(Duration::from_micros(500));
            stream.write_all(rest).unwrap();
        }
    });
    let tasks = TaskLoop::start("test-redis", 100).unwrap();
    for cut in 0..REPLIES.len() {
        let redis = Redis::open(tasks.handle(), Config::new(Address::Unix(path.clone())));
        let redis = redis.unwrap();
        let mut pipeline = redis.pipeline();
        for _ in 0..4 {
            pipeline = pipeline.cmd(["PING"]);
        }
        let expected = vec![
            Ok(Reply::Bytes(b"abc".into())),
            Ok(Reply::Array(vec![Reply::Int(1), Reply::Nil])),
            Ok(Reply::Simple("OK".into())),
            Err(Failure::Server("ERR no".into())),
        ];
        assert_eq!(block_on(pipeline.run()), expected, "cut at {cut}");
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_graph_goes_on_though_its_server_is_killed_and_started_again_in_the_middle() {
    let Some(mut server) = Server::start(&[]) else {
        return;
    };
    let lanes = Lanes::start(2, 10).unwrap();
    let redis = Redis::open(lanes.io(), config(&server)).unwrap();
    let (tell, told) = mpsc::channel();
    let mut builder = Graph::builder();
    for n in 0..300 {
        let (redis, tell) = (redis.clone(), tell.clone());
        let node = Node::io(&format!("n{n}"), move |_| {
            let (redis, tell) = (redis.clone(), tell.clone());
            async move {
                // The first answers are from before the end of the server.
                let answer = redis.cmd(["GET", "key"]).await;
                let _ = tell.send(answer.is_ok());
                answer.map(Value::new).map_err(Reason::new)
            }
        });
        let node = node.retries(30, Duration::from_millis(5));
        builder.add(match n {
            0..10 => node,
            _ => node.inputs([format!("n{}", n - 10)]),
        });
    }
    let graph = builder.build().unwrap();
    let run = lanes.run(&graph, NO_INPUTS, Options::default()).unwrap();
    assert!(told.recv().unwrap());
    server.kill();
    while told.recv().unwrap() {}
    assert!(server.begin());
    let report = run.wait().unwrap();
    let is_done = |node: &dag::NodeReport| node.outcome == Some(Outcome::Done);
    assert!(report.nodes.iter().all(is_done));
}

#[test]
fn a_hundred_thousand_reads_share_the_room_of_a_connection() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let lanes = Lanes::start(1, 10).unwrap();
    let mut config = config(&server);
    config.timeout = Duration::from_secs(60);
    let redis = Redis::open(lanes.io(), config).unwrap();
    let mut builder = Graph::builder();
    for n in 0..100_000 {
        let redis = redis.clone();
        builder.add(Node::io(&n.to_string(), move |_| {
            let redis = redis.clone();
            async move {
                Ok(Value::new(
                    redis.cmd(["ECHO".to_owned(), n.to_string()]).await?,
                ))
            }
        }));
    }
    let graph = builder.build().unwrap();
    let run = lanes.run(&graph, NO_INPUTS, Options::default()).unwrap();
    let report = run.wait().unwrap();
    for (n, node) in report.nodes.iter().enumerate() {
        let echo = node.value.as_ref().and_then(Value::get::<Reply>);
        assert_eq!(echo, Some(&Reply::Bytes(n.to_string().into_bytes())));
    }
}

#[test]
fn replies_to_a_cancelled_run_reach_nobody_else() {
    const READS: usize = 1000;
    let path = std::env::temp_dir().join(format!("dag-held-{}.sock", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    let (tell, told) = mpsc::channel();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut input, mut seen) = ([0; 4096], 0);
        for wanted in [READS, READS + 1] {
            while seen < wanted {
                let count = stream.read(&mut input).unwrap();
                seen += input[..count].iter().filter(|byte| **byte == b'*').count();
            }
            tell.send(seen).unwrap();
        }
        // Numbered in the order of the commands.
        let replies: String = (1..=READS + 1).map(|n| format!(":{n}\r\n")).collect();
        stream.write_all(replies.as_bytes()).unwrap();
        stream
    });
    let lanes = Lanes::start(1, 10).unwrap();
    let mut config = Config::new(Address::Unix(path.clone()));
    config.timeout = Duration::from_secs(20);
    let redis = Redis::open(lanes.io(), config).unwrap();
    let mut builder = Graph::builder();
    for n in 0..READS {
        let redis = redis.clone();
        builder.add(Node::io(&n.to_string(), move |_| {
            let redis = redis.clone();
            async move { Ok(Value::new(redis.cmd(["GET", "key"]).await?)) }
        }));
    }
    let graph = builder.build().unwrap();
    let options = Options::default().partial();
    let run = lanes.run(&graph, NO_INPUTS, options).unwrap();
    assert_eq!(told.recv().unwrap(), READS);
    run.cancel();
    let report = run.wait().unwrap();
    let is_cancelled = |node: &dag::NodeReport| node.outcome == Some(Outcome::Cancelled);
    assert!(report.nodes.iter().all(is_cancelled));
    let mine = block_on(redis.cmd(["GET", "key"]));
    assert_eq!(mine, Ok(Reply::Int(READS as i64 + 1)));
    drop(server.join().unwrap());
    std::fs::remove_file(path).unwrap();
}
