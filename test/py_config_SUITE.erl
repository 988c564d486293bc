%% The configuration is closed: what is not known or not right stops the start with a sentence.
-module(py_config_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, end_per_testcase/2]).
-export([
    nothing_set_gives_the_defaults/1,
    every_default_is_of_its_kind/1,
    what_is_set_replaces_the_default/1,
    the_environment_of_the_application_is_read/1,
    a_bad_value_is_refused_with_a_sentence_that_names_it/1,
    every_key_refuses_a_value_of_another_kind/1,
    an_unknown_key_is_refused_with_the_known_ones/1,
    a_slip_of_the_fingers_gets_the_right_spelling/1,
    a_name_that_refuses_no_audit_event_is_refused/1,
    names_and_paths_become_binaries/1,
    more_workers_than_threads_is_refused/1
]).

all() ->
    [
        nothing_set_gives_the_defaults,
        every_default_is_of_its_kind,
        what_is_set_replaces_the_default,
        the_environment_of_the_application_is_read,
        a_bad_value_is_refused_with_a_sentence_that_names_it,
        every_key_refuses_a_value_of_another_kind,
        an_unknown_key_is_refused_with_the_known_ones,
        a_slip_of_the_fingers_gets_the_right_spelling,
        a_name_that_refuses_no_audit_event_is_refused,
        names_and_paths_become_binaries,
        more_workers_than_threads_is_refused
    ].

end_per_testcase(_Case, _Config) ->
    application:unset_env(erlang_python, num_wrokers),
    application:unset_env(erlang_python, max_bound).

nothing_set_gives_the_defaults(_Config) ->
    {ok, Config} = py_config:check([]),
    ?assertEqual(py_config:defaults(), Config),
    ?assertMatch(
        #{
            num_workers := 4,
            num_subinterp_workers := 4,
            num_loops := 1,
            driver := thread,
            max_queue := 10000,
            max_bound := 64,
            max_threads := 256,
            call_timeout := 30000,
            asyncio_policy := true,
            stop_timeout := 5000,
            audit := []
        },
        Config
    ).

every_default_is_of_its_kind(_Config) ->
    [
        ?assertEqual({Name, {ok, Default}}, {Name, py_kind:value(Kind, Default)})
     || {Name, Kind, Default, _} <- py_config:table(), Default =/= undefined
    ].

what_is_set_replaces_the_default(_Config) ->
    {ok, Config} = py_config:check([{num_workers, 9}, {call_timeout, infinity}, {driver, beam}]),
    ?assertEqual(
        (py_config:defaults())#{num_workers := 9, call_timeout := infinity, driver := beam}, Config
    ).

the_environment_of_the_application_is_read(_Config) ->
    ok = application:set_env(erlang_python, max_bound, 7),
    ?assertMatch({ok, #{max_bound := 7}}, py_config:load()),
    ok = application:set_env(erlang_python, num_wrokers, 7),
    ?assertMatch({error, <<"erlang_python: unknown", _/binary>>}, py_config:load()).

a_bad_value_is_refused_with_a_sentence_that_names_it(_Config) ->
    Sentences = [
        {num_workers, foo, <<"erlang_python: num_workers must be a positive integer, got foo">>},
        {num_workers, 0, <<"erlang_python: num_workers must be a positive integer, got 0">>},
        {num_workers, 5000, <<"erlang_python: num_workers must be at most 4096, got 5000">>},
        {atom_quota, -1, <<"erlang_python: atom_quota must be an integer of 0 or more, got -1">>},
        {driver, poll, <<"erlang_python: driver must be thread or beam, got poll">>},
        {log_stdout, yes, <<"erlang_python: log_stdout must be true or false, got yes">>},
        {call_timeout, 0,
            <<"erlang_python: call_timeout must be a time in milliseconds greater than 0, or infinity, got 0">>},
        {preload, json,
            <<"erlang_python: preload must be a list of module names (atoms, strings or binaries), got json">>}
    ],
    [
        ?assertEqual({error, Sentence}, py_config:check([{Key, Value}]))
     || {Key, Value, Sentence} <- Sentences
    ].

every_key_refuses_a_value_of_another_kind(_Config) ->
    [
        begin
            {error, Sentence} = py_config:check([{Key, {not_a, setting}}]),
            ?assertNotEqual(nomatch, string:find(Sentence, atom_to_list(Key))),
            ?assertNotEqual(nomatch, string:find(Sentence, "{not_a,setting}"))
        end
     || Key <- maps:keys(py_config:defaults())
    ],
    [
        ?assertMatch({error, _}, py_config:check([{Key, Bad}]))
     || {Key, Bad} <- [
            {python, ""},
            {python, <<"a", 0, "b">>},
            {python, [a]},
            {preload, [1]},
            {preload, [json | os]},
            {preload, [""]},
            {redis_url, <<255>>}
        ]
    ].

an_unknown_key_is_refused_with_the_known_ones(_Config) ->
    {error, Sentence} = py_config:check([{colour, blue}]),
    ?assertMatch(<<"erlang_python: unknown configuration key colour. Known keys: ", _/binary>>, Sentence),
    [
        ?assertNotEqual(nomatch, string:find(Sentence, atom_to_list(Key)))
     || Key <- maps:keys(py_config:defaults())
    ].

a_slip_of_the_fingers_gets_the_right_spelling(_Config) ->
    [
        begin
            {error, Sentence} = py_config:check([{Slip, 1}]),
            Hint = ["did you mean ", atom_to_list(Right), "?"],
            ?assertNotEqual(nomatch, string:find(Sentence, Hint), Sentence)
        end
     || {Slip, Right} <- [
            {num_wrokers, num_workers},
            {num_worker, num_workers},
            {numworkers, num_workers},
            {max_que, max_queue},
            {redisurl, redis_url}
        ]
    ].

a_name_that_refuses_no_audit_event_is_refused(_Config) ->
    Nothing = "erlang_python: audit names ~ts, which refuses nothing~ts",
    [
        ?assertEqual({error, py_text:format(Nothing, [Wrong, Hint])}, py_config:check([{audit, [os, Wrong]}]))
     || {Wrong, Hint} <- [
            {subproces, "; did you mean subprocess?"},
            {"subproces.Popen", "; did you mean subprocess?"},
            {"subprocess.popen", "; did you mean subprocess.Popen?"},
            {"socket.conect", "; did you mean socket.connect?"},
            {"os.anything_else", ": os refuses all of its events"},
            {network, ": it is no group of Python's audit events"}
        ]
    ],
    Right = [subprocess, "os.system", <<"open">>, "http.client.connect", "glob.glob/2", "a_package.loads_a_model"],
    ?assertMatch({ok, #{audit := [_, _, _, _, _, _]}}, py_config:check([{audit, Right}])).

names_and_paths_become_binaries(_Config) ->
    {ok, Config} = py_config:check([
        {python, "/opt/é/bin/python3"},
        {preload, [json, "os.path", <<"numpy">>]},
        {audit, [subprocess]},
        {redis_url, "redis://localhost"}
    ]),
    ?assertMatch(
        #{
            python := <<"/opt/é/bin/python3"/utf8>>,
            preload := [<<"json">>, <<"os.path">>, <<"numpy">>],
            audit := [<<"subprocess">>],
            redis_url := <<"redis://localhost">>
        },
        Config
    ).

more_workers_than_threads_is_refused(_Config) ->
    ?assertEqual(
        {error, <<"erlang_python: num_workers (20) must not be greater than max_threads (10)">>},
        py_config:check([{num_workers, 20}, {max_threads, 10}])
    ).
