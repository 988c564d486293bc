# shellcheck shell=sh
# `./dev test artefacts`: that what is handed out has the same bytes when it is built again elsewhere, and works where
# there is no Rust. For this machine and the newest Python found; takes two builds of some minutes each.
#
# shellcheck disable=SC2030,SC2031 # the second build has places of its own, in its subshell

dev_test_artefacts() {
    targets=$(uname -m)-linux-gnu
    setup build
    artefact_row "$targets" || die "archives are built on x86_64 and aarch64, not on $(uname -m)"
    choose_pythons newest
    select_python "$(first_line "$chosen")"
    tags=$py_tag
    trial_exe=$py_exe
    use_release_tools
    trial=$artefact_dir/trial
    rm -rf "$trial"
    mkdir -p "$trial/dist"
    # Not among those that are to be handed out.
    dist_dir=$trial/dist
    trial_passed=0 trial_failed=0
    lock
    make_artefacts "$targets" || exit 1
    make_sdist || exit 1
    build_erlang || exit 1
    trial_archive=$dist_dir/$(archive_name "$targets")
    trial_app=$trial/lib/erlang_python
    try "another build in another directory has the same bytes" again built_again
    try "the wheel is installed without Rust, and runs" wheel wheel_without_rust
    try "the sdist without Rust says what to install" sdist sdist_without_rust
    try "a node runs with the libraries of the archive" node node_of_archive
    try "in a node the module of the file is not taken" own node_has_its_own_module
    unlock
    rm -rf "$trial"
    say "$trial_passed passed, $trial_failed failed"
    [ "$trial_failed" -eq 0 ]
}

# try SENTENCE LOG FUNCTION
try() {
    if step "$1" "test-artefacts-$2" "$3"; then
        trial_passed=$((trial_passed + 1))
    else
        trial_failed=$((trial_failed + 1))
    fi
}

built_again() (
    trial_tree=$trial/another/tree
    mkdir -p "$trial_tree" || exit
    git ls-files -co --exclude-standard -z | xargs -0 cp --parents -t "$trial_tree" || exit
    cd "$trial_tree" || exit
    root=$trial_tree artefact_dir=$trial_tree/_build/artefacts dist_dir=$trial_tree/dist log_dir=$trial_tree/_build/log
    mkdir -p "$dist_dir" "$artefact_dir"
    make_artefacts "$targets" || exit
    trial_status=0
    for trial_file in "$trial/dist"/*.whl "$trial/dist"/*-nif-*.tar.gz; do
        cmp "$trial_file" "$dist_dir/${trial_file##*/}" || trial_status=1
    done
    rm -rf "$trial_tree"
    exit "$trial_status"
)

# Commands as a user without Rust has them.
bare() {
    env -i HOME="$trial" LC_ALL=C.UTF-8 PATH=/usr/bin:/bin "$@"
}

trial_venv() {
    rm -rf "${trial:?}/venv"
    "$trial_exe" -m venv "$trial/venv"
}

wheel_without_rust() {
    trial_venv && bare "$trial/venv/bin/pip" install erlang-python --no-index --only-binary :all: --find-links "$dist_dir" &&
        (cd / && bare "$trial/venv/bin/python" -c '
import asyncio, erlang

async def main():
    await asyncio.sleep(0.001)
    return type(asyncio.get_running_loop()).__name__

assert erlang.run(main()) == "ErlangEventLoop"
print(erlang.__version__)')
}

sdist_without_rust() {
    trial_venv || return
    if bare "$trial/venv/bin/pip" install --no-index "$dist_dir/erlang_python-$(project_version).tar.gz" \
        >"$trial/said" 2>&1; then
        return 1
    fi
    cat "$trial/said" && grep -q 'needs Rust .* or newer (found no cargo on PATH)' "$trial/said"
}

# The application as an installation leaves it: what rebar3 compiles, and priv/ of the archive.
node_of_archive() {
    mkdir -p "$trial_app" && cp -R "$app_dir/ebin" "$trial_app/" && tar -xzf "$trial_archive" -C "$trial_app" &&
        in_node 'application:ensure_all_started(erlang_python)' '{ok, [erlang_python]}' &&
        in_node 'begin application:ensure_all_started(erlang_python), py:call(math, sqrt, [16]) end' '{ok, 4.0}'
}

node_has_its_own_module() {
    for trial_native in "$trial_app"/priv/python/erlang/_native.*.so; do
        [ -f "$trial_native" ] || return
    done
    in_node 'begin application:ensure_all_started(erlang_python),
        py:eval("__import__(\"erlang._native\")._native.__spec__.origin") end' '{ok, <<"built-in">>}'
}

# in_node EXPRESSION PATTERN
in_node() {
    PYTHON=$trial_exe ERL_LIBS=$trial/lib erl -noinput -eval "$2 = $1, halt(0)."
}
