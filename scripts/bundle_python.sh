#!/bin/sh
# Makes a directory with a Python and packages in it that runs wherever it is copied to, for a release.
#
#   sh scripts/bundle_python.sh DIR VERSION [FILE]
#
# VERSION is X.Y. FILE is a requirements.txt, a pylock.toml or a pyproject.toml, whose uv.lock counts if there is one.
# uv does the work: that of the PATH, else it is fetched from the package index with the Python 3 of the machine. DIR is
# replaced when all has worked. Exit code: 0 done, 1 a sentence has said why not.

set -eu

die() {
    printf 'bundle_python: %s\n' "$*" >&2
    exit 1
}

[ $# -eq 2 ] || [ $# -eq 3 ] || die "usage: sh scripts/bundle_python.sh DIR VERSION [FILE]"
dir=$1 version=$2 file=${3:-}
# With a slash at the end what is beside it would be in it.
while [ "$dir" != "${dir%/}" ]; do dir=${dir%/}; done
[ -n "$dir" ] || die "'$1' is no name of a directory"
[ -z "$file" ] || [ -f "$file" ] || die "$file does not exist"
[ ! -e "$dir" ] || [ -f "$dir/bundled" ] || die "$dir exists, and was not made by this script"
source=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)

find_uv() {
    if command -v uv; then
        return
    fi
    find_uv_cache=${XDG_CACHE_HOME:-${HOME:-$PWD/_build}/.cache}/erlang_python/uv
    if [ ! -x "$find_uv_cache/uv" ]; then
        command -v python3 >/dev/null || die "there is neither uv nor a Python to fetch it with: https://docs.astral.sh/uv"
        python3 -I -S "$source/python/erlang/_fetch_uv.py" "$find_uv_cache" >&2 || die "uv could not be fetched"
    fi
    printf '%s\n' "$find_uv_cache/uv"
}

uv=$(find_uv)
new=$dir.new.$$
trap 'rm -rf "$new"' EXIT
trap 'exit 1' HUP INT TERM
mkdir -p "$new"
"$uv" python install --no-bin --install-dir "$new/all" "$version" || die "uv could not install Python $version"
for found in "$new"/all/cpython-"$version"*; do
    # The others are links to it.
    [ -L "$found" ] || mv "$found" "$new/python"
done
[ -x "$new/python/bin/python$version" ] || die "uv left no Python $version"

# install ARG…: into the Python itself, which is this release's own.
install() {
    "$uv" pip install --python "$new/python/bin/python$version" --break-system-packages "$@" ||
        die "the packages of $file could not be installed"
}

case ${file##*/} in
    '') ;;
    pyproject.toml)
        if [ -f "${file%pyproject.toml}uv.lock" ]; then
            "$uv" export --quiet --frozen --no-dev --no-editable --project "$(dirname -- "$file")" \
                --python "$new/python/bin/python$version" --output-file "$new/locked.txt" >/dev/null ||
                die "$file and its uv.lock do not fit"
            install -r "$new/locked.txt"
        elif [ -f "${file%pyproject.toml}pylock.toml" ]; then
            install -r "${file%pyproject.toml}pylock.toml"
        else
            install -r "$file"
        fi
        ;;
    *) install -r "$file" ;;
esac

printf 'Python %s%s\n' "$version" "${file:+ with the packages of $file}" >"$new/python/bundled"
rm -rf "$dir"
mv "$new/python" "$dir"
