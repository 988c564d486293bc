%% The options of functions: what each is for, what it may be, and which functions take it. An option that
%% means nothing to a function is refused with a sentence.
%%
%% Place: every function with a map of options asks here first. `docs/options.md' is made of these tables.
%% Process: the caller's own; pure, but for the pool that the option `context' names.
-module(py_options).

-export([table/0, families/0, calls/0, takes/1, defaults/1, read/2, check/2]).

-export_type([family/0, row/0, given/0, options/0]).

-include("py_nif.hrl").

%% Functions that take the same options.
-type family() :: atom().
-type row() :: {Name :: atom(), py_kind:kind(), [family(), ...], Help :: binary()}.
%% What users give: the names and the values are those of `table/0'.
-type given() :: #{atom() => term()}.
%% Checked: what every call needs, and each other option that was given, under its own name.
-type options() :: #{
    timeout := timeout(),
    %% For work that nobody waits for: the timeout, if one was given.
    limit := timeout(),
    flags := py_nif:flags(),
    pool := py_nif:pool() | default,
    reply_to := pid(),
    atom() => term()
}.

%% A new interpreter needs some of it itself.
-define(LEAST_MEMORY, 16#1000000).
%% What a processor can address.
-define(MOST_MEMORY, 16#FFFFFFFFFFFF).

-define(CALLS, [call, loop_run, stream, stream_start, cast, spawn_call, gather, parallel, map, dag, asgi]).

%% The functions of each family, as the documentation names them.
-spec families() -> [{family(), [{module(), atom()}, ...]}, ...].
families() ->
    [
        {call, [{py, call}, {py, eval}, {py, ctx_call}, {py, ctx_eval}, {py_wsgi, run}]},
        {loop_run, [{py_event_loop, run}]},
        {stream, [{py, stream}, {py, stream_eval}, {py, async_stream}]},
        {stream_start, [{py, stream_start}]},
        {cast, [{py, cast}]},
        {spawn_call, [{py, spawn_call}, {py, async_call}]},
        {gather, [{py, async_gather}]},
        {parallel, [{py, parallel}]},
        {map, [{py, map}]},
        {dag, [{py_dag, run}, {py_dag, start}]},
        {asgi, [{py_asgi, run}, {py_asgi, run_async}]},
        {run_async, [{py_event_loop, run_async}]},
        {context, [{py_context, new}, {py_context, start_link}]},
        {pool, [{py, register_pool}]},
        {own_pool, [{py_pool, start_link}]},
        {channel, [{py_channel, new}]},
        {shared_dict, [{py, shared_dict_new}]},
        {venv, [{py, ensure_venv}]},
        {event_loop, [{py_event_loop, start_link}]},
        {loop_pool, [{py_event_loop_pool, start_link}]},
        {event_router, [{py_event_router, start_link}]},
        {event_worker, [{py_event_worker, start_link}]},
        {reactor_context, [{py_reactor_context, start_link}]}
    ].

%% The families of functions that run Python code for a caller.
-spec calls() -> [family(), ...].
calls() -> ?CALLS.

-spec table() -> [row(), ...].
table() -> of_calls() ++ of_others().

%% A literal, which nobody builds: every call with options looks here first.
of_calls() ->
    [
        {timeout, {time, 0}, ?CALLS,
            <<"for the work, the wait in the queue included; without it `call_timeout` of the configuration if the "
                "caller waits for the answer, else no limit">>},
        {context, context, ?CALLS -- [parallel, map],
            <<"the context or pool that runs it: see [Pools and contexts](pools-and-contexts.md)">>},
        {return, {flags, #{ref => ?FLAG_RETURN_REF, term => 0}}, [call, loop_run, spawn_call, gather, parallel],
            <<"`ref`: the answer is a reference to the object: see [Calling Python](calling-python.md)">>},
        {traceback, {flags, #{true => ?FLAG_TRACEBACK, false => 0}}, ?CALLS -- [cast],
            <<"`true`: an exception comes with its whole story: see [Errors](errors-and-timeouts.md)">>},
        {fallback, {flags, #{main => ?FLAG_FALLBACK}}, [call, loop_run, stream, parallel, map],
            <<"`main`: if a module refuses to be loaded in a sub-interpreter, the main one runs the call: see "
                "[Parallelism](every-core.md)">>},
        {priority, {flags, #{high => ?FLAG_HIGH, normal => 0}}, [call, stream, stream_start, cast, spawn_call],
            <<"`high`: it goes before what else waits for the pool or context: see "
                "[Pools and contexts](pools-and-contexts.md)">>},
        {trace_id, term, ?CALLS -- [dag],
            <<"told by `erlang.current()` and in log records: see [Channels](channels.md)">>},
        {reply_to, local_pid, ?CALLS -- [dag],
            <<"who gets the messages, if the answer comes in messages; told by `erlang.current()`">>},
        {kwargs, map, [loop_run, run_async], <<"keyword arguments">>},
        {module, term, [run_async], <<"the module of the coroutine function; must be given">>},
        {func, term, [run_async], <<"its name; must be given">>},
        {args, term, [run_async], <<"its arguments, a list">>},
        {caller, local_pid, [run_async], <<"who gets `{async_result, Ref, Result}`; default: the caller">>},
        {ref, term, [run_async], <<"the `Ref` in it; default: a new one">>},
        {window, {integer, 1, ?MOST_CREDITS}, [stream_start, asgi],
            <<"the most messages that are sent ahead of the reader: see [Streaming](streaming.md); of `py_asgi`, with "
                "`stream_to`: see [ASGI](serving-asgi.md)">>},
        {stream_to, pid, [asgi],
            <<"the process that gets the response piece by piece: see [ASGI](serving-asgi.md)">>},
        {cancel, boolean, [gather], <<"`true`: the first failure cancels the rest">>},
        {chunk, count, [map],
            <<"the number of items of one call; default: a sixteenth of the list">>},
        {progress, pid, [map], <<"the process that gets `{py_progress, Done, Total}`">>},
        {want, list, [dag],
            <<"names of the nodes whose values are wanted; only what they need is run: see [Graphs](dag.md)">>},
        {partial, boolean, [dag],
            <<"`true`: a failure ends only what needs the failed node; the report says `error`">>},
        {pictures, {each_of, [dot, svg, chrome_trace]}, [dag], <<"pictures of the run that the report has">>},
        {redis, {text_or, [embedded]}, [dag],
            <<"the URL of the server, or `embedded`; without it the setting `redis_url`: see [Redis](redis.md)">>}
    ].

of_others() ->
    [
        {mode, {one_of, [worker, subinterp, owngil]}, [context, pool, own_pool],
            <<"`worker`: threads of the main interpreter; `subinterp` or `owngil`: an interpreter with a "
                "GIL of its own, of a pool one per thread: see [Parallelism](every-core.md)">>},
        {name, atom, [context, event_loop, loop_pool, reactor_context],
            <<"the name its process is registered under, which calls may use">>},
        {name, atom, [own_pool], <<"the name of the pool; must be given">>},
        {size, threads, [pool, own_pool], <<"the number of threads or interpreters">>},
        {size, threads, [loop_pool], <<"the number of loops">>},
        {preload, {names, <<"module names">>}, [context], <<"modules that are imported first">>},
        {timeout, {time, 0}, [context],
            <<"for making an interpreter and for each import of `preload`; without it `call_timeout`">>},
        {max_queue, count, [context], <<"the calls that may wait for it; without it the setting `max_queue`">>},
        {max_memory, {integer, ?LEAST_MEMORY, ?MOST_MEMORY}, [context],
            <<"with `subinterp`: bytes that Python's allocators may give to the interpreter">>},
        {max, count, [channel], <<"the values that may wait in it">>},
        {name, name, [shared_dict], <<"its name; one without a name ends with its maker">>},
        {max_entries, count, [shared_dict], <<"the entries it may have">>},
        {owner, pid, [shared_dict], <<"the process it ends with">>},
        {installer, {one_of, [auto, pip, uv]}, [venv],
            <<"`auto`: `uv`, which is fetched if it is not on the PATH, and `pip` where it can't be had; or one of them "
                "by name">>},
        {timeout, {time, 1}, [venv], <<"for each program that is run">>},
        {extra_args, texts, [venv], <<"given to the installer as they are">>},
        {driver, {one_of, [thread, beam]}, [event_loop, loop_pool, reactor_context],
            <<"what drives the loop; without it the setting `driver`: see [Async](async.md)">>},
        {protocol, {pair, <<"{Module, Class}">>}, [reactor_context],
            <<"the class of the protocols, as `{Module, Class}`; must be given: see [Reactor](reactor.md)">>},
        {max_connections, count, [reactor_context], <<"connections at a time">>},
        {notify, pid, [event_router], <<"who gets the events: see [Loops that Erlang drives](raw-loops.md)">>}
    ].

%% What an option is that was not given, where that is always the same and not nothing.
-spec defaults(family()) -> #{atom() => term()}.
defaults(asgi) -> #{window => 16};
defaults(context) -> #{mode => worker};
defaults(pool) -> #{mode => worker, size => 1};
defaults(own_pool) -> defaults(pool);
defaults(loop_pool) -> #{size => 1};
defaults(channel) -> #{max => 1000};
defaults(shared_dict) -> #{max_entries => 100_000};
defaults(venv) -> #{installer => auto, timeout => 600_000};
defaults(reactor_context) -> #{max_connections => 10_000};
defaults(_Family) -> #{}.

-spec takes(family()) -> [atom()].
takes(Family) -> [Name || {Name, _, Families, _} <- table(), lists:member(Family, Families)].

%% A timeout or a map of options, as the way of a call needs them.
-spec read(family(), timeout() | given()) -> {ok, options()} | {error, py_error:reason()}.
read(_Family, Timeout) when ?IS_TIMEOUT(Timeout) ->
    {ok, (of_every_call())#{timeout := Timeout, limit := Timeout, flags := py_about:flags()}};
read(Family, Opts) when is_map(Opts) ->
    case each(maps:to_list(Opts), Family, of_every_call()) of
        {ok, #{flags := Flags, reply_to := To} = Options} ->
            {ok, Options#{flags := Flags bor py_about:flags(Opts, To)}};
        {error, _} = Error ->
            Error
    end;
read(_Family, _) ->
    {error, {bad_argument, timeout}}.

of_every_call() ->
    #{
        timeout => py_call:default_timeout(),
        limit => infinity,
        flags => 0,
        pool => default,
        reply_to => self()
    }.

%% The options of what is no call, as they are used, with the defaults; or what is wrong with one.
-spec check(family(), given()) -> {ok, #{atom() => term()}} | {error, py_error:reason()}.
check(Family, Opts) when is_map(Opts) ->
    check_each(maps:to_list(Opts), Family, defaults(Family));
check(_Family, _Opts) ->
    {error, {bad_argument, opts}}.

check_each([], _Family, Checked) ->
    {ok, Checked};
check_each([{Name, Value} | Rest], Family, Checked) ->
    Kind = kind(Name, Family),
    case Kind =/= none andalso py_kind:value(Kind, Value) of
        {ok, Used} -> check_each(Rest, Family, Checked#{Name => Used});
        error -> {error, {bad_argument, no_value(Name, Kind, Value)}};
        false -> {error, {bad_argument, no_option(Name, Family)}}
    end.

%% Every call with options comes by here.
each([], _Family, Options) ->
    {ok, Options};
each([{Name, Value} | Rest], Family, Options) ->
    case kind(Name, Family) of
        none ->
            {error, {bad_argument, no_option(Name, Family)}};
        Kind ->
            case put(Kind, Name, Value, Options) of
                #{} = With -> each(Rest, Family, With);
                {error, _} = Error -> Error;
                error -> {error, {bad_argument, no_value(Name, Kind, Value)}}
            end
    end.

kind(Name, Family) ->
    case lists:keyfind(Name, 1, of_calls()) of
        {_, Kind, Families, _} ->
            case lists:member(Family, Families) of
                true -> Kind;
                false -> other_kind(Name, Family)
            end;
        false ->
            other_kind(Name, Family)
    end.

%% Here a name may stand for several things: the `timeout' of a context is none of a call.
other_kind(Name, Family) ->
    case [Kind || {Each, Kind, Families, _} <- of_others(), Each =:= Name, lists:member(Family, Families)] of
        [Kind] -> Kind;
        [] -> none
    end.

put({flags, Bits}, _Name, Value, Options) ->
    case Bits of
        #{Value := Bit} -> Options#{flags => Bit bor maps:get(flags, Options, 0)};
        #{} -> error
    end;
put(context, _Name, Value, Options) ->
    case py_call:pool(Value) of
        {ok, Pool} -> Options#{pool => Pool};
        {error, _} = Error -> Error
    end;
put(Kind, Name, Value, Options) ->
    case py_kind:value(Kind, Value) of
        {ok, Time} when Name =:= timeout -> Options#{timeout => Time, limit => Time};
        {ok, Checked} -> Options#{Name => Checked};
        error -> error
    end.

no_value(Name, Kind, Value) ->
    py_text:format("the option ~ts must be ~ts, got ~0tP", [Name, py_kind:wanted(Kind, Value), Value, 10]).

no_option(Name, Family) ->
    Names = [atom_to_list(Each) || Each <- takes(Family)],
    py_text:format("the option ~0tP means nothing here~ts ~ts", [Name, 10, hint(Name, Names), taken(Names)]).

hint(Name, Names) when is_atom(Name) ->
    case py_kind:nearest(atom_to_list(Name), Names) of
        {ok, Nearest} -> ["; did you mean ", Nearest, "?"];
        none -> "."
    end;
hint(_Name, _Names) ->
    ".".

taken([]) -> "This function takes none";
taken(Names) -> ["This function takes ", lists:join(", ", Names)].
