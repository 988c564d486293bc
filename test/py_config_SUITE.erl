%% The configuration is closed: what is not known or not right stops the start with a sentence.
-module(py_config_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, end_per_testcase/2]).
-export([
    nothing_set_gives_the_defaults/1,
    every_setting_is_documented_with_its_default/1,
    what_is_set_replaces_the_default/1,
    the_environment_of_the_application_is_read/1,
    a_bad_value_is_refused_with_a_sentence_that_names_it/1,
    every_key_refuses_a_value_of_another_kind/1,
    an_unknown_key_is_refused_with_the_known_ones/1,
    a_slip_of_the_fingers_gets_the_right_spelling/1,
    names_and_paths_become_binaries/1,
    more_workers_than_threads_is_refused/1
]).

all() ->
    [
        nothing_set_gives_the_defaults,
        every_setting_is_documented_with_its_default,
        what_is_set_replaces_the_default,
        the_environment_of_the_application_is_read,
        a_bad_value_is_refused_with_a_sentence_that_names_it,
        every_key_refuses_a_value_of_another_kind,
        an_unknown_key_is_refused_with_the_known_ones,
        a_slip_of_the_fingers_gets_the_right_spelling,
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

every_setting_is_documented_with_its_default(_Config) ->
    {ok, Page} = file:read_file(filename:join(py_test:root(), "docs/getting-started.md")),
    [_, Section | _] = binary:split(Page, [<<"\n## Configuration\n">>, <<"\n## Where to go on\n">>], [global]),
    {match, Rows} = re:run(Section, "^\\| `(\\w+)` \\| ([^|]*) \\|", [
        global, multiline, {capture, all_but_first, binary}
    ]),
    Documented = maps:from_list([{binary_to_atom(Key), Default} || [Key, Default] <- Rows]),
    Defaults = py_config:defaults(),
    ?assertEqual(lists:sort(maps:keys(Defaults)), lists:sort(maps:keys(Documented))),
    %% Without a default, the page says what happens then.
    Known = maps:filter(fun(_, Default) -> Default =/= undefined end, Defaults),
    ?assertEqual(maps:map(fun(_, Default) -> shown(Default) end, Known), maps:with(maps:keys(Known), Documented)).

shown(Number) when is_integer(Number) -> integer_to_binary(Number);
shown(Term) -> py_text:format("`~0tp`", [Term]).

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
