# shellcheck shell=sh
# Runs every kind of test on the Pythons found, side by side, and sums them up in the last line.
#
# One node per suite of Common Test: a libpython can't be exchanged within a process, and what one suite breaks
# is not what another one meets.

# A runner that takes longer hangs; its end is a failure. In seconds.
runner_limit=${DEV_RUNNER_LIMIT:-1200}
# More lanes than cores: builds and tests also wait, suites of Common Test most of the time.
test_lanes=5
ct_runners='1 2 3'
# The order of pytest's tests, and more options of cargo test.
python_order='-p no:randomly' rust_options=''

dev_test() {
    clock
    test_start=$now
    sort_words
    # Tests that are named are those one repeats after each edit.
    [ -z "$words" ] || [ "$opt_release" = yes ] || profile=dev
    setup test
    choose_pythons all
    # Tests that were asked for by name run on one Python, unless --all says otherwise.
    if [ -n "$words" ] && [ "$opt_all" = no ] && [ -z "$opt_pythons" ]; then
        chosen=$(first_line "$chosen")
    fi
    lock
    begin_results
    plan_tests
    run_tasks "$test_lanes"
    note_refused
    print_summary
}

# Sorts the words of the command line: which runners, and what of each.
sort_words() {
    want='' want_suites='' want_case='' want_crates='' want_files=''
    while read -r word; do
        case $word in
            '') ;;
            rust | ct | python | cpython | elixir | dev | recipes | install) want="$want $word" ;;
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
    case ${want_case:+$want_suites} in
        *' '*) usage_error "one case at a time, and no other suite beside it" ;;
    esac
    [ -n "$want" ] || want='dev rust ct python cpython elixir'
    [ "$opt_all" = no ] || [ -n "$words" ] || want="$want recipes"
}

add_suite() {
    add_suite_file=test/${1##*/}.erl
    [ -f "$add_suite_file" ] || usage_error "there is no $add_suite_file"
    want_suites="$want_suites${want_suites:+ }${add_suite_file%.erl}"
}

wanted() {
    case " $want " in *" $1 "*) return 0 ;; esac
    return 1
}

# Adds the tasks, what takes longest first. Nothing is built for the smoke set before the tests of the newest Python
# can begin: two builds at once take twice as long, and most tests wait for the first.
plan_tests() {
    tasks='' plan_after=''
    say "Python $(printf '%s\n' "$chosen" | cut -f 2 | paste -s -d ' ' -)"
    plan_scope=all
    while read_python; do
        plan_builds "$plan_scope"
        plan_runs "$plan_scope"
        [ "$opt_all" = yes ] || plan_scope=smoke
        [ -n "$plan_after" ] || ! needs_node || plan_after=nif-$py_tag
    done <<ROWS
$chosen
ROWS
    [ -n "$words$opt_pythons" ] || plan_twins
}

needs_node() {
    wanted ct || wanted elixir
}

needs_wheel() {
    wanted python || { [ "$1" = all ] && wanted cpython; }
}

# Tests that are named are not those of the soak, unless their name says so.
needs_soak() {
    wanted ct || wanted python || return 1
    case $want_suites$want_files in
        '' | *soak* | *test/python/serve"$newline"* | *test/python"$newline"*) return 0 ;;
    esac
    return 1
}

# plan_builds all|smoke, for the selected Python: nobody waits for the link of a library that is tested for a minute.
plan_builds() {
    plan_profile=$profile plan_soak=''
    [ "$1" = all ] || plan_profile=smoke
    if needs_node; then
        plan_soak=nif-$py_tag
        task "nif-$py_tag" "$plan_after" build_for "$py_tag" "$plan_profile" nif
        task erlang '' build_for "$py_tag" "$profile" erlang
        task loader '' build_for "$py_tag" "$profile" loader
        ! wanted ct || task suites erlang build_for "$py_tag" "$profile" suites
    fi
    if wanted ct || needs_wheel "$1"; then
        task "venv-$py_tag" "$plan_after" build_for "$py_tag" "$plan_profile" packages
    fi
    if needs_wheel "$1"; then
        # After the node's library, from which it takes what both are made of.
        task "wheel-$py_tag" "venv-$py_tag nif-$py_tag" build_for "$py_tag" "$plan_profile" wheel
    fi
    # The clients of the soak, which share crates with the tests of crates.
    if [ "$1" = all ] && needs_soak; then
        task "soak-$py_tag" "$plan_soak" build_for "$py_tag" dev soak
    fi
}

# plan_runs all|smoke, for the selected Python.
plan_runs() {
    node_needs="loader erlang nif-$py_tag"
    if wanted ct; then
        rm -rf "_build/test/claims-$py_tag"
        for plan_runner in $ct_runners; do
            plan_needs="$node_needs suites venv-$py_tag"
            ! runs_soak "$1" "$plan_runner" || plan_needs="$plan_needs soak-$py_tag"
            task "ct-$py_tag-$plan_runner" "$plan_needs" \
                run_for "$py_tag" test_ct "$1" "$py_tag" "$plan_runner"
            several_suites "$1" || break
        done
    fi
    ! wanted python || task "python-$py_tag" "wheel-$py_tag soak-$py_tag" run_for "$py_tag" test_python "$1"
    [ "$1" = all ] || return 0
    ! wanted rust || task "rust-$py_tag" "nif-$py_tag" run_for "$py_tag" test_rust
    ! wanted cpython || task "cpython-$py_tag" "wheel-$py_tag" run_for "$py_tag" test_cpython
    ! wanted elixir || task "elixir-$py_tag" "$node_needs" run_for "$py_tag" test_elixir
    # Packages of others: ten of each kind, on the newest Python.
    if [ "$opt_all" = yes ] && [ -z "$words" ] && [ "$py_tag" = "${chosen%%"$tab"*}" ]; then
        task zoo "$node_needs wheel-$py_tag" run_for "$py_tag" test_zoo
    fi
    # These have nothing to do with Python: once is enough.
    [ "$py_tag" = "${chosen%%"$tab"*}" ] || return 0
    ! wanted dev || task dev '' run_for "$py_tag" test_dev
    ! wanted install || task install '' run_for "$py_tag" test_install
    # A tree of its own, which is built with what the others have left.
    ! wanted recipes || task recipes "$plan_after" run_for "$py_tag" test_recipes
    ! wanted rust || [ -n "$want_crates" ] || task loom "nif-$py_tag" run_for "$py_tag" test_loom
}

# runs_soak all|smoke N: of several runners the last one waits for the clients of the soak.
runs_soak() {
    ! several_suites "$1" || [ "$2" = "${ct_runners##* }" ]
}

# several_suites all|smoke: enough for several runners.
several_suites() {
    case $want_suites in
        '') [ "$1" = all ] ;;
        *' '*) return 0 ;;
        *) return 1 ;;
    esac
}

# A native library serves every release of its X.Y: the oldest one here proves it.
plan_twins() {
    wanted ct || return 0
    while read_python; do
        rm -rf "_build/test/claims-$py_tag-$py_version"
        task "ct-$py_tag-$py_version" "loader erlang nif-$py_tag suites" \
            run_for "$py_version" test_ct smoke "$py_tag-$py_version" 1
    done <<ROWS
$twins
ROWS
}

# select_row TAG|VERSION: selects that Python, and its packages if they are there.
select_row() {
    select_python "$(printf '%s\n%s\n' "$chosen" "$twins" | awk -F '\t' -v want="$1" '
        $1 == want || $2 == want { print; exit }')"
    venv=$root/_build/venv/$py_tag
    [ "$1" = "$py_tag" ] && [ -f "$venv/requirements-test" ] || venv=''
}

# build_for TAG PROFILE nif|erlang|loader|suites|packages|wheel|soak: what does not build is one failure.
build_for() {
    select_row "$1"
    profile=$2
    case $3 in
        packages) use_venv test ;;
        wheel) install_wheel ;;
        soak) step "clients of the soak" "build-soak-$py_tag" make_test_soak ;;
        suites) step "Common Test suites" build-suites rebar3 ct --compile_only true ;;
        *) "build_$3" ;;
    esac || {
        record build "$py_version" 0 1 0 "$step_time" "$3: see $step_log"
        # Without a package index there is much to test still.
        [ "$3" = packages ]
    }
}

make_test_soak() {
    PYO3_PYTHON=$py_base cargo build --target-dir "target/test-$py_tag" -p soak
}

# run_for TAG|VERSION FUNCTION [ARG…]
run_for() {
    select_row "$1"
    export PY_TEST_SOAK="$root/target/test-$py_tag/debug/soak"
    shift
    "$@"
}

test_dev() {
    counted dev "./dev itself" - test-dev sh test/dev/run.sh
}

test_recipes() {
    counted dev "recipes of CONTRIBUTING.md" - test-recipes sh test/recipes/run.sh
}

# By command only: it builds the native library several times over.
test_install() {
    # Not a Python that only this user can run, unless it was asked for.
    if [ -n "$opt_pythons" ]; then export PYTHON="$py_exe"; else unset PYTHON; fi
    # shellcheck disable=SC2086 # words
    counted dev "from an empty directory" - test-install sh test/install/run.sh ${DEV_INSTALL_PARTS:-}
    grep -E '^(ok|nothing to build)' "$step_log"
}

test_zoo() {
    counted zoo "packages of others" "$py_version" test-zoo zoo_ten
}

test_rust() {
    if [ -n "$want_crates" ]; then
        rust_crates=$want_crates
    else
        # The libraries of the node and the wheel have nothing to link their tests against.
        rust_crates='--workspace --exclude nif --exclude loader --exclude wheel'
    fi
    counted rust "Rust" "$py_version" "test-rust-$py_tag" run_rust
}

test_loom() {
    counted rust "Rust, all interleavings (loom)" - test-loom run_loom
}

run_loom() {
    loom_crates=$(grep -l 'cfg(loom)' native/*/Cargo.toml | sed 's|native/\(.*\)/Cargo.toml|-p \1|')
    # Models are in the crates themselves and in tests/model.rs. They take seconds: what counts is how long they
    # take to build.
    # shellcheck disable=SC2086 # a list of options
    limited env RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 \
        cargo test --target-dir target/loom --no-fail-fast --lib --test model $loom_crates
}

run_rust() {
    # shellcheck disable=SC2086 # a list of options
    limited env PYO3_PYTHON="$py_base" PYTHON="$py_exe" \
        LD_LIBRARY_PATH="${py_lib%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
        cargo test --target-dir "target/test-$py_tag" --no-fail-fast --lib --bins --tests $rust_crates $rust_options
}

# test_ct all|smoke NAME N: NAME is that of the logs; the N-th of the runners that share the suites.
test_ct() {
    ct_scope=$1 ct_name=$2 ct_runner=$3
    ct_suites=$want_suites
    if [ -z "$ct_suites" ]; then
        ct_suites='test/*_SUITE.erl'
        [ "$1" = all ] || ct_suites=test/py_smoke_SUITE.erl
    fi
    counted ct "Common Test, runner $3" "$py_version" "test-ct-$ct_name-$3" run_ct
}

# Each suite is run by whoever takes it first.
run_ct() {
    ct_claims=_build/test/claims-$ct_name
    ct_failed=0
    mkdir -p "$ct_claims"
    # shellcheck disable=SC2086 # a list, or a pattern
    for ct_suite in $ct_suites; do
        ct_suite=${ct_suite##*/}
        ct_suite=${ct_suite%.erl}
        [ "$ct_suite" != py_soak_SUITE ] || runs_soak "$ct_scope" "$ct_runner" || continue
        mkdir "$ct_claims/$ct_suite" 2>/dev/null || continue
        run_suite "$ct_suite" || ct_failed=1
    done
    # There may be fewer suites than runners.
    printf 'runner at its end: 0 passed, 0 failed, 0 skipped\n'
    return "$ct_failed"
}

run_suite() {
    suite_logs=$root/_build/test/logs-$ct_name/$1
    suite_output=$suite_logs/output.txt
    suite_status=0
    mkdir -p "$suite_logs"
    # What takes long is for who asks for everything.
    [ "$opt_all" = no ] || export PY_TEST_FULL=yes
    limited env PYTHON="$py_exe" PY_TEST_VENV="$venv" ERL_CRASH_DUMP="$suite_logs/erl_crash.dump" \
        erl -noinput -pa "$root/_build/test/lib/erlang_python/ebin" "$root/_build/test/lib/erlang_python/test" \
        -eval 'py_ct:main()' -extra "$1" "$suite_logs" ${want_case:+"$want_case"} \
        >"$suite_output" 2>&1 || suite_status=$?
    cat "$suite_output"
    [ "$suite_status" -ne 0 ] || return 0
    if ! grep -aEq '^[0-9]+ passed, [1-9][0-9]* failed, [0-9]+ skipped$' "$suite_output"; then
        printf 'FAILED %s: its node ended with status %d\n0 passed, 1 failed, 0 skipped\n' "$1" "$suite_status"
    fi
    return 1
}

test_python() {
    [ -n "$venv" ] || return 1
    python_scope=$1
    counted python "Python" "$py_version" "test-python-$py_tag" run_python
}

run_python() {
    # shellcheck disable=SC2086 # a list of options
    set -- $python_order
    [ "$python_scope" = all ] || set -- "$@" -m smoke
    # A file by itself is over before a second process has started.
    [ -n "$want_files" ] || set -- "$@" -n 2 --dist worksteal
    while read -r python_file; do
        [ -z "$python_file" ] || set -- "$@" "$python_file"
    done <<FILES
$want_files
FILES
    [ -n "$want_files" ] || set -- "$@" test/python
    [ "$opt_all" = no ] || export PY_TEST_FULL=yes
    # -P: the package comes from the wheel, not from the directory we are in.
    limited "$venv/bin/python" -P -m pytest -q -ra --color=no --durations=10 "$@"
}

# The asyncio suite that comes with Python, on our loop.
test_cpython() {
    [ -n "$venv" ] || return 1
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
    counted elixir "Elixir" "$py_version" "test-elixir-$py_tag" run_elixir
}

run_elixir() {
    limited env PYTHON="$py_exe" PY_TEST_VENV="$venv" MIX_ENV=test HEX_OFFLINE=1 LC_ALL=C.UTF-8 mix test
}

# --foreground: so that Ctrl-C reaches the runner too. A command in the background of a shell ignores SIGINT and
# SIGQUIT, one of nohup SIGHUP, and so would all that it starts.
limited() {
    timeout --foreground --kill-after=30 "$runner_limit" env --default-signal=INT,QUIT,HUP "$@"
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
    if [ "$counted_status" -ne 0 ] && [ "$2" -eq 0 ]; then
        set -- "$1" 1 "$3"
        counted_note="ended with status $counted_status: see $step_log"
    elif [ $(($1 + $2 + $3)) -eq 0 ] && ! had_nothing_left; then
        set -- 0 1 0
        counted_note="ran, and no test was counted: see $step_log"
    fi
    record "$counted_kind" "$counted_version" "$1" "$2" "$3" "$step_time" "$counted_note"
    slowest_of "$step_log" >>"$results/slowest"
    [ "$2" -eq 0 ]
}

# The other runner of Common Test took every suite.
had_nothing_left() {
    [ "$counted_kind" = ct ] && [ "$(wc -l <"$step_log")" -eq 1 ]
}

# Prints "SECONDS TEST", as Common Test's runner and pytest tell it.
slowest_of() {
    awk '$1 == "took" && NF == 3 { print $2, $3 }
         $1 ~ /^[0-9.]+s$/ && $2 == "call" { print $1 + 0, $3 }' "$1"
}

# Where the lanes leave what they found.
begin_results() {
    results=$root/_build/test/results
    rm -rf "$results"
    mkdir -p "$results"
    : >"$results/rows" && : >"$results/notes" && : >"$results/slowest"
}

# record RUNNER VERSION PASSED FAILED SKIPPED TIME NOTE
record() {
    printf '%s|%s|%d|%d|%d|%d|%s\n' "$@" >>"$results/rows"
}

# note WHY
note() {
    printf 'not run: %s\n' "$*" >>"$results/notes"
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
    sum_passed=0 sum_failed=0 sum_skipped=0
    while IFS='|' read -r row_kind row_version row_passed row_failed row_skipped row_time row_note; do
        printf '  %-8s %-9s %7d %7d %8d %10s  %s\n' "$row_kind" "$row_version" \
            "$row_passed" "$row_failed" "$row_skipped" "$(seconds "$row_time")" "$row_note"
        sum_passed=$((sum_passed + row_passed))
        sum_failed=$((sum_failed + row_failed))
        sum_skipped=$((sum_skipped + row_skipped))
    done <"$results/rows"
    printf '  %-8s %-9s %7d %7d %8d %10s\n' total '' \
        "$sum_passed" "$sum_failed" "$sum_skipped" "$(seconds $((now - test_start)))"
    # What holds for each of several Pythons is said once.
    sort -u "$results/notes" | sed 's/^/  /'
    print_slowest
    say "  logs: $log_dir, _build/test/logs-*"
    if [ "$sum_skipped" -gt 0 ]; then
        say "$sum_passed passed, $sum_failed failed, $sum_skipped skipped"
    else
        say "$sum_passed passed, $sum_failed failed"
    fi | tee "$results/verdict"
    [ "$sum_failed" -eq 0 ] && [ "$sum_passed" -gt 0 ]
}

print_slowest() {
    [ -z "$words" ] && [ -s "$results/slowest" ] || return 0
    say "  slowest:"
    sort -rn "$results/slowest" | head -n 10 | awk '{ printf "  %8.1f s  %s\n", $1, $2 }'
}
