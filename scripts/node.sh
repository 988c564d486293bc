# shellcheck shell=sh
# Starts a node with the application on its path: the tour, a shell, a benchmark.

# prepare_node PURPOSE: sets up and builds for one Python, and leaves it selected.
prepare_node() {
    setup "$1"
    choose_pythons newest
    build
    select_python "$(first_line "$chosen")"
    export PYTHON="$py_exe"
    export ERL_CRASH_DUMP="$log_dir/erl_crash.dump"
}

dev_run() {
    if [ "$opt_shell" = yes ]; then
        dev_shell
        return
    fi
    prepare_tour
    # Whoever watches may keep the application, and reads on.
    [ ! -t 0 ] || evaluate_input=-noshell
    evaluate 'py_tour:main()'
}

# With the packages of the tour, as far as they can be had: a part of it is an application of FastAPI.
prepare_tour() {
    prepare_node run
    if use_venv run "run-$py_tag"; then
        export PYTHON="$venv/bin/python"
    fi
}

dev_doctor() {
    if ! command -v erl >/dev/null; then
        say "dev: there is no Erlang: apt-get install erlang-nox, or ./dev build, which does that"
        exit 1
    fi
    [ -f "$app_dir/ebin/py_doctor.beam" ] || {
        say "dev: nothing is built yet: ./dev build"
        exit 1
    }
    erl -noinput -pa "$app_dir/ebin" -eval 'halt(case py:doctor() of ok -> 0; _ -> 1 end).'
}

dev_shell() {
    prepare_tour
    cd "$caller_dir" || exit
    if [ ! -t 0 ]; then
        # The shell reads its input while -eval still runs: what is piped in would come too early.
        { echo 'application:ensure_all_started(erlang_python).' && cat; } | erl -pa "$app_dir/ebin"
        return
    fi
    exec erl -pa "$app_dir/ebin" -eval '
        case application:ensure_all_started(erlang_python) of
            {ok, _} -> ok;
            {error, Reason} -> io:format(standard_error, "erlang_python did not start: ~tp~n", [Reason])
        end.'
}

# evaluate EXPRESSION [ARG…]: the node stops in order, so the application ends as it would in
# production; an exception is shown and gives exit status 1.
evaluate() {
    evaluate_expression=$1
    shift
    erl "${evaluate_input:--noinput}" -pa "$app_dir/ebin" -pa "$root/_build/bench" -eval "
        try $evaluate_expression of
            _ -> init:stop(0)
        catch
            Class:Reason:Stack ->
                io:put_chars(standard_error, [erl_error:format_exception(Class, Reason, Stack), 10]),
                init:stop(1)
        end." -extra "$@"
}

compile_bench() {
    mkdir -p _build/bench && erlc +debug_info -pa "$app_dir/ebin" -o _build/bench bench/*.erl
}

dev_bench() {
    bench_names='' bench_options=''
    while read -r bench_word; do
        case $bench_word in
            '') ;;
            -*) bench_options="$bench_options $bench_word" ;;
            *)
                [ -f "bench/bench_$bench_word.erl" ] || [ -f "bench/bench_$bench_word.py" ] ||
                    usage_error "there is no benchmark '$bench_word' (bench/bench_$bench_word.erl)"
                bench_names="$bench_names $bench_word"
                ;;
        esac
    done <<WORDS
$words
WORDS
    if [ -z "$bench_names" ]; then
        list_benches
        return
    fi
    bench_node=no
    for bench_name in $bench_names; do
        # shellcheck disable=SC2086 # options are words
        if [ -f "bench/bench_$bench_name.py" ]; then
            run_python_bench "$bench_name" $bench_options
            continue
        fi
        if [ "$bench_node" = no ]; then
            bench_node=yes
            prepare_node build
            step_or_exit "benchmarks" build-bench compile_bench
        fi
        [ "$bench_name" != async ] || use_loop_outside
        # shellcheck disable=SC2086 # options are words
        run_bench "$bench_name" $bench_options
    done
}

# A Python with the wheel: the same loop without a node, to compare with.
use_loop_outside() {
    use_venv test && install_wheel || exit 1
    export PY_BENCH_PYTHON="$venv/bin/python"
}

# run_python_bench NAME [ARG…]: in an environment of its own, with the wheel and its peers.
run_python_bench() {
    run_bench_name=$1
    shift
    setup "bench_$run_bench_name"
    choose_pythons newest
    select_python "$(first_line "$chosen")"
    use_venv bench "bench-$py_tag" && install_wheel || exit 1
    say "${bold}bench $run_bench_name$plain"
    "$venv/bin/python" -P "bench/bench_$run_bench_name.py" "$@" ||
        die "the benchmark $run_bench_name did not end"
}

# run_bench NAME [ARG…]: one that falls short is no failure, one that crashes is.
run_bench() {
    run_bench_name=$1
    shift
    say "${bold}bench $run_bench_name$plain"
    evaluate "bench_$run_bench_name:main(init:get_plain_arguments())" "$@" ||
        die "the benchmark $run_bench_name did not end"
}

list_benches() {
    say "benchmarks:"
    for bench_file in bench/bench_*.erl bench/bench_*.py; do
        [ -f "$bench_file" ] || continue
        bench_file=${bench_file##*/bench_}
        say "  ${bench_file%.*}"
    done
}
