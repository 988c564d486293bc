# shellcheck shell=sh
# Packages and web frameworks that others write, tried with this project: each in a node of its own, with a limit of
# time. A result is a file under _build/zoo; what has one is not tried again, unless --again says so.

# Seconds that one package or one framework has.
zoo_limit=${DEV_ZOO_LIMIT:-120}
zoo_install_limit=${DEV_ZOO_INSTALL_LIMIT:-600}

# ./dev zoo packages|frameworks [NAME…] [--again]
dev_zoo() {
    zoo_kind=${words%%"$newline"*}
    case $zoo_kind in
        packages | frameworks) ;;
        table) zoo_table ;;
        *) usage_error "./dev zoo takes packages, frameworks or table" ;;
    esac
    [ "$zoo_kind" != table ] || return 0
    zoo_names=${words#*"$newline"}
    # What is tried is behaviour, not speed.
    [ "$opt_release" = yes ] || profile=dev
    prepare_node test
    zoo_prepare
    zoo_failed=0
    while read -r zoo_name zoo_wants; do
        case $zoo_name in '' | \#*) continue ;; esac
        zoo_is_wanted || continue
        zoo_one || zoo_failed=1
    done <"test/zoo/$zoo_kind.txt"
    return "$zoo_failed"
}

# Ten of each kind, for ./dev test --all; prints the count that is its result.
zoo_ten() {
    opt_again=yes zoo_passed=0 zoo_missed=0 zoo_left_out=0
    for zoo_kind in packages frameworks; do
        zoo_prepare || return
        zoo_first=$(grep -v '^#' "test/zoo/$zoo_kind.txt" | head -n 10)
        while read -r zoo_name zoo_wants; do
            zoo_told=0
            zoo_one || zoo_told=1
            if [ ! -f "$zoo_result" ]; then
                zoo_left_out=$((zoo_left_out + 1))
            elif [ "$zoo_told" -eq 0 ]; then
                zoo_passed=$((zoo_passed + 1))
            else
                zoo_missed=$((zoo_missed + 1))
            fi
        done <<NAMES
$zoo_first
NAMES
    done
    echo "$zoo_passed passed, $zoo_missed failed, $zoo_left_out skipped"
    [ "$zoo_missed" -eq 0 ]
}

# The environment that all share, and the modules that drive them.
zoo_prepare() {
    zoo_dir=$root/_build/zoo
    zoo_venv=$zoo_dir/venv-$py_tag
    mkdir -p "$zoo_dir/$zoo_kind" "$zoo_dir/ebin"
    [ -x "$zoo_venv/bin/python" ] || "$py_exe" -m venv "$zoo_venv"
    erlc -pa "$app_dir/ebin" -o "$zoo_dir/ebin" test/zoo/*.erl
    [ "$zoo_kind" = packages ] || zoo_install uvicorn httpx websockets || return
    [ "$zoo_kind" = packages ] || zoo_install_wheel
}

# The wheel of the tests, if there is one.
zoo_install_wheel() {
    "$zoo_venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps --force-reinstall \
        "_build/wheel/$py_tag"/*.whl || stop_with "no wheel: ./dev test python makes it"
}

stop_with() {
    printf 'dev: %s\n' "$*" >&2
    exit 3
}

zoo_is_wanted() {
    [ -n "$zoo_names" ] || return 0
    printf '%s' "$zoo_names" | grep -qx -e "$zoo_name"
}

zoo_install() {
    timeout "$zoo_install_limit" "$zoo_venv/bin/python" -m pip install -q --disable-pip-version-check \
        --only-binary :all: "$@"
}

# One package or framework: prints its result, and keeps it.
zoo_one() {
    zoo_result=$zoo_dir/$zoo_kind/$zoo_name.txt
    if [ -f "$zoo_result" ] && [ "$opt_again" = no ]; then
        printf '%-18s as before\n' "$zoo_name"
        return 0
    fi
    rm -f "$zoo_result"
    zoo_log=$zoo_dir/$zoo_kind/$zoo_name.log
    # shellcheck disable=SC2086 # a list of requirements
    if [ "$zoo_wants" != - ] && ! zoo_install $zoo_wants >"$zoo_log" 2>&1; then
        printf '%-18s not installed: %s\n' "$zoo_name" "$(tail -n 1 "$zoo_log")"
        return 0
    fi
    {
        printf 'date %s\npython %s\n' "$(date +%F)" "$py_version"
        zoo_versions
        "zoo_try_$zoo_kind"
    } >"$zoo_result.new"
    mv "$zoo_result.new" "$zoo_result"
    printf '%-18s %s\n' "$zoo_name" "$(grep '^zoo ' "$zoo_result" | cut -d ' ' -f 2- | paste -s -d ';' -)"
    ! grep -q '^zoo .* failed' "$zoo_result"
}

# What was installed for it.
zoo_versions() {
    for zoo_want in $zoo_wants; do
        [ "$zoo_want" != - ] || continue
        "$zoo_venv/bin/python" -c '
import importlib.metadata, sys
name = sys.argv[1].partition("[")[0]
print("version", name, importlib.metadata.version(name))' "$zoo_want"
    done
}

# zoo_node MODULE ARG…
zoo_node() {
    zoo_module=$1
    shift
    PYTHON="$zoo_venv/bin/python" exec erl -noinput -pa "$app_dir/ebin" "$zoo_dir/ebin" \
        -eval "$zoo_module:main()" -extra "$@"
}

zoo_try_packages() {
    zoo_status=0
    (zoo_limited zoo_package "zoo_$zoo_name" "$root/test/zoo/packages") >"$zoo_log" 2>&1 || zoo_status=$?
    grep '^zoo ' "$zoo_log" || :
    case $zoo_status in
        0) echo 'zoo stop ok' ;;
        124) echo "zoo stop failed: more than $zoo_limit s" ;;
        *) echo "zoo stop failed: exit code $zoo_status" ;;
    esac
}

zoo_limited() {
    # `timeout` runs programs, not functions.
    zoo_module=$1
    shift
    PYTHON="$zoo_venv/bin/python" exec timeout -k 5 "$zoo_limit" erl -noinput -pa "$app_dir/ebin" "$zoo_dir/ebin" \
        -eval "$zoo_module:main()" -extra "$@"
}

# Each server on a port of its own, asked by the same client.
zoo_try_frameworks() {
    zoo_program=zoo_$zoo_name
    zoo_programs=$root/test/zoo/frameworks
    for zoo_server in uvicorn wheel node; do
        zoo_port=$("$zoo_venv/bin/python" -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
        (zoo_serve) >"$zoo_log.$zoo_server" 2>&1 &
        zoo_pid=$!
        zoo_told=$(timeout "$zoo_limit" "$zoo_venv/bin/python" test/zoo/zoo_client.py "$zoo_port" \
            "$zoo_programs/$zoo_program.py" 2>&1 | tail -n 1)
        kill "$zoo_pid" 2>/dev/null || :
        zoo_status=0
        wait "$zoo_pid" || zoo_status=$?
        case $zoo_server:$zoo_status in
            # A program that a signal ends.
            *:0 | uvicorn:143 | wheel:143) ;;
            *) zoo_told="$zoo_told; it ended with $zoo_status" ;;
        esac
        echo "zoo $zoo_server ${zoo_told:-failed: no answer}"
    done
}

zoo_serve() {
    case $zoo_server in
        node) zoo_node zoo_framework "$zoo_program" "$zoo_programs" "$zoo_port" ;;
        *) ;;
    esac
    cd "$zoo_programs" || exit
    case $zoo_server in
        uvicorn) exec "$zoo_venv/bin/python" -m uvicorn --port "$zoo_port" "$zoo_program:app" ;;
        wheel) exec "$zoo_venv/bin/python" -m erlang.serve --port "$zoo_port" "$zoo_program:app" ;;
    esac
}

# The results as the tables of docs/packages-tried.md.
zoo_table() {
    python3 test/zoo/table.py _build/zoo docs/packages-tried.md
}
