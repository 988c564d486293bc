//! External Term Format.
#![forbid(unsafe_code)]
