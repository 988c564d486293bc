%% WSGI applications, asked from Erlang: one request, on the worker pool.
%%
%% Process: the caller's own.
-module(py_wsgi).

-export([run/3, run/4]).

-export_type([environ/0]).

%% Names as in PEP 3333, `<<"wsgi.input">>' with the body as iodata. What is left out has a default.
-type environ() :: #{atom() | binary() => term()}.

-define(INPUT, <<"wsgi.input">>).

-spec run(py_call:name(), py_call:name(), environ()) ->
    {ok, py_asgi_run:response()} | {error, py_error:reason()}.
run(Mod, Callable, Environ) ->
    run(Mod, Callable, Environ, #{}).

-spec run(py_call:name(), py_call:name(), environ(), py:timeout_or_opts()) ->
    {ok, py_asgi_run:response()} | {error, py_error:reason()}.
run(Mod, Callable, Environ, Opts) when is_map(Environ) ->
    {Given, Input} = input(Environ),
    try iolist_to_binary(Input) of
        Body -> call([py_call:text(Mod), py_call:text(Callable), Given, {bytes, Body}], Opts)
    catch
        error:badarg -> {error, {bad_argument, 'wsgi.input'}}
    end;
run(_Mod, _Callable, _Environ, _Opts) ->
    {error, {bad_argument, environ}}.

call(Args, Opts) ->
    case py:call('erlang.serve._wsgi', run, Args, #{}, Opts) of
        {ok, {<<"broken">>, Text}} -> {error, {asgi, Text}};
        Answer -> Answer
    end.

input(#{?INPUT := Body} = Environ) -> {maps:remove(?INPUT, Environ), Body};
input(#{'wsgi.input' := Body} = Environ) -> {maps:remove('wsgi.input', Environ), Body};
input(Environ) -> {Environ, <<>>}.
