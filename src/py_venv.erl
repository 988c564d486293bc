%% Virtual environments: made, filled, activated in the running interpreter.
%%
%% Place: behind `py:activate_venv/1', `py:deactivate_venv/0', `py:venv_info/0' and
%% `py:ensure_venv/2,3'. What touches `sys' is Python, in `erlang._venv'; what runs installers is the program
%% `_ensure.py', one at a time for an environment, of this node or of others.
%% Process: the caller's. Two callers of `ensure_venv' with one path wait for each other.
%% Never: starts a shell; writes into a directory that is neither empty nor a virtual environment.
%%
%% Activation concerns the main interpreter (and with it all workers), not sub-interpreters. Modules
%% that were imported stay imported when the environment is left: Python cannot take them back.
-module(py_venv).

-export([activate_venv/1, deactivate_venv/0, venv_info/0, ensure_venv/2, ensure_venv/3]).

-export_type([info/0, requirements/0, options/0]).

-type path() :: string() | binary().

-type info() :: #{
    active := boolean(),
    %% By `activate_venv/1', and not because the node was started with the venv's own Python.
    activated := boolean(),
    path := undefined | binary(),
    python := binary(),
    version := binary(),
    site_packages := undefined | binary()
}.

%% The path of a requirements file, or the requirements themselves (one specifier each, as in
%% `[<<"numpy>=2">>, "requests"]'; options of the installer are refused there). Of a project its
%% lock file counts, where it has one.
-type requirements() :: path() | [path()] | {requirements, path()} | {pyproject, path()}.

-type options() :: py_options:given().

-type settings() :: #{
    installer := auto | pip | uv, timeout := timeout(), extra_args := [binary()]
}.

-define(PYTHON_SIDE, <<"erlang._venv">>).
-include("py_nif.hrl").
-include_lib("kernel/include/logger.hrl").

-define(ACTIVATE_TIMEOUT, 60_000).
-define(STAMP, ".erlang_python").
%% Milliseconds that the program itself may take.
-define(SLACK, 60_000).

-spec activate_venv(path()) -> ok | {error, py_error:reason()}.
activate_venv(Path) ->
    case absolute(Path) of
        {ok, Venv} -> done(python(<<"activate">>, [Venv]));
        {error, _} = Error -> Error
    end.

%% Nothing to leave is fine. The venv whose own Python the node was started with stays.
-spec deactivate_venv() -> ok | {error, py_error:reason()}.
deactivate_venv() -> done(python(<<"deactivate">>, [])).

-spec venv_info() -> {ok, info()} | {error, py_error:reason()}.
venv_info() ->
    case python(<<"info">>, [], py_call:default_timeout()) of
        {ok, #{
            <<"active">> := Active,
            <<"activated">> := Activated,
            <<"path">> := Path,
            <<"python">> := Python,
            <<"version">> := Version,
            <<"site_packages">> := SitePackages
        }} ->
            {ok, #{
                active => Active,
                activated => Activated,
                path => optional(Path),
                python => Python,
                version => Version,
                site_packages => optional(SitePackages)
            }};
        {error, _} = Error ->
            Error
    end.

-spec ensure_venv(path(), requirements()) -> ok | {error, py_error:reason()}.
ensure_venv(Path, Requirements) -> ensure_venv(Path, Requirements, #{}).

%% Made if it is missing, filled if the requirements have changed, then activated. A second call
%% with the same requirements starts no program. What tells is the text of the requirements (and of
%% the files they include), not what a local project named in them contains.
-spec ensure_venv(path(), requirements(), options()) -> ok | {error, py_error:reason()}.
ensure_venv(Path, Requirements, Options) ->
    case {absolute(Path), settings(Options), py_requirements:read(Requirements)} of
        {{ok, Venv}, {ok, Settings}, {ok, Wanted}} ->
            Lock = {{?MODULE, Venv}, self()},
            Fill = fun() -> fill(Venv, Wanted, Settings) end,
            case global:trans(Lock, Fill, [node()]) of
                ok -> activate_venv(Venv);
                {error, _} = Error -> Error
            end;
        {{error, _} = Error, _, _} ->
            Error;
        {_, {error, _} = Error, _} ->
            Error;
        {_, _, {error, _} = Error} ->
            Error
    end.

-spec fill(binary(), py_requirements:wanted(), settings()) -> ok | {error, py_error:reason()}.
fill(Venv, Wanted, Settings) ->
    case python(<<"running">>, []) of
        {ok, #{<<"executable">> := Python, <<"version">> := Version}} ->
            Stamp = stamp(Version, Wanted, Settings),
            case is_file(exe(Venv)) andalso file:read_file(filename:join(Venv, ?STAMP)) of
                {ok, Stamp} -> ok;
                _ -> fill(Venv, Python, Wanted, Stamp, Settings)
            end;
        {error, _} = Error ->
            Error
    end.

fill(Venv, Python, Wanted, Stamp, Settings) ->
    case {fits(Venv), installer(Python, Wanted, Settings)} of
        {ok, {ok, Installer}} -> make(Venv, Python, Wanted, Stamp, Installer, Settings);
        {{error, _} = Error, _} -> Error;
        {ok, {error, _} = Error} -> Error
    end.

%% Says which requirements the environment holds. A change detector, not a safeguard.
stamp(Version, Wanted, #{extra_args := Extra}) ->
    Digest = erlang:md5(term_to_binary({Version, py_requirements:digest(Wanted), Extra})),
    <<"requirements ", (binary:encode_hex(Digest))/binary, "\n">>.

%% One that is whole must be of this Python. What an interrupted creation has left is made again.
fits(Venv) ->
    Whole = is_file(filename:join(Venv, "pyvenv.cfg")) andalso is_file(exe(Venv)),
    case Whole andalso not is_file(filename:join(Venv, ?STAMP "-begun")) of
        true -> checked(python(<<"check">>, [Venv]));
        false -> ok
    end.

checked({ok, _}) -> ok;
checked({error, _} = Error) -> Error.

%%% Making and filling it: in a program of its own, which takes the lock of the environment

make(Venv, Python, Wanted, Stamp, Installer, #{timeout := Timeout, extra_args := Extra}) ->
    {Kind, File, Specs} = what(Wanted),
    Plan = [
        {venv, Venv},
        {python, Python},
        {installer, Installer},
        {kind, Kind},
        {file, File},
        {specs, Specs},
        {extra, Extra},
        {stamp, Stamp},
        {seconds, Timeout}
    ],
    Script = filename:join([py_runtime:priv_dir(), "python", "erlang", "_ensure.py"]),
    Clean = ["PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX", "PIP_USER"],
    Options = #{
        %% The program keeps the time of each step by itself, and waits for the lock before.
        timeout => most(Timeout),
        env => [{Name, false} || Name <- Clean],
        input => [json(Plan), $\n]
    },
    case py_command:run(Python, ["-I", "-S", Script], Options) of
        {ok, _} -> ok;
        {error, timeout} -> {error, timeout};
        {error, {posix, Code}} -> bad("~ts cannot be run: ~ts", [Python, file:format_error(Code)]);
        {error, {exit_status, 4, _}} -> {error, timeout};
        {error, {exit_status, 3, Said}} -> bad("~ts", [sentence(Said)]);
        {error, {exit_status, Status, Said}} ->
            bad("~ts ~ts ended with status ~b:~n~ts", [Python, Script, Status, py_command:last_words(Said)])
    end.

%% For the lock, pip's or uv's making of it, and the filling.
most(infinity) -> infinity;
most(Timeout) -> 3 * Timeout + ?SLACK.

what({file, File, _}) -> {<<"file">>, File, []};
what({project, File, _}) -> {<<"project">>, File, []};
what({specs, []}) -> {<<"none">>, <<>>, []};
what({specs, Specs}) -> {<<"specs">>, <<>>, Specs}.

sentence(Said) ->
    py_command:last_words(lists:last(binary:split(Said, <<0>>, [global]))).

%% Texts, lists of texts and a time: `json' came with OTP 27.
json([{_, _} | _] = Plan) ->
    [${, lists:join($,, [[json(atom_to_binary(Name)), $:, json(Name, Value)] || {Name, Value} <- Plan]), $}];
json(Text) when is_binary(Text) ->
    [$", [escaped(Char) || <<Char>> <= Text], $"];
json(Texts) when is_list(Texts) ->
    [$[, lists:join($,, [json(Text) || Text <- Texts]), $]].

json(seconds, infinity) -> "null";
json(seconds, Timeout) -> io_lib:format("~.3f", [Timeout / 1000]);
json(_Name, Value) -> json(Value).

escaped(Char) when Char < 32; Char =:= $"; Char =:= $\\ -> io_lib:format("\\u~4.16.0b", [Char]);
escaped(Char) -> Char.

%%% Which installer

%% Its path, or nothing for pip.
installer(_Python, _Wanted, #{installer := pip}) ->
    {ok, <<>>};
%% Nothing is fetched for nothing; but with uv no pip is put into the environment.
installer(_Python, {specs, []}, _Settings) ->
    known_or_pip();
installer(Python, _Wanted, #{installer := uv}) ->
    case py_uv:find([Python]) of
        {ok, Uv} -> {ok, Uv};
        {error, Why} -> bad("the installer is uv: ~ts", [Why])
    end;
installer(Python, _Wanted, #{installer := auto, extra_args := Extra}) ->
    %% Who installs without the network gets no uv from there.
    Offline = lists:member(<<"--no-index">>, Extra) orelse lists:member(<<"--offline">>, Extra) orelse is_offline(),
    case Offline of
        true -> known_or_pip();
        false -> found_or_pip(py_uv:find([Python]))
    end.

is_offline() -> lists:any(fun(Name) -> os:getenv(Name, "") =/= "" end, ["UV_OFFLINE", "PIP_NO_INDEX"]).

known_or_pip() ->
    case py_uv:known() of
        {ok, Uv} -> {ok, Uv};
        none -> {ok, <<>>}
    end.

found_or_pip({ok, Uv}) ->
    {ok, Uv};
found_or_pip({error, Why}) ->
    ?LOG_NOTICE("erlang_python: pip installs, since ~ts", [Why]),
    {ok, <<>>}.

%%% Arguments

-spec settings(term()) -> {ok, settings()} | {error, {bad_argument, binary()}}.
settings(Options) when is_map(Options) ->
    case py_options:check(venv, Options) of
        {ok, #{installer := Installer, timeout := Timeout} = Checked} ->
            Extra = maps:get(extra_args, Checked, []),
            {ok, #{installer => Installer, timeout => Timeout, extra_args => Extra}};
        {error, _} = Error ->
            Error
    end;
settings(Options) ->
    bad("the options must be a map, got ~0tP", [Options, 10]).

absolute(Path) ->
    case py_text:one(Path) of
        {ok, Text} -> {ok, py_text:absolute(Text)};
        error -> bad("the path of a virtual environment must be a string or binary, got ~0tP", [Path, 10])
    end.

%%% Small things

%% What the Python side refuses with a ValueError is a sentence about an argument.
python(Function, Args) -> python(Function, Args, ?ACTIVATE_TIMEOUT).

python(Function, Args, Timeout) ->
    case py:call(?PYTHON_SIDE, Function, Args, #{}, Timeout) of
        {ok, Value} -> {ok, Value};
        {error, {'ValueError', Message}} -> {error, {bad_argument, Message}};
        {error, Reason} -> {error, Reason}
    end.

%% The path of the main interpreter has changed; those of the pool follow.
done({ok, _}) -> py_subinterp_pool:new_path();
done({error, _} = Error) -> Error.

optional(none) -> undefined;
optional(Text) when is_binary(Text) -> Text.

exe(Venv) -> filename:join([Venv, "bin", "python"]).

is_file(Path) -> filelib:is_regular(Path).

-spec bad(io:format(), [term()]) -> {error, {bad_argument, binary()}}.
bad(Format, Args) ->
    {error, {bad_argument, py_text:format(Format, Args)}}.
