# shellcheck shell=sh
# Tests of the loop under valgrind: memory that is read before it was written, after it was freed or
# beside what was asked for. Python's own allocator is off, so that valgrind sees each object.

# Quick ones that touch every kind of transport; valgrind makes them fifty times slower.
valgrind_files='test/python/test_loop_calls.py test/python/test_loop_contexts.py
    test/python/test_loop_watch.py
    test/python/test_loop_sockets.py test/python/test_loop_datagrams.py
    test/python/test_loop_streams.py'
# This valgrind may not know epoll_pwait2: the loop then has a descriptor more, for its timers.
valgrind_tests='erlang and not leaves_nothing_behind'

dev_valgrind() {
    clock
    test_start=$now
    setup valgrind
    sort_words
    begin_results
    choose_pythons newest
    select_python "$(first_line "$chosen")"
    use_venv test || exit 1
    install_wheel || exit 1
    counted python "Python under valgrind" "$py_version" "test-valgrind-$py_tag" run_valgrind || :
    print_summary
}

# An error that valgrind finds is status 99, whatever the tests say.
run_valgrind() {
    # shellcheck disable=SC2086 # lists of files
    limited env PYTHONMALLOC=malloc valgrind --quiet --error-exitcode=99 --num-callers=40 \
        --suppressions=test/valgrind.supp \
        "$venv/bin/python" -P -m pytest -q -ra --color=no -p no:cacheprovider \
        -k "$valgrind_tests" ${want_files:-$valgrind_files}
}
