//! Who takes the next job.
//!
//! One thread of a crew leads: it takes jobs one after another, so short ones never pay for handing
//! the interpreter around. While a job runs and others wait, a standby looks every 200 µs; if it is
//! still the same job, the standby leads from then on and the old leader steps back when its job
//! ends. So a blocking job never blocks the others. Where jobs can run at the same time (a Python
//! without a GIL) others work beside the leader.
//!
//! Knows neither Python nor the BEAM; compiled whole under loom (`RUSTFLAGS="--cfg loom"`).
#![forbid(unsafe_code)]

pub mod backlog;
mod crew;
mod follow;
mod help;
mod hold;
mod intake;
mod lead;
mod life;
mod lossy;
mod meet;
mod member;
mod patience;
mod queue;
pub mod sync;
#[cfg(all(test, not(loom)))]
mod tests;
mod ticket;
mod window;

pub use crew::{Admitted, Crew, Plan, Refused, Turn};
pub use intake::Intake;
pub use life::{Life, Met};
pub use lossy::LossySet;
pub use meet::{Company, Meet};
pub use member::{Member, spin};
pub use patience::Patience;
pub use queue::Priority;
pub use ticket::{Ticket, Why};
pub use window::{Credits, Parked};
