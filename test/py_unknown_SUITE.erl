%% Terms that this node can't read back: a `fun M:F/A' of a module that is not loaded may be handed to
%% Python, and `binary_to_term(_, [safe])' refuses it on its way back.
-module(py_unknown_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    every_way_of_calling_gives_it_as_an_error/1,
    a_stream_ends_with_the_error/1,
    python_that_sends_it_is_told/1,
    python_that_calls_erlang_with_it_is_told/1,
    a_graph_with_it_is_an_error/1,
    bytes_that_cannot_be_decoded_are_an_error/1,
    the_courier_drops_a_message_and_lives/1,
    whoever_waits_for_the_courier_gets_the_error/1,
    it_may_be_in_the_metadata_of_the_logger/1,
    a_forged_log_record_does_not_end_the_logger/1,
    a_closure_with_a_large_map_is_sent/1,
    send_closure/0
]).

all() -> py_test:cases(?MODULE).

%% Whatever module is loaded, all functions that were named before are known from then on.
init_per_suite(Config) ->
    Started = py_test:start(Config),
    [
        code:ensure_loaded(Module)
     || App <- [kernel, stdlib, common_test, erlang_python],
        {ok, Modules} <- [application:get_key(App, modules)],
        Module <- Modules
    ],
    Started.

end_per_suite(_Config) -> ok.

init_per_testcase(_Case, Config) ->
    [{courier, whereis(py_courier)}, {logger, whereis(py_logger)} | Config].

%% Whatever the test did, no process of the application has ended of it.
end_per_testcase(_Case, Config) ->
    ?assertEqual(proplists:get_value(courier, Config), whereis(py_courier)),
    ?assertEqual(proplists:get_value(logger, Config), whereis(py_logger)),
    ?assertEqual({ok, 3}, py:call(operator, add, [1, 2])).

%% A new one each time, made at run time: a literal in the code would be known.
unknown() ->
    Function = binary_to_atom(<<"f", (integer_to_binary(erlang:unique_integer([positive])))/binary>>),
    fun py_unknown_module:Function/1.

%% The same as bytes.
unknown_bytes() -> term_to_binary([unknown()]).

every_way_of_calling_gives_it_as_an_error(_Config) ->
    Args = [[unknown()]],
    Answers = #{
        call => py:call(builtins, list, Args),
        eval => py:eval(<<"[x]">>, #{x => unknown()}),
        alone => py:eval(<<"x">>, #{x => unknown()}),
        large => py:eval(<<"dict.fromkeys(range(200), x)">>, #{x => unknown()}),
        spawn_call => py:await(py:spawn_call(builtins, list, Args)),
        large_spawn_call => py:await(py:spawn_call("builtins", "dict.fromkeys", [lists:seq(1, 200), unknown()])),
        async_call => py:await(py:async_call(builtins, list, Args)),
        async_run => py_event_loop:run(asyncio, sleep, [0, unknown()]),
        stream => py:stream(builtins, iter, Args),
        context => in_context(Args)
    },
    maps:foreach(fun(Way, Answer) -> ?assertMatch({Way, _}, {Way, py_test:reason(Answer)}) end, Answers),
    NotConvertible = fun
        (_, {error, {not_convertible, Text}}) -> is_binary(Text);
        (_, _) -> false
    end,
    ?assertEqual(Answers, maps:filter(NotConvertible, Answers)),
    Gathered = py:async_gather([{builtins, list, Args}, {math, sqrt, [4]}]),
    ?assertReason({gather_failed, [{1, {not_convertible, _}}]}, Gathered),
    {error, Reason} = py:call(builtins, list, Args),
    ?assertMatch({match, _}, re:run(py_error:format(Reason), "py_unknown_module:f")).

in_context(Args) ->
    {ok, Ctx} = py_context:new(#{}),
    Answer = py:call(Ctx, builtins, list, Args),
    ok = py_context:stop(Ctx),
    Answer.

a_stream_ends_with_the_error(_Config) ->
    {ok, Ref} = py:stream_start(builtins, iter, [[1, unknown(), 2]]),
    ok = py_test:message({py_stream, Ref, {data, 1}}),
    receive
        {py_stream, Ref, Error} -> ?assertReason({not_convertible, _}, Error)
    end,
    %% Asked of the same pool: what the stream would still send comes before.
    {ok, 2.0} = py:call(math, sqrt, [4]),
    ok = py_test:nothing_waits().

python_that_sends_it_is_told(_Config) ->
    Send = <<"__import__('erlang').send(to, x)">>,
    Small = py:eval(Send, #{to => self(), x => unknown()}),
    ?assertReason({'TypeError', _}, Small),
    Large = py:eval(Send, #{to => self(), x => maps:from_keys(lists:seq(1, 200), unknown())}),
    ?assertReason({'TypeError', _}, Large),
    ok = py_test:nothing_waits().

python_that_calls_erlang_with_it_is_told(_Config) ->
    ok = py:register_function(unknown_taken, fun([_]) -> ok end),
    Answer = py:eval(<<"__import__('erlang').call('unknown_taken', x)">>, #{x => unknown()}),
    ok = py:unregister_function(unknown_taken),
    ?assertReason({'TypeError', _}, Answer).

a_graph_with_it_is_an_error(_Config) ->
    Nodes = #{
        python => #{run => {py, builtins, list}, inputs => [given]},
        erlang => #{run => fun([_]) -> [unknown()] end, inputs => [given]}
    },
    [
        py_test:reason(py_dag:run(#{nodes => maps:with([Name], Nodes)}, #{given => [unknown()]}))
     || Name <- [python, erlang]
    ].

bytes_that_cannot_be_decoded_are_an_error(_Config) ->
    ?assertReason({not_convertible, _}, py_call:decode(unknown_bytes())),
    ?assertReason({not_convertible, _}, py_call:decode(<<131, 255>>)).

the_courier_drops_a_message_and_lives(_Config) ->
    [py_courier ! {relay, 0, self(), [], Bytes} || Bytes <- [unknown_bytes(), <<131, 255>>]],
    py_courier ! {relay, 0, self(), [], term_to_binary(after_them)},
    ?assertEqual(after_them, py_test:message()).

whoever_waits_for_the_courier_gets_the_error(_Config) ->
    [
        begin
            Ref = make_ref(),
            py_courier ! {relay, 0, self(), [Tag, Ref], unknown_bytes()},
            {Tag, Ref, Error} = py_test:message(),
            ?assertReason({not_convertible, _}, Error)
        end
     || Tag <- [py_response, async_result, py_stream]
    ].

it_may_be_in_the_metadata_of_the_logger(_Config) ->
    ok = logger:set_process_metadata(#{unknown => unknown()}),
    ok = py:register_function(unknown_metadata, fun([]) -> is_map(logger:get_process_metadata()) end),
    #{logged := Before} = py_logger:info(),
    Answer = py:eval(<<"__import__('erlang').call('unknown_metadata')">>),
    Logged = py:exec(<<"import logging; logging.getLogger('unknown').critical('told')">>),
    ok = logger:unset_process_metadata(),
    ok = py:unregister_function(unknown_metadata),
    ?assertEqual({{ok, true}, ok}, {Answer, Logged}),
    ?assertMatch(#{logged := After} when After > Before, py_logger:info()).

a_forged_log_record_does_not_end_the_logger(_Config) ->
    [
        py_logger ! {py_log, 10, <<"forged">>, <<"message">>, #{}, About}
     || About <- [5, <<131, 255>>, term_to_binary({1, 2, 3}), term_to_binary(undefined)]
    ],
    ?assert(is_map(py_logger:info())).

%% Before OTP 27.3 a map of more than 128 keys that is built by a thread of Python ends the node.
a_closure_with_a_large_map_is_sent(_Config) ->
    Peer = py_test:peer([]),
    Sum = peer:call(Peer, ?MODULE, send_closure, [], 30_000),
    ok = py_test:stop_peer(Peer),
    ?assertEqual(lists:sum(lists:seq(1, 1000)), Sum).

send_closure() ->
    {ok, _} = application:ensure_all_started(erlang_python),
    Map = maps:from_list([{N, N} || N <- lists:seq(1, 1000)]),
    Closure = fun() -> lists:sum(maps:values(Map)) end,
    {ok, none} = py:eval(<<"__import__('erlang').send(to, x)">>, #{to => self(), x => Closure}),
    Ref = py:spawn_call(builtins, list, [[Closure]]),
    {ok, [Returned]} = py:await(Ref),
    receive
        Sent -> (Sent() + Returned()) div 2
    end.
