//! What the server's process has before and after, once it is at rest.

use std::io;
use std::time::Duration;

use crate::server::{Numbers, Server};

/// A kind of objects may have so many more than before: caches and names of the runtime itself.
const SLACK: u64 = 100;

/// The numbers when they do not change any more.
pub fn settled(server: &Server) -> io::Result<Numbers> {
    let mut numbers = server.numbers()?;
    for _ in 0..40 {
        std::thread::sleep(Duration::from_millis(250));
        let next = server.numbers()?;
        let rests = next.iter().all(|(name, number)| {
            name == "memory" || numbers.get(name).is_some_and(|before| number >= before)
        });
        numbers = next;
        if rests {
            break;
        }
    }
    Ok(numbers)
}

/// The number of things of which there are more than there may be.
pub fn print(before: &Numbers, after: &Numbers) -> usize {
    let mut left = 0;
    for (name, &now) in after {
        let was = before.get(name).copied().unwrap_or(0);
        let fine = is_fine(name, was, now);
        left += usize::from(!fine);
        if !fine || !name.starts_with("object:") {
            let verdict = if fine { "fine" } else { "LEFT" };
            println!("  {name:<28} {was:>12} before {now:>12} after  {verdict}");
        }
    }
    left
}

fn is_fine(name: &str, was: u64, now: u64) -> bool {
    match name {
        // It breathes with the allocators.
        "memory" => now <= was + was / 5 + (32 << 20),
        "atoms" => now <= was + 50,
        // Those that stats themselves come by.
        "descriptors" | "ports" | "processes" | "threads" => now <= was + 4,
        _ => now <= was + was / 50 + SLACK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_is_left() {
        let numbers = |count| {
            Numbers::from([
                ("object:Task".to_owned(), count),
                ("descriptors".to_owned(), 9),
            ])
        };
        assert_eq!(print(&numbers(10), &numbers(20)), 0);
        assert_eq!(print(&numbers(10), &numbers(1000)), 1);
        assert!(!is_fine("descriptors", 10, 20) && !is_fine("memory", 1 << 20, 1 << 30));
    }
}
