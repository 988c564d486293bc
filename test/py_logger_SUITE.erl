%% Log records of Python reach the handlers of OTP's logger. How a flood of them is bounded: py_print_SUITE.
-module(py_logger_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_testcase/2, end_per_testcase/2]).
-export([log/2]).
-export([
    a_record_reaches_the_handlers_with_level_and_place/1,
    every_number_has_a_level/1,
    keys_may_be_binaries_and_odd_values_are_left_out/1,
    a_message_that_is_no_utf8_is_printed/1,
    a_percent_or_tilde_in_a_message_is_just_text/1,
    what_is_no_record_is_ignored/1
]).

all() ->
    [
        a_record_reaches_the_handlers_with_level_and_place,
        every_number_has_a_level,
        keys_may_be_binaries_and_odd_values_are_left_out,
        a_message_that_is_no_utf8_is_printed,
        a_percent_or_tilde_in_a_message_is_just_text,
        what_is_no_record_is_ignored
    ].

init_per_testcase(_Case, Config) ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, all),
    ok = logger:add_handler(?MODULE, ?MODULE, #{
        config => #{to => self()},
        filters => [{python, {fun logger_filters:domain/2, {stop, not_equal, [python]}}}]
    }),
    Own =
        case whereis(py_logger) of
            undefined ->
                {ok, Pid} = py_logger:start_link(),
                true = unlink(Pid),
                [{own, Pid}];
            _ ->
                []
        end,
    Own ++ [{level, Level} | Config].

end_per_testcase(_Case, Config) ->
    ok = logger:remove_handler(?MODULE),
    ok = logger:set_primary_config(level, proplists:get_value(level, Config)),
    case proplists:get_value(own, Config) of
        undefined -> ok;
        Pid -> gen_server:stop(Pid)
    end.

%% The callback of the test's own handler.
log(Event, #{config := #{to := Pid}}) -> Pid ! {event, Event}.

a_record_reaches_the_handlers_with_level_and_place(_Config) ->
    Meta = #{
        file => <<"/app/orders.py">>, line => 12, function => <<"ship">>, pid => self(), time => 1
    },
    #{level := Level, msg := Message, meta := Got} = send(30, <<"shop.orders">>, <<"läte"/utf8>>, Meta),
    ?assertEqual(warning, Level),
    ?assertEqual("läte", text(Message)),
    ?assertMatch(
        #{
            domain := [python],
            file := "/app/orders.py",
            line := 12,
            time := 1,
            logger_name := <<"shop.orders">>,
            python := #{function := <<"ship">>}
        },
        Got
    ),
    ?assertEqual(self(), maps:get(pid, Got)).

every_number_has_a_level(_Config) ->
    ?assertEqual(
        [debug, debug, debug, info, info, warning, error, critical, critical],
        [py_logger:level(N) || N <- [-1, 0, 10, 20, 25, 30, 40, 50, 90]]
    ).

keys_may_be_binaries_and_odd_values_are_left_out(_Config) ->
    Meta = #{<<"file">> => <<"a.py">>, <<"line">> => none, <<"pid">> => 7, <<"time">> => <<"now">>},
    #{meta := Got} = send(40, <<"root">>, <<"m">>, Meta),
    ?assertMatch(#{file := "a.py"}, Got),
    ?assertNot(is_map_key(line, Got)),
    ?assert(is_integer(maps:get(time, Got))),
    ?assert(is_pid(maps:get(pid, Got))).

a_message_that_is_no_utf8_is_printed(_Config) ->
    #{msg := Message} = send(20, <<"root">>, <<255, 254>>, #{}),
    ?assertMatch("<<" ++ _, text(Message)).

a_percent_or_tilde_in_a_message_is_just_text(_Config) ->
    #{msg := Message} = send(20, <<"root">>, <<"100 ~p %s">>, #{}),
    ?assertEqual("100 ~p %s", text(Message)).

what_is_no_record_is_ignored(_Config) ->
    Before = py_logger:info(),
    py_logger ! nonsense,
    py_logger ! {py_log, <<"info">>, root, "text", [], undefined},
    ?assertEqual(Before, py_logger:info()).

send(Level, Name, Message, Meta) ->
    py_logger ! {py_log, Level, Name, Message, Meta, undefined},
    receive
        {event, Event} -> Event
    end.

text({string, Text}) -> unicode:characters_to_list(Text);
text({Format, Args}) -> lists:flatten(io_lib:format(Format, Args)).
