# shellcheck shell=sh
# Mutated inputs for the parsers of what comes from outside. The kept inputs are in test/corpus/NAME; every
# `./dev test` replays them. An input that fails is kept there too.

fuzz_names='codec resp chunked frames http'

# ./dev fuzz [NAME] [SECONDS]: one of them, or each; 60 seconds.
dev_fuzz() {
    fuzz_wanted='' fuzz_seconds=60
    for word in $words; do
        case $word in
            *[!0-9]*) fuzz_wanted="$fuzz_wanted $word" ;;
            *) fuzz_seconds=$word ;;
        esac
    done
    for name in $fuzz_wanted; do
        case " $fuzz_names " in
            *" $name "*) ;;
            *) usage_error "no fuzzer '$name'; there are: $fuzz_names" ;;
        esac
    done
    setup build
    choose_pythons newest
    select_python "$(first_line "$chosen")"
    for name in ${fuzz_wanted:-$fuzz_names}; do
        run_fuzz "$name" || exit 1
    done
}

run_fuzz() {
    case $1 in
        codec) fuzz_crate='etf --test suite' ;;
        resp) fuzz_crate='dag --test resp' ;;
        chunked | frames) fuzz_crate='pyloop --lib' ;;
        http)
            fuzz_http
            return
            ;;
    esac
    # shellcheck disable=SC2086 # a list of options
    env PYO3_PYTHON="$py_base" LD_LIBRARY_PATH="${py_lib%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
        FUZZ_SECONDS="$fuzz_seconds" \
        cargo test --target-dir "target/test-$py_tag" -p $fuzz_crate "fuzz_$1" -- --nocapture
}

# The wheel's server beside h11 and llhttp. $FUZZ_CASES is for this one, too, in place of the seconds.
fuzz_http() {
    profile=dev
    use_venv test && install_wheel || return
    env ${FUZZ_CASES:+FUZZ_CASES="$FUZZ_CASES"} FUZZ_SECONDS="$fuzz_seconds" \
        "$venv/bin/python" -P -m pytest -q -s --color=no -p no:cacheprovider -p no:randomly \
        test/python/serve/test_fuzz_grammar.py
}
