%% What a node says whose installation is not whole: libraries of others, two versions, an upgrade in the running node.
%% Each case has a copy of the application, of which one thing is changed.
-module(py_install_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    a_whole_copy_runs/1,
    a_missing_loader_is_said/1,
    a_damaged_library_is_said/1,
    a_library_for_another_processor_is_said/1,
    a_library_for_another_c_library_is_said/1,
    a_library_for_a_newer_glibc_is_said/1,
    a_library_for_another_otp_is_said/1,
    a_library_of_another_version_is_said/1,
    two_versions_in_one_node_are_refused/1,
    a_version_that_hides_another_is_warned_of/1,
    one_application_under_two_names_is_fine/1,
    an_escript_is_refused/1,
    an_upgrade_of_a_running_node_is_refused/1,
    the_native_module_of_the_node_comes_before_a_file/1
]).

-define(START, "application:ensure_all_started(erlang_python)").

all() ->
    [Name || {Name, 1} <- ?MODULE:module_info(exports), Name =/= module_info].

init_per_testcase(Case, Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), Case),
    [{app, copy(filename:join(Dir, "erlang_python"))}, {dir, Dir} | Config].

end_per_testcase(_Case, _Config) -> ok.

a_whole_copy_runs(Config) ->
    says("{ok,4.0}", run(Config, "{ok, _} = " ?START ", io:format(\"~p\", [py:call(math, sqrt, [16])])")).

a_missing_loader_is_said(Config) ->
    ok = file:delete(priv(Config, "py_loader.so")),
    says("py_loader.so can't be read: no such file or directory", started(Config)).

a_damaged_library_is_said(Config) ->
    replace(Config, fun(_) -> <<"nothing">> end),
    says("is no library: its file is damaged", started(Config)).

a_library_for_another_processor_is_said(Config) ->
    {Number, Name, This} =
        case erlang:system_info(system_architecture) of
            "aarch64" ++ _ -> {62, "x86_64", "aarch64"};
            _ -> {183, "aarch64", "x86_64"}
        end,
    replace(Config, fun(<<Head:18/binary, _:16, Rest/binary>>) -> <<Head/binary, Number:16/little, Rest/binary>> end),
    says("is built for " ++ Name ++ ", and this node runs on " ++ This, started(Config)).

%% Such libraries are not at hand: what is said of them is given.
a_library_for_another_c_library_is_said(Config) ->
    {ok, Bytes} = file:read_file(hd(libraries(Config))),
    Library = filename:join(proplists:get_value(dir, Config), "musl.so"),
    ok = file:write_file(Library, binary:replace(Bytes, <<0, "libc.so.6", 0>>, <<0, "libc.so", 0, 0, 0>>)),
    Said = py_install:not_loaded(bin(Library), {load_failed, "libc.so: invalid ELF header"}, "/no/where"),
    says("is built for musl, and this node uses glibc", Said).

a_library_for_a_newer_glibc_is_said(Config) ->
    Why = {load_failed, "Failed to load: /lib/libc.so.6: version `GLIBC_2.99' not found (required by x)"},
    Said = py_install:not_loaded(bin(hd(libraries(Config))), Why, "/no/where"),
    says("needs glibc 2.99, and this machine has an older one", Said).

a_library_for_another_otp_is_said(Config) ->
    Why = {bad_lib, "Library version (2.99) not compatible (with 2.16)."},
    Said = py_install:not_loaded(bin(hd(libraries(Config))), Why, "/no/where"),
    says("it needs NIF version 2.99, and OTP " ++ erlang:system_info(otp_release) ++ " has", Said),
    says("Compile erlang_python again", Said).

a_library_of_another_version_is_said(Config) ->
    rename(Config, "9.9.9"),
    says("is of another version of erlang_python than the Erlang modules", started(Config)).

two_versions_in_one_node_are_refused(Config) ->
    Other = another(Config, "9.9.9"),
    Add = "{ok, _} = " ?START ", ok = application:stop(erlang_python), true = code:add_patha(\"" ++ Other ++ "\"), ",
    says("two copies of erlang_python are in this node", run(Config, Add ++ "io:format(\"~p\", [" ?START "])")).

a_version_that_hides_another_is_warned_of(Config) ->
    Other = another(Config, "9.9.9"),
    Add = "true = code:add_pathz(\"" ++ Other ++ "\"), ",
    Output = run(Config, Add ++ "{ok, _} = " ?START ", io:format(\"~p\", [py:call(math, sqrt, [16])])"),
    says("two versions are on the code path", Output),
    says("{ok,4.0}", Output).

one_application_under_two_names_is_fine(Config) ->
    Link = filename:join([proplists:get_value(dir, Config), "link", "erlang_python"]),
    ok = filelib:ensure_dir(Link),
    ok = file:make_symlink(proplists:get_value(app, Config), Link),
    Add = "true = code:add_patha(\"" ++ filename:join(Link, "ebin") ++ "\"), ",
    Output = run(Config, Add ++ "{ok, _} = " ?START ", io:format(\"~p\", [py:call(math, sqrt, [16])])"),
    ?assertEqual(<<"{ok,4.0}">>, Output).

%% code:priv_dir/1 leads into the file of an escript.
an_escript_is_refused(Config) ->
    File = filename:join(proplists:get_value(dir, Config), "program"),
    ok = file:write_file(File, "#!/usr/bin/env escript"),
    {error, Sentence} = py_install:check(filename:join(File, "erlang_python/priv")),
    says("erlang_python can't run from inside " ++ File, Sentence),
    ok = py_install:check(filename:join(proplists:get_value(dir, Config), "not/there/priv")).

an_upgrade_of_a_running_node_is_refused(Config) ->
    Other = filename:dirname(another(Config, "9.9.9")),
    Upgrade = "{ok, _} = " ?START ", {error, Why} = release_handler:upgrade_app(erlang_python, \"" ++ Other ++ "\"), "
        "io:format(\"~ts ~0p\", [Why, py:call(math, sqrt, [16])])",
    Output = run(Config, "ok = application:start(sasl), " ++ Upgrade),
    says("can't be upgraded in a running node", Output),
    says("{ok,4.0}", Output).

%% A Python of its own, as processes beside the node are, needs the native module as a file.
the_native_module_of_the_node_comes_before_a_file(Config) ->
    [ok = file:write_file(priv(Config, "python/erlang/_native" ++ Suffix), "no library") || Suffix <- suffixes()],
    Origin = "py:eval(<<\"__import__('erlang')._native.__spec__.origin\">>)",
    says("{ok,<<\"built-in\">>}", run(Config, "{ok, _} = " ?START ", io:format(\"~p\", [" ++ Origin ++ "])")).

suffixes() ->
    [".so", ".abi3.so"] ++
        [lists:flatten([".cpython-3", Minor, "-x86_64-linux-gnu.so"]) || Minor <- ["11", "12", "13"]].

%%% The copy

%% The application as it stands in a directory of its own. What a case changes is a file, all else links.
copy(App) ->
    Ebin = filename:dirname(filename:absname(code:which(py))),
    Priv = filename:join(filename:dirname(Ebin), "priv"),
    link_files(Ebin, filename:join(App, "ebin")),
    link_files(Priv, filename:join(App, "priv")),
    link_files(filename:join(Priv, "python"), filename:join(App, "priv/python")),
    link_files(filename:join(Priv, "python/erlang"), filename:join(App, "priv/python/erlang")),
    App.

link_files(From, To) ->
    ok = filelib:ensure_path(To),
    {ok, Names} = file:list_dir(From),
    [
        ok = file:make_symlink(filename:join(From, Name), filename:join(To, Name))
     || Name <- Names, Name =/= "python", Name =/= "erlang"
    ].

priv(Config, Name) -> filename:join([proplists:get_value(app, Config), "priv", Name]).

libraries(Config) -> filelib:wildcard(priv(Config, "py_nif-*.so")).

%% Each library, whichever Python runs.
replace(Config, Change) ->
    [
        begin
            {ok, Bytes} = file:read_file(Library),
            ok = file:delete(Library),
            ok = file:write_file(Library, Change(Bytes))
        end
     || Library <- libraries(Config)
    ].

rename(Config, Version) -> rename_in(filename:join(proplists:get_value(app, Config), "ebin"), Version).

rename_in(Ebin, Version) ->
    File = filename:join(Ebin, "erlang_python.app"),
    {ok, [{application, erlang_python, Keys}]} = file:consult(File),
    ok = file:delete(File),
    New = {application, erlang_python, lists:keystore(vsn, 1, Keys, {vsn, Version})},
    ok = file:write_file(File, io_lib:format("~p.~n", [New])).

%% The ebin of another copy, which says that it is of that version, and how to upgrade to it.
another(Config, Version) ->
    Ebin = filename:join(copy(filename:join([proplists:get_value(dir, Config), "other", "erlang_python"])), "ebin"),
    ok = rename_in(Ebin, Version),
    {ok, [{_, Up, Down}]} = file:consult(filename:join(py_test:root(), "ebin/erlang_python.appup")),
    Appup = filename:join(Ebin, "erlang_python.appup"),
    _ = file:delete(Appup),
    ok = file:write_file(Appup, io_lib:format("~p.~n", [{Version, Up, Down}])),
    Ebin.

started(Config) -> run(Config, "io:format(\"~tp\", [" ?START "])").

run(Config, Expression) ->
    Args = ["-pa", filename:join(proplists:get_value(app, Config), "ebin"), "-noinput", "-eval"],
    {0, Output, _} = py_test:run_program(os:find_executable("erl"), Args ++ [Expression ++ ", halt()."], 60_000),
    Output.

says(Part, Text) ->
    %% A binary is printed in lines.
    Plain = re:replace(Text, "\\s+|\\\\\"|\">>\\s*<<\"|\"\\s*\"", " ", [global, unicode, {return, binary}]),
    ?assertNotEqual(nomatch, string:find(Plain, Part), Text).

bin(Text) -> unicode:characters_to_binary(Text).
