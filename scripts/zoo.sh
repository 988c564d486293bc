# shellcheck shell=sh
# Packages and web frameworks that others write, tried with this project: each in a node of its own, with a limit of
# time. A result is a file under _build/zoo; what has one is not tried again, unless --again says so.

# Seconds that one package or one framework has.
zoo_limit=${DEV_ZOO_LIMIT:-300}
zoo_install_limit=${DEV_ZOO_INSTALL_LIMIT:-600}

# ./dev zoo packages|frameworks [NAME…] [--again], forks [ROUNDS], table
dev_zoo() {
    zoo_kind=${words%%"$newline"*}
    zoo_names=${words#*"$newline"}
    case $zoo_kind in
        packages | frameworks) ;;
        forks) zoo_rounds=${zoo_names%%"$newline"*} ;;
        table)
            zoo_table
            return
            ;;
        *) usage_error "./dev zoo takes packages, frameworks, forks or table" ;;
    esac
    [ "$zoo_kind" = forks ] || zoo_check_names
    # What is tried is behaviour, not speed.
    [ "$opt_release" = yes ] || profile=dev
    prepare_node zoo
    [ "$zoo_kind" != frameworks ] || { use_venv test && install_wheel; } || exit 1
    zoo_prepare
    if [ "$zoo_kind" = forks ]; then
        zoo_forks "${zoo_rounds:-1000}"
        return
    fi
    zoo_failed=0
    while read -r zoo_name zoo_wants; do
        case $zoo_name in '' | \#*) continue ;; esac
        zoo_is_wanted || continue
        zoo_one || zoo_failed=1
    done <"test/zoo/$zoo_kind.txt"
    return "$zoo_failed"
}

# Ten of each kind and some forks, for ./dev test --all; prints the count that is its result.
zoo_ten() {
    opt_again=yes zoo_passed=0 zoo_missed=0 zoo_left_out=0
    for zoo_kind in packages frameworks; do
        zoo_prepare || return
        zoo_first=$(grep -v '^#' "test/zoo/$zoo_kind.txt" | head -n 10)
        while read -r zoo_name zoo_wants; do
            zoo_told=0
            zoo_one || zoo_told=1
            if grep -q '^missing ' "$zoo_result"; then
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
    zoo_kind=forks
    if zoo_prepare && zoo_forks 30; then
        zoo_passed=$((zoo_passed + 1))
    else
        zoo_missed=$((zoo_missed + 1))
    fi
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
    [ "$zoo_kind" = frameworks ] || return 0
    zoo_install uvicorn httpx websockets && zoo_install_wheel
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

zoo_check_names() {
    for zoo_name in $zoo_names; do
        grep -q "^$zoo_name " "test/zoo/$zoo_kind.txt" ||
            usage_error "there is no '$zoo_name' in test/zoo/$zoo_kind.txt"
    done
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
    if [ -f "$zoo_result" ] && ! grep -q '^missing ' "$zoo_result" && [ "$opt_again" = no ]; then
        printf '%-18s as before\n' "$zoo_name"
        return 0
    fi
    rm -f "$zoo_result"
    zoo_log=$zoo_dir/$zoo_kind/$zoo_name.log
    # shellcheck disable=SC2086 # a list of requirements
    if [ "$zoo_wants" != - ] && ! zoo_install $zoo_wants >"$zoo_log" 2>&1; then
        printf '%-18s not installed: %s\n' "$zoo_name" "$(tail -n 1 "$zoo_log")"
        printf 'date %s\npython %s\nmissing %s\n' "$(date +%F)" "$py_version" "$(tail -n 1 "$zoo_log")" >"$zoo_result"
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
name = sys.argv[1].partition("[")[0].partition(">")[0]
print("version", name, importlib.metadata.version(name))' "$zoo_want"
    done
}

zoo_try_packages() {
    zoo_status=0
    case $zoo_name in psycopg | asyncpg | sqlalchemy) zoo_postgres ;; esac
    (zoo_node zoo_package "zoo_$zoo_name" "$root/test/zoo/packages") >"$zoo_log" 2>&1 || zoo_status=$?
    zoo_end_postgres
    grep '^zoo ' "$zoo_log" || :
    case $zoo_status in
        0) echo 'zoo stop ok' ;;
        124) echo "zoo stop failed: more than $zoo_limit s" ;;
        *) echo "zoo stop failed: exit code $zoo_status" ;;
    esac
}

# zoo_node MODULE ARG…: in place of this shell.
zoo_node() {
    zoo_module=$1
    shift
    # shellcheck disable=SC2086 # options
    PYTHON="$zoo_venv/bin/python" exec timeout ${zoo_timeout:--k 5} "$zoo_limit" \
        erl -noinput -pa "$app_dir/ebin" "$zoo_dir/ebin" -eval "$zoo_module:main()" -extra "$@"
}

# A PostgreSQL for clients of it, if the machine has one: ZOO_POSTGRES is its address.
zoo_postgres() {
    for zoo_pg in "$(command -v initdb)" /usr/lib/postgresql/*/bin/initdb; do
        [ ! -x "$zoo_pg" ] || break
    done
    [ -x "$zoo_pg" ] || return 0
    zoo_pg=$(dirname "$(readlink -f "$zoo_pg")")
    zoo_pg_dir=$(mktemp -d)
    # It refuses to run as root.
    zoo_pg_as=
    [ "$(id -u)" -ne 0 ] || { zoo_pg_as='runuser -u postgres --' && chown postgres "$zoo_pg_dir"; }
    zoo_free_port
    # shellcheck disable=SC2086 # words of a command
    (cd "$zoo_pg_dir" && $zoo_pg_as "$zoo_pg/initdb" -A trust -U zoo "$zoo_pg_dir/data" &&
        $zoo_pg_as "$zoo_pg/pg_ctl" -w -D "$zoo_pg_dir/data" -l "$zoo_pg_dir/log" \
            -o "-h 127.0.0.1 -p $zoo_port -k $zoo_pg_dir" start) >"$zoo_dir/postgres.log" 2>&1 || return 0
    export ZOO_POSTGRES="postgresql://zoo@127.0.0.1:$zoo_port/postgres"
    echo "note with PostgreSQL $("$zoo_pg/postgres" --version | sed 's/.*(PostgreSQL) \([^ ]*\).*/\1/')"
}

zoo_end_postgres() {
    [ -n "${ZOO_POSTGRES:-}" ] || return 0
    unset ZOO_POSTGRES
    # shellcheck disable=SC2086 # words of a command
    (cd "$zoo_pg_dir" && $zoo_pg_as "$zoo_pg/pg_ctl" -m fast -D "$zoo_pg_dir/data" stop) >>"$zoo_dir/postgres.log"
    rm -rf "$zoo_pg_dir"
}

zoo_free_port() {
    zoo_port=$("$zoo_venv/bin/python" -c '
import socket
print(socket.create_server(("127.0.0.1", 0)).getsockname()[1])')
}

# zoo_forks ROUNDS: pools of processes made by fork. With the loader of torch if the environment has it.
zoo_forks() {
    zoo_result=$zoo_dir/forks/forks.txt
    zoo_log=$zoo_dir/forks/forks.log
    zoo_status=0
    # A pool takes up to a second.
    zoo_limit=${DEV_ZOO_LIMIT:-$((120 + $1))}
    (zoo_node zoo_forks "$1" "$root/test/zoo") >"$zoo_log" 2>&1 || zoo_status=$?
    [ "$zoo_status" -eq 0 ] || echo "zoo stop failed: exit code $zoo_status" >>"$zoo_log"
    {
        printf 'date %s\npython %s\n' "$(date +%F)" "$py_version"
        grep -E '^(zoo|rounds|processes|torch) ' "$zoo_log" || :
    } >"$zoo_result"
    printf '%-18s %s\n' forks "$(grep -E '^(zoo|rounds|processes|torch) ' "$zoo_result" | paste -s -d ';' -)"
    grep -q '^zoo forks ok' "$zoo_result" && [ "$zoo_status" -eq 0 ]
}

# Each server on a port of its own, asked by the same client.
zoo_try_frameworks() {
    zoo_program=zoo_$zoo_name
    zoo_programs=$root/test/zoo/frameworks
    for zoo_server in uvicorn wheel node; do
        zoo_free_port
        (zoo_serve) >"$zoo_log.$zoo_server" 2>&1 &
        zoo_pid=$!
        zoo_told=$(timeout "$zoo_limit" "$zoo_venv/bin/python" test/zoo/zoo_client.py "$zoo_port" \
            "$zoo_programs/$zoo_program.py" 2>&1 | tail -n 1)
        kill "$zoo_pid" 2>/dev/null || :
        zoo_status=0
        # The shell would say that it was terminated.
        { wait "$zoo_pid" || zoo_status=$?; } 2>/dev/null
        case $zoo_server:$zoo_status in
            # A program that a signal ends.
            *:0 | uvicorn:143 | wheel:143) ;;
            *) zoo_told="failed: it ended with $zoo_status; the client: ${zoo_told:-no answer}" ;;
        esac
        case $zoo_told in
            ok | failed*) ;;
            # The last line of a traceback, or nothing.
            *) zoo_told="failed: ${zoo_told:-the client did not end}" ;;
        esac
        echo "zoo $zoo_server $zoo_told"
    done
}

zoo_serve() {
    # What a signal does not end in time is killed. In the foreground: a server would get the signal twice, by
    # itself and by its group, and the second one means that it should not wait.
    zoo_timeout='--foreground -k 30'
    case $zoo_server in
        node) zoo_node zoo_framework "$zoo_program" "$zoo_programs" "$zoo_port" ;;
        *) ;;
    esac
    cd "$zoo_programs" || exit
    case $zoo_server in
        uvicorn) zoo_server_module=uvicorn ;;
        wheel) zoo_server_module=erlang.serve ;;
    esac
    # shellcheck disable=SC2086 # options
    exec timeout $zoo_timeout "$zoo_limit" "$zoo_venv/bin/python" -m "$zoo_server_module" \
        --port "$zoo_port" "$zoo_program:app"
}

# The results as the tables of docs/packages-tried.md.
zoo_table() {
    python3 test/zoo/table.py _build/zoo docs/packages-tried.md
}
