# shellcheck shell=sh
# Finds what the machine lacks and installs it from Debian's packages, in one go.
#
# It looks for the thing, not for the package, so an Erlang or a Rust that came another way is
# as good; and it starts no process unless something is missing.

oldest_otp=25

# need PACKAGE FILE: PACKAGE is missing unless FILE (a glob's first match) exists.
need() {
    [ -e "$2" ] || missing="$missing $1"
}

# Sets `erl_root`, the directory that has lib/ and usr/; empty without an Erlang.
find_erlang() {
    erl_root=''
    find_erlang_path=$(command -v erl) || return 0
    find_erlang_path=$(readlink -f "$find_erlang_path")
    erl_root=${find_erlang_path%/bin/erl}
    for find_erlang_lib in "$erl_root"/lib/kernel-*; do
        [ ! -d "$find_erlang_lib" ] || return 0
    done
    # A wrapper script, as version managers have: it knows where its Erlang is.
    erl_root=$(erl -noinput -eval 'io:put_chars(code:root_dir()), halt().') || erl_root=''
}

need_otp() {
    for need_otp_app; do
        case $need_otp_app in
            kernel) need_otp_package=erlang-base ;;
            *) need_otp_package=erlang-$(printf '%s' "$need_otp_app" | tr _ -) ;;
        esac
        for need_otp_dir in "$erl_root/lib/$need_otp_app"-*; do break; done
        need "$need_otp_package" "$need_otp_dir"
    done
}

need_command() {
    command -v "$2" >/dev/null 2>&1 || missing="$missing $1"
}

need_for_build() {
    need_otp kernel crypto ssl inets tools parsetools syntax_tools public_key asn1 \
        runtime_tools xmerl
    need erlang-dev "$erl_root/usr/include/erl_nif.h"
    need_command rebar3 rebar3
    need_command gcc cc
    need libc6-dev /usr/include/stdio.h
    need_command pkg-config pkg-config
    need ca-certificates /etc/ssl/certs/ca-certificates.crt
    [ -n "$pythons" ] || missing="$missing python3 python3-dev python3-venv"
}

# Only for the kinds of tests in `want`.
need_for_test() {
    if wanted ct; then
        need_otp common_test eunit proper
        need_proper_headers
    fi
    if wanted elixir || wanted install; then need_command elixir elixir; fi
    if wanted ct || wanted python || wanted cpython || wanted install; then need_venv_package; fi
}

need_for_check() {
    need_otp dialyzer common_test eunit proper
    need_proper_headers
    need_command shellcheck shellcheck
    need_venv_package
}

# need_for_bench NAME: of a benchmark in Python, or of the soak of the Redis client.
need_for_bench() {
    need_venv_package
    [ "$1" != asgi ] || need_command wrk wrk
    [ "$1" != redis ] || need_command redis-server redis-server
}

need_proper_headers() {
    for need_proper_file in "$erl_root"/lib/proper-*/include/proper.hrl; do break; done
    need erlang-proper-dev "$need_proper_file"
}

# Debian keeps the parts that make a virtual environment in a package of their own.
need_venv_package() {
    while read_python; do
        case $py_pip$py_base in
            no/usr/bin/*) missing="$missing python${py_version%.*}-venv" ;;
        esac
    done <<ROWS
$pythons
ROWS
}

# setup build|run|zoo|test|check|valgrind|sanitize|bench_NAME: leaves every tool that it needs on PATH, or exits with 3.
setup() {
    find_cargo
    find_erlang
    find_pythons
    missing=''
    need_for_build
    case $1 in
        test) need_for_test ;;
        check) need_for_check ;;
        run | zoo | sanitize) need_venv_package ;;
        valgrind) need_venv_package && need_command valgrind valgrind ;;
        bench_*) need_for_bench "${1#bench_}" ;;
    esac
    [ -z "$missing" ] || install_missing
    [ "$1" != test ] || ! wants_browser || want_browser
    check_otp
    [ -n "$pythons" ] || no_python
}

# The one suite that drives a browser, or all of them.
wants_browser() {
    wanted ct || return 1
    case "$want_suites " in ' ' | *py_asgi_web_SUITE' '*) return 0 ;; esac
    return 1
}

browsers='chromium-headless-shell chromium chromium-browser google-chrome'

# For one test only, which says so when it is left out.
want_browser() {
    for want_browser_name in $browsers; do
        ! command -v "$want_browser_name" >/dev/null 2>&1 || return 0
    done
    may_install || return 0
    step "Chromium, for one test" apt-browser install_browser ||
        say "  the test in a browser will be left out"
}

install_browser() {
    apt update && apt install -y --no-install-recommends chromium-headless-shell
}

# Sets `install_as`, what commands of root begin with.
may_install() {
    command -v apt-get >/dev/null 2>&1 || return 1
    if [ "$(id -u)" -eq 0 ]; then
        install_as=''
    elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        install_as='sudo -n'
    else
        return 1
    fi
}

find_cargo() {
    command -v cargo >/dev/null 2>&1 && return 0
    if [ -x "${HOME:-}/.cargo/bin/cargo" ]; then
        PATH=$HOME/.cargo/bin:$PATH
        return 0
    fi
    say "dev: there is no cargo on PATH; Rust is installed by this command:" >&2
    say "  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh" >&2
    exit 3
}

check_otp() {
    for check_otp_dir in "$erl_root"/releases/[0-9]*; do
        check_otp_release=${check_otp_dir##*/}
        [ "${check_otp_release%%[!0-9]*}" -lt "$oldest_otp" ] || return 0
    done
    say "dev: the Erlang in $erl_root is older than OTP $oldest_otp" >&2
    exit 3
}

install_missing() {
    missing=$(printf '%s\n' "$missing" | tr ' ' '\n' | sed '/^$/d' | sort -u | tr '\n' ' ')
    missing=${missing% }
    if ! command -v apt-get >/dev/null 2>&1; then
        say "dev: this machine has no apt-get; install what Debian calls $missing" >&2
        exit 3
    fi
    install_list="apt-get install -y --no-install-recommends $missing"
    may_install || {
        tell_what_to_install
        exit 3
    }
    say "missing: $missing"
    step_or_exit "apt-get update" apt-update apt update
    # shellcheck disable=SC2086 # the list of packages is words
    step_or_exit "apt-get install" apt-install \
        apt install -y --no-install-recommends $missing
    hash -r
    find_erlang
    find_pythons
}

apt() {
    # shellcheck disable=SC2086 # install_as is one or more words, or none
    $install_as env DEBIAN_FRONTEND=noninteractive \
        apt-get -o DPkg::Lock::Timeout=300 "$@"
}

tell_what_to_install() {
    if command -v sudo >/dev/null 2>&1; then
        tell_as='sudo sh -c'
    else
        tell_as='su -c'
    fi
    say "dev: some Debian packages are missing; type this, then the same ./dev command again:" >&2
    say "  $tell_as 'apt-get update && $install_list'" >&2
}
