%% Runs the functions of Erlang of one run, each in a process of its own.
%%
%% Process: one per run that has such functions. It ends with the run or with the run's caller, and
%% what it had started ends with it.
-module(py_dag_runner).

-export([start/2, serve/2, stop/1]).
-export([init/3, execute/4]).

-export_type([called/0, functions/0]).

-type called() :: {module(), atom()} | fun(([term()]) -> term()).
%% By the numbers that the native side knows them by.
-type functions() :: #{pos_integer() => called()}.

%% `Pool': where the run's Python runs.
-spec start(functions(), py_nif:pool() | default) -> pid() | undefined.
start(Functions, _Pool) when map_size(Functions) =:= 0 -> undefined;
start(Functions, Pool) -> spawn(?MODULE, init, [self(), Functions, Pool]).

-spec serve(pid() | undefined, py_nif:dag_run()) -> ok.
serve(undefined, _Run) ->
    ok;
serve(Runner, Run) ->
    _ = Runner ! {run, Run},
    ok.

-spec stop(pid() | undefined) -> ok.
stop(undefined) ->
    ok;
stop(Runner) ->
    _ = Runner ! stop,
    ok.

-spec init(pid(), functions(), py_nif:pool() | default) -> no_return().
init(Caller, Functions, Pool) ->
    process_flag(trap_exit, true),
    Monitor = monitor(process, Caller),
    receive
        {run, Run} -> loop({self(), Run, Pool}, Functions, #{});
        stop -> exit(shutdown);
        {'DOWN', Monitor, process, Caller, _} -> exit(shutdown)
    end.

%% By the number of the call and, for their ends, by the process.
loop({_Runner, Run, _Pool} = Own, Functions, Running) ->
    receive
        {dag_call, Id, Number, Args} ->
            #{Number := Function} = Functions,
            %% The link ends it with this process, the monitor tells its end even if it unlinks itself.
            {Pid, _} = spawn_opt(?MODULE, execute, [Own, Id, Function, Args], [link, monitor]),
            loop(Own, Functions, Running#{Id => Pid, Pid => Id});
        {more, Pid, More} ->
            _ = Pid ! {more, self()},
            loop(Own, maps:merge(Functions, More), Running);
        {keep, Value} ->
            _ = put(make_ref(), Value),
            loop(Own, Functions, Running);
        {dag_stop, Id} ->
            case Running of
                #{Id := Pid} -> exit(Pid, kill);
                #{} -> true
            end,
            loop(Own, Functions, Running);
        {'DOWN', _Monitor, process, Pid, Why} when is_map_key(Pid, Running) ->
            loop(Own, Functions, ended(Run, Pid, Why, Running));
        {'EXIT', _Pid, _Why} ->
            loop(Own, Functions, Running);
        stop ->
            exit(shutdown);
        {'DOWN', _Monitor, process, _Caller, _} ->
            exit(shutdown)
    end.

ended(Run, Pid, Why, Running) ->
    #{Pid := Id} = Running,
    %% Whoever has answered is not heard again: this is for those who ended before they could, also by
    %% `exit(self(), normal)'.
    _ = reply(Run, Id, false, exited(Why)),
    maps:without([Pid, Id], Running).

%% The usual end costs nothing.
exited(normal) -> {<<"erlang.exit">>, <<"normal">>};
exited(Why) -> raised(exit, Why, []).

-spec execute({pid(), py_nif:dag_run(), py_nif:pool() | default}, non_neg_integer(), called(), binary()) ->
    ok.
execute({_Runner, Run, _Pool} = Own, Id, Function, Args) ->
    try call(Function, binary_to_term(Args, [safe])) of
        {'$py_dag_more', Graph, Inputs, Result} -> more(Own, Id, Inputs, asked(Graph, Inputs, Result));
        Value -> answer(Own, Id, Value)
    catch
        Class:Reason:Trace -> reply(Run, Id, false, raised(Class, Reason, Trace))
    end.

answer({Runner, Run, _Pool}, Id, Value) ->
    Bytes = term_to_binary(Value),
    ok = keep(Runner, Value, Bytes),
    py_nif:dag_reply(Run, Id, true, Bytes).

%% References to objects of Python live as long as the run. This process ends; the runner does not.
keep(Runner, Value, Bytes) ->
    _ = binary:match(Bytes, <<"$py_ref">>) =:= nomatch orelse (Runner ! {keep, Value}),
    ok.

call({Module, Function}, Args) -> Module:Function(Args);
call(Function, Args) -> Function(Args).

%% The nodes that a function asks for run in the place of its own.
more({Runner, Run, Pool}, Id, Inputs, {ok, #{graph := Graph, functions := Functions} = Compiled, Place}) ->
    %% Known to the runner before the first of them can be called.
    _ = Runner ! {more, self(), Functions},
    receive
        {more, Runner} -> ok
    end,
    Encoded = py_dag_graph:encoded(Inputs),
    [ok = keep(Runner, Inputs, Bytes) || {_Name, Bytes} <- Encoded],
    case py_dag_graph:event_loop(Compiled, Pool) of
        {ok, Loop} -> py_nif:dag_more(Run, Id, Graph, Encoded, Place, Loop);
        {error, Reason} -> reply(Run, Id, false, Reason)
    end;
more({_Runner, Run, _Pool}, Id, _Inputs, {error, Reason}) ->
    reply(Run, Id, false, Reason).

asked(Graph, Inputs, Result) ->
    case py_dag_graph:compile(Graph, maps:keys(Inputs)) of
        {ok, #{index := #{Result := Place}} = Compiled} ->
            {ok, Compiled, Place};
        {ok, _Compiled} ->
            {error, {bad_argument, <<"the asked graph has no such node as its result">>}};
        {error, _} = Error ->
            Error
    end.

reply(Run, Id, Ok, Term) -> py_nif:dag_reply(Run, Id, Ok, term_to_binary(Term)).

raised(Class, Reason, Trace) ->
    Type = <<"erlang.", (atom_to_binary(Class))/binary>>,
    Text =
        case Trace of
            [{M, F, A, _} | _] when is_integer(A) -> io_lib:format("~0tp in ~tw:~tw/~b", [Reason, M, F, A]);
            [{M, F, A, _} | _] -> io_lib:format("~0tp in ~tw:~tw/~b", [Reason, M, F, length(A)]);
            [] -> io_lib:format("~0tp", [Reason])
        end,
    {Type, unicode:characters_to_binary(Text)}.
