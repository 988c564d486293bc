# shellcheck shell=sh
# Builds the application: the loader, one native library per Python, the Python package and the
# Erlang modules, into _build/default/lib/erlang_python.

app_dir=$root/_build/default/lib/erlang_python

export CARGO_TERM_COLOR=never

# As mix.exs reads it, too.
version_of_app() {
    sed -n 's/.*{vsn, "\([^"]*\)"}.*/\1/p' "$root/src/erlang_python.app.src"
}

dev_build() {
    setup build
    choose_pythons newest
    build
    say "built $app_dir"
}

# Builds for the rows of `chosen`; ends the program at the first failure.
build() {
    lock
    build_loader || exit 1
    while read_python; do
        build_nif || exit 1
    done <<ROWS
$chosen
ROWS
    build_erlang || exit 1
    unlock
}

# The profile of Cargo that native code is built with: release, perf (--perf, or PERF_BUILD=1 as for pip) or dev,
# which builds in seconds and is for tests that are repeated after each edit.
case ${PERF_BUILD:-0} in
    0) profile=release ;;
    *) profile=perf ;;
esac

# cargo_build TARGET [ARG…]: builds with `profile` into target/TARGET.
cargo_build() {
    cargo_target=target/$1
    shift
    if [ "$profile" = perf ]; then
        RUSTFLAGS="${RUSTFLAGS:-} -C target-cpu=native" \
            cargo build --profile perf --target-dir "$cargo_target-perf" "$@"
    else
        cargo build --profile "$profile" --target-dir "$cargo_target" "$@"
    fi
}

# built TARGET FILE: where cargo_build left FILE.
built() {
    case $profile in
        perf) printf '%s' "target/$1-perf/perf/$2" ;;
        dev) printf '%s' "target/$1/debug/$2" ;;
        *) printf '%s' "target/$1/$profile/$2" ;;
    esac
}

build_loader() {
    step "loader" build-loader make_loader
}

make_loader() {
    cargo_build loader -p loader && place "$(built loader libpy_loader.so)" priv/py_loader.so
}

build_nif() {
    step "native library for Python $py_version ($py_tag, $profile)" "build-nif-$py_tag" make_nif
}

make_nif() (
    like_maturin
    cargo_build "$py_tag" -p nif &&
        place "$(built "$py_tag" libpy_nif.so)" "priv/py_nif-$py_tag.so"
)

# The environment that maturin gives to cargo: pyo3-ffi and all that uses it is compiled once for the node's library
# and the wheel. Where it differs, cargo compiles all of it again at each change between the two.
like_maturin() {
    export PYO3_PYTHON="$py_base" PYTHON_SYS_EXECUTABLE="$py_base" PYO3_BUILD_EXTENSION_MODULE=1
    like_maturin_release=${py_tag#cp3}
    PYO3_ENVIRONMENT_SIGNATURE=cpython-3.${like_maturin_release%t}-$(getconf LONG_BIT)bit
    export PYO3_ENVIRONMENT_SIGNATURE
}

# place FROM TO: a node that runs has the old file mapped, so the new one takes its name in one
# move; an equal one stays, so nothing that depends on its time is made again.
place() {
    cmp -s "$1" "$2" && return 0
    mkdir -p "${2%/*}" && cp "$1" "$2.new.$$" && mv -f "$2.new.$$" "$2"
}

build_erlang() {
    step "Python package and Erlang modules" build-erlang make_erlang
}

make_erlang() {
    copy_python_package python priv/python && compile_python_package && rebar3 compile
}

# For each Python chosen: nodes often run where they can't write, and every sub-interpreter would compile
# the package again. By the hash of the source: times change when files are copied.
compile_python_package() {
    while read_python; do
        "$py_exe" -m compileall -q --invalidation-mode checked-hash priv/python || return
    done <<ROWS
$chosen
ROWS
}

# The files of the package, relative to the directory given.
package_files() {
    (cd "$1" && find . -name __pycache__ -prune -o -type f \
        \( -name '*.py' -o -name '*.pyi' -o -name py.typed \) -print | LC_ALL=C sort)
}

# copy_python_package FROM TO: TO has FROM's modules and no other.
copy_python_package() {
    mkdir -p "$2" || return
    [ -d "$1" ] || return 0
    package_files "$1" | while read -r package_file; do
        place "$1/$package_file" "$2/$package_file" || exit
    done || return
    package_files "$2" | while read -r package_file; do
        [ -e "$1/$package_file" ] || rm -f "$2/$package_file"
    done
    find "$2" -mindepth 1 -depth -type d ! -name __pycache__ | while read -r package_dir; do
        [ -d "$1/${package_dir#"$2/"}" ] || rm -rf "$package_dir"
    done
}
