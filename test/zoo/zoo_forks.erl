%% Pools of processes made by fork, again and again, beside other calls; then what they have left behind.
%%
%% erl -pa … -eval 'zoo_forks:main()' -extra ROUNDS DIRECTORY_OF_THE_PROGRAM
-module(zoo_forks).
-behaviour(gen_event).

-export([main/0]).
-export([init/1, handle_event/2, handle_call/2]).

-define(TIMEOUT, 300_000).
%% Rounds of one call.
-define(PIECE, 10).
%% So that all that is made once is there before it is counted: threads, modules, a resource tracker.
-define(WARM, 24).

-spec main() -> ok.
main() ->
    [Rounds, Dir] = init:get_plain_arguments(),
    {ok, _} = application:ensure_all_started(erlang_python),
    ok = gen_event:add_handler(erl_signal_server, ?MODULE, self()),
    {ok, _} = py:eval(
        <<"__import__('sys').path.append(dir)">>, #{dir => unicode:characters_to_binary(Dir)}
    ),
    Other = spawn_link(fun other_calls/0),
    _ = rounds(1, ?WARM),
    Before = here(),
    Last = ?WARM + list_to_integer(Rounds),
    Forked = rounds(?WARM + 1, Last),
    ok = left(Before, 100),
    ok = signals(),
    true = is_process_alive(Other),
    unlink(Other),
    exit(Other, kill),
    {ok, Torch} = py:call(zoo_forks, torch_version, []),
    io:format("zoo forks ok~nrounds ~s~nprocesses ~b~ntorch ~ts~n", [Rounds, Forked, Torch]),
    init:stop().

rounds(First, Last) when First > Last -> 0;
rounds(First, Last) ->
    End = min(First + ?PIECE - 1, Last),
    case py:call(zoo_forks, rounds, [First, End], #{}, ?TIMEOUT) of
        {ok, Forked} ->
            Forked + rounds(End + 1, Last);
        {error, Why} ->
            io:format("zoo forks failed: rounds ~b to ~b: ~ts~n", [First, End, py_error:format(Why)]),
            halt(1)
    end.

%% What a server does meanwhile.
other_calls() ->
    {ok, 3} = py:call(math, isqrt, [9], #{}, ?TIMEOUT),
    timer:sleep(1),
    other_calls().

here() ->
    {ok, Here} = py:call(zoo_forks, here, [], #{}, ?TIMEOUT),
    Here.

%% The last threads and processes may still be ending.
left(Before, Tries) ->
    case more(Before, here()) of
        [] ->
            ok;
        _ when Tries > 0 ->
            timer:sleep(100),
            left(Before, Tries - 1);
        More ->
            io:format("zoo forks failed: left behind ~0tp~n", [More]),
            halt(1)
    end.

more(Before, Now) ->
    Lists = [
        {What, maps:get(What, Now) -- maps:get(What, Before)}
     || What <- [<<"threads">>, <<"children">>]
    ],
    Counts = [
        {<<"descriptors">>, length(maps:get(<<"descriptors">>, Now)) - length(maps:get(<<"descriptors">>, Before))},
        {<<"tasks">>, maps:get(<<"tasks">>, Now) - maps:get(<<"tasks">>, Before)}
    ],
    [One || {_, [_ | _]} = One <- Lists] ++ [One || {_, Count} = One <- Counts, Count > 0].

%% None may have reached this node.
signals() ->
    receive
        {signal, Signal} ->
            io:format("zoo forks failed: a signal to the node: ~s~n", [Signal]),
            halt(1)
    after 0 -> ok
    end.

-spec init(pid()) -> {ok, pid()}.
init(Asker) -> {ok, Asker}.

-spec handle_event(atom(), pid()) -> {ok, pid()}.
handle_event(Signal, Asker) ->
    Asker ! {signal, Signal},
    {ok, Asker}.

-spec handle_call(term(), pid()) -> {ok, ok, pid()}.
handle_call(_, Asker) -> {ok, ok, Asker}.
