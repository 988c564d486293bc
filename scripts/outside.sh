# shellcheck shell=sh
# The test suites of other packages on asyncio and on our loop: what fails only on ours is a failure.
#
# The packages, their tests' requirements and our wheel are in an environment of their own; source trees and the
# logs of the suites are in _build/outside.

# ./dev test --outside [NAME | NAME=DIR…]
dev_outside() {
    clock
    test_start=$now
    want=python want_suites=''
    setup test
    begin_results
    choose_pythons newest
    select_python "$(first_line "$chosen")"
    use_venv outside "outside-$py_tag" || exit 1
    install_wheel || exit 1
    counted cpython "suites of other packages" "$py_version" "test-outside-$py_tag" run_outside || :
    # The table and the notes are what the run is for.
    sed 's/^/  /' "$log_dir/test-outside-$py_tag.log"
    print_summary
}

run_outside() {
    set -- --folder "$root/_build/outside"
    [ "$opt_peers" = no ] || set -- "$@" --peers
    while read -r outside_word; do
        case $outside_word in
            '') ;;
            # Relative to where the command was typed.
            *=[!/]*) set -- "$@" "${outside_word%%=*}=$caller_dir/${outside_word#*=}" ;;
            *) set -- "$@" "$outside_word" ;;
        esac
    done <<WORDS
$words
WORDS
    "$venv/bin/python" -P test/outside/run.py "$@"
}
