#!/usr/bin/env escript
%% The tables of docs/ that are made from those of the code.
%%
%% escript scripts/tables.escript EBIN write|check [PAGE…]
%%
%% A table stands between `<!-- table: NAME -->' and `<!-- end of table -->'. `write' puts it there, `check' fails
%% if it is another one.
-mode(compile).

main([Ebin, Mode | Pages]) when Mode =:= "write"; Mode =:= "check" ->
    true = code:add_patha(Ebin),
    Wrong = [Page || Page <- Pages, Old <- [text(Page)], New <- [filled(Page, Old)], New =/= Old, keep(Mode, Page, New)],
    [io:format(standard_error, "~ts: a table is not that of the code: run ./dev fmt~n", [Page]) || Page <- Wrong],
    halt(min(1, length(Wrong))).

text(Page) ->
    {ok, Text} = file:read_file(Page),
    Text.

keep("check", _Page, _New) ->
    true;
keep("write", Page, New) ->
    ok = file:write_file(Page, New),
    false.

filled(Page, Text) ->
    [Before | Tables] = binary:split(Text, <<"<!-- table: ">>, [global]),
    iolist_to_binary([Before | [table(Page, Table) || Table <- Tables]]).

table(Page, Text) ->
    case {binary:split(Text, <<" -->\n">>), binary:split(Text, <<"<!-- end of table -->">>)} of
        {[Name, _], [_, After]} ->
            Rows = unicode:characters_to_binary(rows(string:lexemes(Name, " "))),
            ["<!-- table: ", Name, " -->\n\n", Rows, "\n<!-- end of table -->", After];
        _ ->
            error({Page, "a table without an end"})
    end.

rows([<<"settings">>]) ->
    Cells = [[code(Name), default(Default), Help] || {Name, _, Default, Help} <- py_config:table()],
    [row(["key", "default", "meaning"]), line(3) | [row(Each) || Each <- Cells]];
%% Every option of calls, and the functions that take it.
rows([<<"functions">>, <<"and">>, <<"options">>]) ->
    Families = [Each || {Family, _} = Each <- py_options:families(), lists:member(Family, py_options:calls())],
    Head = [lists:join("<br>", [code(Function) || Function <- Functions]) || {_, Functions} <- Families],
    [
        row(["" | Head]),
        line(1 + length(Head))
        | [
            row([code(Name) | [taken(lists:member(Family, Takers)) || {Family, _} <- Families]])
         || {Name, _, Takers, _} <- call_options()
        ]
    ];
rows([<<"options">>, <<"of">>, <<"calls">>]) ->
    options(call_options(), py_options:calls());
%% The options of one function.
rows([<<"options">>, <<"of">>, Function]) ->
    [Module, Name] = [binary_to_atom(Part) || Part <- binary:split(Function, <<":">>)],
    [Family] = [Each || {Each, Functions} <- py_options:families(), lists:member({Module, Name}, Functions)],
    options([Row || {_, _, Takers, _} = Row <- py_options:table(), lists:member(Family, Takers)], [Family]);
%% Those of all functions that run nothing.
rows([<<"other">>, <<"options">>]) ->
    [
        row(["function", "option", "value", "meaning"]),
        line(4)
        | [
            row([lists:join(", ", [code(Function) || Function <- Functions]), code(Name), value(Kind), meaning(Name, Help, [Family])])
         || {Family, Functions} <- py_options:families(),
            not lists:member(Family, py_options:calls()),
            {Name, Kind, Takers, Help} <- py_options:table(),
            lists:member(Family, Takers)
        ]
    ].

call_options() ->
    Calls = py_options:calls(),
    [Row || {_, _, Takers, _} = Row <- py_options:table(), Calls -- Takers =/= Calls].

options(Rows, Families) ->
    Cells = [[code(Name), value(Kind), meaning(Name, Help, Families)] || {Name, Kind, _, Help} <- Rows],
    [row(["option", "value", "meaning"]), line(3) | [row(Each) || Each <- Cells]].

%% With the default; of whom, where not all have it.
meaning(Name, Help, [Family]) ->
    [Help, [["; default ", Default] || Default <- default(Name, Family)]];
meaning(Name, Help, Families) ->
    Functions = maps:from_list(py_options:families()),
    [
        Help,
        [["; default of ", code(hd(maps:get(Each, Functions))), ": ", Default] || Each <- Families, Default <- default(Name, Each)]
    ].

default(Name, Family) -> [default(Default) || #{Name := Default} <- [py_options:defaults(Family)]].

row(Cells) -> ["|", [[" ", Cell, " |"] || Cell <- Cells], "\n"].

line(Columns) -> ["|", lists:duplicate(Columns, "---|"), "\n"].

taken(true) -> "yes";
taken(false) -> "".

value(Kind) -> py_kind:wanted(Kind, undefined).

default(undefined) -> "none";
default(Number) when is_integer(Number) -> integer_to_list(Number);
default(Term) -> io_lib:format("`~0tp`", [Term]).

code({Module, Function}) -> io_lib:format("`~ts:~ts`", [Module, Function]);
code(Name) -> io_lib:format("`~ts`", [Name]).
