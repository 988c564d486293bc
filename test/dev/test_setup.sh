# shellcheck shell=sh
# Installing what is missing. The stand-ins write down what they are asked to do.

# fake_command NAME BODY
fake_command() {
    mkdir -p "$work/bin"
    printf '#!/bin/sh\n%s\n' "$2" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}

# fake_user ID SUDO: SUDO is what sudo's exit status is, or none.
fake_user() {
    rm -rf "${work:?}/bin" "$work/asked"
    fake_command id "echo $1"
    fake_command apt-get "echo \"\$@\" >>'$work/asked'"
    fake_command sudo "[ '$2' = 0 ] || exit 1; shift; exec \"\$@\""
    PATH=$work/bin:$PATH
    find_erlang() { :; }
    find_pythons() { :; }
    missing=' erlang-base rebar3 erlang-base'
}

root_installs() {
    fake_user 0 1
    install_missing >/dev/null
    contains "$(sed -n 1p "$work/asked")" " update"
    contains "$(sed -n 2p "$work/asked")" "install -y --no-install-recommends erlang-base rebar3"
}

sudo_installs() {
    fake_user 1000 0
    install_missing >/dev/null
    contains "$(sed -n 2p "$work/asked")" "install -y --no-install-recommends erlang-base rebar3"
}

others_are_told_the_command() {
    fake_user 1000 1
    status=0
    said=$( (install_missing) 2>&1) || status=$?
    same 3 "$status"
    contains "$said" "  sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends erlang-base rebar3'"
    [ ! -e "$work/asked" ]
}

a_failed_install_ends_it() {
    fake_user 0 1
    fake_command apt-get 'echo "E: Unable to locate package"; exit 100'
    status=0
    said=$( (install_missing) 2>&1) || status=$?
    same 1 "$status"
    contains "$said" "E: Unable to locate package"
}

only_what_is_not_there_is_missing() {
    erl_root=$work/otp
    mkdir -p "$erl_root/lib/kernel-8.5" "$erl_root/lib/syntax_tools-3.0"
    missing=''
    need_otp kernel syntax_tools public_key
    same " erlang-public-key" "$missing"
}

each_benchmark_needs_its_own() {
    mkdir -p "$work/bin"
    PATH=$work/bin
    pythons=''
    missing=''
    need_for_bench loop
    same "" "$missing"
    need_for_bench asgi
    same " wrk" "$missing"
}

a_browser_is_wanted_where_it_can_be_had() {
    fake_user 0 1
    browsers='no-such-browser another-browser'
    step() { shift 2 && "$@"; }
    install_browser() { echo installs >>"$work/asked"; }
    want_browser
    same installs "$(cat "$work/asked")"
    fake_command another-browser :
    rm "$work/asked"
    want_browser
    [ ! -e "$work/asked" ]
}

prove "root installs the missing packages, each once" root_installs
prove "sudo without a password installs them too" sudo_installs
prove "without root and sudo the one command to type is shown" others_are_told_the_command
prove "an install that fails shows apt's words" a_failed_install_ends_it
prove "only what is not there is missing" only_what_is_not_there_is_missing
prove "a benchmark installs what it measures with" each_benchmark_needs_its_own
prove "a browser is installed unless there is one" a_browser_is_wanted_where_it_can_be_had
