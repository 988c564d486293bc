%% Runs one suite for ./dev, in a node of its own: what one suite leaves behind, or breaks, is no other's.
%% Prints how long each case took, each failure with its reason, and last "N passed, M failed, K skipped".
%%
%% Process: `main/0' is the node's first process; the rest is a hook of Common Test, in its processes.
-module(py_ct).

-export([main/0]).
-export([id/1, init/2, pre_init_per_testcase/4, post_end_per_testcase/5, on_tc_fail/4, on_tc_skip/4]).

%% Arguments, after `-extra': the suite, the directory of its logs, and the cases, if not all of them.
-spec main() -> ok.
main() ->
    [Suite, Logs | Cases] = init:get_plain_arguments(),
    Chosen = [{testcase, Names} || Names <- [chosen(list_to_atom(Suite), Cases)], Names =/= []],
    Result = ct:run_test([
        {dir, filename:dirname(code:which(?MODULE))},
        {suite, Suite},
        {logdir, Logs},
        {auto_compile, false},
        {ct_hooks, [?MODULE]}
        | Chosen
    ]),
    {Passed, Failed, Skipped} = counts(Result),
    io:format("~n~b passed, ~b failed, ~b skipped~n", [Passed, Failed, Skipped]),
    %% Not halt: a node that crashes when it stops is a failure too.
    init:stop(min(Failed, 1)).

%% All of them in their own order is no choice. With a seed (`./dev test --stress') it is a random one; that of the
%% cases of a group comes from `py_test:order/0'.
chosen(_Suite, [_ | _] = Cases) ->
    [list_to_atom(Case) || Case <- Cases];
chosen(Suite, []) ->
    case {os:getenv("PY_TEST_SEED"), Suite:all()} of
        {false, _} -> [];
        {Seed, [Case | _] = All} when is_atom(Case) -> shuffled(Seed, All);
        _ -> []
    end.

shuffled(Seed, All) ->
    _ = rand:seed(exsss, list_to_integer(Seed)),
    case lists:all(fun is_atom/1, All) of
        true -> [Case || {_, Case} <- lists:sort([{rand:uniform(), Case} || Case <- All])];
        false -> []
    end.

counts({Passed, Failed, {ByUser, ByFailure}}) when Passed + Failed + ByUser + ByFailure > 0 ->
    %% A case that is skipped because something failed is a failure that nobody would see.
    {Passed, Failed + ByFailure, ByUser};
counts(Other) ->
    io:format("FAILED no case was run: ~tp~n", [Other]),
    {0, 1, 0}.

id(_Options) -> ?MODULE.

init(_Id, _Options) -> {ok, #{}}.

pre_init_per_testcase(Suite, Case, Config, State) ->
    {Config, State#{{Suite, Case} => erlang:monotonic_time(millisecond)}}.

post_end_per_testcase(Suite, Case, _Config, Return, State) ->
    {Began, Rest} = maps:take({Suite, Case}, State),
    Took = erlang:monotonic_time(millisecond) - Began,
    io:format(user, "took ~.3f ~s:~s~n", [Took / 1000, Suite, Case]),
    {Return, Rest}.

on_tc_fail(Suite, Case, Reason, State) ->
    io:format(user, "FAILED ~ts:~ts~n~ts~n", [Suite, name(Case), indented(Reason)]),
    State.

on_tc_skip(Suite, Case, Reason, State) ->
    io:format(user, "skipped ~ts:~ts: ~0tp~n", [Suite, name(Case), Reason]),
    State.

name({Case, _Group}) -> atom_to_list(Case);
name(Case) -> atom_to_list(Case).

indented(Reason) ->
    Text = io_lib:format("~tp", [Reason]),
    ["  " | string:replace(string:slice(Text, 0, 4000), "\n", "\n  ", all)].
