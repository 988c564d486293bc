# shellcheck shell=sh
# scripts/check_nif.escript: that it names what differs between py_nif.erl and Rust.

# differs EXPECTED FILE SED: all that is said of a copy of the tree in which SED has changed the file.
differs() {
    rm -rf "$work/tree"
    mkdir -p "$work/tree/src" "$work/tree/native/nif"
    cp "$project"/src/py_nif.* "$work/tree/src"
    cp -R "$project/native/nif/src" "$work/tree/native/nif/src"
    differs_status=0
    if [ -n "${2-}" ]; then
        sed "$3" "$project/$2" >"$work/tree/$2"
        if cmp -s "$project/$2" "$work/tree/$2"; then
            printf 'this changes nothing: %s\n' "$3"
            exit 1
        fi
        differs_status=1
    fi
    differs_got=0
    differs_said=$(escript "$project/scripts/check_nif.escript" "$work/tree") || differs_got=$?
    same "$1" "$differs_said"
    same "$differs_status" "$differs_got"
}

nifs=native/nif/src/nifs.rs
stubs=src/py_nif.erl
header=src/py_nif.hrl

the_tree_has_no_difference() {
    differs ""
}

a_function_that_one_side_does_not_have() {
    differs "pool_clean: in $nifs, not in NIFS of py_nif.erl
pool_wipe/1: in NIFS, but no function of Rust" $nifs 's/^fn pool_wipe(/fn pool_clean(/'
    differs "pool_wipe/1: a stub, not in NIFS
pool_wipe: in $nifs, not in NIFS of py_nif.erl" $stubs '/^-define(NIFS/,/^])/s/pool_wipe\/1, //'
    differs "pool_wipe/1: in NIFS, but has no stub" $stubs '/^pool_wipe(/s/?NOT_LOADED/ok/'
    differs "pool_wipe/1: a stub without a spec" $stubs '/^-spec pool_wipe/d'
}

another_number_of_arguments() {
    differs "finish: 2 arguments in $nifs, 1 in py_nif.erl" $nifs 's/^fn finish(/&kindly: bool, /'
}

another_name_of_an_argument() {
    differs "finish: an argument is limit_ms in $nifs, limit in py_nif.erl" $stubs 's/^finish(_LimitMs)/finish(_Limit)/'
}

another_type() {
    differs "finish: limit_ms is u64 in $nifs, LimitMs :: integer() in py_nif.erl" $stubs \
        '/^-spec finish/s/non_neg_integer/integer/'
    differs "finish: returns bool in $nifs, ok in py_nif.erl" $stubs '/^-spec finish/s/boolean()/ok/'
    differs "has_gil: returns bool in $nifs, {boolean()} in py_nif.erl" $stubs '/^-spec has_gil/s/boolean()/{&}/'
    differs "built_for: returns (u32,u32,bool) in $nifs, {3, boolean()} in py_nif.erl" $stubs \
        '/^-spec built_for/s/{.*}/{3, boolean()}/'
    differs "dag_redis: returns Result<Atom,String> in native/nif/src/dag.rs, {ok, ok} in py_nif.erl" $stubs \
        '/^-spec dag_redis/s/ | {error, binary()}//'
    differs "gather_submit: payloads is Vec<String> in native/nif/src/gather.rs, [payload()] in py_nif.erl" \
        native/nif/src/gather.rs "s/^    payloads: Term<'a>,/    payloads: Vec<String>,/"
}

another_key_or_type_in_a_map() {
    opts="opts is PoolOpts in $nifs, pool_opts() in py_nif.erl"
    differs "pool_new: $opts" $stubs 's/^    max_threads := /    most_threads := /'
    differs "pool_new: $opts" $stubs 's/^    own_namespace := boolean()/    own_namespace := binary()/'
    differs "pool_new: $opts" native/nif/src/resource.rs 's/^    pub own_namespace: bool,$/&    pub priority: u32,/'
    opts="opts is DagOpts in native/nif/src/dag.rs, dag_opts() in py_nif.erl"
    differs "dag_run: $opts" $stubs 's/^    restrict := boolean()/    restricted := boolean()/'
    differs "dag_run: $opts" $stubs 's/^    redis := binary()/    redis := atom()/'
}

one_name_for_two_resources() {
    differs "WorkerRef in Rust is pool() and worker() in py_nif.erl
pool() in py_nif.erl is PoolRef and WorkerRef in Rust" $stubs '/^-spec worker_retire/s/worker()/pool()/'
}

another_set_of_numbers() {
    # The next bit: there are more flags each time a kind of wish is added.
    next=$((1 << $(grep -c '^-define(FLAG_' "$project/$header")))
    differs "FLAG_LOUD: in py_nif.hrl, unknown to Rust" \
        $header "s/^-define(FLAG_FALLBACK, .*/&\n-define(FLAG_LOUD, $next)./"
    differs "OP_EXEC: used by Rust, not in py_nif.hrl" $header '/^-define(OP_EXEC,/d'
    differs "py_nif.hrl: two operations have one number" $header 's/^-define(OP_EXEC, .*/-define(OP_EXEC, 1)./'
    differs "py_nif.hrl: the flags are not one bit each, from 1 on" \
        $header "s/(FLAG_FALLBACK, 16)/(FLAG_FALLBACK, $next)/"
}

prove "py_nif.erl and Rust have the same functions, arguments, types and numbers" the_tree_has_no_difference
prove "a native function that one side does not have is named" a_function_that_one_side_does_not_have
prove "a native function with another number of arguments is named" another_number_of_arguments
prove "an argument with another name is named" another_name_of_an_argument
prove "an argument or a value of another type is named" another_type
prove "a map with another key, or another type of one, is named" another_key_or_type_in_a_map
prove "one name for two resources is named" one_name_for_two_resources
prove "a number that one side does not know, or that is taken, is named" another_set_of_numbers
