//! What was counted, and what went wrong.

/// So many faults are shown.
const SHOWN: usize = 20;

#[derive(Default)]
pub struct Tally {
    pub requests: u64,
    pub answered: u64,
    /// Requests whose client left before the answer was complete.
    pub aborted: u64,
    pub messages: u64,
    pub connections: u64,
    pub tls: u64,
    pub given: u64,
    pub websockets: u64,
    /// Answers, or bytes, that belong to somebody else or to nobody.
    pub mismatches: u64,
    /// The server ended the connection before it had answered.
    pub lost: u64,
    /// No answer came in time.
    pub stuck: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Mismatch,
    Lost,
    Stuck,
}

impl Tally {
    pub fn fault(&mut self, fault: Fault, count: u64, what: &str) {
        let place = match fault {
            Fault::Mismatch => &mut self.mismatches,
            Fault::Lost => &mut self.lost,
            Fault::Stuck => &mut self.stuck,
        };
        *place += count;
        let all = self.faults();
        if all <= SHOWN as u64 {
            println!("{fault:?}: {what}");
        }
    }

    pub fn faults(&self) -> u64 {
        self.mismatches + self.lost + self.stuck
    }

    /// All that was asked.
    pub fn asked(&self) -> u64 {
        self.requests + self.messages
    }

    pub fn rows(&self) -> [(&'static str, u64); 11] {
        [
            ("requests", self.requests),
            ("WebSocket messages", self.messages),
            ("answered, every byte right", self.answered),
            ("left by the client", self.aborted),
            ("connections", self.connections),
            ("  over TLS", self.tls),
            ("  given as sockets", self.given),
            ("  WebSockets", self.websockets),
            ("mismatches", self.mismatches),
            ("lost", self.lost),
            ("stuck", self.stuck),
        ]
    }
}
