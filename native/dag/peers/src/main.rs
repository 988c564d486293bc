//! The crates `redis` and `fred` on one tokio thread, measured as `examples/redis_rate.rs` measures the
//! loop.
//!
//! `cargo run --release -- <socket of a running server>`, in this folder.

use std::time::{Duration, Instant};

use fred::clients::Client;
use fred::interfaces::{ClientLike, KeysInterface};
use fred::types::Builder;
use fred::types::config::{Config, ServerConfig};
use redis::AsyncCommands;
use redis::aio::MultiplexedConnection;
use rustix::time::{ClockId, clock_gettime};

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// What has to be counted from before the first GET.
struct Began(Instant, Duration);

fn begin() -> Began {
    Began(Instant::now(), cpu())
}

impl Began {
    fn show(self, name: &str, depth: u32, count: u32) {
        let rate = f64::from(count) / self.0.elapsed().as_secs_f64();
        let micros = ((cpu() - self.1) / count).as_secs_f64() * 1e6;
        let name = format!("{name} crate, {depth} in flight");
        println!("{name:<34} {rate:>12.0} {micros:>16.2}");
    }
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

async fn redis_gets(mut connection: MultiplexedConnection, count: u32) {
    for _ in 0..count {
        let value: redis::RedisResult<Option<Vec<u8>>> = connection.get("key:0").await;
        assert!(value.is_ok_and(|value| value.is_some()));
    }
}

async fn redis(socket: &str, depth: u32, count: u32) -> Outcome {
    let client = redis::Client::open(format!("unix://{socket}"))?;
    let mut connection = client.get_multiplexed_async_connection().await?;
    let () = connection.set("key:0", "01234567").await?;
    let began = begin();
    let tasks: Vec<_> = (0..depth)
        .map(|_| tokio::task::spawn_local(redis_gets(connection.clone(), count / depth)))
        .collect();
    for task in tasks {
        task.await?;
    }
    began.show("redis", depth, count);
    Ok(())
}

async fn fred_gets(client: Client, count: u32) {
    for _ in 0..count {
        let value: Result<Option<String>, fred::error::Error> = client.get("key:0").await;
        assert!(value.is_ok_and(|value| value.is_some()));
    }
}

async fn fred(socket: &str, depth: u32, count: u32) -> Outcome {
    let config = Config {
        server: ServerConfig::Unix {
            path: socket.into(),
        },
        ..Config::default()
    };
    let client = Builder::from_config(config).build()?;
    client.init().await?;
    let began = begin();
    let tasks: Vec<_> = (0..depth)
        .map(|_| tokio::task::spawn_local(fred_gets(client.clone(), count / depth)))
        .collect();
    for task in tasks {
        task.await?;
    }
    began.show("fred", depth, count);
    client.quit().await?;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let socket = std::env::args()
        .nth(1)
        .ok_or("the socket of a running server")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        for (depth, count) in [(1, 30_000), (128, 300_000), (256, 300_000)] {
            redis(&socket, depth, count).await?;
            fred(&socket, depth, count).await?;
        }
        Ok(())
    })
}
