#!/bin/sh
# From an empty directory to sqrt(16), as a new user comes there: an Erlang project, an Elixir project and a virtual
# environment of Python, from source and from an archive; then releases, on a file system that is read-only, for a user
# without a home. `./dev test install` runs it; the last line is "N passed, M failed".
#
#   sh test/install/run.sh [PART…]     the parts are: erlang elixir python releases odd (all); ./dev takes them from
#                                      $DEV_INSTALL_PARTS
#
# $PYTHON is the Python to use (the system's, which every user may run). An archive is that of the directory
# $DEV_ARCHIVES, and then nothing is built from source first; or of ./dev artefacts, if there is one for this version; or
# it is made of what was built.

set -u

project=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
[ $# -gt 0 ] || set -- erlang elixir python releases odd
parts=" $* "
work=$(mktemp -d)
# nobody looks into it.
chmod 755 "$work"
cleanup() {
    ! mountpoint -q "$work/read-only" || umount "$work/read-only"
    ! mountpoint -q "$work/small" || umount "$work/small"
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
passed=0 failed=0

root=$project
# shellcheck source=scripts/step.sh
. "$project/scripts/step.sh"
# shellcheck source=scripts/build.sh
. "$project/scripts/build.sh"
# shellcheck source=scripts/from_archive.sh
. "$project/scripts/from_archive.sh"

PYTHON=${PYTHON:-/usr/bin/python3}
export PYTHON
# What a machine has where nobody has installed Rust.
bare_path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mkdir -p "$work/home" "$work/empty"
# Not what the machine of the tests has set.
unset ERL_LIBS MIX_ENV VIRTUAL_ENV ERLANG_PYTHON_ARTEFACTS REBAR_OFFLINE HEX_OFFLINE
export LC_ALL=C.UTF-8 ERL_CRASH_DUMP_BYTES=0

wants() {
    case $parts in *" $1 "*) return 0 ;; esac
    return 1
}

# prove SENTENCE FUNCTION: in a subshell that stops at its first failure; with the time it took.
prove() {
    prove_start=$(date +%s)
    # Not in an `if`: there some shells ignore errexit.
    output=$(set -e && cd "$work" && "$2" 2>&1)
    # shellcheck disable=SC2181
    if [ $? -eq 0 ]; then
        passed=$((passed + 1))
        printf 'ok %4d s: %s\n' $(($(date +%s) - prove_start)) "$1"
        return
    fi
    failed=$((failed + 1))
    printf 'FAILED %s\n%s\n' "$1" "$output"
}

# contains TEXT PART
contains() {
    case $1 in *"$2"*) return 0 ;; esac
    printf 'not in the text: %s\ntext: %s\n' "$2" "$1"
    exit 1
}

# rustless COMMAND…: as on a machine without Rust.
rustless() {
    env HOME="$work/home" PATH="$bare_path" "$@"
}

# nobody COMMAND…: as a user without a home or any variable.
nobody() {
    if [ "$(id -u)" -eq 0 ]; then
        setpriv --reuid 65534 --regid 65534 --clear-groups env -i PATH=/usr/bin:/bin "$@"
    else
        env -i PATH=/usr/bin:/bin "$@"
    fi
}

# The repository as users fetch it; the second has the checksum of an archive.
make_repositories() {
    git clone -q --bare "$project" "$work/plain.git"
    git clone -q "$project" "$work/with-archive"
}

# erlang_project NAME REPOSITORY
erlang_project() {
    rm -rf "$1"
    mkdir -p "$1/src" "$1/config"
    cat >"$1/rebar.config" <<CONFIG
{deps, [{erlang_python, {git, "file://$work/$2", {branch, "$(git -C "$work/$2" symbolic-ref --short HEAD)"}}}]}.
{relx, [
    {release, {hello, "0.1.0"}, [hello, sasl]},
    {sys_config_src, "config/sys.config.src"},
    {vm_args, "config/vm.args"},
    {overlay, [{copy, "venv", "venv"}]}
]}.
{escript_incl_apps, [erlang_python]}.
{escript_main_app, hello}.
{profiles, [{prod, [{relx, [{dev_mode, false}, {include_erts, true}, {mode, prod}]}]}]}.
CONFIG
    cat >"$1/config/sys.config.src" <<'CONFIG'
[{erlang_python, [{python, "${ROOTDIR}/venv"}]}].
CONFIG
    cat >"$1/config/vm.args" <<'CONFIG'
-sname hello
-setcookie hello
-start_epmd false
-erl_epmd_port 49731
-dist_listen false
CONFIG
    cat >"$1/src/hello.app.src" <<'APP'
{application, hello, [
    {description, "Says what the square root of 16 is"}, {vsn, "0.1.0"}, {mod, {hello, []}},
    {applications, [kernel, stdlib, erlang_python]}
]}.
APP
    cat >"$1/src/hello.erl" <<'CODE'
-module(hello).
-behaviour(application).
-export([start/2, stop/1, main/1]).
start(_, _) ->
    say(),
    _ = os:getenv("STAY") =/= false orelse spawn(fun() -> halt() end),
    {ok, spawn_link(fun() -> receive stop -> ok end end)}.
stop(_) -> ok.
main(_) -> {ok, _} = application:ensure_all_started(erlang_python), say().
say() ->
    io:format("~p in ~p from ~ts~n", [py:call(math, sqrt, [16]), init:get_argument(mode), element(2, file:get_cwd())]),
    io:format("only here: ~p~n", [py:eval(<<"__import__('only_here').answer">>)]).
CODE
    a_venv "$1/venv"
}

# a_venv DIR: with a module that no other place has.
a_venv() {
    "$PYTHON" -m venv --without-pip "$1"
    for a_venv_dir in "$1"/lib/python3*/site-packages; do echo 'answer = 42' >"$a_venv_dir/only_here.py"; done
}

# elixir_project NAME REPOSITORY
elixir_project() {
    rm -rf "$1"
    mkdir -p "$1/lib" "$1/config"
    cat >"$1/mix.exs" <<PROJECT
defmodule Hello.MixProject do
  use Mix.Project

  def project do
    [
      app: :hello,
      version: "0.1.0",
      deps: [{:erlang_python, git: "$work/$2"}],
      releases: [hello: [steps: [:assemble, &copy_venv/1]]]
    ]
  end

  def application, do: [mod: {Hello, []}, extra_applications: [:logger]]

  defp copy_venv(release) do
    File.cp_r!("venv", Path.join(release.path, "venv"))
    release
  end
end
PROJECT
    echo 'import Config
config :erlang_python, num_workers: 3' >"$1/config/config.exs"
    # shellcheck disable=SC2016 # Elixir's
    echo 'import Config
if root = System.get_env("RELEASE_ROOT"), do: config(:erlang_python, python: Path.join(root, "venv"))' >"$1/config/runtime.exs"
    cat >"$1/lib/hello.ex" <<'CODE'
defmodule Hello do
  use Application

  def start(_, _) do
    say()
    System.get_env("STAY") || spawn(fn -> System.halt(0) end)
    Supervisor.start_link([], strategy: :one_for_one)
  end

  def say do
    workers = Application.get_env(:erlang_python, :num_workers)
    IO.puts("#{inspect(Py.call(:math, :sqrt, [16]))} with #{workers} in #{System.get_env("RELEASE_MODE")}")
    IO.puts("only here: #{inspect(Py.eval("__import__('only_here').answer"))}")
  end
end
CODE
    a_venv "$1/venv"
}

# The node without the release's venv: only_here is not there.
# run_erlang PROJECT COMMAND…
run_erlang() {
    run_in=$1
    shift
    contains "$(cd "$work/empty" && "$@" erl -noinput -pa "$work/$run_in"/_build/default/lib/*/ebin -eval 'hello:main([]), halt().' 2>&1)" "{ok,4.0}"
}

erlang_from_source() {
    erlang_project erl-source plain.git
    (cd erl-source && rebar3 compile)
    run_erlang erl-source env
    is_stripped erl-source/_build/default/lib/erlang_python/priv/py_nif-*.so
}

is_stripped() {
    ! readelf -S "$1" | grep -q '\.symtab'
}

the_second_time_is_quick() {
    second_start=$(date +%s%N)
    (cd erl-source/_build/default/lib/erlang_python && sh scripts/install.sh)
    second_time=$((($(date +%s%N) - second_start) / 1000000))
    printf '%d ms\n' "$second_time" >"$work/second"
    # On a machine that does nothing else it is a tenth.
    [ "$second_time" -lt 5000 ]
}

# What ./dev artefacts has made of this version, or an archive of the same form from the first part.
make_archive_and_checksum() {
    mkdir -p archives
    archive=$(wanted_archive)
    if [ -n "${DEV_ARCHIVES:-}" ]; then
        cp "$DEV_ARCHIVES/$archive" archives/
    elif [ -n "$(find "$project/dist/$archive" -newer "$project/Cargo.toml" 2>/dev/null)" ]; then
        cp "$project/dist/$archive" archives/
    else
        tar -czf "archives/$archive" -C erl-source/_build/default/lib/erlang_python priv
    fi
    (cd archives && sha256sum "$archive") >with-archive/checksums.txt
    (cd with-archive && git add checksums.txt && git -c user.name=t -c user.email=t@example.org commit -qm checksums)
    git clone -q --bare with-archive archive.git
    [ -z "${DEV_KEEP_RELEASES:-}" ] || { mkdir -p "$DEV_KEEP_RELEASES" && cp -r archives "$DEV_KEEP_RELEASES/"; }
}

erlang_from_archive() {
    erlang_project erl-archive archive.git
    (cd erl-archive && rustless ERLANG_PYTHON_ARTEFACTS="$work/archives" rebar3 compile)
    run_erlang erl-archive rustless
}

elixir_from() {
    (
        cd "$2"
        shift 2
        "$@" mix deps.get </dev/null
        "$@" mix compile
        said=$("$@" mix run --no-start -e '{:ok, _} = Application.ensure_all_started(:erlang_python); Hello.say()' 2>&1)
        contains "$said" '{:ok, 4.0} with 3'
    )
}

elixir_from_source() {
    elixir_project ex-source plain.git
    elixir_from source ex-source env
}

elixir_from_archive() {
    elixir_project ex-archive archive.git
    elixir_from archive ex-archive rustless ERLANG_PYTHON_ARTEFACTS="$work/archives"
}

say_sixteen='import asyncio, math, erlang
async def main(): return math.sqrt(16)
with asyncio.Runner(loop_factory=erlang.new_event_loop) as runner: print(runner.run(main()))'

python_from_source() {
    "$PYTHON" -m venv venv-source
    git clone -q plain.git checkout
    venv-source/bin/pip wheel -q --no-deps -w wheels ./checkout
    venv-source/bin/pip install -q --no-index --find-links wheels erlang-python
    contains "$(venv-source/bin/python -c "$say_sixteen")" 4.0
}

python_from_wheel() {
    "$PYTHON" -m venv venv-wheel
    rustless venv-wheel/bin/pip install -q --no-index --find-links wheels erlang-python
    contains "$(venv-wheel/bin/python -c "$say_sixteen")" 4.0
}

# read_only DIR: a copy of it that nobody can write to.
read_only() {
    mkdir -p read-only && cp -a "$1/." read-only/
    [ "$(id -u)" -ne 0 ] || { mount --bind read-only read-only && mount -o remount,ro,bind read-only; }
}

writable_again() {
    ! mountpoint -q read-only || umount read-only
    rm -rf read-only
}

# keep_release DIR NAME: for a machine that has nothing else.
keep_release() {
    [ -n "${DEV_KEEP_RELEASES:-}" ] || return 0
    mkdir -p "$DEV_KEEP_RELEASES" && cp -a "$1" "$DEV_KEEP_RELEASES/$2"
}

erlang_release() {
    (cd erl-archive && rustless ERLANG_PYTHON_ARTEFACTS="$work/archives" rebar3 as prod release)
    keep_release erl-archive/_build/prod/rel/hello erlang
    read_only erl-archive/_build/prod/rel/hello
    said=$(cd / && nobody RELX_OUT_FILE_PATH=/tmp "$work/read-only/bin/hello" foreground 2>&1) || :
    writable_again
    contains "$said" '{ok,4.0} in {ok,[["embedded"]]} from '
    contains "$said" 'only here: {ok,42}'
}

elixir_release() {
    (cd ex-archive && rustless MIX_ENV=prod ERLANG_PYTHON_ARTEFACTS="$work/archives" mix release)
    keep_release ex-archive/_build/prod/rel/hello elixir
    read_only ex-archive/_build/prod/rel/hello
    said=$(cd / && nobody RELEASE_DISTRIBUTION=none RELEASE_TMP="$(mktemp -d -p "$work/tmp")" \
        "$work/read-only/bin/hello" start 2>&1) || :
    writable_again
    contains "$said" '{:ok, 4.0} with 3 in embedded'
    contains "$said" 'only here: {:ok, 42}'
}

an_escript_is_refused() {
    (cd erl-archive && rustless rebar3 escriptize)
    said=$(cd / && rustless "$work/erl-archive/_build/default/bin/hello" 2>&1) && exit 1
    contains "$(printf '%s' "$said" | tr -d '\n' | tr -s ' ')" "can't run from inside"
}

# A dependency in _checkouts, on a file system that is read-only.
a_read_only_source() {
    [ "$(id -u)" -eq 0 ] || return 0
    erlang_project erl-checkout archive.git
    git clone -q archive.git source
    read_only source
    mkdir erl-checkout/_checkouts && ln -s "$work/read-only" erl-checkout/_checkouts/erlang_python
    said=$(cd erl-checkout && rustless ERLANG_PYTHON_ARTEFACTS="$work/archives" REBAR_OFFLINE=1 rebar3 compile 2>&1) || {
        printf '%s\n' "$said"
        writable_again
        exit 1
    }
    said=$(rustless erl -noinput -pa erl-checkout/_build/default/*/*/ebin -eval 'hello:main([]), halt().' 2>&1) || :
    writable_again
    contains "$said" '{ok,4.0}'
}

a_full_disk_is_said() {
    [ "$(id -u)" -eq 0 ] || return 0
    mkdir -p small && mount -t tmpfs -o size=60m tmpfs small
    git clone -q --depth 1 "file://$work/archive.git" small/source
    # Room for what git needs, and for less than the libraries.
    head -c "$(($(df -Pk small | awk 'NR == 2 { print $4 }') - 3000))k" /dev/zero >small/filler 2>/dev/null || :
    said=$(rustless ERLANG_PYTHON_ARTEFACTS="$work/archives" sh small/source/scripts/install.sh 2>&1) && exit 1
    contains "$said" "the disk is full"
    rm small/filler
    rustless ERLANG_PYTHON_ARTEFACTS="$work/archives" sh small/source/scripts/install.sh
    umount small
}

mkdir -p "$work/tmp" && chmod 777 "$work/tmp"
make_repositories || exit 1
if [ -z "${DEV_ARCHIVES:-}" ]; then
    prove "an Erlang project with a git dependency, from source" erlang_from_source
    prove "nothing to build is found out in a moment" the_second_time_is_quick
fi
prove "an archive and its checksum" make_archive_and_checksum
! wants erlang || prove "an Erlang project without Rust, from an archive" erlang_from_archive
! wants elixir || prove "an Elixir project without Rust, from an archive" elixir_from_archive
if wants releases; then
    wants erlang || prove "an Erlang project without Rust, from an archive" erlang_from_archive
    wants elixir || prove "an Elixir project without Rust, from an archive" elixir_from_archive
    prove "a release of rebar3, read-only, for a user without a home" erlang_release
    prove "a release of mix, read-only, for a user without a home" elixir_release
    prove "an escript says that it can't" an_escript_is_refused
fi
if wants odd; then
    prove "a dependency whose source is read-only, offline" a_read_only_source
    prove "a disk that is full" a_full_disk_is_said
fi
! wants elixir || prove "an Elixir project with a git dependency, from source" elixir_from_source
if wants python; then
    prove "a virtual environment, from source" python_from_source
    prove "a virtual environment without Rust, from a wheel" python_from_wheel
fi
[ ! -f "$work/second" ] || printf 'nothing to build: %s\n' "$(cat "$work/second")"
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
