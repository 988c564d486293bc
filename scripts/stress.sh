# shellcheck shell=sh
# Rounds of the whole test in random order beside other work: what depends on load or on order fails here.
#
# Each round appends its commit, seed and result to _build/stress.log, so that rounds can be run one by one and
# repeated: DEV_STRESS_SEED=7 gives the order of round 7.

stress_log=$root/_build/stress.log

# dev_stress: `words` may begin with the number of rounds.
dev_stress() {
    stress_rounds=1
    case ${words%%"$newline"*} in
        '' | *[!0-9]*) ;;
        *)
            stress_rounds=${words%%"$newline"*}
            words=${words#*"$newline"}
            ;;
    esac
    stress_failed=0
    while [ "$stress_rounds" -gt 0 ]; do
        stress_rounds=$((stress_rounds - 1))
        stress_round || stress_failed=$((stress_failed + 1))
    done
    say "  rounds: $stress_log"
    [ "$stress_failed" -eq 0 ]
}

stress_round() {
    stress_seed=${DEV_STRESS_SEED:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
    say "${bold}stressed round, seed $stress_seed$plain"
    python_order="-p randomly --randomly-seed=$stress_seed"
    # Many times as many threads as there are cores.
    rust_options='-- --test-threads=16'
    export PY_TEST_SEED="$stress_seed"
    stress_start
    stress_status=0
    # A subshell: a round that ends the program still ends the other work.
    (dev_test) || stress_status=1
    stress_end
    printf '%s %s seed %s: %s\n' "$(date -u +%Y-%m-%dT%H:%MZ)" "$(stress_commit)" "$stress_seed" \
        "$(tail -n 1 "$root/_build/test/results/verdict" 2>/dev/null || echo 'did not end')" >>"$stress_log"
    return "$stress_status"
}

stress_commit() {
    stress_hash=$(git rev-parse --short HEAD 2>/dev/null) || stress_hash=unknown
    git diff --quiet HEAD 2>/dev/null || stress_hash=$stress_hash+
    printf '%s' "$stress_hash"
}

# One endless loop for each core, which ends with this program whatever happens to it.
stress_start() {
    stress_loops='' stress_parent=$$
    stress_count=$(nproc)
    while [ "$stress_count" -gt 0 ]; do
        stress_count=$((stress_count - 1))
        (while kill -0 "$stress_parent" 2>/dev/null; do
            stress_turns=0
            while [ "$stress_turns" -lt 200000 ]; do stress_turns=$((stress_turns + 1)); done
        done) 9>&- &
        stress_loops="$stress_loops $!"
    done
    # shellcheck disable=SC2064 # the numbers of now
    trap "kill $stress_loops 2>/dev/null; exit 130" INT TERM
}

stress_end() {
    trap - INT TERM
    # shellcheck disable=SC2086 # a list of numbers
    kill $stress_loops 2>/dev/null || :
    # shellcheck disable=SC2086 # a list of numbers
    wait $stress_loops 2>/dev/null || :
}
