#!/bin/sh
# Puts the native libraries and the Python package into priv/, where the Erlang modules find them. The hook of
# rebar.config and the compiler of mix.exs run it in a project that depends on this one.
#
#   sh scripts/install.sh [OUT]
#
# The libraries come from a prebuilt archive where $ERLANG_PYTHON_ARTEFACTS says so (a directory, or what URLs begin
# with), else from cargo. $PYTHON names the Python to build for, else it is the active venv's or the newest found; an
# archive has a library for each. Without anything to do it ends in a moment. OUT is written to where the source can't
# be. Exit code: 0 all in place, 1 a sentence has said why not.

set -eu

program=erlang_python
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)

# The tree itself is built by ./dev.
hook_root=$(CDPATH='' cd -- "${REBAR_ROOT_DIR:-/}" && pwd -P)
[ "$hook_root" != "$root" ] || exit 0

# Where priv/ is written: the source, or for one that is read-only the directory of the build.
where_to_write() {
    if [ -w "$root" ]; then
        printf '%s\n' "$root"
        return
    fi
    for write_dir in "${1:-}" "${REBAR_BUILD_DIR:-}/checkouts/erlang_python" "${REBAR_BUILD_DIR:-}/lib/erlang_python"; do
        if [ -n "$write_dir" ] && [ -d "$write_dir" ] && [ -w "$write_dir" ]; then
            CDPATH='' cd -- "$write_dir" && pwd -P
            return
        fi
    done
    printf '%s\n' "$root"
}

out=$(where_to_write "${1:-}")
caller_dir=$PWD
build_dir=$out/_build

# shellcheck source=scripts/step.sh
. "$root/scripts/step.sh"
# shellcheck source=scripts/pythons.sh
. "$root/scripts/pythons.sh"
# shellcheck source=scripts/build.sh
. "$root/scripts/build.sh"
# shellcheck source=scripts/from_source.sh
. "$root/scripts/from_source.sh"
# shellcheck source=scripts/from_archive.sh
. "$root/scripts/from_archive.sh"

# As archives are built: without what only debuggers read.
[ "$profile" = perf ] || profile=dist

[ -w "$out" ] || die "$out can't be written, and the libraries would go into its priv/. Compile as its owner"
mkdir -p "$build_dir" || die "$build_dir can't be made: $(why_unwritable "$out")"
cd "$out"

# What is installed: the hash of the source, then each file that came from it.
stamp=$build_dir/installed

# Of every file that a library or the package is made of.
source_hash() {
    (cd "$root" && find native python Cargo.toml Cargo.lock src/py_nif.hrl src/erlang_python.app.src \
        -name __pycache__ -prune -o -type f ! -name '*.so' -print0 | LC_ALL=C sort -z |
        xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1)
}

# in_place HASH: all that was installed is there, and a library that this machine can use is part of it.
in_place() {
    [ -f "$stamp" ] && read -r in_place_hash <"$stamp" && [ "$in_place_hash" = "$1" ] || return 1
    tail -n +2 "$stamp" | while read -r in_place_file; do
        [ -f "$in_place_file" ] || exit 1
    done || return 1
    [ -z "$chosen" ] || has_library
}

# For the Python that was named; else for any that is here, since the node takes the newest that has one.
has_library() {
    while read -r has_library_tag has_library_rest; do
        : "$has_library_rest"
        ! grep -Fqx "priv/py_nif-$has_library_tag.so" "$stamp" || return 0
    done <<ROWS
$(if [ -n "${PYTHON:-}" ]; then printf '%s\n' "$chosen"; else printf '%s\n' "$pythons"; fi)
ROWS
    return 1
}

# Sets `chosen` to the row of the Python to build for, and selects it; both stay empty if there is none.
choose_python() {
    if [ -z "${PYTHON:-}" ] && [ -x "${VIRTUAL_ENV:-}/bin/python" ]; then
        case $(probe "$VIRTUAL_ENV/bin/python") in *"${tab}ok") PYTHON=$VIRTUAL_ENV/bin/python ;; esac
    fi
    find_pythons
    chosen=$(first_line "$pythons") py_tag=''
    [ -z "$chosen" ] || select_python "$chosen"
}

# begin HASH: what is of another source goes, since the Erlang modules would not fit to it.
begin() {
    if [ -f "$stamp" ] && read -r begin_hash <"$stamp" && [ "$begin_hash" = "$1" ]; then
        return
    fi
    if [ -f "$stamp" ]; then
        tail -n +2 "$stamp" | while read -r begin_file; do rm -f "$begin_file"; done
    fi
    # In a build of rebar3 priv/ may be a link to that of a source that can't be written.
    if [ -L priv ] && [ "$out" != "$root" ]; then rm -f priv; fi
    mkdir -p priv || die "$out/priv can't be made: $(why_unwritable "$out")"
    rm -rf priv/*.new.* priv/python/erlang/*.new.*
    printf '%s\n' "$1" >"$stamp"
}

# install_file FROM TO
install_file() {
    place "$1" "$2" || {
        rm -f "$2.new.$$"
        die "$out/$2 can't be written: $(why_unwritable "$out")"
    }
    grep -Fqx "$2" "$stamp" || printf '%s\n' "$2" >>"$stamp"
}

# why_unwritable DIR
why_unwritable() {
    set -- "$1" "$(df -Pk "$1" 2>/dev/null | awk 'NR == 2 { print $4 }')"
    if [ -n "$2" ] && [ "$2" -lt 1024 ]; then
        printf 'the disk is full. Free some space and compile again'
    else
        printf 'see above'
    fi
}

install_package() {
    if ! copy_python_package "$root/python" priv/python; then
        die "$out/priv/python can't be written: $(why_unwritable "$out")"
    fi
    # A node that can't write there would compile the package at each start.
    if [ -n "$chosen" ] && ! compile_python_package; then
        die "$py_exe can't compile $out/priv/python: $(why_unwritable "$out")"
    fi
}

lock
choose_python
hash=$(source_hash)
! in_place "$hash" || exit 0
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
begin "$hash"
[ -z "${ERLANG_PYTHON_ARTEFACTS:-}" ] || install_archive
[ -n "$chosen" ] || [ "$from_archive" = yes ] || no_python
in_place "$hash" || install_from_source
install_package
say "$program: the native library is in $out/priv"
