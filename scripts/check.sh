# shellcheck shell=sh
# Everything that judges the text and not the behaviour, one line each; and the formatters.

dev_check() {
    setup check
    choose_pythons newest
    select_python "$(first_line "$chosen")"
    check_failed=0
    mkdir -p priv
    check rustfmt cargo fmt --all --check
    check "stubs of native functions" escript scripts/check_nif.escript .
    check "licences of crates" check_licences
    check "one version everywhere" check_version
    check clippy run_clippy
    check "dialyzer (the first time it reads all of OTP)" rebar3 dialyzer
    check xref rebar3 xref
    use_venv check || exit 1
    check "ruff check" "$venv/bin/ruff" check .
    check "ruff format" "$venv/bin/ruff" format --check .
    check mypy run_mypy
    check shellcheck run_shellcheck
    if [ "$check_failed" -gt 0 ]; then
        die "$check_failed of the checks failed"
    fi
    say "all clean"
}

check() {
    check_label=$1
    shift
    step "$check_label" "check-$(printf '%s' "${check_label%% (*}" | tr ' ' -)" "$@" ||
        check_failed=$((check_failed + 1))
}

# mix.exs reads it in the .app.src and pyproject.toml in Cargo.toml; the others say it themselves.
check_version() {
    check_version_wanted=$(version_of_app)
    check_version_status=0
    while read -r check_version_file check_version_said; do
        [ "$check_version_said" != "$check_version_wanted" ] || continue
        say "$check_version_file says $check_version_said, and src/erlang_python.app.src $check_version_wanted"
        check_version_status=1
    done <<SAID
$(said_versions)
SAID
    return "$check_version_status"
}

# Lines of "FILE VERSION".
said_versions() {
    sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/Cargo.toml \1/p' Cargo.toml
    sed -n 's/^{"\([^"]*\)",$/ebin\/erlang_python.appup \1/p' ebin/erlang_python.appup
    # As a dependency is written, in Erlang and in Elixir.
    grep -oE 'tag(,|:) "v[^"]*"|erlang_python-[0-9.]+[0-9]-nif' README.md docs/*.md | sed 's/:.*[v-]\([0-9.]*[0-9]\).*/ \1/'
}

run_clippy() {
    PYO3_PYTHON=$py_base cargo clippy --workspace --all-targets --target-dir "target/test-$py_tag" \
        -- -D warnings
}

check_licences() {
    crates | "$py_exe" scripts/licences.py check
}

# What cargo knows of the crates that are part of the libraries, on every target that has archives.
crates() {
    crates_targets=$(artefact_table | awk '{ print "--filter-platform", $2 }')
    # shellcheck disable=SC2086 # a list of options
    cargo metadata --format-version 1 --locked $crates_targets
}

run_mypy() {
    if [ ! -d python/erlang ]; then
        say "there is no python/erlang"
        return 0
    fi
    MYPYPATH=python "$venv/bin/mypy" --strict python/erlang
}

run_shellcheck() {
    # Through dev, as the files of scripts/ are parts of it.
    shellcheck -x -a dev .ci/run test/dev/run.sh test/recipes/run.sh test/recipes/*/edit.sh &&
        # These use a part of what they read.
        shellcheck -x scripts/install.sh scripts/bundle_python.sh test/install/run.sh
}

dev_fmt() {
    setup build
    choose_pythons newest
    select_python "$(first_line "$chosen")"
    step_or_exit "cargo fmt" fmt-rust cargo fmt --all
    build_erlang || exit 1
    step_or_exit "tables of docs/" fmt-docs escript scripts/tables.escript "$app_dir/ebin" write docs/*.md
    step_or_exit "options of the server" fmt-options write_options
    use_venv check || exit 1
    step_or_exit "ruff format" fmt-python "$venv/bin/ruff" format .
}

# The reference of the options of a server, and the types of `Options`: by the tests that compare them otherwise.
write_options() {
    DEV_WRITE=yes PYO3_PYTHON="$py_base" LD_LIBRARY_PATH="${py_lib%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
        cargo test --target-dir "target/test-$py_tag" -p pyloop --lib options::page
}
