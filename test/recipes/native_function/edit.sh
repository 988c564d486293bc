# shellcheck shell=sh
# shellcheck disable=SC2034 # for run.sh
heading="How to add a native function (NIF)"

append native/nif/src/nifs.rs <<'RUST'

/// The number of jobs in the queue of a pool, and that many more.
#[rustler::nif]
fn made_up(pool: ResourceArc<PoolRef>, more: usize) -> usize {
    pool.pool.crew.queued() + more
}
RUST

after src/py_nif.erl '^    nothing/0, ' <<'ERLANG'
    made_up/2,
ERLANG

append src/py_nif.erl <<'ERLANG'

-spec made_up(pool(), More :: non_neg_integer()) -> non_neg_integer().
made_up(_Pool, _More) -> ?NOT_LOADED.
ERLANG
