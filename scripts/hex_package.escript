#!/usr/bin/env escript
%% A package for Hex, as `rebar3 hex build' makes it, without a plugin that would have to be fetched.
%%
%% escript scripts/hex_package.escript APP_SRC CONTENTS FILES PACKAGE
%%
%% APP_SRC is the description of the application, CONTENTS a tar.gz of the source, FILES the list of its files.
%% PACKAGE is a tar of VERSION, CHECKSUM (over the three others), metadata.config and contents.tar.gz. The same source
%% gives the same bytes.
-mode(compile).

-define(FORMAT, <<"3">>).

main([AppSrc, Contents, Files, Package]) ->
    {ok, [{application, Name, About}]} = file:consult(AppSrc),
    {ok, Content} = file:read_file(Contents),
    {ok, List} = file:read_file(Files),
    Metadata = unicode:characters_to_binary([
        io_lib:format("~tp.~n", [Entry])
     || Entry <- metadata(Name, About, binary:split(List, <<"\n">>, [global, trim_all]))
    ]),
    Checksum = string:uppercase(hex(crypto:hash(sha256, [?FORMAT, Metadata, Content]))),
    {ok, Tar} = erl_tar:open(Package, [write]),
    [
        ok = erl_tar:add(Tar, Bytes, Entry, [{atime, 0}, {mtime, 0}, {ctime, 0}, {uid, 0}, {gid, 0}])
     || {Entry, Bytes} <- [
            {"VERSION", ?FORMAT},
            {"CHECKSUM", Checksum},
            {"metadata.config", Metadata},
            {"contents.tar.gz", Content}
        ]
    ],
    ok = erl_tar:close(Tar).

metadata(Name, About, Files) ->
    Text = fun(Key) -> unicode:characters_to_binary(proplists:get_value(Key, About)) end,
    Licences = [unicode:characters_to_binary(Licence) || Licence <- proplists:get_value(licenses, About)],
    App = atom_to_binary(Name),
    [
        {<<"name">>, App},
        {<<"app">>, App},
        {<<"version">>, Text(vsn)},
        {<<"description">>, Text(description)},
        {<<"licenses">>, Licences},
        {<<"links">>, []},
        {<<"build_tools">>, [<<"rebar3">>, <<"mix">>]},
        {<<"requirements">>, []},
        {<<"files">>, Files}
    ].

hex(Bytes) ->
    <<<<(integer_to_binary(Nibble, 16))/binary>> || <<Nibble:4>> <= Bytes>>.
