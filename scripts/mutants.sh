# shellcheck shell=sh
# ./dev mutants: small defects that cargo-mutants puts into the native code, one at a time, in a copy of the tree. A
# defect that no test notices is a missed one. Those that may be missed are in test/mutants/survivors.txt, each with
# its reason: another one is a failure, and so is one of the list that is noticed.

mutants_version=27.1.0
mutants_tool=${XDG_CACHE_HOME:-${HOME:-}/.cache}/erlang_python/cargo-mutants-$mutants_version
mutants_dir=$root/_build/mutants
mutants_list=$root/test/mutants/survivors.txt
# Minutes for all of them. What is left is tried by the next run.
mutants_minutes=${DEV_MUTANTS_MINUTES:-30}

# Those with few mutants first.
mutants_crates='dag reactor etf crew'

# mutants_of CRATE: sets the files that are mutated, none for all of the crate; the tests that look at them; the
# profile, which is the one that builds fastest; the tests that are models for loom, if there are any.
mutants_of() {
    mutants_tests='--lib --tests' mutants_profile=smoke mutants_loom='--lib'
    case $1 in
        crew) mutants_files='' mutants_loom='--lib --test model' ;;
        dag)
            mutants_files='native/dag/src/complete.rs native/dag/src/cancel.rs'
            # The others are about Redis.
            mutants_tests='--lib --test graph --test run --test foreign --test model'
            ;;
        reactor) mutants_files='native/reactor/src/timer.rs native/reactor/src/inbox.rs' ;;
        etf)
            mutants_files='native/etf/src/decode.rs native/etf/src/encode.rs'
            # Its tests nest deeply: see Cargo.toml.
            mutants_profile=dev mutants_loom=''
            ;;
    esac
}

# ./dev mutants [CRATE…] [--again]
dev_mutants() {
    for crate in $words; do
        case " $mutants_crates " in
            *" $crate "*) ;;
            *) usage_error "no mutants of '$crate'; there are those of: $mutants_crates" ;;
        esac
    done
    setup build
    choose_pythons newest
    select_python "$(first_line "$chosen")"
    find_mutants_tool
    clock
    mutants_end=$((now + mutants_minutes * 6000))
    mutants_failed=0
    for crate in ${words:-$mutants_crates}; do
        try_mutants "$crate"
    done
    print_mutants
    [ "$mutants_failed" -eq 0 ]
}

find_mutants_tool() {
    [ -x "$mutants_tool/bin/cargo-mutants" ] ||
        step_or_exit "cargo-mutants $mutants_version" cargo-mutants \
            cargo install --locked --version "$mutants_version" --root "$mutants_tool" cargo-mutants
    PATH=$mutants_tool/bin:$PATH
}

# try_mutants CRATE: first with its tests, then what these have missed with the models of loom.
try_mutants() {
    mutants_crate=$1
    mutants_of "$1"
    mutants_out=$mutants_dir/$1
    [ "$opt_again" = no ] || rm -rf "$mutants_out"
    mkdir -p "$mutants_out"
    # Tests and models are no part of the product.
    set -- --package "$1" --exclude 'native/*/src/tests/**' --exclude-re '(^|[ :])(tests|models)::'
    for file in $mutants_files; do set -- "$@" --file "$file"; done
    cargo mutants --list "$@" >"$mutants_out/all" || die "the mutants of $mutants_crate can't be listed"
    run_mutants plain "$@" --iterate --minimum-test-timeout 4 --timeout-multiplier 4
    cp "$mutants_out/plain/mutants.out/missed.txt" "$mutants_out/missed"
    : >"$mutants_out/noticed_by_loom"
    [ -z "$mutants_loom" ] || [ ! -s "$mutants_out/missed" ] || try_with_loom
}

try_with_loom() {
    set -- --package "$mutants_crate" --timeout 30
    while read -r mutant; do
        set -- "$@" --re "^$(printf '%s' "$mutant" | sed 's/[][\.*^$+?(){}|]/\\&/g')\$"
    done <"$mutants_out/missed"
    mutants_tests=$mutants_loom
    rm -rf "$mutants_out/loom"
    run_mutants loom "$@"
    # Of those that were not tried any more nobody knows.
    out=$mutants_out/loom/mutants.out
    cp "$out/missed.txt" "$mutants_out/missed"
    # In code for loom only.
    cat "$out/unviable.txt" >>"$mutants_out/plain/mutants.out/unviable.txt"
    cat "$out/caught.txt" "$out/timeout.txt" >"$mutants_out/noticed_by_loom"
}

# run_mutants plain|loom OPTION…: what is tried so far is in files of that folder, whenever it ends.
run_mutants() {
    mutants_way=$1
    shift
    mkdir -p "$mutants_out/$mutants_way"
    clock
    mutants_left=$(((mutants_end - now) / 100))
    if [ "$mutants_left" -gt 5 ]; then
        mutants_status=0
        step "mutants of $mutants_crate, $mutants_way" "mutants-$mutants_crate-$mutants_way" cargo_mutants "$@" ||
            mutants_status=$?
        [ "$mutants_status" -eq 0 ] || die "the tests of $mutants_crate fail without any mutant"
    fi
    mkdir -p "$mutants_out/$mutants_way/mutants.out"
    for mutants_kind in caught missed timeout unviable previously_caught; do
        : >>"$mutants_out/$mutants_way/mutants.out/$mutants_kind.txt"
    done
}

# Fails only if the tests fail without a mutant. Missed mutants (2), timeouts (3) and the end of the time (124, or 130
# of the interrupted program) are for later.
cargo_mutants() {
    [ "$mutants_way" = plain ] || export RUSTFLAGS='--cfg loom' LOOM_MAX_PREEMPTIONS=2
    # shellcheck disable=SC2086 # a list of options
    timeout --foreground --signal=INT --kill-after=30 "$mutants_left" \
        env PYO3_PYTHON="$py_base" PYTHON="$py_exe" CARGO_TERM_COLOR=never \
        LD_LIBRARY_PATH="${py_lib%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
        cargo mutants --output "$mutants_out/$mutants_way" --profile "$mutants_profile" --jobs 1 \
        --build-timeout 300 --colors never --caught --unviable "$@" -- $mutants_tests
    case $? in
        1 | 4) return 1 ;;
        *) return 0 ;;
    esac
}

# mutants_count FILE…
mutants_count() {
    cat "$@" | wc -l
}

print_mutants() {
    printf '\n%s  %-8s %8s %8s %8s %9s %8s %10s%s\n' \
        "$bold" crate mutants caught timeout unviable missed "not tried" "$plain"
    for crate in ${words:-$mutants_crates}; do
        print_mutants_of "$crate"
    done
    [ "$mutants_failed" -eq 0 ] || say "say why in ${mutants_list#"$root/"}, or better: let a test notice it"
}

# The counts, then what the list does not say and what it says too much.
print_mutants_of() {
    mutants_out=$mutants_dir/$1
    out=$mutants_out/plain/mutants.out
    missed=$(mutants_count "$mutants_out/missed")
    timeouts=$(mutants_count "$out/timeout.txt")
    unviable=$(mutants_count "$out/unviable.txt")
    total=$(mutants_count "$mutants_out/all")
    noticed=$(mutants_count "$out/caught.txt" "$out/previously_caught.txt" "$mutants_out/noticed_by_loom")
    printf '  %-8s %8d %8d %8d %9d %8d %10d\n' "$1" "$total" "$noticed" "$timeouts" "$unviable" "$missed" \
        $((total - noticed - timeouts - unviable - missed))
    compare_mutants "$1" || mutants_failed=1
}

# Names without the place, as the list has them, sorted; several mutants may have the same.
mutants_named() {
    sed 's/^\([^:]*\):[0-9]*:[0-9]*: /\1: /' "$@" | sort
}

compare_mutants() {
    mutants_of_list "$1" >"$mutants_out/listed"
    mutants_named "$mutants_out/missed" >"$mutants_out/missed.named"
    # What was not tried says nothing of the list.
    sort "$out"/*caught.txt "$out/timeout.txt" "$out/unviable.txt" "$mutants_out/missed" \
        "$mutants_out/noticed_by_loom" >"$mutants_out/tried"
    sort "$mutants_out/all" | comm -23 - "$mutants_out/tried" | mutants_named >"$mutants_out/untried"
    comm -23 "$mutants_out/missed.named" "$mutants_out/listed" | sed 's/^/  missed, and not in the list: /' \
        >"$mutants_out/verdict"
    comm -13 "$mutants_out/missed.named" "$mutants_out/listed" | comm -23 - "$mutants_out/untried" |
        sed 's/^/  in the list, and no longer missed: /' >>"$mutants_out/verdict"
    cat "$mutants_out/verdict"
    [ ! -s "$mutants_out/verdict" ]
}

# mutants_of_list CRATE
mutants_of_list() {
    sed -n "s|^\(native/$1/.*[^ ]\)  *# .*|\1|p" "$mutants_list" | sort
}
