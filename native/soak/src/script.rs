//! What a client says on one connection, round by round, and what it must hear.

use std::collections::VecDeque;

use crate::answer::{Found, Reader, shown};
use crate::chance::Chance;
use crate::request::{self, Expected};
use crate::socket::{self, Due};
use crate::tally::Tally;

/// Numbers that no two requests share, nor two runs with different seeds.
pub struct Nonces(u64);

impl Nonces {
    pub fn new(seed: u64) -> Self {
        Nonces(seed << 32)
    }

    fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

/// Where a script is after it has heard something.
pub enum Heard {
    /// More must come.
    Part,
    /// All of this round.
    Round,
    /// Nothing must come any more, but the end of the connection.
    End,
}

pub enum Script {
    Http(Http),
    Socket(Socket),
}

pub struct Http {
    rounds: usize,
    reader: Reader,
    due: VecDeque<Expected>,
}

pub struct Socket {
    rounds: usize,
    nonce: u64,
    is_accepted: bool,
    /// It ends by the closing handshake.
    closes: bool,
    buffer: Vec<u8>,
    due: VecDeque<Due>,
}

impl Script {
    pub fn by_chance(chance: &mut Chance) -> Script {
        if chance.once_in(12) {
            return Script::Socket(Socket {
                rounds: 1 + chance.below(12),
                nonce: 0,
                is_accepted: false,
                closes: chance.once_in(2),
                buffer: Vec::new(),
                due: VecDeque::new(),
            });
        }
        Script::Http(Http {
            rounds: 1 + chance.below(6),
            reader: Reader::new(),
            due: VecDeque::new(),
        })
    }

    pub fn rounds(&self) -> usize {
        match self {
            Script::Http(http) => http.rounds,
            Script::Socket(socket) => socket.rounds,
        }
    }

    /// How many answers must still come.
    pub fn due(&self) -> u64 {
        match self {
            Script::Http(http) => http.due.len() as u64,
            Script::Socket(socket) => {
                let messages = socket.due.iter().filter(|due| due.is_message()).count() as u64;
                messages + u64::from(!socket.is_accepted && socket.nonce != 0)
            }
        }
    }

    pub fn kind(&self) -> String {
        match self {
            Script::Http(http) => http
                .due
                .front()
                .map_or_else(String::new, |due| format!("{due:?}")),
            Script::Socket(_) => "WebSocket".to_owned(),
        }
    }

    /// Appends the next round. `false`: there is none.
    pub fn next(
        &mut self,
        out: &mut Vec<u8>,
        chance: &mut Chance,
        nonces: &mut Nonces,
        tally: &mut Tally,
    ) -> bool {
        match self {
            Script::Http(http) => http.next(out, chance, nonces, tally),
            Script::Socket(socket) => socket.next(out, chance, nonces, tally),
        }
    }

    pub fn hear(&mut self, bytes: &[u8], tally: &mut Tally) -> Result<Heard, String> {
        match self {
            Script::Http(http) => http.hear(bytes, tally),
            Script::Socket(socket) => socket.hear(bytes, tally),
        }
    }
}

impl Http {
    fn next(
        &mut self,
        out: &mut Vec<u8>,
        chance: &mut Chance,
        nonces: &mut Nonces,
        tally: &mut Tally,
    ) -> bool {
        if self.rounds == 0 {
            return false;
        }
        self.rounds -= 1;
        let count = if chance.once_in(2) {
            1
        } else {
            1 + chance.below(12)
        };
        let closes = self.rounds == 0 && chance.once_in(2);
        for number in 1..=count {
            let last = closes && number == count;
            self.due
                .push_back(request::write(out, chance, nonces.next(), last));
            tally.requests += 1;
        }
        true
    }

    fn hear(&mut self, bytes: &[u8], tally: &mut Tally) -> Result<Heard, String> {
        self.reader.feed(bytes);
        let mut was_last = false;
        while let Some(due) = self.due.front() {
            match self.reader.step(due) {
                Found::More => return Ok(Heard::Part),
                Found::Wrong(why) => return Err(format!("{why}; {due:?}")),
                Found::Answer => {
                    was_last = due.last;
                    self.due.pop_front();
                    tally.answered += 1;
                }
            }
        }
        if !self.reader.rest().is_empty() {
            return Err(format!(
                "bytes that nobody asked for: {}",
                shown(self.reader.rest())
            ));
        }
        Ok(if was_last { Heard::End } else { Heard::Round })
    }
}

impl Socket {
    fn next(
        &mut self,
        out: &mut Vec<u8>,
        chance: &mut Chance,
        nonces: &mut Nonces,
        tally: &mut Tally,
    ) -> bool {
        if self.nonce == 0 {
            self.nonce = nonces.next();
            tally.requests += 1;
            socket::handshake(out, self.nonce);
            return true;
        }
        let mut due = Vec::new();
        if self.rounds == 0 {
            // By itself: a server answers it at once, though the application has more to say.
            let closes = std::mem::take(&mut self.closes);
            if closes {
                socket::close(out, &mut due);
                self.due.extend(due);
            }
            return closes;
        }
        self.rounds -= 1;
        for _ in 0..1 + chance.below(8) {
            socket::message(out, &mut due, chance, nonces.next());
            tally.messages += 1;
        }
        self.due.extend(due);
        true
    }

    fn hear(&mut self, bytes: &[u8], tally: &mut Tally) -> Result<Heard, String> {
        self.buffer.extend_from_slice(bytes);
        if !self.is_accepted {
            let Some(size) = socket::accepted(&self.buffer, self.nonce)? else {
                return Ok(Heard::Part);
            };
            self.buffer.drain(..size);
            self.is_accepted = true;
            tally.answered += 1;
            tally.websockets += 1;
        }
        let mut closed = false;
        while !self.due.is_empty() {
            let pong = socket::pong_arrives(&self.buffer);
            // The next of its kind.
            let mut all = self.due.iter().enumerate();
            let Some((index, due)) = all.find(|(_, due)| due.is_pong() == pong) else {
                return Err(format!("a pong too many: {}", shown(&self.buffer)));
            };
            let Some(size) = socket::arrived(&self.buffer, due)? else {
                return Ok(Heard::Part);
            };
            tally.answered += u64::from(due.is_message());
            closed = due.is_close();
            self.buffer.drain(..size);
            self.due.remove(index);
        }
        if !self.buffer.is_empty() {
            return Err(format!(
                "frames that nobody asked for: {}",
                shown(&self.buffer)
            ));
        }
        Ok(if closed { Heard::End } else { Heard::Round })
    }
}
