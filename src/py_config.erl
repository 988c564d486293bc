%% The configuration of the application: read once, checked once, closed.
%%
%% Place: before everything; the application starts only with a map made here.
%% Process: the one that starts the application. Pure but for reading the application's environment.
%% Never: passes on an unknown key or a value it has not checked.
-module(py_config).

-export([load/0, check/1, defaults/0, table/0]).

-export_type([config/0, row/0]).

%% Every setting of `table/0', checked.
-type config() :: #{atom() => term()}.
%% Where the default is `undefined', there is none. The help is a cell of the documentation.
-type row() :: {Name :: atom(), py_kind:kind(), Default :: term(), Help :: binary()}.

-include("py_nif.hrl").

%% The conversion recurses on the C stack of the interpreter threads, so there is an upper end.
-define(MAX_DEPTH, 100_000).

%% In the order of the documentation, which is made of it.
-spec table() -> [row(), ...].
table() ->
    [
        {python, {path_or, <<"a Python executable">>, [auto]}, auto,
            <<"the Python to run: an executable, the directory of a venv, or a version such as `\"3.13\"`, which is installed "
                "if there is none; `auto`: `$PYTHON`, else `$VIRTUAL_ENV`, pyenv's versions and the PATH, the newest first: "
                "see [Environments](virtual-environments.md)">>},
        {num_workers, threads, 4,
            <<"threads of the main pool: the number of calls that can block at the same time">>},
        {max_threads, threads, 256,
            <<"the most threads a pool may grow to while its workers wait in callbacks">>},
        {max_queue, count, 10_000,
            <<"calls that may wait; past it the answer is `{error, overload}`">>},
        {max_bound, threads, 64,
            <<"threads that may be lent out by `py:bind/0,1` and `py:with_context/1`">>},
        {max_callbacks, count, 10_000,
            <<"Erlang functions that may run for Python at the same time; past it `erlang.call` and "
                "`erlang.async_call` raise `erlang.ErlangError` with the reason `overload`">>},
        {call_timeout, {time, 1}, 30_000, <<"milliseconds, where a call names none; or `infinity`">>},
        {driver, {one_of, [thread, beam]}, thread,
            <<"what drives the event loops: `thread`, a thread each; `beam`, none: see [Async](async.md)">>},
        {num_loops, threads, 1,
            <<"event loops, a thread each, started when first needed: see [Async](async.md)">>},
        {num_subinterp_workers, threads, 4,
            <<"sub-interpreters of `py:parallel`, started when first needed: see [Parallelism](every-core.md)">>},
        {subinterp_idle_ms, {time, 1}, 30_000,
            <<"milliseconds after which those end when nobody uses them; or `infinity`">>},
        {asyncio_policy, boolean, true,
            <<"plain `asyncio.run` uses the loop of this package too; `false`: asyncio's own">>},
        {slow_callback_ms, {time, 1}, 100,
            <<"callbacks of event loops that take at least this many milliseconds are logged; or `infinity`: see "
                "[Runtime models](runtime-models.md)">>},
        {python_path, {directories, <<"directories">>}, [],
            <<"directories where Python finds modules, in front of `sys.path` of every interpreter and of every Python "
                "that is started from here: paths, or `{priv, App, Dir}` for one below the `priv` of an application">>},
        {preload, {names, <<"module names">>}, [], <<"modules imported at start; one that fails stops the start">>},
        {audit, audit_events, [],
            <<"Python audit events that are refused, or groups of them: see [Security](security.md)">>},
        {max_depth, {integer, 1, ?MAX_DEPTH}, 1_000, <<"how deep a value may be nested">>},
        {atom_quota, count_or_0, 10_000, <<"how many new atoms Python code may make">>},
        {switch_interval_us, count, 500, <<"Python's switch interval, in microseconds">>},
        {log_stdout, boolean, false,
            <<"`true`: what Python prints goes to `logger`, not to the caller's group leader">>},
        {redis_url, text, undefined,
            <<"the server that [graphs](dag.md) ask; without it a store in the node's memory: see [Redis](redis.md)">>},
        {stop_timeout, {integer, 0, ?MAX_TIMEOUT}, 5_000,
            <<"milliseconds that Python programs get to finish when the node stops: threads that are no daemons are "
                "joined, `atexit` functions run">>}
    ].

-spec defaults() -> config().
defaults() -> maps:from_list([{Name, Default} || {Name, _, Default, _} <- table()]).

-spec load() -> {ok, config()} | {error, binary()}.
load() ->
    check(application:get_all_env(erlang_python)).

%% The same for settings from anywhere: what is not given keeps its default.
-spec check([{atom(), term()}]) -> {ok, config()} | {error, binary()}.
check(Settings) ->
    %% Kept in every application's environment by OTP itself.
    Own = lists:keydelete(included_applications, 1, Settings),
    case check(Own, defaults()) of
        {ok, Config} -> check_together(Config);
        {error, _} = Error -> Error
    end.

check([], Config) ->
    {ok, Config};
check([{Name, Value} | Rest], Config) ->
    case lists:keyfind(Name, 1, table()) of
        {_, Kind, Default, _} ->
            case value(Kind, Default, Value) of
                {ok, Checked} -> check(Rest, Config#{Name := Checked});
                {error, Text} -> {error, sentence("~ts", [Text])};
                error -> {error, sentence("~ts must be ~ts, got ~0tp", [Name, py_kind:wanted(Kind, Value), Value])}
            end;
        false ->
            {error, unknown(Name)}
    end.

value(_Kind, Default, Default) -> {ok, Default};
value(Kind, _Default, Value) -> py_kind:value(Kind, Value).

check_together(#{num_workers := Workers, max_threads := Threads}) when Workers > Threads ->
    {error,
        sentence("num_workers (~b) must not be greater than max_threads (~b)", [Workers, Threads])};
check_together(Config) ->
    {ok, Config}.

unknown(Name) ->
    Known = [atom_to_list(Each) || {Each, _, _, _} <- lists:keysort(1, table())],
    Hint =
        case py_kind:nearest(atom_to_list(Name), Known) of
            {ok, Nearest} -> ["; did you mean ", Nearest, "?"];
            none -> "."
        end,
    sentence("unknown configuration key ~0tp~ts Known keys: ~ts", [Name, Hint, lists:join(", ", Known)]).

-spec sentence(io:format(), [term()]) -> unicode:unicode_binary().
sentence(Format, Args) -> py_text:format("erlang_python: " ++ Format, Args).
