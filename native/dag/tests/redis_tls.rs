//! The client over TLS, against a `redis-server` with a certificate of the test's own.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use dag::redis::{Config, Failure, Redis};
use reactor::{TaskLoop, block_on};

struct Server {
    child: Child,
    dir: PathBuf,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn openssl(dir: &Path, args: &str) -> bool {
    let mut command = Command::new("openssl");
    let command = command.args(args.split_whitespace()).current_dir(dir);
    let status = command.stderr(Stdio::null()).stdout(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// An authority, a server certified by it, and another authority that has nothing to do with it.
fn certify(dir: &Path) -> bool {
    let authority = |name: &str| {
        let args = format!(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN={name} -keyout {name}.key -out {name}.pem"
        );
        openssl(dir, &args)
    };
    std::fs::write(dir.join("names"), "subjectAltName=DNS:localhost\n").unwrap();
    authority("ours")
        && authority("other")
        && openssl(
            dir,
            "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=server -keyout s.key -out s.csr",
        )
        && openssl(
            dir,
            "x509 -req -in s.csr -CA ours.pem -CAkey ours.key -CAcreateserial -days 2 -extfile names -out s.pem",
        )
}

/// Below those that the system gives to clients: on one of them our own attempts to connect could
/// meet themselves before the server is there.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + (std::process::id() % 10_000) as u16;
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed) % 1000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Nothing, and a line that says why, where something is not installed.
fn start(test: &str) -> Option<Server> {
    let dir = std::env::temp_dir().join(format!("dag-tls-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    if !certify(&dir) {
        println!("skipped: openssl is not installed");
        return None;
    }
    let port = free_port();
    let child = Command::new("redis-server")
        .args([
            "--port",
            "0",
            "--save",
            "",
            "--bind",
            "127.0.0.1",
            "--tls-port",
        ])
        .arg(port.to_string())
        .args(["--tls-cert-file", "s.pem", "--tls-key-file", "s.key"])
        .args(["--tls-ca-cert-file", "ours.pem", "--tls-auth-clients", "no"])
        .args(["--requirepass", "secret"])
        .current_dir(&dir)
        .stdout(Stdio::null())
        .spawn();
    let Ok(child) = child else {
        println!("skipped: redis-server is not installed");
        return None;
    };
    let server = Server { child, dir, port };
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "it does not start"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    Some(server)
}

fn open(tasks: &TaskLoop, server: &Server, host: &str, authority: &str) -> Redis {
    let file = server.dir.join(authority);
    let url = format!(
        "rediss://:secret@{host}:{}/1?cacert={}",
        server.port,
        file.display()
    );
    Redis::open(tasks.handle(), Config::parse(&url).unwrap()).unwrap()
}

#[test]
fn commands_small_and_large_go_both_ways() {
    let Some(server) = start("both") else { return };
    let tasks = TaskLoop::start("tls", 10_000).unwrap();
    let redis = open(&tasks, &server, "localhost", "ours.pem");
    block_on(async {
        redis.set("small", "1").await?;
        // Larger than every buffer on the way, so that both sides have to wait.
        let large = vec![b'x'; 4 << 20];
        redis.set("large", large.clone()).await?;
        let mut pipeline = redis.pipeline();
        for _ in 0..1000 {
            pipeline = pipeline.cmd(["GET", "small"]);
        }
        for answer in pipeline.cmd(["STRLEN", "large"]).run().await {
            answer?;
        }
        assert_eq!(redis.get("large").await?, Some(large));
        Ok::<(), Failure>(())
    })
    .unwrap();
}

#[test]
fn a_server_that_another_authority_has_certified_is_refused() {
    let Some(server) = start("other") else { return };
    let tasks = TaskLoop::start("tls", 100).unwrap();
    let redis = open(&tasks, &server, "localhost", "other.pem");
    let told = block_on(redis.get("x")).unwrap_err().to_string();
    assert!(told.contains("certificate"), "{told}");
}

#[test]
fn a_server_of_another_name_is_refused() {
    let Some(server) = start("name") else { return };
    let tasks = TaskLoop::start("tls", 100).unwrap();
    // Its certificate says localhost.
    let redis = open(&tasks, &server, "127.0.0.1", "ours.pem");
    let told = block_on(redis.get("x")).unwrap_err().to_string();
    assert!(told.contains("certificate"), "{told}");
}
