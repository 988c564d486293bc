//! GETs per second and client CPU per GET, by how many are in flight on one connection; and the
//! same work by eight threads that block, each on a connection of its own.
//!
//! `cargo run --release -p dag --example redis_rate [socket]`: without a socket it starts a server.
#![allow(clippy::unwrap_used)]

#[path = "../tests/server/mod.rs"]
mod server;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dag::redis::resp::{Decoder, encode};
use dag::redis::{Address, Config, Redis};
use reactor::{TaskLoop, block_on};
use rustix::time::{ClockId, clock_gettime};
use server::Server;

const ROUNDS: usize = 7;

/// What a row of the table says.
struct Rate {
    per_second: f64,
    cpu: Duration,
}

fn main() {
    let given = std::env::args().nth(1).map(PathBuf::from);
    let started = match given {
        Some(_) => None,
        None => Server::start(&[]),
    };
    let Some(socket) = given.or_else(|| started.as_ref().map(Server::socket)) else {
        return;
    };
    println!("{:<34} {:>12} {:>16}", "", "GET/s", "client µs/GET");
    for (depth, count) in [(1, 30_000), (8, 100_000), (128, 600_000), (256, 600_000)] {
        let rate = measure(count, || on_the_loop(&socket, depth, count));
        show(&format!("loop, {depth} in flight"), &rate);
    }
    // Taken in turns, and the middle of their ratios: others may be at work on this machine.
    let mut rounds: Vec<_> = (0..ROUNDS).map(|_| before_and_after(&socket)).collect();
    rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (times, before) = &rounds[ROUNDS / 2];
    show("8 blocking threads", before);
    println!("1 loop thread with 256 in flight: {times:.1} times the 8 blocking threads");
}

fn before_and_after(socket: &Path) -> (f64, Rate) {
    let before = measure(40_000, || blocking(socket, 8, 40_000));
    let after = measure(400_000, || on_the_loop(socket, 256, 400_000));
    (after.per_second / before.per_second, before)
}

fn show(name: &str, rate: &Rate) {
    let micros = rate.cpu.as_secs_f64() * 1e6;
    println!("{name:<34} {:>12.0} {micros:>16.2}", rate.per_second);
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn measure(count: u32, work: impl FnOnce()) -> Rate {
    let (began, used) = (Instant::now(), cpu());
    work();
    Rate {
        per_second: f64::from(count) / began.elapsed().as_secs_f64(),
        cpu: (cpu() - used) / count,
    }
}

fn on_the_loop(socket: &Path, depth: u32, count: u32) {
    let tasks = TaskLoop::start("rate", 10_000).unwrap();
    let redis = Redis::open(tasks.handle(), Config::new(Address::Unix(socket.into()))).unwrap();
    block_on(redis.set("key:0", "01234567")).unwrap();
    let running: Vec<_> = (0..depth)
        .map(|_| {
            let redis = redis.clone();
            let gets = async move {
                for _ in 0..count / depth {
                    assert!(redis.get("key:0").await.unwrap().is_some());
                }
            };
            tasks.handle().spawn(gets).ok().unwrap()
        })
        .collect();
    for task in running {
        block_on(task).unwrap();
    }
}

fn blocking(socket: &Path, threads: u32, count: u32) {
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut stream = UnixStream::connect(socket).unwrap();
                let mut command = Vec::new();
                encode(&mut command, &["GET", "key:0"]);
                let mut input = [0; 4096];
                for _ in 0..count / threads {
                    stream.write_all(&command).unwrap();
                    let read = stream.read(&mut input).unwrap();
                    let reply = Decoder::default().decode(&input[..read], &mut 0);
                    assert!(reply.unwrap().is_some());
                }
            });
        }
    });
}
