//! Many clients at once, on one thread.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustls::ClientConfig;

use crate::chance::Chance;
use crate::server::Ports;
use crate::talk::{Common, Talk, Turn};
use crate::wire::{Wire, config};

/// Clients at a time.
const CLIENTS: usize = 96;
const EVENTS: usize = 256;

pub struct Crowd {
    epoll: OwnedFd,
    ports: Ports,
    tls: Arc<ClientConfig>,
    seed: u64,
    /// How many clients there were.
    clients: u64,
    talks: Vec<Option<Talk>>,
    /// Those that have more to say.
    again: Vec<usize>,
    pub common: Common,
}

/// When a run ends.
pub struct Until {
    pub asked: u64,
    pub deadline: Instant,
    /// More faults tell no more.
    pub faults: u64,
}

impl Crowd {
    pub fn new(ports: Ports, seed: u64, common: Common) -> io::Result<Crowd> {
        Ok(Crowd {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            ports,
            tls: config().map_err(io::Error::other)?,
            seed,
            clients: 0,
            talks: (0..CLIENTS).map(|_| None).collect(),
            again: Vec::new(),
            common,
        })
    }

    /// Has clients ask until so much was asked, and all that were are answered. `progress` is called each second.
    pub fn run(&mut self, until: &Until, mut progress: impl FnMut(&Common)) -> io::Result<()> {
        let mut looked = Instant::now();
        while self.fill(until)? {
            self.turn()?;
            if looked.elapsed() >= Duration::from_secs(1) {
                looked = Instant::now();
                self.give_up(looked);
                progress(&self.common);
            }
        }
        Ok(())
    }

    /// New clients in the places of those that have left. `false`: nobody is left, and no more come.
    fn fill(&mut self, until: &Until) -> io::Result<bool> {
        let tally = &self.common.tally;
        let enough = tally.asked() >= until.asked
            || tally.faults() >= until.faults
            || Instant::now() >= until.deadline;
        if enough {
            return Ok(self.talks.iter().any(Option::is_some));
        }
        for place in 0..CLIENTS {
            if self.talks[place].is_none() {
                self.begin(place)?;
            }
        }
        Ok(true)
    }

    fn begin(&mut self, place: usize) -> io::Result<()> {
        self.clients += 1;
        let mut chance = Chance::new(self.seed ^ self.clients);
        let tally = &mut self.common.tally;
        tally.connections += 1;
        let (port, tls, name) = match (chance.below(10), self.ports.given) {
            (0, _) => (self.ports.tls, Some(&self.tls), "TLS"),
            (1..4, Some(given)) => (given, None, "given"),
            _ => (self.ports.plain, None, "plain"),
        };
        tally.tls += u64::from(name == "TLS");
        tally.given += u64::from(name == "given");
        let wire = Wire::connect(port, tls, &mut chance)?;
        let events = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, &wire, EventData::new_u64(place as u64), events)?;
        self.talks[place] = Some(Talk::new(wire, name, chance, &mut self.common));
        Ok(())
    }

    fn turn(&mut self) -> io::Result<()> {
        let mut ready = std::mem::take(&mut self.again);
        let wait = Timespec {
            tv_sec: 0,
            tv_nsec: if ready.is_empty() { 100_000_000 } else { 0 },
        };
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut events),
            Some(&wait),
        ) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        ready.extend(events.iter().map(|event| { event.data }.u64() as usize));
        for place in ready {
            // It may have ended in this very turn.
            let Some(talk) = &mut self.talks[place] else {
                continue;
            };
            match talk.step(&mut self.common) {
                Turn::Waits => {}
                Turn::Again => self.again.push(place),
                Turn::Over => self.end(place),
            }
        }
        Ok(())
    }

    fn end(&mut self, place: usize) {
        if let Some(talk) = self.talks[place].take() {
            // Before it is closed: a copy of it elsewhere would keep it in the set.
            let _ = epoll::delete(&self.epoll, talk.wire());
        }
    }

    fn give_up(&mut self, now: Instant) {
        for place in 0..CLIENTS {
            if let Some(talk) = &self.talks[place]
                && talk.is_late(now)
            {
                talk.give_up(&mut self.common.tally);
                self.end(place);
            }
        }
    }
}
