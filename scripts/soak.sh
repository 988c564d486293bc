# shellcheck shell=sh
# Long mixed loads, then what they left behind: calls (bench/bench_soak.erl), HTTP (native/soak, bench/soak_*).

# The requests of a soak of HTTP, and those of the loops and servers it is compared with.
soak_requests=5000000
soak_compared=500000
soak_log=$root/_build/soak.log

# ./dev soak [N] | ./dev soak http [N] [WHERE…] | ./dev soak redis [N]
dev_soak() {
    soak_first=${words%%"$newline"*}
    if [ "$soak_first" = http ]; then
        words=${words#*"$newline"}
        soak_http
        return
    fi
    if [ "$soak_first" = redis ]; then
        soak_redis "${words#*"$newline"}"
        return
    fi
    soak_calls=$(soak_number "${soak_first:-10000000}") || exit 2
    [ -f bench/bench_soak.erl ] || die "there is no bench/bench_soak.erl"
    prepare_node build
    step_or_exit "benchmarks" build-bench compile_bench
    run_bench soak "$soak_calls"
}

soak_number() {
    soak_digits=$(printf '%s' "$1" | tr -d _)
    case $soak_digits in
        '' | *[!0-9]*) usage_error "soak takes a number, not '$1'" ;;
    esac
    printf '%s' "$soak_digits"
}

# WHERE: node wheel uvloop asyncio, which is all of them if none is named.
soak_http() {
    soak_count='' soak_where=''
    for soak_word in $words; do
        case $soak_word in
            http) ;;
            node | wheel | uvloop | asyncio) soak_where="$soak_where $soak_word" ;;
            [0-9]*) soak_count=$(soak_number "$soak_word") || exit 2 ;;
            *) usage_error "soak http takes a number and node, wheel, uvloop or asyncio, not '$soak_word'" ;;
        esac
    done
    soak_where=${soak_where:-node wheel uvloop asyncio}
    setup build
    choose_pythons newest
    select_python "$(first_line "$chosen")"
    step_or_exit "clients of the soak" build-soak make_soak
    soak_failed=''
    for soak_server in $soak_where; do
        soak_one "$soak_server" || soak_failed="$soak_failed $soak_server"
    done
    say "  runs: $soak_log"
    [ -z "$soak_failed" ] || die "the soak failed:$soak_failed"
}

# The library of the node has rustls built for the same directory.
make_soak() {
    cargo_build "$py_tag" -p soak
}

soak_one() {
    soak_clients=$(built "$py_tag" soak)
    soak_certificate=$root/test/python/tls/server.pem
    soak_wanted=${soak_count:-$soak_requests}
    case $1 in
        node)
            prepare_node build
            step_or_exit "benchmarks" build-bench compile_bench
            set -- node erl -noinput -pa "$app_dir/ebin" -pa "$root/_build/bench" \
                -eval 'soak_node:main(init:get_plain_arguments())' -extra "$root/bench" "$soak_certificate"
            ;;
        *)
            use_venv bench "bench-$py_tag" && install_wheel || exit 1
            [ "$1" = wheel ] || soak_wanted=${soak_count:-$soak_compared}
            soak_loop=$1
            [ "$1" != wheel ] || soak_loop=erlang
            set -- "$1" "$venv/bin/python" -P bench/soak_server.py "$soak_loop" "$soak_certificate"
            ;;
    esac
    soak_name=$1
    shift
    say "${bold}soak of HTTP: $soak_name$plain"
    soak_status=0
    PYTHONPATH=$root/bench "$soak_clients" --count "$soak_wanted" ${SOAK_SEED:+--seed "$SOAK_SEED"} -- "$@" || soak_status=$?
    printf '%s %s http %s %s: status %s\n' "$(date -u +%Y-%m-%dT%H:%MZ)" "$(stress_commit)" \
        "$soak_name" "$soak_wanted" "$soak_status" >>"$soak_log"
    return "$soak_status"
}

# Commands with words of their own against a redis-server: each must get its own back.
soak_redis() {
    soak_commands=$(printf '%s' "${1%%"$newline"*}" | tr -d _)
    case $soak_commands in
        '' | redis) soak_commands=10000000 ;;
        *[!0-9]*) usage_error "soak redis takes a number of commands, not '$soak_commands'" ;;
    esac
    setup bench_redis
    REDIS_SOAK=$soak_commands cargo test --release --target-dir target/soak -p dag --test redis_model \
        a_real_server -- --nocapture
}
