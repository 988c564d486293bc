# shellcheck shell=sh
# Finding interpreters. The stand-ins answer as probe_python.py would.

# fake_python DIR VERSION VERDICT [CAN_MAKE_VENV]
fake_python() {
    mkdir -p "$1/bin" "$1/lib"
    fake_minor=${2#3.}
    fake_flag=''
    case $2 in *t) fake_flag=t ;; esac
    fake_micro=${fake_minor#*.}
    fake_minor=${fake_minor%%.*}
    [ "$3" != ok ] || : >"$1/lib/libpython.so"
    cat >"$1/bin/python3" <<PYTHON
#!/bin/sh
echo probed >>"$work/probes"
printf '%d%03d%02d\tcp3%d%s\t%s\t%s\t%s\t%s\t%s\t%s\n' $([ "$fake_flag" ] && echo 0 || echo 1) $fake_minor \
    ${fake_micro%t} $fake_minor '$fake_flag' '$2' '$1/bin/python3' '$1/bin/python3' '$1/lib/libpython.so' \
    '${4:-yes}' '$3'
PYTHON
    chmod +x "$1/bin/python3"
}

# A machine with nothing but pyenv.
fake_machine() {
    PYENV_ROOT="$work/machine $1"
    unset PYTHON
    rm -rf "$PYENV_ROOT" "$work/probes" "$probe_cache"
    # The system's own interpreters would be found as well.
    python_candidates() {
        printf '%s\n' "$PYENV_ROOT"/versions/*/bin/python3
    }
}

tags() {
    printf '%s\n' "$pythons" | cut -f 1,2 | tr '\t\n' '  '
}

the_newest_comes_first() {
    fake_machine first
    fake_python "$PYENV_ROOT/versions/a" 3.11.7 ok
    fake_python "$PYENV_ROOT/versions/b" 3.13.0 ok
    fake_python "$PYENV_ROOT/versions/c" 3.12.1 ok
    fake_python "$PYENV_ROOT/versions/d" 3.12.10 ok
    fake_python "$PYENV_ROOT/versions/e" 3.10.2 'is older than 3.11'
    find_pythons
    same "cp313 3.13.0 cp312 3.12.10 cp311 3.11.7 " "$(tags)"
    contains "$refused" "3.10.2 ($PYENV_ROOT/versions/e/bin/python3) is older than 3.11"
}

the_oldest_release_of_a_tag_is_its_twin() {
    fake_machine twins
    fake_python "$PYENV_ROOT/versions/a" 3.11.7 ok
    fake_python "$PYENV_ROOT/versions/b" 3.11.2 ok
    fake_python "$PYENV_ROOT/versions/c" 3.11.4 ok
    fake_python "$PYENV_ROOT/versions/d" 3.13.0 ok
    find_pythons
    same "cp313 3.13.0 cp311 3.11.7 " "$(tags)"
    same "cp311 3.11.2" "$(printf '%s\n' "$twins" | cut -f 1,2 | tr '\t' ' ')"
}

the_gil_comes_before_free_threads() {
    fake_machine free
    fake_python "$PYENV_ROOT/versions/a" 3.14.2t ok
    fake_python "$PYENV_ROOT/versions/b" 3.14.0 ok
    fake_python "$PYENV_ROOT/versions/c" 3.13.9 ok
    find_pythons
    same "cp314 3.14.0 cp313 3.13.9 cp314t 3.14.2t " "$(tags)"
}

the_named_one_wins() {
    fake_machine named
    fake_python "$PYENV_ROOT/versions/a" 3.13.0 ok
    fake_python "$PYENV_ROOT/versions/b" 3.12.9 ok
    fake_python "$work/else where" 3.12.1 ok
    PYTHON="$work/else where/bin/python3"
    find_pythons
    same "cp312 3.12.1 cp313 3.13.0 " "$(tags)"
    PYTHON='else where/bin/python3'
    find_pythons
    same "cp312 3.12.1 cp313 3.13.0 " "$(tags)"
    PYTHON="$work/else where"
    find_pythons
    same "cp312 3.12.1 cp313 3.13.0 " "$(tags)"
}

named_by_version() {
    fake_machine version
    fake_python "$PYENV_ROOT/versions/a" 3.13.0 ok
    fake_python "$PYENV_ROOT/versions/b" 3.12.9 ok
    fake_python "$PYENV_ROOT/versions/c" 3.12.10 ok
    fake_python "$PYENV_ROOT/versions/d" 3.14.1t ok
    PYTHON=3.12
    find_pythons
    same "cp312 3.12.10 cp313 3.13.0 cp314t 3.14.1t " "$(tags)"
    PYTHON=3.12.9
    find_pythons
    same "cp312 3.12.9 cp313 3.13.0 cp314t 3.14.1t " "$(tags)"
    PYTHON=3.14t
    find_pythons
    same cp314t "$(first_line "$pythons" | cut -f 1)"
    PYTHON=3.11
    if said=$(find_pythons 2>&1); then exit 1; fi
    contains "$said" "no Python of that version"
}

a_named_one_that_cannot_be_used_is_an_error() {
    fake_machine refused
    fake_python "$PYENV_ROOT/versions/a" 3.13.0 ok
    fake_python "$work/old" 3.10.1 'is older than 3.11'
    PYTHON="$work/old/bin/python3"
    if said=$(find_pythons 2>&1); then exit 1; fi
    contains "$said" "is older than 3.11"
    PYTHON=no-such-python
    if said=$(find_pythons 2>&1); then exit 1; fi
    contains "$said" "there is no such program"
    PYTHON=$work
    if said=$(find_pythons 2>&1); then exit 1; fi
    contains "$said" "has no bin/python3"
}

asked_once() {
    fake_machine cache
    fake_python "$PYENV_ROOT/versions/a" 3.13.0 ok
    fake_python "$PYENV_ROOT/versions/b" 3.10.0 'is older than 3.11'
    find_pythons
    find_pythons
    same 2 "$(wc -l <"$work/probes")"
    touch -d '2001-01-01' "$PYENV_ROOT/versions/a/bin/python3"
    find_pythons
    same 3 "$(wc -l <"$work/probes")"
}

asked_again_when_the_library_is_gone() {
    fake_machine library
    fake_python "$PYENV_ROOT/versions/a" 3.13.0 ok
    find_pythons
    rm "$PYENV_ROOT/versions/a/lib/libpython.so"
    find_pythons
    same 2 "$(wc -l <"$work/probes")"
}

chosen_by_version() {
    fake_machine chosen
    fake_python "$PYENV_ROOT/versions/a" 3.13.0 ok
    fake_python "$PYENV_ROOT/versions/b" 3.12.9 ok
    fake_python "$PYENV_ROOT/versions/c" 3.13.1t 'is a free-threaded 3.13'
    find_pythons
    opt_pythons="3.12${newline}3.13.0$newline"
    choose_pythons newest
    same "cp312 cp313 " "$(printf '%s\n' "$chosen" | cut -f 1 | tr '\n' ' ')"
    opt_pythons="3.13t$newline"
    if said=$(choose_pythons newest 2>&1); then exit 1; fi
    contains "$said" "is a free-threaded 3.13"
    opt_pythons="3.9$newline"
    if said=$(choose_pythons newest 2>&1); then exit 1; fi
    contains "$said" "there is no Python 3.9"
}

prove "the newest Python comes first, one for each tag" the_newest_comes_first
prove "the oldest release of a tag is kept for the smoke set" the_oldest_release_of_a_tag_is_its_twin
prove "builds with a GIL come before free threads" \
    the_gil_comes_before_free_threads
prove "\$PYTHON wins over a newer one, also as a path relative to the caller" the_named_one_wins
prove "\$PYTHON may be a version, as in the node" named_by_version
prove "a \$PYTHON that cannot be used is an error with its reason" \
    a_named_one_that_cannot_be_used_is_an_error
prove "an interpreter is asked once, and again when its file has changed" asked_once
prove "an interpreter is asked again when its library is gone" asked_again_when_the_library_is_gone
prove "--python takes X.Y and X.Y.Z, and says why one is refused" chosen_by_version
