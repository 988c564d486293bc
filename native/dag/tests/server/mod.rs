//! A Redis server of the test's own, on a Unix socket in a directory of its own.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub struct Server {
    child: Option<Child>,
    dir: PathBuf,
    options: Vec<String>,
}

static NUMBER: AtomicU32 = AtomicU32::new(0);

impl Server {
    /// Nothing, and a line that says why, where Redis is not installed.
    pub fn start(options: &[&str]) -> Option<Self> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("dag-redis-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let mut server = Server {
            child: None,
            dir,
            options: options.iter().map(|option| (*option).to_owned()).collect(),
        };
        server.begin().then_some(server)
    }

    /// Starts it, again where it was killed.
    pub fn begin(&mut self) -> bool {
        let socket = self.socket();
        let child = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--unixsocket"])
            .arg(&socket)
            .arg("--dir")
            .arg(&self.dir)
            .args(&self.options)
            .stdout(Stdio::null())
            .spawn();
        let Ok(child) = child else {
            println!("skipped: redis-server is not installed");
            return false;
        };
        self.child = Some(child);
        let began = Instant::now();
        while UnixStream::connect(&socket).is_err() {
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "redis-server does not start"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
        true
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.join("redis.sock")
    }

    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
