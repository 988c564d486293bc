# shellcheck shell=sh
# Finds the CPythons that can be embedded, newest first, one for each ABI tag (cp313, cp314t); the
# free-threaded ones come last, so that nobody gets one unasked.
#
# A row is one line: tag, version, executable, base executable, shared library, can make a venv.
# The executable is what the user named (a venv's python stays one); the base executable is what
# native code is built against, so a venv does not cause another build.
# What an interpreter said of itself is kept in _build/pythons under its path and time.

probe_cache=$build_dir/pythons
# Where ./dev python puts what it builds.
pythons_dir=${XDG_CACHE_HOME:-${HOME:-}/.cache}/erlang_python/pythons

# Reads one row: call as `while read_python; do …; done <<ROWS`.
read_python() {
    IFS=$tab read -r py_tag py_version py_exe py_base py_lib py_pip && [ -n "$py_tag" ]
}

# select_python ROW: sets py_tag, py_version, py_exe, py_base, py_lib, py_pip.
select_python() {
    read_python <<ROW
$1
ROW
}

first_line() {
    printf '%s' "${1%%"$newline"*}"
}

# Every interpreter worth a look, as a path without symbolic links.
python_candidates() {
    set --
    for candidate in "${PYENV_ROOT:-${HOME:-}/.pyenv}"/versions/*/bin/python3 \
        "$pythons_dir"/*/bin/python3; do
        [ ! -x "$candidate" ] || set -- "$@" "$candidate"
    done
    candidate_ifs=$IFS
    IFS=:
    for candidate_dir in $PATH /usr/local/bin /usr/bin; do
        # pyenv's shims stand for the versions seen above.
        case $candidate_dir in */shims) continue ;; esac
        for candidate in "$candidate_dir"/python3 "$candidate_dir"/python3.[1-9]*; do
            case $candidate in *-config | *.py | *-dbg) continue ;; esac
            [ ! -x "$candidate" ] || set -- "$@" "$candidate"
        done
    done
    IFS=$candidate_ifs
    # One at a time: that of busybox takes no more.
    for candidate; do readlink -f -- "$candidate"; done | awk '!seen[$0]++'
}

# probe PATH: prints the line of probe_python.py for it, or nothing.
probe() {
    "$1" -I "$root/scripts/probe_python.py" 2>/dev/null
}

# absolute_python NAME: a path as the caller's directory sees it, or a command of PATH.
absolute_python() {
    case $1 in
        /*) printf '%s\n' "$1" ;;
        */*) printf '%s\n' "$caller_dir/$1" ;;
        *) command -v "$1" ;;
    esac
}

# Prints "path<TAB>mtime<TAB>probe line" for every candidate, from the cache where it still holds.
probe_candidates() {
    python_candidates | tr '\n' '\0' | xargs -0 -r stat -L -c "%n$tab%Y" |
        PROBE_CACHE=$probe_cache awk -F '\t' '
            BEGIN {
                while ((getline row <ENVIRON["PROBE_CACHE"]) > 0) {
                    split(row, field)
                    line[field[1] FS field[2]] = row
                }
            }
            { print ($0 in line) ? line[$0] : $0 }' |
        while IFS=$tab read -r path mtime key tag version exe base lib pip verdict; do
            if ! still_true "$verdict" "$lib" "$pip"; then
                fresh=$(probe "$path") || continue
                printf '%s\t%s\t%s\n' "$path" "$mtime" "$fresh"
                continue
            fi
            printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' \
                "$path" "$mtime" "$key" "$tag" "$version" "$exe" "$base" "$lib" "$pip" "$verdict"
        done
}

# still_true VERDICT LIBRARY CAN_MAKE_VENV:
# a library or a package may have come or gone without the interpreter's file changing.
still_true() {
    case $1 in
        ok) [ -e "$2" ] && [ "$3" = yes ] ;;
        'has no shared library'*) [ ! -e "$2" ] ;;
        '') return 1 ;;
    esac
}

# Sets `pythons` (rows, the best first), `twins` (rows: the oldest release of each tag, where it
# is not the one in `pythons`) and `refused` (version, path and why, one per line).
find_pythons() {
    mkdir -p "$build_dir"
    probed=$(probe_candidates)
    printf '%s\n' "$probed" >"$probe_cache.new.$$"
    if cmp -s "$probe_cache.new.$$" "$probe_cache"; then
        rm -f "$probe_cache.new.$$"
    else
        mv "$probe_cache.new.$$" "$probe_cache"
    fi
    find_named_python
    find_sorted=$(
        [ -z "$named_row" ] || printf '%s\n' "$named_row"
        printf '%s\n' "$probed" | cut -f 3- | sort -s -r -k 1,1
    )
    pythons=$(printf '%s\n' "$find_sorted" | awk -F '\t' -v OFS='\t' '
        $8 == "ok" && !seen[$2]++ { print $2, $3, $4, $5, $6, $7 }')
    twins=$(printf '%s\n' "$find_sorted" | awk -F '\t' -v OFS='\t' '
        $8 != "ok" { next }
        !($2 in first) { first[$2] = $3 }
        $3 != first[$2] { last[$2] = $2 OFS $3 OFS $4 OFS $5 OFS $6 OFS $7 }
        END { for (tag in last) print last[tag] }')
    refused=$(printf '%s\n' "$find_sorted" |
        awk -F '\t' 'NF && $8 != "ok" { print $3 " (" $4 ") " $8 }')
}

# $PYTHON (a path, a command or a version, as in the node) wins always; if it can't be used that is an error, not a reason to take another one.
find_named_python() {
    named_row=''
    [ -n "${PYTHON:-}" ] || return 0
    case $PYTHON in
        [0-9].[0-9]*)
            named_row=$(printf '%s\n' "$probed" | cut -f 3- | awk -F '\t' -v want="$PYTHON" '
                { tag = want; gsub(/\./, "", tag) }
                $8 == "ok" && ($2 == "cp" tag || $3 == want)' | sort -s -r -k 1,1 | head -n 1)
            [ -n "$named_row" ] ||
                die "\$PYTHON is '$PYTHON', and there is no Python of that version with a shared library here"
            ;;
        *)
            # shellcheck disable=SC2016 # the name of the variable is meant
            named_row=$(probe_named "$PYTHON" '$PYTHON') || exit 1
            ;;
    esac
}

# probe_named NAME WHAT: the probe line of an interpreter that must be usable.
probe_named() {
    probe_named_path=$(absolute_python "$1") || probe_named_path=''
    # The directory of a venv or of an installation.
    if [ -d "$probe_named_path" ]; then
        probe_named_path=${probe_named_path%/}/bin/python3
        [ -x "$probe_named_path" ] || die "$2 is '$1', and that directory has no bin/python3"
    fi
    [ -x "$probe_named_path" ] || die "$2 is '$1', and there is no such program"
    probe_named_line=$(probe "$probe_named_path") || probe_named_line=''
    [ -n "$probe_named_line" ] || die "$2 is '$1', and that does not run as a Python 3"
    probe_named_verdict=${probe_named_line##*"$tab"}
    [ "$probe_named_verdict" = ok ] || die "$2 is '$1', and that $probe_named_verdict"
    printf '%s\n' "$probe_named_line"
}

# Sets `chosen`: the rows that the command line asks for, else those of the fallback all|newest.
choose_pythons() {
    if [ -n "$opt_pythons" ]; then
        chosen=''
        while read -r choose_name; do
            [ -z "$choose_name" ] || chosen=$chosen$(row_of "$choose_name")$newline || exit 1
        done <<NAMES
$opt_pythons
NAMES
        chosen=${chosen%"$newline"}
    elif [ "$1" = all ] || [ "$opt_all_pythons" = yes ]; then
        chosen=$pythons
    else
        chosen=$(first_line "$pythons")
    fi
}

# row_of PATH|X.Y|X.Y.Z: the row of the interpreter with that name.
row_of() {
    case $1 in
        [0-9].[0-9]*)
            row_of_found=$(printf '%s\n' "$pythons" | awk -F '\t' -v want="$1" '
                { tag = want; gsub(/\./, "", tag) }
                $1 == "cp" tag || $2 == want { print; exit }')
            [ -n "$row_of_found" ] || no_such_python "$1"
            printf '%s\n' "$row_of_found"
            ;;
        *)
            row_of_line=$(probe_named "$1" --python) || exit 1
            printf '%s\n' "$row_of_line" | cut -f 2-7
            ;;
    esac
}

# no_such_python X.Y: says why the one that is there can't be used, if there is one.
no_such_python() {
    no_such_why=$(printf '%s\n' "$refused" | awk -v want="$1" '
        {
            split($1, part, ".")
            short = part[1] "." part[2] ($1 ~ /t$/ ? "t" : "")
        }
        $1 == want || short == want { print; exit }')
    [ -z "$no_such_why" ] || die "Python $no_such_why"
    die "there is no Python $1 here; ./dev pythons lists them"
}

no_python() {
    say "${program:-dev}: there is no CPython 3.11+ with a shared library here (Debian: apt install python3-dev)" >&2
    [ -z "$refused" ] || printf '%s\n' "$refused" | sed 's/^/  /' >&2
    exit 3
}

dev_pythons() {
    find_pythons
    while read_python; do
        printf '  %-8s %-10s %s\n' "$py_tag" "$py_version" "$py_exe"
    done <<ROWS
$pythons
ROWS
    while read_python; do
        printf '  %-8s %-10s %s (for the smoke set)\n' "$py_tag" "$py_version" "$py_exe"
    done <<ROWS
$twins
ROWS
    [ -z "$refused" ] || printf '%s\n' "$refused" | sed 's/^/  not used: /'
}
