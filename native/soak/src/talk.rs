//! One client: a connection, what it says there, and where it leaves.

use std::io;
use std::time::{Duration, Instant};

use crate::chance::Chance;
use crate::script::{Heard, Nonces, Script};
use crate::tally::{Fault, Tally};
use crate::wire::{Leave, Wire};

pub struct Talk {
    wire: Wire,
    /// "plain", "TLS" or "given".
    place: &'static str,
    script: Script,
    chance: Chance,
    out: Vec<u8>,
    sent: usize,
    /// In this turn it says no more than this.
    cut: usize,
    received: usize,
    leaves: Option<Plan>,
    is: Is,
    deadline: Instant,
}

/// Where and how a client leaves before it was answered.
struct Plan {
    round: usize,
    phase: Phase,
    how: Leave,
}

#[derive(Clone, Copy)]
enum Phase {
    /// After so many bytes of a round, in thousandths.
    Sent(usize),
    /// After so many bytes were heard in a round.
    Received(usize),
}

#[derive(PartialEq, Eq)]
enum Is {
    Talking,
    /// It has closed its half.
    Listening,
    /// The server must close the connection.
    Ending,
}

/// What is to be done with it.
#[derive(PartialEq, Eq)]
pub enum Turn {
    Waits,
    /// It has more to say.
    Again,
    Over,
}

/// What all talks of a crowd share.
pub struct Common {
    pub tally: Tally,
    pub nonces: Nonces,
    pub room: Vec<u8>,
    /// An answer that has not come by then is stuck.
    pub patience: Duration,
}

impl Talk {
    pub fn new(wire: Wire, place: &'static str, mut chance: Chance, common: &mut Common) -> Talk {
        let script = Script::by_chance(&mut chance);
        let leaves = chance
            .once_in(2)
            .then(|| Plan::by_chance(&mut chance, script.rounds()));
        let mut talk = Talk {
            wire,
            place,
            script,
            chance,
            out: Vec::new(),
            sent: 0,
            cut: 0,
            received: 0,
            leaves,
            is: Is::Talking,
            deadline: Instant::now(),
        };
        talk.next_round(common);
        talk
    }

    pub fn wire(&self) -> &Wire {
        &self.wire
    }

    pub fn is_late(&self, now: Instant) -> bool {
        now > self.deadline
    }

    /// It has waited for too long.
    pub fn give_up(&self, tally: &mut Tally) {
        let due = self.script.due().max(1);
        let what = format!("{} {}", self.place, self.script.kind());
        tally.fault(Fault::Stuck, due, &what);
    }

    /// Says and hears what it can now.
    pub fn step(&mut self, common: &mut Common) -> Turn {
        loop {
            let sending = self.send();
            if sending == Sending::Leaves {
                return self.leave(common);
            }
            match self.receive(common) {
                Receiving::Waits if sending == Sending::Cut => {
                    let left = self.out.len() - self.sent;
                    self.cut = self.sent + 1 + self.chance.below(left);
                    return Turn::Again;
                }
                // What the handshake kept back can be said now.
                Receiving::Waits if self.wire.is_open_now() => {}
                Receiving::Waits => {
                    let _ = self.wire.flush();
                    return Turn::Waits;
                }
                Receiving::Round => {
                    if !self.next_round(common) {
                        let how = if self.chance.once_in(2) {
                            Leave::Reset
                        } else {
                            Leave::Close
                        };
                        self.wire.leave(how);
                        return Turn::Over;
                    }
                }
                Receiving::Leaves => return self.leave(common),
                Receiving::Over => return Turn::Over,
            }
        }
    }

    fn next_round(&mut self, common: &mut Common) -> bool {
        self.out.clear();
        (self.sent, self.received) = (0, 0);
        self.deadline = Instant::now() + common.patience;
        let Common { tally, nonces, .. } = common;
        let more = self
            .script
            .next(&mut self.out, &mut self.chance, nonces, tally);
        self.cut = self.out.len();
        if more && self.chance.once_in(10) {
            self.cut = 1 + self.chance.below(self.out.len());
        }
        more
    }

    /// The phase in which it leaves this round.
    fn phase(&self) -> Option<Phase> {
        let plan = self.leaves.as_ref()?;
        (plan.round == self.script.rounds()).then_some(plan.phase)
    }

    fn send(&mut self) -> Sending {
        let mut end = self.cut;
        let leaves_at = match self.phase() {
            Some(Phase::Sent(part)) => Some(self.out.len() * part / 1000),
            _ => None,
        };
        if let Some(at) = leaves_at {
            end = end.min(at);
        }
        // Some leave before the first flight of TLS.
        if leaves_at != Some(0) || self.chance.once_in(2) {
            // An end is told by what is read.
            let _ = self.wire.flush();
        }
        while self.sent < end {
            match self.wire.write(&self.out[self.sent..end]) {
                Ok(size) => self.sent += size,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // What came before the end is still to be read; that tells of the end, too.
                Err(_) => return Sending::All,
            }
        }
        match leaves_at {
            Some(at) if self.sent >= at && self.is == Is::Talking => Sending::Leaves,
            _ if self.sent == self.cut && self.cut < self.out.len() => Sending::Cut,
            _ => Sending::All,
        }
    }

    fn receive(&mut self, common: &mut Common) -> Receiving {
        loop {
            let size = match self.wire.read(&mut common.room) {
                Ok(0) => return self.ended(common, "end"),
                Ok(size) => size,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Receiving::Waits,
                Err(error) => return self.ended(common, &error.to_string()),
            };
            self.received += size;
            if self.is == Is::Ending {
                return self.wrong(common, "bytes after the last answer".to_owned());
            }
            match self.script.hear(&common.room[..size], &mut common.tally) {
                Err(why) => return self.wrong(common, why),
                Ok(Heard::End) => self.is = Is::Ending,
                Ok(Heard::Round) if self.is == Is::Talking && self.sent == self.out.len() => {
                    return Receiving::Round;
                }
                Ok(Heard::Round | Heard::Part) => {}
            }
            if let Some(Phase::Received(bytes)) = self.phase()
                && self.received >= bytes
                && self.is == Is::Talking
            {
                return Receiving::Leaves;
            }
        }
    }

    fn leave(&mut self, common: &mut Common) -> Turn {
        let how = self.leaves.take().map_or(Leave::Close, |plan| plan.how);
        self.wire.leave(how);
        if matches!(how, Leave::HalfClose) {
            self.is = Is::Listening;
            return self.step(common);
        }
        common.tally.aborted += self.script.due();
        Turn::Over
    }

    /// The server has ended the connection.
    fn ended(&mut self, common: &mut Common, how: &str) -> Receiving {
        let due = self.script.due();
        match self.is {
            Is::Ending => {}
            Is::Listening => common.tally.aborted += due,
            Is::Talking => {
                let what = format!("{how}; {} {}", self.place, self.script.kind());
                common.tally.fault(Fault::Lost, due.max(1), &what);
            }
        }
        Receiving::Over
    }

    fn wrong(&mut self, common: &mut Common, why: String) -> Receiving {
        let what = format!("{why}; {}", self.place);
        let due = self.script.due().max(1);
        common.tally.fault(Fault::Mismatch, due, &what);
        Receiving::Over
    }
}

#[derive(PartialEq, Eq)]
enum Sending {
    /// All that may be said.
    All,
    Cut,
    Leaves,
}

enum Receiving {
    Waits,
    Round,
    Leaves,
    Over,
}

impl Plan {
    fn by_chance(chance: &mut Chance, rounds: usize) -> Plan {
        let phase = match chance.below(7) {
            0 => Phase::Sent(0),
            1 => Phase::Sent(chance.below(100)),
            2 => Phase::Sent(chance.below(1000)),
            3 | 4 => Phase::Sent(1000),
            5 => Phase::Received(1 + chance.below(500)),
            _ => Phase::Received(1 + chance.below(300_000)),
        };
        let how = match (chance.below(3), phase) {
            (0, Phase::Sent(1000)) => Leave::HalfClose,
            (0 | 1, _) => Leave::Reset,
            _ => Leave::Close,
        };
        Plan {
            round: chance.below(rounds),
            phase,
            how,
        }
    }
}
