//! `soak [--count N] [--seed N] [--minutes N] [--patience SECONDS] -- COMMAND`: clients that abort in every phase,
//! against the server that COMMAND starts. Nobody may get another client's answer, nobody may wait for ever, and nothing may be left.
//!
//! Exit code: 0 fine, 1 a fault or a leak, 2 it could not run.

mod answer;
mod chance;
mod crowd;
mod leaks;
mod request;
mod script;
mod server;
mod socket;
mod talk;
mod tally;
mod wire;

use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crowd::{Crowd, Until};
use script::Nonces;
use server::Server;
use talk::Common;
use tally::Tally;

struct Options {
    count: u64,
    seed: u64,
    minutes: u64,
    /// Seconds after which an answer is stuck.
    patience: u64,
    command: Vec<String>,
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(why) => {
            eprintln!("soak: {why}");
            return ExitCode::from(2);
        }
    };
    match soak(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("soak: {error}");
            ExitCode::from(2)
        }
    }
}

fn options() -> Result<Options, String> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let mut options = Options {
        count: 5_000_000,
        seed: now.map_or(1, |now| u64::from(now.subsec_nanos())),
        minutes: 120,
        patience: 60,
        command: Vec::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let place = match word.as_str() {
            "--count" => &mut options.count,
            "--seed" => &mut options.seed,
            "--minutes" => &mut options.minutes,
            "--patience" => &mut options.patience,
            "--" => {
                options.command = words.collect();
                break;
            }
            _ => return Err(format!("unknown option {word}")),
        };
        let number = words.next().map(|text| text.replace('_', "").parse());
        *place = match number {
            Some(Ok(number)) => number,
            _ => return Err(format!("{word} needs a number")),
        };
    }
    Ok(options)
}

fn soak(options: &Options) -> io::Result<bool> {
    let server = Server::start(&options.command)?;
    let seed = options.seed & 0xffff_ffff;
    let Options { count, minutes, .. } = *options;
    println!("{count} requests, at most {minutes} minutes, seed {seed}");
    let common = Common {
        tally: Tally::default(),
        nonces: Nonces::new(seed),
        room: vec![0; 256 << 10],
        patience: Duration::from_secs(options.patience),
    };
    let mut crowd = Crowd::new(server.ports, seed, common)?;
    let deadline = Instant::now() + Duration::from_secs(minutes * 60);
    let until = |asked| Until {
        asked,
        deadline,
        faults: 1000,
    };
    // What is made once and kept is there before the first numbers.
    let warm = (count / 10).clamp(1_000, 200_000);
    crowd.run(&until(warm), |_| {})?;
    let before = leaks::settled(&server)?;
    let begun = Instant::now();
    crowd.run(&until(warm + count), |common| progress(common, begun, warm))?;
    let took = begun.elapsed();
    let after = leaks::settled(&server)?;
    let tally = &crowd.common.tally;
    let asked = tally.asked().saturating_sub(warm);
    println!(
        "{asked} in {:.0} s, {:.0} a second",
        took.as_secs_f64(),
        asked as f64 / took.as_secs_f64()
    );
    for (name, number) in tally.rows() {
        println!("  {name:<28} {number:>12}");
    }
    let left = leaks::print(&before, &after);
    let stopped = server.stop()?;
    Ok(verdict(tally, left, stopped, asked >= count))
}

fn progress(common: &Common, begun: Instant, warm: u64) {
    let seconds = begun.elapsed().as_secs();
    if seconds > 0 && seconds.is_multiple_of(10) {
        let asked = common.tally.asked().saturating_sub(warm);
        let faults = common.tally.faults();
        println!("  {seconds:>5} s {asked:>12} asked, {faults} faults");
    }
}

fn verdict(tally: &Tally, left: usize, stopped: bool, complete: bool) -> bool {
    let known = tally.answered + tally.aborted + tally.faults();
    let checks = [
        (tally.faults() == 0, "an answer was wrong, lost or late"),
        (known == tally.asked(), "the sums do not agree"),
        (left == 0, "something was left behind"),
        (stopped, "the server did not stop in order"),
        (complete, "the time was over"),
    ];
    let failed: Vec<&str> = checks
        .iter()
        .filter(|check| !check.0)
        .map(|check| check.1)
        .collect();
    if failed.is_empty() {
        println!("nobody got another's answer, and nothing was left behind");
    } else {
        println!("FAILED: {}", failed.join("; "));
    }
    failed.is_empty()
}
