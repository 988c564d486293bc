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
    same "18 2 3" "$(counts ct '12 passed, 0 failed, 0 skipped
FAILED py_SUITE:a_case
6 passed, 2 failed, 3 skipped')"
}

pytest_is_counted() {
    same "10 3 1" "$(counts python '3 failed, 9 passed, 1 skipped, 1 xpassed in 1.20s')"
    same "0 2 0" "$(counts python '2 errors in 0.20s')"
    same "1 0 0" "$(counts python '1 passed, 2 deselected in 61.20s (0:01:01)')"
}

mix_is_counted() {
    same "10 1 1" "$(counts elixir '2 doctests, 10 tests, 1 failure, 1 skipped
10 passed, 1 failed, 1 skipped')"
}

the_suite_of_cpython_is_counted() {
    same "979 1 14" "$(counts cpython 'FAILED: test_events.A.test_b
979 passed, 1 failed, 14 skipped')"
}

colours_do_not_hide_a_count() {
    same "4 0 0" "$(counts python "$(printf '\033[0;32m4 passed in 0.10s\033[0m')")"
}

# outcome KIND STATUS TEXT: the row that `counted` records of a run.
outcome() {
    outcome_status=$2 outcome_text=$3
    begin_results
    runner() {
        printf '%s\n' "$outcome_text"
        return "$outcome_status"
    }
    counted "$1" label 3.13.0 runner-log runner >/dev/null || :
    cut -d '|' -f 3-5 "$results/rows" | tr '|' ' '
}

a_runner_that_dies_without_a_count_is_a_failure() {
    same "0 1 0" "$(outcome python 139 'Segmentation fault')"
    same "5 1 0" "$(outcome python 139 '5 passed in 0.10s')"
}

no_test_counted_is_a_failure() {
    for no_test_kind in dev rust ct python cpython elixir zoo; do
        same "0 1 0" "$(outcome "$no_test_kind" 0 'something else
was printed')"
    done
    same "0 1 0" "$(outcome python 5 '3 deselected in 0.10s')"
}

a_runner_may_find_every_suite_taken() {
    same "0 0 0" "$(outcome ct 0 'runner at its end: 0 passed, 0 failed, 0 skipped')"
}

the_slowest_tests_are_told() {
    words=''
    begin_results
    printf 'took 0.250 py_SUITE:a\n3.20s call     test/python/test_a.py::test_b\n9.00s setup    test_c\n' >"$work/log"
    slowest_of "$work/log" >"$results/slowest"
    same "  slowest:
       3.2 s  test/python/test_a.py::test_b
       0.2 s  py_SUITE:a" "$(print_slowest)"
}

prove "the results of every crate are added up" every_crate_is_added_up
prove "Common Test's summary is counted in each of its forms" common_test_is_counted
prove "pytest's errors count as failures" pytest_is_counted
prove "mix's tests are counted without the failed and the skipped" mix_is_counted
prove "the summary of CPython's suite is counted" the_suite_of_cpython_is_counted
prove "colours do not hide a count" colours_do_not_hide_a_count
prove "a runner that dies without a count is a failure" \
    a_runner_that_dies_without_a_count_is_a_failure
prove "a runner that ran no test is a failure, whichever it is" no_test_counted_is_a_failure
prove "a runner of Common Test may find that the other one took every suite" a_runner_may_find_every_suite_taken
prove "the slowest tests are told" the_slowest_tests_are_told
