//! The codec against a real Python, in one process: Python can be initialised only once.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod arrays;
mod atoms;
mod calls;
mod converters;
mod decoding;
mod encoding;
mod fuzz;
mod handles;
mod harness;
mod hostile;
mod plain;
mod round_trip;
mod segments;
