%% One package in this node: each step is a line `zoo STEP RESULT' on standard output, `ok' or why not.
%%
%% erl -pa … -eval 'zoo_package:main()' -extra zoo_numpy DIRECTORY_OF_THE_PROGRAMS
-module(zoo_package).

-export([main/0]).

-define(TIMEOUT, 180_000).
-define(CALLERS, 20).

-spec main() -> ok.
main() ->
    [Name, Dir] = init:get_plain_arguments(),
    Program = list_to_binary(Name),
    ok = start(Dir),
    Steps = [
        {call, fun() -> call(Program) end},
        {callers, fun() -> callers(Program) end},
        {context, fun() -> context(Program) end},
        {async, fun() -> async(Program) end},
        {restarts, fun() -> restarts(Program, Dir) end},
        %% Last: from here on some can't work as before in this node.
        {subinterpreter, fun() -> subinterpreter(Program) end}
    ],
    ok = steps(Steps),
    %% Whether it was a clean end is told by the exit code.
    init:stop().

steps([]) ->
    ok;
steps([{Step, Run} | Rest]) ->
    Result =
        try
            Run()
        catch
            Class:Why -> {error, {Class, Why}}
        end,
    io:format("zoo ~s ~ts~n", [Step, told(Result)]),
    case {Step, Result} of
        %% Nothing else can work.
        {call, {error, _}} -> ok;
        _ -> steps(Rest)
    end.

told(ok) -> "ok";
told(no_fork) -> "no fork beside a sub-interpreter";
told(no_backward) -> "no backward() beside a sub-interpreter";
told(Word) when is_atom(Word) -> atom_to_list(Word);
told({error, Why}) ->
    Text = lists:flatten(io_lib:format("~0tp", [Why])),
    ["failed: ", string:slice(Text, 0, 300)].

start(Dir) ->
    {ok, _} = application:ensure_all_started(erlang_python),
    {ok, _} = py:eval(
        <<"dir in __import__('sys').path or __import__('sys').path.append(dir)">>,
        #{dir => unicode:characters_to_binary(Dir)}
    ),
    ok.

call(Program) -> ok(py:call(Program, work, [], #{}, ?TIMEOUT)).

%% All at once, and all with the same answer.
callers(Program) ->
    Workers = [
        spawn_monitor(fun() -> exit({value, py:call(Program, work, [], #{}, ?TIMEOUT)}) end)
     || _ <- lists:seq(1, ?CALLERS)
    ],
    Answers = [receive {'DOWN', Monitor, process, _, Why} -> Why end || {_, Monitor} <- Workers],
    case lists:usort(Answers) of
        [{value, {ok, _}}] -> ok;
        Others -> {error, Others}
    end.

context(Program) ->
    {ok, Ctx} = py_context:new(#{}),
    Answer = py:call(Ctx, Program, work, [], #{}, ?TIMEOUT),
    ok = py_context:stop(Ctx),
    ok(Answer).

async(Program) ->
    Await = fun(Function) -> py:await(py:async_call(Program, Function, []), ?TIMEOUT) end,
    case Await(work_async) of
        {error, {'AttributeError', _}} -> ok(Await(work));
        Answer -> ok(Answer)
    end.

%% `own': in the sub-interpreter itself; `main': by `fallback'.
subinterpreter(Program) ->
    case py_context:new(#{mode => subinterp}) of
        {ok, Ctx} ->
            Own = py:call(Ctx, Program, work, [], #{}, ?TIMEOUT),
            Fallback = py:call(Ctx, Program, work, [], #{}, #{timeout => ?TIMEOUT, fallback => main}),
            ok = py_context:stop(Ctx),
            where(Own, Fallback);
        {error, not_supported} ->
            none
    end.

where({ok, _}, {ok, _}) ->
    own;
where({error, _}, {ok, _}) ->
    main;
%% As documented: the context is a sub-interpreter, so nobody forks.
where(_, {error, {'RuntimeError', <<"os.fork() while sub-interpreters exist", _/binary>>}}) ->
    no_fork;
%% As documented too: torch asks CPython whether this thread holds the GIL, which then always says yes.
where(_, {error, {'RuntimeError', <<"The autograd engine was called while holding the GIL", _/binary>>}}) ->
    no_backward;
where(_, {error, _} = Error) ->
    Error.

restarts(Program, Dir) ->
    Again = fun() ->
        ok = leave(Program),
        ok = application:stop(erlang_python),
        ok = start(Dir),
        call(Program)
    end,
    case Again() of
        ok -> Again();
        Error -> Error
    end.

%% What the documentation of a package asks for before the application stops.
leave(Program) ->
    case py:call(Program, leave, [], #{}, ?TIMEOUT) of
        {error, {'AttributeError', _}} -> ok;
        Answer -> ok(Answer)
    end.

ok({ok, _}) -> ok;
ok(Error) -> Error.
