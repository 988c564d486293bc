%% Tells Python of the settings `log_stdout' (where what it prints goes), `asyncio_policy' (which loop
%% plain asyncio uses) and `slow_callback_ms' (which callbacks are told), and whether Erlang reads the
%% standard input, then has nothing more to do.
%%
%% Process: the supervisor's, at every start: the settings may have changed.
-module(py_output).

-export([start_link/1, has_keyboard/0]).

-spec start_link(py_config:config()) -> ignore | {error, {atom(), py_error:reason()}}.
start_link(#{log_stdout := ToLogger, asyncio_policy := Policy, slow_callback_ms := Slow}) ->
    tell([
        {log_stdout, route_output, ToLogger},
        {keyboard, keyboard, has_keyboard()},
        {asyncio_policy, asyncio_policy, Policy},
        {slow_callback_ms, slow_callback_ms, Slow}
    ]).

%% Unless it was started with `-noinput' (`-detached' is that, too), a node reads its standard input.
-spec has_keyboard() -> boolean().
has_keyboard() -> init:get_argument(noinput) =:= error.

tell([]) ->
    ignore;
tell([{Key, Function, Value} | Rest]) ->
    case py:call('erlang._boot', Function, [Value], #{}, infinity) of
        {ok, _} -> tell(Rest);
        {error, Reason} -> {error, {Key, Reason}}
    end.
