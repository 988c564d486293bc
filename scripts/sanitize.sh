# shellcheck shell=sh
# ./dev test --sanitize address|thread: native code built with checks of every access to memory.
#
# address: the tests of the crates, then the wheel's tests of the codec, the loop and the server, with Python's own
# allocator off, so that each object is memory of its own. thread: data races in the crates that threads share.
#
# The sanitizers are unstable options of rustc. RUSTC_BOOTSTRAP=1 gives them to the stable one.

# The crates of each.
sanitize_address_crates='pyrt etf crew reactor dag pyloop'
sanitize_thread_crates='crew reactor'

# The tests of the wheel: codec, loop, TLS and server. The soak and the hammer repeat them for minutes; and memory that was
# freed is kept for a while, to see who uses it.
sanitize_files='test/python/test_smoke.py test/python/test_loop_*.py test/python/tls test/python/serve'
sanitize_tests='not soak and not hammer and not memory'

dev_sanitize() {
    clock
    test_start=$now
    sort_words
    case $opt_sanitize in
        address | thread) ;;
        *) usage_error "--sanitize takes address or thread, not '$opt_sanitize'" ;;
    esac
    [ "$opt_sanitize" = address ] || [ -z "$want_files" ] || usage_error "--sanitize thread is for crates"
    profile=dev
    setup sanitize
    choose_pythons newest
    select_python "$(first_line "$chosen")"
    lock
    begin_results
    sanitize_environment
    "sanitize_$opt_sanitize"
    print_summary
}

# An error ends the process with a status that is not 0, at once.
# detect_leaks=0: Python frees little at its end, and threads that live as long as the process have memory. Leaks are for
# the soaks.
# detect_stack_use_after_return=0: with it variables are not on the stack of the thread, and the codec, which asks how
# much of it is left, could not know.
sanitize_environment() {
    sanitize_host=$(rustc -vV | sed -n 's/^host: //p')
    sanitize_target=target/$opt_sanitize-$py_tag
    export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=$opt_sanitize"
    export ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0
    export TSAN_OPTIONS=halt_on_error=1
}

sanitize_address() {
    if [ -n "$want_crates" ] || [ -z "$want_files" ]; then
        sanitize_crates=$(sanitize_options "$sanitize_address_crates")
        counted rust "Rust under AddressSanitizer" "$py_version" "test-asan-rust-$py_tag" run_sanitized || :
    fi
    [ -n "$want_files" ] || [ -z "$want_crates" ] || return 0
    sanitize_wheel || {
        record build "$py_version" 0 1 0 "$step_time" "wheel: see $step_log"
        return 0
    }
    counted python "Python under AddressSanitizer" "$py_version" "test-asan-python-$py_tag" run_sanitized_python || :
}

# The standard library is built anew: what its locks and channels order would else be a race.
sanitize_thread() {
    step_or_exit "source of the standard library" rust-src rustup component add rust-src
    sanitize_crates="-Zbuild-std $(sanitize_options "$sanitize_thread_crates")"
    counted rust "Rust under ThreadSanitizer" - test-tsan-rust run_sanitized || :
}

# sanitize_options CRATES: those, or what the command line names, as options of cargo.
sanitize_options() {
    # shellcheck disable=SC2086 # a list of crates
    printf '%s' "${want_crates:-$(printf ' -p %s' $1)}"
}

# With a target, build scripts and macros are built without the sanitizer.
run_sanitized() {
    # shellcheck disable=SC2086 # a list of options
    limited env PYO3_PYTHON="$py_base" PYTHON="$py_exe" PYTHONMALLOC=malloc \
        LD_LIBRARY_PATH="${py_lib%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
        cargo test --target "$sanitize_host" --target-dir "$sanitize_target" --no-fail-fast --lib --bins --tests \
        $sanitize_crates
}

# An environment of its own: the wheel as it is for everyone, then its native part and the interpreter with the
# sanitizer in place of theirs. Every process that a test starts by sys.executable is such a one, too.
sanitize_wheel() {
    use_venv test "asan-$py_tag" && install_plain_wheel || return
    step "native part and Python with AddressSanitizer" "wheel-asan-$py_tag" make_sanitized
}

install_plain_wheel() {
    ln -sf "$py_exe" "$venv/bin/python${py_version%.*}" || return
    sanitize_flags=$RUSTFLAGS
    unset RUSTC_BOOTSTRAP RUSTFLAGS
    install_wheel || return
    export RUSTC_BOOTSTRAP=1 RUSTFLAGS="$sanitize_flags"
}

make_sanitized() {
    env PYO3_PYTHON="$py_base" cargo build --target "$sanitize_host" --target-dir "$sanitize_target" -p wheel || return
    sanitize_native=$(echo "$venv"/lib/python*/site-packages/erlang/_native.*.so)
    cp "$sanitize_target/$sanitize_host/debug/lib_native.so" "$sanitize_native" || return
    sanitize_lib=${py_lib##*/lib}
    rustc --edition 2024 -Zsanitizer=address --target "$sanitize_host" -C link-arg=-rdynamic \
        -L "native=${py_lib%/*}" -l "dylib=${sanitize_lib%%.so*}" -C link-arg="-Wl,-rpath,${py_lib%/*}" \
        -o "$sanitize_target/python" test/sanitizers/python.rs || return
    # The other names of the interpreter are links to this one, which was a link to the real one.
    rm -f "$venv/bin/python${py_version%.*}" &&
        cp "$sanitize_target/python" "$venv/bin/python${py_version%.*}"
}

run_sanitized_python() {
    # shellcheck disable=SC2046,SC2086 # lists of files
    limited env PYTHONMALLOC=malloc \
        "$venv/bin/python" -P -m pytest -q -ra --color=no --durations=10 -p no:cacheprovider -p no:randomly \
        -k "$sanitize_tests" $(printf '%s' "${want_files:-$sanitize_files}")
}
