# shellcheck shell=sh
# Runs every kind of test on the Pythons found and sums them up in the last line.
#
# One node per Python: a libpython can't be exchanged within a process.

# A runner that takes longer hangs; its end is a failure. In seconds.
runner_limit=${DEV_RUNNER_LIMIT:-1200}

dev_test() {
    clock
    test_start=$now
    results='' notes='' unbuilt=' '
    sum_passed=0 sum_failed=0 sum_skipped=0
    sort_words
    # Tests that are named are those one repeats after each edit.
    [ -z "$words" ] || [ "$opt_release" = yes ] || profile=dev
    setup test
    choose_pythons all
    # Tests that were asked for by name run on one Python, unless --all says otherwise.
    if [ -n "$words" ] && [ "$opt_all" = no ] && [ -z "$opt_pythons" ]; then
        chosen=$(first_line "$chosen")
    fi
    if wanted ct || wanted elixir; then build_for_test; fi
    test_scope=all
    while read_python; do
        test_on_python "$test_scope"
        [ "$opt_all" = yes ] || test_scope=smoke
    done <<ROWS
$chosen
ROWS
    [ -n "$words$opt_pythons" ] || test_on_twins
    note_refused
    print_summary
}

# Sorts the words of the command line: which runners, and what of each.
sort_words() {
    want='' want_suites='' want_case='' want_crates='' want_files=''
    while read -r word; do
        case $word in
            '') ;;
            rust | ct | python | cpython | elixir | dev) want="$want $word" ;;
            *_SUITE:*) want="$want ct" && want_case=${word#*:} && add_suite "${word%%:*}" ;;
            *_SUITE | *_SUITE.erl) want="$want ct" && add_suite "${word%.erl}" ;;
            *.py | *.py::* | test/python*)
                want="$want python"
                want_files=$want_files$word$newline
                ;;
            *)
                [ -f "native/$word/Cargo.toml" ] || usage_error "there is no suite or crate '$word'"
                want="$want rust"
                want_crates="$want_crates -p $word"
                ;;
        esac
    done <<WORDS
$words
WORDS
    [ -n "$want" ] || want='dev rust ct python cpython elixir'
}

add_suite() {
    add_suite_file=test/${1##*/}.erl
    [ -f "$add_suite_file" ] || usage_error "there is no $add_suite_file"
    want_suites=$want_suites${want_suites:+,}${add_suite_file%.erl}
}

wanted() {
    case " $want " in *" $1 "*) return 0 ;; esac
    return 1
}

# What does not build is one failure; what does not depend on it is tested all the same.
# Leaves in `unbuilt` the tags of the Pythons for which no node can run.
build_for_test() {
    lock
    build_loader || build_failed loader "$chosen"
    while read_python; do
        build_nif || build_failed "native library" "$py_tag"
    done <<ROWS
$chosen
ROWS
    build_erlang || build_failed "Erlang modules" "$chosen"
    unlock
}

# build_failed WHAT ROWS: no node can run for the tags that the rows begin with.
build_failed() {
    record build - 0 1 0 "$step_time" "$1: see $step_log"
    unbuilt="$unbuilt$(printf '%s\n' "$2" | cut -f 1 | tr '\n' ' ')"
}

# can_run_node RUNNER, for the selected Python.
can_run_node() {
    case $unbuilt in
        *" $py_tag "*) note "$1 on $py_version: its node did not build" && return 1 ;;
    esac
}

# test_on_python all|smoke, for the selected Python.
test_on_python() {
    say "${bold}Python $py_version$plain ($py_exe): $1"
    if [ "$1" = all ]; then
        ! wanted dev || test_dev
        ! wanted rust || test_rust
    fi
    venv=''
    if wanted ct || wanted python || wanted cpython; then
        use_venv test || {
            record python "$py_version" 0 1 0 "$step_time" "no packages: see $step_log"
            venv=''
        }
    fi
    ! wanted ct || test_ct "$1" "$py_tag"
    have_wheel=''
    ! wanted python || test_python "$1"
    [ "$1" = smoke ] || ! wanted cpython || test_cpython
    [ "$1" = smoke ] || ! wanted elixir || test_elixir
}

# A native library serves every release of its X.Y: the oldest one here proves it.
test_on_twins() {
    while read_python; do
        say "${bold}Python $py_version$plain ($py_exe): smoke, with the library of $py_tag"
        venv=''
        test_ct smoke "$py_tag-$py_version"
    done <<ROWS
$twins
ROWS
}

test_dev() {
    # It has nothing to do with Python: once is enough.
    want=$(printf '%s' " $want " | sed 's/ dev / /')
    counted dev "./dev itself" - test-dev sh test/dev/run.sh
}

test_rust() {
    if [ -n "$want_crates" ]; then
        rust_crates=$want_crates
    else
        # The libraries of the node and the wheel have nothing to link their tests against.
        rust_crates='--workspace --exclude nif --exclude loader --exclude wheel'
    fi
    counted rust "Rust" "$py_version" "test-rust-$py_tag" run_rust
    if [ -z "$want_crates" ] && [ -z "${loom_done:-}" ]; then
        # It has nothing to do with Python: once is enough.
        loom_done=yes
        counted rust "Rust, all interleavings (loom)" - test-loom run_loom
    fi
}

run_loom() {
    loom_crates=$(grep -l 'cfg(loom)' native/*/Cargo.toml | sed 's|native/\(.*\)/Cargo.toml|-p \1|')
    # Models are in the crates themselves and in tests/model.rs. They take two seconds: what counts is
    # how long they take to build.
    # shellcheck disable=SC2086 # a list of options
    limited env RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 \
        CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        cargo test --release --target-dir target/loom --no-fail-fast --lib --test model $loom_crates
}

run_rust() {
    # shellcheck disable=SC2086 # a list of options
    limited env PYO3_PYTHON="$py_base" PYTHON="$py_exe" \
        LD_LIBRARY_PATH="${py_lib%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
        cargo test --target-dir "target/$py_tag" --no-fail-fast $rust_crates
}

# test_ct all|smoke NAME: NAME is that of the logs.
test_ct() {
    ct_name=$2
    can_run_node ct || return 0
    ct_suites=$want_suites
    if [ "$1" = smoke ] && [ -z "$ct_suites" ]; then
        ct_suites=test/py_smoke_SUITE
    fi
    for ct_suite in ${ct_suites:-test/*_SUITE.erl}; do break; done
    case ${ct_suite%.erl} in
        *\**) note "ct: there is no suite in test/" && return 0 ;;
        test/py_smoke_SUITE) [ -f test/py_smoke_SUITE.erl ] ||
            { note "ct on $py_version: there is no test/py_smoke_SUITE.erl" && return 0; } ;;
    esac
    counted ct "Common Test" "$py_version" "test-ct-$ct_name" run_ct
}

run_ct() {
    set -- --logdir "_build/test/logs-$ct_name"
    [ -z "$ct_suites" ] || set -- "$@" --suite "$ct_suites"
    [ -z "$want_case" ] || set -- "$@" --case "$want_case"
    # What takes long is for who asks for everything.
    [ "$opt_all" = no ] || export PY_TEST_FULL=yes
    limited env PYTHON="$py_exe" PY_TEST_VENV="$venv" rebar3 ct "$@"
}

test_python() {
    for python_part in test/python pyproject.toml; do
        [ ! -e "$python_part" ] || continue
        note "python: there is no $python_part"
        return 0
    done
    use_wheel || return 0
    python_scope=$1
    counted python "Python" "$py_version" "test-python-$py_tag" run_python
}

# Puts the wheel into the environment of the selected Python, once; no wheel is one failure.
use_wheel() {
    if [ -n "$venv" ] && [ -z "$have_wheel" ]; then
        have_wheel=yes
        install_wheel || {
            have_wheel=no
            record python "$py_version" 0 1 0 "$step_time" "no wheel: see $step_log"
        }
    fi
    [ "$have_wheel" = yes ]
}

run_python() {
    set --
    [ "$python_scope" = all ] || set -- -m smoke
    while read -r python_file; do
        [ -z "$python_file" ] || set -- "$@" "$python_file"
    done <<FILES
$want_files
FILES
    [ -n "$want_files" ] || set -- "$@" test/python
    # -P: the package comes from the wheel, not from the directory we are in.
    limited "$venv/bin/python" -P -m pytest -q -ra --color=no "$@"
}

# The asyncio suite that comes with Python, on our loop.
test_cpython() {
    use_wheel || return 0
    if ! "$venv/bin/python" -P -c 'import test.test_asyncio' 2>/dev/null; then
        note "cpython on $py_version: it comes without the package 'test'"
        return 0
    fi
    counted cpython "CPython's asyncio suite" "$py_version" "test-cpython-$py_tag" run_cpython
}

run_cpython() {
    limited "$venv/bin/python" -P test/cpython/run.py
}

test_elixir() {
    if [ ! -f elixir/mix.exs ]; then
        note "elixir: there is no elixir/mix.exs"
        return 0
    fi
    can_run_node elixir || return 0
    counted elixir "Elixir" "$py_version" "test-elixir-$py_tag" run_elixir
}

run_elixir() (
    cd elixir || exit
    limited env PYTHON="$py_exe" PY_TEST_VENV="$venv" ERL_LIBS="$root/_build/default/lib" \
        MIX_ENV=test HEX_OFFLINE=1 LC_ALL=C.UTF-8 mix test
)

# --foreground: so that Ctrl-C reaches the runner too.
limited() {
    timeout --foreground --kill-after=30 "$runner_limit" "$@"
}

# counted KIND LABEL VERSION LOG COMMAND [ARG…]: a step whose tests are counted by count_KIND.
counted() {
    counted_kind=$1 counted_label=$2 counted_version=$3 counted_log=$4
    shift 4
    counted_status=0
    step "$counted_label" "$counted_log" "$@" || counted_status=$?
    # shellcheck disable=SC2046 # three numbers
    set -- $("count_$counted_kind" "$step_log")
    counted_note=''
    if [ "$counted_kind$counted_status" = python5 ]; then
        counted_status=0
    fi
    if [ "$counted_status" -ne 0 ] && [ "$2" -eq 0 ]; then
        set -- "$1" 1 "$3"
        counted_note="ended with status $counted_status: see $step_log"
    elif [ $(($1 + $2 + $3)) -eq 0 ]; then
        counted_note="no tests"
    fi
    record "$counted_kind" "$counted_version" "$1" "$2" "$3" "$step_time" "$counted_note"
}

# record RUNNER VERSION PASSED FAILED SKIPPED TIME NOTE
record() {
    results=$results$(printf '  %-8s %-9s %7d %7d %8d %10s  %s' \
        "$1" "$2" "$3" "$4" "$5" "$(seconds "$6")" "$7")$newline
    sum_passed=$((sum_passed + $3))
    sum_failed=$((sum_failed + $4))
    sum_skipped=$((sum_skipped + $5))
}

# note WHY: said once, however many Pythons it holds for.
note() {
    case $notes in *": $*$newline"*) return 0 ;; esac
    notes="$notes  not run: $*$newline"
}

note_refused() {
    [ -n "$refused" ] && [ -z "$words$opt_pythons" ] || return 0
    while read -r refused_line; do
        note "Python $refused_line"
    done <<REFUSED
$refused
REFUSED
}

print_summary() {
    clock
    printf '\n%s  %-8s %-9s %7s %7s %8s %10s%s\n' \
        "$bold" runner Python passed failed skipped time "$plain"
    printf '%s' "$results"
    printf '  %-8s %-9s %7d %7d %8d %10s\n' total '' \
        "$sum_passed" "$sum_failed" "$sum_skipped" "$(seconds $((now - test_start)))"
    printf '%s' "$notes"
    say "  logs: $log_dir, _build/test/logs-*"
    if [ "$sum_skipped" -gt 0 ]; then
        say "$sum_passed passed, $sum_failed failed, $sum_skipped skipped"
    else
        say "$sum_passed passed, $sum_failed failed"
    fi
    [ "$sum_failed" -eq 0 ]
}
