# shellcheck shell=sh
# Mutants. The stand-in is that of cargo: it knows three mutants of one crate.

fake_mutants() {
    find_cargo() { :; }
    find_erlang() { :; }
    find_pythons() { :; }
    need_for_build() { :; }
    check_otp() { :; }
    pythons=cp399 chosen=''
    choose_pythons() { :; }
    select_python() { py_base=false py_exe=false py_lib=/lib/x; }
    find_mutants_tool() { :; }
    opt_again=no words="etf$newline"
    mutants_list=$root/survivors.txt
    rm -rf _build/mutants "$mutants_list" && : >"$mutants_list"
    tried='caught missed missed'
    mkdir -p bin
    cat >bin/cargo <<'TEXT'
#!/bin/sh
case $* in
    *loom*) [ -z "$FAKE_LOOM" ] || FAKE_TRIED=$FAKE_LOOM ;;
    *--list*) printf 'native/etf/src/decode.rs:%s: replace + with - in f\n' 1:1 2:2 3:3 && exit ;;
esac
[ -z "$FAKE_BASELINE" ] || exit 4
while [ "$1" != --output ]; do shift; done
mkdir -p "$2/mutants.out"
cd "$2/mutants.out"
: >caught.txt && : >missed.txt && : >timeout.txt && : >unviable.txt && : >previously_caught.txt
line=0
for result in $FAKE_TRIED; do
    line=$((line + 1))
    echo "native/etf/src/decode.rs:$line:$line: replace + with - in f" >>"$result.txt"
done
exit 2
TEXT
    chmod +x bin/cargo
    PATH=$root/bin:$PATH
    export FAKE_TRIED FAKE_LOOM='' FAKE_BASELINE=''
}

# mutants_say: what the command prints, and then its status.
mutants_say() {
    FAKE_TRIED=$tried
    status=0
    said=$(dev_mutants 2>&1) || status=$?
}

a_missed_mutant_is_in_the_list_or_a_failure() {
    fake_mutants
    mutants_say
    same 1 "$status"
    contains "$said" "missed, and not in the list: native/etf/src/decode.rs: replace + with - in f"
    echo "native/etf/src/decode.rs: replace + with - in f # one of them" >"$mutants_list"
    mutants_say
    same 1 "$status"
    echo "native/etf/src/decode.rs: replace + with - in f # the other" >>"$mutants_list"
    mutants_say
    same 0 "$status"
}

a_listed_mutant_that_is_noticed_is_a_failure() {
    fake_mutants
    echo "native/etf/src/decode.rs: replace + with - in f # why" >"$mutants_list"
    tried='caught caught timeout'
    mutants_say
    same 1 "$status"
    contains "$said" "in the list, and no longer missed: native/etf/src/decode.rs: replace + with - in f"
}

what_was_not_tried_is_counted_and_no_failure() {
    fake_mutants
    echo "native/etf/src/decode.rs: replace + with - in f # why" >"$mutants_list"
    tried='caught caught'
    mutants_say
    same 0 "$status"
    contains "$said" "  etf             3        2        0         0        0          1"
}

tests_that_fail_without_a_mutant_prove_nothing() {
    fake_mutants
    FAKE_BASELINE=fails
    mutants_say
    same 1 "$status"
    contains "$said" "the tests of etf fail without any mutant"
}

a_missed_mutant_that_the_models_notice_is_noticed() {
    fake_mutants
    mutants_of() { mutants_files='' mutants_tests='' mutants_profile=dev mutants_loom=--lib; }
    FAKE_LOOM='caught'
    tried='missed'
    mutants_say
    same 0 "$status"
    contains "$said" "  etf             3        1        0         0        0          2"
    FAKE_LOOM='missed'
    mutants_say
    same 1 "$status"
}

only_crates_with_mutants_are_taken() {
    fake_mutants
    usage_error() { echo "$*" && exit 2; }
    words="pyrt$newline"
    mutants_say
    same 2 "$status"
    contains "$said" "no mutants of 'pyrt'"
}

prove "a missed mutant is in the list or a failure" a_missed_mutant_is_in_the_list_or_a_failure
prove "a mutant of the list that is noticed is a failure" a_listed_mutant_that_is_noticed_is_a_failure
prove "mutants that were not tried are counted, and no failure" what_was_not_tried_is_counted_and_no_failure
prove "tests that fail without a mutant prove nothing" tests_that_fail_without_a_mutant_prove_nothing
prove "a missed mutant that a model of loom notices is noticed" a_missed_mutant_that_the_models_notice_is_noticed
prove "./dev mutants takes the crates that it knows" only_crates_with_mutants_are_taken
