%% Stream words: a generator reads a text word by word; Erlang counts them as they come, and never
%% has more than ten unread ones.
%%
%% Run: ./dev build, then
%%      ERL_LIBS=_build/default/lib escript examples/stream_words/stream_words.erl [FILE]
-module(stream_words).

-export([main/1]).

-define(WINDOW, 10).

main(Args) ->
    %% Modules beside this file can be imported.
    Here = filename:dirname(filename:absname(escript:script_name())),
    ok = application:set_env(erlang_python, python_path, [Here]),
    {ok, _} = application:ensure_all_started(erlang_python),
    File = hd(Args ++ [escript:script_name()]),

    {ok, Ref} = py:stream_start(words, read, [unicode:characters_to_binary(File)], #{}, #{
        window => ?WINDOW
    }),
    case count(Ref, #{}) of
        {ok, Counts} -> show(Counts);
        {error, Reason} -> io:format("~ts~n", [py_error:format(Reason)])
    end.

count(Ref, Counts) ->
    receive
        {py_stream, Ref, {data, Word}} ->
            ok = py:stream_ack(Ref, 1),
            count(Ref, maps:update_with(Word, fun(N) -> N + 1 end, 1, Counts));
        {py_stream, Ref, done} ->
            {ok, Counts};
        {py_stream, Ref, {error, Reason}} ->
            {error, Reason}
    end.

show(Counts) ->
    io:format("~b different words~n", [map_size(Counts)]),
    Often = lists:sublist(lists:sort([{-N, Word} || {Word, N} <- maps:to_list(Counts)]), 5),
    [io:format("~4b ~ts~n", [-N, Word]) || {N, Word} <- Often].
