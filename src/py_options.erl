%% Which options each function takes. An option that would do nothing is refused.
%%
%% Place: every function with a map of options asks here first, then checks the values itself.
-module(py_options).

-export([takes/1, families/0, check/2]).

-export_type([family/0]).

%% Functions that take the same options.
-type family() ::
    call
    | stream
    | stream_start
    | cast
    | spawn_call
    | gather
    | parallel
    | map
    | dag
    | asgi
    | event_loop
    | run_async
    | event_router
    | event_worker
    | reactor_context.

%% The functions of each family, as the documentation names them.
-spec families() -> #{family() => [atom() | {module(), atom()}]}.
families() ->
    #{
        call => [call, eval, {py_event_loop, run}, {py_wsgi, run}],
        stream => [stream, stream_eval, async_stream],
        stream_start => [stream_start],
        cast => [cast],
        spawn_call => [spawn_call, async_call],
        gather => [async_gather],
        parallel => [parallel],
        map => [map],
        dag => [{py_dag, run}, {py_dag, start}],
        asgi => [{py_asgi, run}, {py_asgi, run_async}],
        event_loop => [{py_event_loop, start_link}],
        run_async => [{py_event_loop, run_async}],
        event_router => [{py_event_router, start_link}],
        event_worker => [{py_event_worker, start_link}],
        reactor_context => [{py_reactor_context, start_link}]
    }.

-spec takes(family()) -> [atom()].
takes(call) -> [timeout, context, fallback, return, traceback, trace_id, reply_to];
takes(stream) -> [timeout, context, fallback, traceback, trace_id, reply_to];
takes(stream_start) -> [timeout, context, window, traceback, trace_id, reply_to];
takes(cast) -> [timeout, context, trace_id, reply_to];
takes(spawn_call) -> [timeout, context, return, traceback, trace_id, reply_to];
takes(gather) -> [timeout, context, cancel, return, traceback, trace_id, reply_to];
takes(parallel) -> [timeout, fallback, return, traceback, trace_id, reply_to];
takes(map) -> [timeout, fallback, traceback, trace_id, reply_to, chunk, progress];
takes(dag) -> [timeout, context, traceback, partial, want, pictures, redis];
takes(asgi) -> [timeout, context, traceback, trace_id, reply_to, stream_to, window];
takes(event_loop) -> [driver];
takes(run_async) -> [module, func, args, kwargs, caller, ref];
takes(event_router) -> [notify];
takes(event_worker) -> [];
takes(reactor_context) -> [protocol, max_connections, driver].

-spec check(family(), map()) -> ok | {error, {bad_argument, {option, term()} | opts}}.
check(Family, Opts) when is_map(Opts) ->
    case maps:keys(maps:without(takes(Family), Opts)) of
        [] -> ok;
        [Key | _] -> {error, {bad_argument, {option, Key}}}
    end;
check(_Family, _Opts) ->
    {error, {bad_argument, opts}}.
