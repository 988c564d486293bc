#!/bin/sh
# Follows the recipes of CONTRIBUTING.md in a copy of the tree: adds a made-up thing of each kind, looks that this has
# changed the files that the recipe lists and no other, builds the copy and runs the tests of what was added.
#
# A recipe is a directory here: `edit.sh` names its heading in CONTRIBUTING.md and makes the changes, `*_SUITE.erl` and
# `test_*.py` are the tests. Usage: run.sh [RECIPE…]. The last line is "N passed, M failed".

set -u

recipes=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
project=$(CDPATH='' cd -- "$recipes/../.." && pwd)
# Always the same place: cargo knows by it what it has built before.
copy=$project/_build/recipes/tree
target=$project/_build/recipes/target
passed=0 failed=0

# Everything git knows or would add. What was built for this tree is used for the copy.
make_copy() {
    rm -rf "$copy"
    mkdir -p "$copy/_build" "$project/_build/venv"
    (cd "$project" && git ls-files -co --exclude-standard -z | xargs -0 cp --parents -t "$copy") || return
    make_target && ln -s "$target" "$copy/target" || return
    # Links to the same files; a wheel that is installed takes the place of its links.
    cp -al "$project/_build/venv" "$copy/_build/" && git -C "$copy" init -q && commit
}

# Not that of the project: cargo names what it builds by the places within a tree, so there the libraries of the copy
# would count as newer ones of the project.
make_target() (
    [ ! -d "$target" ] || exit 0
    mkdir -p "$target" "$project/target" && cd "$project/target" || exit
    for debug in cp*/debug loader/debug; do
        [ ! -d "$debug" ] || cp -a --reflink=auto --parents "$debug" "$target" || exit
    done
)

commit() {
    git -C "$copy" add -A && git -C "$copy" -c user.name=- -c user.email=- commit -q --allow-empty -m -
}

# For edit.sh. after FILE REGEX: puts its input behind the only line that matches; append FILE: at the end.
after() {
    after_lines=$(grep -n -E -- "$2" "$1" | cut -d : -f 1)
    case $after_lines in
        '' | *"$newline"*)
            printf 'not one line of %s matches %s\n' "$1" "$2"
            exit 1
            ;;
    esac
    sed -i "${after_lines}r /dev/stdin" "$1"
}

append() {
    cat >>"$1"
}

newline='
'

# The files that the section HEADING lists, one at the begin of each numbered item.
listed() {
    awk -v heading="### $1" '/^#/ { inside = ($0 == heading) } inside && /^[0-9]+\. `/ { print }' \
        "$project/CONTRIBUTING.md" | cut -d '`' -f 2 | LC_ALL=C sort
}

changed() {
    git -C "$copy" status --porcelain -uall | cut -c 4- | LC_ALL=C sort
}

# follow RECIPE: in a subshell, which ends with the first failure.
follow() (
    cd "$copy" && heading='' || exit
    # shellcheck source=/dev/null
    . "$recipes/$1/edit.sh" || exit
    if [ "$(changed)" != "$(listed "$heading")" ]; then
        printf 'changed:\n%s\nlisted in CONTRIBUTING.md, "%s":\n%s\n' "$(changed)" "$heading" "$(listed "$heading")"
        exit 1
    fi
    escript scripts/check_nif.escript . || exit
    commit || exit
    set --
    for test in "$recipes/$recipe"/*_SUITE.erl "$recipes/$recipe"/test_*.py; do
        case $test in
            *'*'*) continue ;;
            *.erl) cp "$test" test/ && set -- "$@" "$(basename "$test" .erl)" ;;
            *.py) cp "$test" test/python/ && set -- "$@" "test/python/${test##*/}" ;;
        esac
    done
    commit && ./dev test "$@"
)

make_copy || exit
# shellcheck disable=SC2046 # a list of names
[ $# -gt 0 ] || set -- $(cd "$recipes" && printf '%s\n' */ | tr -d /)
for recipe; do
    # Not in an `if`: there some shells ignore errexit.
    output=$(follow "$recipe" 2>&1)
    # shellcheck disable=SC2181
    if [ $? -eq 0 ]; then
        passed=$((passed + 1))
        continue
    fi
    failed=$((failed + 1))
    printf 'FAILED: the recipe %s\n%s\n' "$recipe" "$output"
    git -C "$copy" checkout -q . && git -C "$copy" clean -qfd
done
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
