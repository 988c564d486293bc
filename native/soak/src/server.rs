//! The server under test: a child that prints `ready PLAIN TLS [GIVEN]`, the ports it listens on.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// For a request for numbers, and for the end.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy)]
pub struct Ports {
    pub plain: u16,
    pub tls: u16,
    pub given: Option<u16>,
}

pub struct Server {
    child: Child,
    pub ports: Ports,
}

/// What the process has, by name.
pub type Numbers = BTreeMap<String, u64>;

impl Server {
    pub fn start(command: &[String]) -> io::Result<Server> {
        let Some((program, args)) = command.split_first() else {
            return Err(io::Error::other("no command of a server"));
        };
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let out = child
            .stdout
            .take()
            .ok_or_else(|| io::Error::other("no output"))?;
        let mut lines = BufReader::new(out);
        let mut line = String::new();
        loop {
            line.clear();
            if lines.read_line(&mut line)? == 0 {
                return Err(io::Error::other("the server ended before it was ready"));
            }
            if let Some(ports) = ready(&line) {
                // What it prints later is for people.
                std::thread::spawn(move || io::copy(&mut lines, &mut io::stderr()));
                return Ok(Server { child, ports });
            }
            eprint!("{line}");
        }
    }

    pub fn numbers(&self) -> io::Result<Numbers> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.ports.plain))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(
            b"GET /stats/0000000000000000/0 HTTP/1.1\r\nHost: soak\r\nConnection: close\r\n\r\n",
        )?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let (_, body) = text
            .split_once("\r\n\r\n")
            .ok_or_else(|| io::Error::other("no numbers"))?;
        let pair = |line: &str| {
            let (name, number) = line.trim().rsplit_once(' ')?;
            Some((name.to_owned(), number.parse().ok()?))
        };
        Ok(body.lines().filter_map(pair).collect())
    }

    /// Asks it to end. `false`: it did not in time, or failed.
    pub fn stop(mut self) -> io::Result<bool> {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            kill_process(pid, Signal::TERM)?;
        }
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.success());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.child.kill()?;
        self.child.wait()?;
        Ok(false)
    }
}

fn ready(line: &str) -> Option<Ports> {
    let mut words = line.split_whitespace();
    if words.next() != Some("ready") {
        return None;
    }
    let mut port = || words.next().and_then(|word| word.parse().ok());
    Some(Ports {
        plain: port()?,
        tls: port()?,
        given: port(),
    })
}
