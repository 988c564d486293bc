# shellcheck shell=sh
# Tasks side by side.

# ran NAME: leaves NAME in the list of what ran.
ran() {
    echo "$1" >>"$work/ran"
}

fails() {
    return 1
}

# Takes until another task has run: on one lane it would never end.
meets() {
    : >"$work/met.$1"
    until [ -e "$work/met.$2" ]; do sleep 0.01; done
}

a_task_begins_after_what_it_needs() {
    rm -f "$work/ran"
    tasks=''
    task third 'first second' ran third
    task second first ran second
    task first '' ran first
    task first '' ran twice
    run_tasks 3
    same "first second third" "$(paste -s -d ' ' "$work/ran")"
}

what_needs_a_failure_does_not_run() {
    rm -f "$work/ran"
    tasks=''
    task bad '' fails
    task child bad ran child
    task grandchild child ran grandchild
    task other '' ran other
    task free 'nothing-of-that-name' ran free
    run_tasks 1
    same "other free" "$(paste -s -d ' ' "$work/ran")"
}

two_lanes_run_at_once() {
    rm -f "$work"/met.*
    tasks=''
    task a '' meets a b
    task b '' meets b a
    run_tasks 2
    same "ok ok" "$(cat "$task_dir/a.end" "$task_dir/b.end" | paste -s -d ' ' -)"
}

shows_signals() {
    limited env --list-signal-handling true 2>"$work/signals"
}

a_runner_in_a_lane_heeds_an_interrupt() {
    tasks=''
    task runner '' shows_signals
    run_tasks 1
    same ok "$(cat "$task_dir/runner.end")"
    same '' "$(grep -E '^(INT|QUIT|HUP) .*IGNORE' "$work/signals")"
}

a_stressed_round_is_logged_with_its_seed() {
    stress_log=$work/stress.log
    dev_test() {
        begin_results
        echo "order $python_order, seed $PY_TEST_SEED"
        echo '5 passed, 1 failed' >"$results/verdict"
        return 1
    }
    words="2${newline}ct$newline" DEV_STRESS_SEED=7
    stress_said=$(dev_stress) && exit 1
    contains "$stress_said" "order -p randomly --randomly-seed=7, seed 7"
    same 2 "$(grep -c 'seed 7: 5 passed, 1 failed$' "$stress_log")"
}

prove "a stressed round is logged with its commit, its seed and its result" a_stressed_round_is_logged_with_its_seed
prove "a task begins after what it needs, and once" a_task_begins_after_what_it_needs
prove "what needs a task that failed does not run, the others do" what_needs_a_failure_does_not_run
prove "two lanes run two tasks at once" two_lanes_run_at_once
prove "a runner in a lane heeds an interrupt" a_runner_in_a_lane_heeds_an_interrupt
