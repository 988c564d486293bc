%% What shall be installed in a virtual environment: read, checked, and digested.
%%
%% Place: the arguments of `py:ensure_venv/2,3', on their way to py_venv.
%% Process: the caller's.
%% Never: lets a requirement of a list be an option of the installer.
-module(py_requirements).

-export([read/1, digest/1, is_empty/1]).

-export_type([wanted/0]).

-type wanted() ::
    {file, Path :: binary(), Digest :: binary()}
    | {project, Path :: binary(), Digest :: binary()}
    | {specs, [binary()]}.

%% Beside a pyproject.toml: what exactly is installed. The first one that is there counts.
-define(LOCKS, ["uv.lock", "pylock.toml"]).

%% Files that include one another are read this deep.
-define(MAX_INCLUDES, 16).

%% A string or binary is the path of a requirements file, a list of them the requirements. `{requirements, File}' and
%% `{pyproject, File}' say which kind of file it is.
-spec read(term()) -> {ok, wanted()} | {error, {bad_argument, binary()}}.
read([]) ->
    {ok, {specs, []}};
read({requirements, [First | _] = Path}) when is_integer(First) ->
    read(Path);
read({requirements, Path}) when is_binary(Path) ->
    read(Path);
read({pyproject, Path}) ->
    case py_text:one(Path) of
        {ok, Text} -> read_project(py_text:absolute(Text));
        error -> bad("the project must be the path of a pyproject.toml, got ~0tP", [Path, 20])
    end;
read([First | _] = Specs) when is_binary(First); is_list(First) ->
    case py_text:all(Specs) of
        {ok, Texts} -> read_specs(Texts, []);
        error -> bad("the requirements must be strings or binaries, got ~0tP", [Specs, 20])
    end;
read(Path) ->
    case py_text:one(Path) of
        {ok, Text} ->
            File = py_text:absolute(Text),
            case file_digest(File, ?MAX_INCLUDES) of
                {ok, Digest} -> {ok, {file, File, Digest}};
                {error, _} = Error -> Error
            end;
        error ->
            bad("the requirements must be the path of a file, a list, {requirements, File} or {pyproject, File}, got ~0tP", [
                Path, 20
            ])
    end.

%% Installers know the file by its name alone.
read_project(File) ->
    Dir = filename:dirname(File),
    case {filename:basename(File), file:read_file(File)} of
        {<<"pyproject.toml">>, {ok, Text}} ->
            Locks = [Lock || Name <- ?LOCKS, {ok, Lock} <- [file:read_file(filename:join(Dir, Name))]],
            {ok, {project, File, erlang:md5([<<"project">>, Text | lists:sublist(Locks, 1)])}};
        {<<"pyproject.toml">>, {error, Code}} ->
            bad("~ts cannot be read: ~ts", [File, file:format_error(Code)]);
        {_, _} ->
            bad("~ts is not named pyproject.toml", [File])
    end.

-spec digest(wanted()) -> binary().
digest({_Kind, _Path, Digest}) -> Digest;
digest({specs, Specs}) -> erlang:md5(lists:join($\n, Specs)).

-spec is_empty(wanted()) -> boolean().
is_empty({specs, Specs}) -> Specs =:= [];
is_empty({_Kind, _, _}) -> false.

read_specs([], Done) ->
    {ok, {specs, lists:reverse(Done)}};
read_specs([Text | Rest], Done) ->
    Spec = string:trim(Text),
    case refused(Spec) of
        none -> read_specs(Rest, [Spec | Done]);
        Why -> bad("the requirement ~tp is refused: ~ts", [Spec, Why])
    end.

%% In a requirements file a line may be an option, hold options, or go on in the next line.
refused(<<>>) ->
    "it is empty";
refused(<<"-", _/binary>>) ->
    "it is an option; give it in extra_args";
refused(Spec) ->
    Options = re:replace(Spec, "\\s--hash[=\\s]\\S+", "", [global, unicode, {return, binary}]),
    %% Installers read lines as `str.splitlines' does, which ends them at more characters than a newline.
    Lines = "(?!\\t)\\p{Cc}|[\\x{2028}\\x{2029}]|\\\\$",
    case {re:run(Spec, Lines, [unicode]), re:run(Options, "[\\s\\p{Z}]-", [unicode])} of
        {nomatch, nomatch} -> none;
        {{match, _}, _} -> "it is more than one line, or holds a control character";
        {_, {match, _}} -> "it holds an option; give it in extra_args"
    end.

%% Over the text of the file and of those it includes.
file_digest(File, 0) ->
    bad("the requirements files include one another more than ~b deep, at ~ts", [?MAX_INCLUDES, File]);
file_digest(File, Left) ->
    case file:read_file(File) of
        {ok, Text} -> digest_includes(includes(File, Text), Left - 1, [Text]);
        {error, Code} -> bad("~ts cannot be read: ~ts", [File, file:format_error(Code)])
    end.

digest_includes([], _, Parts) ->
    {ok, erlang:md5(lists:reverse(Parts))};
digest_includes([File | Rest], Left, Parts) ->
    case file_digest(File, Left) of
        {ok, Digest} -> digest_includes(Rest, Left, [Digest | Parts]);
        {error, _} = Error -> Error
    end.

includes(File, Text) ->
    Option = "^\\s*(?:-r|-c|--requirement|--constraint)[=\\s]*(\\S+)",
    case re:run(Text, Option, [global, multiline, {capture, [1], binary}]) of
        {match, Names} ->
            Dir = filename:dirname(File),
            %% One at an URL is the installer's business.
            [filename:join(Dir, Name) || [Name] <- Names, binary:match(Name, <<"://">>) =:= nomatch];
        nomatch ->
            []
    end.

bad(Format, Args) ->
    {error, {bad_argument, py_text:format(Format, Args)}}.
