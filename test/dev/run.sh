#!/bin/sh
# Proves what ./dev promises, with stand-ins for the machine it runs on. The last line is
# "N passed, M failed".
#
# shellcheck disable=SC2317 # the tests are called by name, through `prove`

set -u

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
project=$(CDPATH='' cd -- "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# What the tests share: a `root` of their own with spaces in its name, and the parts of dev.
root="$work/a tree"
caller_dir=$work
mkdir -p "$root/_build"
ln -s "$project/scripts" "$root/scripts"
opt_release=no opt_shell=no opt_all=no opt_all_pythons=no opt_pythons='' words=''
# shellcheck source=scripts/step.sh
. "$project/scripts/step.sh"
# shellcheck source=scripts/tasks.sh
. "$project/scripts/tasks.sh"
# shellcheck source=scripts/setup.sh
. "$project/scripts/setup.sh"
# shellcheck source=scripts/pythons.sh
. "$project/scripts/pythons.sh"
# shellcheck source=scripts/make_python.sh
. "$project/scripts/make_python.sh"
# shellcheck source=scripts/build.sh
. "$project/scripts/build.sh"
# shellcheck source=scripts/from_source.sh
. "$project/scripts/from_source.sh"
# shellcheck source=scripts/from_archive.sh
. "$project/scripts/from_archive.sh"
# shellcheck source=scripts/venv.sh
. "$project/scripts/venv.sh"
# shellcheck source=scripts/count.sh
. "$project/scripts/count.sh"
# shellcheck source=scripts/test.sh
. "$project/scripts/test.sh"
# shellcheck source=scripts/stress.sh
. "$project/scripts/stress.sh"
# shellcheck source=scripts/node.sh
. "$project/scripts/node.sh"
# shellcheck source=scripts/zoo.sh
. "$project/scripts/zoo.sh"
# shellcheck source=scripts/mutants.sh
. "$project/scripts/mutants.sh"
# shellcheck source=scripts/artefacts.sh
. "$project/scripts/artefacts.sh"
# shellcheck source=scripts/release.sh
. "$project/scripts/release.sh"

# prove SENTENCE FUNCTION: the function runs in a subshell and stops at its first failure.
prove() {
    # Not in an `if`: there some shells ignore errexit.
    output=$(set -e && cd "$root" && "$2" 2>&1)
    # shellcheck disable=SC2181
    if [ $? -eq 0 ]; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    printf 'FAILED: %s\n%s\n' "$1" "$output"
}

# same EXPECTED ACTUAL
same() {
    [ "$1" = "$2" ] || {
        printf 'expected: %s\n     got: %s\n' "$1" "$2"
        exit 1
    }
}

# contains TEXT PART
contains() {
    case $1 in *"$2"*) return 0 ;; esac
    printf 'not in the text: %s\ntext: %s\n' "$2" "$1"
    exit 1
}

# shellcheck source=test/dev/test_setup.sh
. "$here/test_setup.sh"
# shellcheck source=test/dev/test_pythons.sh
. "$here/test_pythons.sh"
# shellcheck source=test/dev/test_make_python.sh
. "$here/test_make_python.sh"
# shellcheck source=test/dev/test_build.sh
. "$here/test_build.sh"
# shellcheck source=test/dev/test_install.sh
. "$here/test_install.sh"
# shellcheck source=test/dev/test_count.sh
. "$here/test_count.sh"
# shellcheck source=test/dev/test_tasks.sh
. "$here/test_tasks.sh"
# shellcheck source=test/dev/test_words.sh
. "$here/test_words.sh"
# shellcheck source=test/dev/test_zoo.sh
. "$here/test_zoo.sh"
# shellcheck source=test/dev/test_mutants.sh
. "$here/test_mutants.sh"
# shellcheck source=test/dev/test_check_nif.sh
. "$here/test_check_nif.sh"
# shellcheck source=test/dev/test_release.sh
. "$here/test_release.sh"

printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
