//! The crate `redis` on one tokio thread, measured as `examples/redis_rate.rs` measures the loop.
//!
//! `cargo run --release -- <socket of a running server>`, in this folder.

use std::time::{Duration, Instant};

use redis::AsyncCommands;
use redis::aio::MultiplexedConnection;
use rustix::time::{ClockId, clock_gettime};

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

async fn gets(mut connection: MultiplexedConnection, count: u32) -> redis::RedisResult<()> {
    for _ in 0..count {
        let value: Option<Vec<u8>> = connection.get("key:0").await?;
        assert!(value.is_some());
    }
    Ok(())
}

async fn measure(socket: &str, depth: u32, count: u32) -> redis::RedisResult<()> {
    let client = redis::Client::open(format!("unix://{socket}"))?;
    let mut connection = client.get_multiplexed_async_connection().await?;
    let () = connection.set("key:0", "01234567").await?;
    let (began, used) = (Instant::now(), cpu());
    let tasks: Vec<_> = (0..depth)
        .map(|_| tokio::task::spawn_local(gets(connection.clone(), count / depth)))
        .collect();
    for task in tasks {
        task.await.map_err(std::io::Error::other)??;
    }
    let rate = f64::from(count) / began.elapsed().as_secs_f64();
    let micros = ((cpu() - used) / count).as_secs_f64() * 1e6;
    println!(
        "{:<34} {rate:>12.0} {micros:>16.2}",
        format!("redis crate, {depth} in flight")
    );
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
            measure(&socket, depth, count).await?;
        }
        Ok(())
    })
}
