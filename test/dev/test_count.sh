# shellcheck shell=sh
# Reading the runners' logs.

# counts KIND TEXT
counts() {
    printf '%s\n' "$2" >"$work/log"
    "count_$1" "$work/log"
}

every_crate_is_added_up() {
    same "15 1 2" "$(counts rust 'running 12 tests
test result: ok. 12 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.10s
test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out')"
}

common_test_is_counted() {
    same "12 0 0" "$(counts ct 'All 12 tests passed.')"
    same "6 2 3" "$(counts ct 'Failed 2 tests. Skipped 3 (2, 1) tests. Passed 6 tests. ')"
    same "6 0 3" "$(counts ct 'Skipped 3 (2, 1) tests. Passed 6 tests. ')"
}

pytest_is_counted() {
    same "10 3 1" "$(counts python '3 failed, 9 passed, 1 skipped, 1 xpassed in 1.20s')"
    same "0 2 0" "$(counts python '2 errors in 0.20s')"
    same "1 0 0" "$(counts python '1 passed, 2 deselected in 61.20s (0:01:01)')"
}

mix_is_counted() {
    same "10 1 1" "$(counts elixir '2 doctests, 10 tests, 1 failure, 1 skipped')"
    same "1 0 0" "$(counts elixir '1 test, 0 failures')"
}

the_suite_of_cpython_is_counted() {
    same "979 1 14" "$(counts cpython 'FAILED: test_events.A.test_b
979 passed, 1 failed, 14 skipped')"
}

colours_do_not_hide_a_count() {
    same "4 0 0" "$(counts ct "$(printf '\033[0;32mAll 4 tests passed.\033[0m')")"
}

# outcome STATUS TEXT: the row that `counted` records of a Python run.
outcome() {
    outcome_status=$1 outcome_text=$2
    results='' sum_passed=0 sum_failed=0 sum_skipped=0
    runner() {
        printf '%s\n' "$outcome_text"
        return "$outcome_status"
    }
    counted python label 3.13.0 runner-log runner >/dev/null
    printf '%d %d %d' "$sum_passed" "$sum_failed" "$sum_skipped"
}

a_runner_that_dies_without_a_count_is_a_failure() {
    same "0 1 0" "$(outcome 139 'Segmentation fault')"
    same "5 1 0" "$(outcome 139 '5 passed in 0.10s')"
}

a_runner_that_finds_no_test_is_no_failure() {
    same "0 0 0" "$(outcome 5 '3 deselected in 0.10s')"
}

prove "the results of every crate are added up" every_crate_is_added_up
prove "Common Test's summary is counted in each of its forms" common_test_is_counted
prove "pytest's errors count as failures" pytest_is_counted
prove "mix's tests are counted without the failed and the skipped" mix_is_counted
prove "the summary of CPython's suite is counted" the_suite_of_cpython_is_counted
prove "colours do not hide a count" colours_do_not_hide_a_count
prove "a runner that dies without a count is a failure" \
    a_runner_that_dies_without_a_count_is_a_failure
prove "a runner that finds no test is no failure" a_runner_that_finds_no_test_is_no_failure
