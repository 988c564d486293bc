# shellcheck shell=sh
# Mutated inputs for the parsers of what comes from outside. The kept inputs are in test/corpus/NAME; every
# `./dev test` replays them. An input that fails is kept there too.

fuzz_names='codec resp'

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
    esac
    # shellcheck disable=SC2086 # a list of options
    env PYO3_PYTHON="$py_base" LD_LIBRARY_PATH="${py_lib%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
        FUZZ_SECONDS="$fuzz_seconds" \
        cargo test --target-dir "target/test-$py_tag" -p $fuzz_crate "fuzz_$1" -- --nocapture
}
