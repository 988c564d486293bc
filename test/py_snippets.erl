%% Runs the code blocks of a page of documentation, top to bottom.
%%
%% One process runs a page: its variables, its Python names and its mailbox live through the page.
%%
%% erlang  expressions, evaluated one after another. `%% => Pattern' after one says what it gives
%%         (further lines of the pattern begin with `%%    '). A block that begins with `-module'
%%         is compiled and loaded. A value [{erlang_python, Settings}] must be a valid configuration.
%% python  a module, named by the first line: `# name.py'. It can be imported from then on.
%% elixir  all blocks of the page as one script; `# => Pattern' as above. Needs `elixir'.
%% sh      is not run: each line must begin with a command that exists.
%% text    is only shown. Any other tag is a mistake.
-module(py_snippets).

-export([check/2, blocks/1]).

-type block() :: {Tag :: string(), Line :: pos_integer(), Text :: string()}.

-define(LIMIT, 120_000).

%% Fails with the line of the page that is wrong. `Scratch' is a directory for its modules;
%% `elixir' runs a list of Elixir blocks, `root' is the project.
-spec check(file:filename(), #{scratch := file:filename(), root := file:filename(), elixir := fun()}) ->
    ok.
check(File, #{scratch := Scratch} = Where) ->
    Blocks = blocks(File),
    ok = filelib:ensure_path(Scratch),
    {_, Monitor} = spawn_monitor(fun() -> exit(page(Blocks, Where)) end),
    receive
        {'DOWN', Monitor, process, _, ok} -> ok;
        {'DOWN', Monitor, process, _, Why} -> error({filename:basename(File), Why})
    after ?LIMIT -> error({filename:basename(File), no_end})
    end,
    (maps:get(elixir, Where))([{Line, Text} || {"elixir", Line, Text} <- Blocks]).

%% The fenced blocks of a page, each with the line its text begins in.
-spec blocks(file:filename()) -> [block()].
blocks(File) ->
    {ok, Bytes} = file:read_file(File),
    Lines = string:split(unicode:characters_to_list(Bytes), "\n", all),
    outside(lists:zip(lists:seq(1, length(Lines)), Lines)).

outside([]) -> [];
outside([{N, "```" ++ Tag} | Rest]) -> inside(Rest, string:trim(Tag), N + 1, []);
outside([_ | Rest]) -> outside(Rest).

inside([{_, "```"} | Rest], Tag, Line, Text) ->
    [{Tag, Line, lists:append(lists:reverse(Text))} | outside(Rest)];
inside([{_, Text} | Rest], Tag, Line, Before) ->
    inside(Rest, Tag, Line, [Text ++ "\n" | Before]);
inside([], Tag, Line, _) ->
    error({line, Line, {Tag, "a block without an end"}}).

page(Blocks, Where) ->
    Run = fun(Block, Names) -> block(Block, Names, Where) end,
    try lists:foldl(Run, erl_eval:new_bindings(), Blocks) of
        _Names -> ok
    catch
        error:{line, Line, Why} -> {line, Line, Why}
    end.

block({"erlang", Line, "-module(" ++ _ = Text}, Names, _Where) ->
    ok = compile(Line, Text),
    Names;
block({"erlang", Line, Text}, Names, _Where) ->
    lists:foldl(fun evaluate/2, Names, steps(Line, Text));
block({"python", Line, Text}, Names, #{scratch := Scratch}) ->
    ok = import(Line, Text, Scratch),
    Names;
block({"sh", Line, Text}, Names, #{root := Root}) ->
    Commands = string:split(string:replace(Text, "\\\n", " ", all), "\n", all),
    lists:foreach(fun(Command) -> ok = command(Line, lists:flatten(Command), Root) end, Commands),
    Names;
block({Tag, _Line, _Text}, Names, _Where) when Tag =:= "elixir"; Tag =:= "text" ->
    Names;
block({Tag, Line, _Text}, _Names, _Where) ->
    error({line, Line - 1, {unknown_tag, Tag}}).

%% ---- erlang

%% Expressions with what they must give: `{Line, Tokens, Pattern | none}'.
steps(Line, Text) ->
    case erl_scan:string(Text, Line, [return_comments]) of
        {ok, Tokens, _} -> split(Tokens, []);
        {error, {At, _, Why}, _} -> error({line, At, erl_scan:format_error(Why)})
    end.

split([], []) ->
    [];
split([], [Token | _]) ->
    error({line, erl_scan:line(Token), "an expression without its full stop"});
split([{comment, _, "%% =>" ++ _} = Token | _], []) ->
    error({line, erl_scan:line(Token), "a pattern without its expression"});
split([{comment, _, _} | Rest], Expression) ->
    split(Rest, Expression);
split([{dot, _} = Dot | Rest], Expression) ->
    Tokens = lists:reverse([Dot | Expression]),
    {Pattern, After} = pattern(Rest),
    [{erl_scan:line(hd(Tokens)), Tokens, Pattern} | split(After, [])];
split([Token | Rest], Expression) ->
    split(Rest, [Token | Expression]).

pattern([{comment, _, "%% =>" ++ Text} | Rest]) -> pattern(Rest, Text);
pattern(Rest) -> {none, Rest}.

pattern([{comment, _, "%%    " ++ More} | Rest], Text) -> pattern(Rest, Text ++ " " ++ More);
pattern(Rest, Text) -> {Text, Rest}.

evaluate({Line, Tokens, Pattern}, Names) ->
    Expressions = parse(Line, Tokens),
    {Value, After} =
        try erl_eval:exprs(Expressions, Names) of
            {value, Result, New} -> {Result, New}
        catch
            Class:Reason:Stack -> error({line, Line, {Class, Reason, Stack}})
        end,
    ok = compare(Line, Value, Pattern, After),
    ok = configuration(Line, Value),
    After.

parse(Line, Tokens) ->
    case erl_parse:parse_exprs(Tokens) of
        {ok, Expressions} -> Expressions;
        {error, {_, _, Why}} -> error({line, Line, erl_parse:format_error(Why)})
    end.

compare(_Line, _Value, none, _Names) ->
    ok;
compare(Line, Value, Text, Names) ->
    {ok, Tokens, _} = erl_scan:string(Text ++ ".", Line),
    [Wanted] = parse(Line, Tokens),
    case matches(Wanted, Value, Names) of
        true -> ok;
        false -> error({line, Line, {gave, Value, instead_of, string:trim(Text)}})
    end.

%% What has no variable in it must be equal; else it must match, `=>' standing for `:='.
matches(Wanted, Value, Names) ->
    try erl_parse:normalise(Wanted) of
        Term -> Term =:= Value
    catch
        _:_ ->
            Anno = erl_anno:new(1),
            Match = {match, Anno, as_pattern(Wanted), {var, Anno, '$value'}},
            try erl_eval:expr(Match, erl_eval:add_binding('$value', Value, Names)) of
                {value, _, _} -> true
            catch
                error:{badmatch, _} -> false
            end
    end.

as_pattern({map_field_assoc, Anno, Key, Value}) ->
    {map_field_exact, Anno, as_pattern(Key), as_pattern(Value)};
as_pattern(Form) when is_tuple(Form) -> list_to_tuple(as_pattern(tuple_to_list(Form)));
as_pattern([Head | Tail]) -> [as_pattern(Head) | as_pattern(Tail)];
as_pattern(Form) -> Form.

configuration(Line, [{erlang_python, Settings}]) ->
    case py_config:check(Settings) of
        {ok, _} -> ok;
        {error, Sentence} -> error({line, Line, Sentence})
    end;
configuration(_Line, _Value) ->
    ok.

compile(Line, Text) ->
    {ok, Tokens, _} = erl_scan:string(Text, Line),
    case compile:forms(forms(Line, Tokens, []), [return, export_all, nowarn_export_all]) of
        {ok, Module, Beam, []} ->
            {module, Module} = code:load_binary(Module, "documentation", Beam),
            ok;
        Wrong ->
            error({line, Line, Wrong})
    end.

forms(_Line, [], []) ->
    [];
forms(Line, [{dot, _} = Dot | Rest], Form) ->
    case erl_parse:parse_form(lists:reverse([Dot | Form])) of
        {ok, Parsed} -> [Parsed | forms(Line, Rest, [])];
        {error, {At, _, Why}} -> error({line, At, erl_parse:format_error(Why)})
    end;
forms(Line, [Token | Rest], Form) ->
    forms(Line, Rest, [Token | Form]).

%% ---- python

import(Line, Text, Scratch) ->
    case re:run(Text, "^# (\\w+)\\.py\n", [{capture, all_but_first, list}]) of
        {match, [Name]} ->
            ok = file:write_file(filename:join(Scratch, Name ++ ".py"), unicode:characters_to_binary(Text)),
            Place = "sys.path[0:1] != [place] and sys.path.insert(0, place)",
            ok = py:exec(["import sys, importlib; importlib.invalidate_caches()\n"]),
            {ok, _} = py:eval(Place, #{place => unicode:characters_to_binary(Scratch)}),
            case py:reload(list_to_binary(Name)) of
                ok -> ok;
                {error, Why} -> error({line, Line, Why})
            end;
        nomatch ->
            error({line, Line, "the first line of a Python block is `# name.py'"})
    end.

%% ---- sh

command(Line, Text, Root) ->
    Words = [Word || Word <- string:lexemes(hd(string:split(Text ++ " ", "#")), " \t"), Word =/= ""],
    %% Settings before the command: PYTHON=3.12 ./dev test
    case lists:dropwhile(fun(Word) -> re:run(Word, "^\\w+=") =/= nomatch end, Words) of
        [] -> ok;
        ["./dev" | Rest] -> dev_command(Line, Rest, Root);
        ["cd" | _] -> ok;
        [Program | _] -> executable(Line, Program, Root)
    end.

dev_command(_Line, [], _Root) ->
    ok;
dev_command(Line, [Command | _], Root) ->
    {ok, Dev} = file:read_file(filename:join(Root, "dev")),
    %% Its line in the `case' of the commands.
    case re:run(Dev, "^    " ++ Command ++ "\\)", [multiline]) of
        {match, _} -> ok;
        nomatch -> error({line, Line, {no_such_dev_command, Command}})
    end.

executable(Line, Program, Root) ->
    %% These may be missing where the tests run; the documentation is right all the same.
    Known = lists:member(Program, ["elixir", "mix", "git", "pip", "python", "uvicorn"]),
    Exists = os:find_executable(Program) =/= false orelse filelib:is_file(filename:join(Root, Program)),
    case Known orelse Exists of
        true -> ok;
        false -> error({line, Line, {no_such_command, Program}})
    end.
