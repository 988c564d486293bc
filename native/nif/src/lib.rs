//! The library the BEAM loads: Python for Erlang processes.
//!
//! A call's way: `submit` → `pool` → `worker` → `run` → `reply`. Beside it: `cancel` (`ticket`,
//! `watch`), `callback` (Python calls Erlang), `stream`. Terms and `Env` stop in this crate.

mod ask;
mod atoms;
mod callback;
mod census;
mod closing;
mod courier;
mod current;
mod dag;
mod dag_erlang;
mod dag_graph;
mod dag_more;
mod dag_python;
mod dag_redis;
mod dag_report;
mod dag_run;
mod dag_value;
mod deadline;
mod erts;
mod event_loop;
mod executor;
mod failure;
mod fork;
mod gather;
mod given;
mod guest;
mod here;
mod interp;
mod job;
mod label;
mod lanes;
mod leader;
mod log;
mod nifs;
mod numbers;
mod plain;
mod pool;
mod posix;
mod py_module;
mod py_output;
mod py_send;
mod raw_loop;
mod refs;
mod release;
mod reply;
mod resource;
mod run;
mod runtime;
mod server_options;
mod slot;
mod stopper;
mod story;
mod stream;
mod stream_task;
mod subinterp;
mod submit;
mod task;
mod ticket;
mod vars;
mod watch;
mod worker;

rustler::init!("py_nif", load = nifs::load);
