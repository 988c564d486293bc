%% Runs the functions of Erlang of one run, each in a process of its own; and waits, in the same way,
%% for what event loops of Python run.
%%
%% Process: one per run that has such functions. It ends with the run or with the run's caller, and
%% what it had started ends with it.
-module(py_dag_runner).

-export([start/2, serve/2, stop/1]).
-export([init/3, execute/5]).

-export_type([called/0]).

-type called() ::
    {module(), atom()} | fun(([term()]) -> term()) | {async, Module :: binary(), Name :: binary()}.
-type functions() :: #{non_neg_integer() => called()}.
-type context() :: pid() | reference() | atom().

%% `Context': where Python runs, or `none'.
-spec start(functions(), context()) -> pid() | undefined.
start(Functions, _Context) when map_size(Functions) =:= 0 -> undefined;
start(Functions, Context) -> spawn(?MODULE, init, [self(), Functions, options(Context)]).

%% The run has a deadline of its own.
options(none) -> #{timeout => infinity};
options(Context) -> #{timeout => infinity, context => Context}.

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

-spec init(pid(), functions(), py_call:opts()) -> no_return().
init(Caller, Functions, Options) ->
    process_flag(trap_exit, true),
    Monitor = monitor(process, Caller),
    receive
        {run, Run} -> loop({Run, Functions, Options}, #{});
        stop -> exit(shutdown);
        {'DOWN', Monitor, process, Caller, _} -> exit(shutdown)
    end.

%% By the number of the call and, for their ends, by the process.
loop({Run, Functions, Options} = All, Running) ->
    receive
        {dag_call, Id, Index, Args} ->
            #{Index := Function} = Functions,
            Pid = spawn_link(?MODULE, execute, [Run, Id, Function, Args, Options]),
            loop(All, Running#{Id => Pid, Pid => Id});
        {dag_stop, Id} ->
            case Running of
                #{Id := Pid} -> exit(Pid, kill);
                #{} -> true
            end,
            loop(All, Running);
        {'EXIT', Pid, Why} ->
            loop(All, ended(Run, Pid, Why, Running));
        stop ->
            exit(shutdown);
        {'DOWN', _Monitor, process, _Caller, _} ->
            exit(shutdown)
    end.

ended(Run, Pid, Why, Running) ->
    case Running of
        #{Pid := Id} ->
            %% Answered already, unless somebody ended it from outside.
            Why =:= normal orelse reply(Run, Id, false, raised(exit, Why, [])),
            maps:without([Pid, Id], Running);
        #{} ->
            Running
    end.

-spec execute(py_nif:dag_run(), non_neg_integer(), called(), binary(), py_call:opts()) -> ok.
execute(Run, Id, Function, Args, Options) ->
    try call(Function, binary_to_term(Args, [safe]), Options) of
        {ok, Value} -> reply(Run, Id, true, Value);
        {error, Reason} -> reply(Run, Id, false, Reason)
    catch
        Class:Reason:Trace -> reply(Run, Id, false, raised(Class, Reason, Trace))
    end.

call({async, Module, Name}, Args, Options) ->
    py:await(py:async_call(Module, Name, Args, #{}, Options), infinity);
call({Module, Function}, Args, _Options) ->
    {ok, Module:Function(Args)};
call(Function, Args, _Options) ->
    {ok, Function(Args)}.

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
