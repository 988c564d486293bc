# shellcheck shell=sh
# One virtual environment per Python under _build/venv, with the packages of a requirements file
# and, for the tests, this project's wheel.

# Sets `venv` for the selected Python and fills it with scripts/requirements-NAME.txt.
# use_venv NAME [DIR]: DIR is another one than that of the tests, under _build/venv.
use_venv() {
    venv=$root/_build/venv/${2:-$py_tag}
    venv_stamp=$venv/requirements-$1
    venv_wanted="$py_exe $(cat "scripts/requirements-$1.txt")"
    if [ -x "$venv/bin/python" ] && [ -f "$venv_stamp" ] &&
        [ "$(cat "$venv_stamp")" = "$venv_wanted" ]; then
        return 0
    fi
    step "Python packages for $1 ($py_tag)" "venv-$1-$py_tag" make_venv "$1"
}

make_venv() {
    # Another interpreter of the same tag: the old environment points to the wrong one.
    if [ "$(cat "$venv/interpreter" 2>/dev/null)" != "$py_exe" ]; then
        rm -rf "$venv"
        "$py_exe" -m venv "$venv" && printf '%s\n' "$py_exe" >"$venv/interpreter" || return
    fi
    "$venv/bin/python" -m pip install --disable-pip-version-check -r "scripts/requirements-$1.txt" &&
        printf '%s' "$venv_wanted" >"$venv_stamp"
}

# Builds the wheel for the selected Python and puts it into its environment.
install_wheel() {
    step "wheel ($py_tag, $profile)" "wheel-$py_tag" make_wheel
}

make_wheel() {
    wheel_dir=_build/wheel/$py_tag
    rm -rf "$wheel_dir"
    "$venv/bin/maturin" build --profile "$profile" --interpreter "$py_base" --compatibility linux \
        --target-dir "target/$py_tag" --out "$wheel_dir" &&
        "$venv/bin/python" -m pip install --disable-pip-version-check --no-deps --no-index \
            --force-reinstall "$wheel_dir"/*.whl
}
