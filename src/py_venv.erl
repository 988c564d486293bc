%% Virtual environments: made, filled, activated in the running interpreter.
%%
%% Place: behind `py:activate_venv/1', `py:deactivate_venv/0', `py:venv_info/0' and
%% `py:ensure_venv/2,3'. What touches `sys' is Python, in `erlang._venv'; what runs a program is here.
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
%% `[<<"numpy>=2">>, "requests"]'; options of the installer are refused there).
-type requirements() :: path() | [path()].

-type options() :: py_options:given().

-type settings() :: #{
    installer := pip | {uv, string()}, timeout := timeout(), extra_args := [binary()]
}.

-define(PYTHON_SIDE, <<"erlang._venv">>).
-include("py_nif.hrl").

-define(ACTIVATE_TIMEOUT, 60_000).
-define(STAMP, ".erlang_python").
%% How much of the installer's output goes into the error.
-define(TAIL, 2_000).

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
                {ok, Stamp} ->
                    ok;
                _ ->
                    in_order([
                        fun() -> make(Venv, Python, Wanted, Settings) end,
                        fun() -> install(Venv, Wanted, Settings) end,
                        fun() -> write(filename:join(Venv, ?STAMP), Stamp) end
                    ])
            end;
        {error, _} = Error ->
            Error
    end.

in_order([]) ->
    ok;
in_order([Step | Rest]) ->
    case Step() of
        ok -> in_order(Rest);
        {error, _} = Error -> Error
    end.

%% Says which requirements the environment holds. A change detector, not a safeguard.
stamp(Version, Wanted, #{extra_args := Extra}) ->
    Digest = erlang:md5(term_to_binary({Version, py_requirements:digest(Wanted), Extra})),
    <<"requirements ", (binary:encode_hex(Digest))/binary, "\n">>.

%%% Making it

make(Venv, Python, Wanted, Settings) ->
    case {is_file(filename:join(Venv, "pyvenv.cfg")), file:list_dir(Venv)} of
        {false, {ok, [_ | _]}} ->
            bad("~ts exists and is not a virtual environment (it has no pyvenv.cfg)", [Venv]);
        {false, _} ->
            create(Venv, Python, Settings);
        {true, _} ->
            %% A creation that was interrupted left the file without the executable.
            case is_file(exe(Venv)) of
                true -> complete(Venv, Python, Wanted, Settings);
                false -> create(Venv, Python, Settings)
            end
    end.

%% One that uv or `--without-pip' made gets its pip only when pip is to be used.
complete(Venv, Python, Wanted, #{installer := Installer} = Settings) ->
    case python(<<"check">>, [Venv]) of
        {ok, SitePackages} when is_binary(SitePackages) ->
            HasPip = filelib:is_dir(filename:join(SitePackages, "pip")),
            case HasPip orelse Installer =/= pip orelse py_requirements:is_empty(Wanted) of
                true -> ok;
                false -> create(Venv, Python, Settings)
            end;
        {error, _} = Error ->
            Error
    end.

create(Venv, Python, #{installer := Installer} = Settings) ->
    WithoutPip = [<<"--without-pip">> || Installer =/= pip],
    run(Python, [<<"-m">>, <<"venv">>] ++ WithoutPip ++ [<<"--">>, Venv], Settings).

%%% Filling it

install(Venv, Wanted, Settings) ->
    case {py_requirements:is_empty(Wanted), Wanted} of
        {true, _} ->
            ok;
        {false, {file, File, _}} ->
            run_installer(Venv, File, Settings);
        {false, {specs, Specs}} ->
            %% In a file none of them can be taken for an option of the installer.
            File = filename:join(Venv, ?STAMP "-requirements.txt"),
            Result = in_order([
                fun() -> write(File, [[Spec, $\n] || Spec <- Specs]) end,
                fun() -> run_installer(Venv, File, Settings) end
            ]),
            _ = file:delete(File),
            Result
    end.

run_installer(Venv, File, #{installer := pip, extra_args := Extra} = Settings) ->
    Args = [<<"-m">>, <<"pip">>, <<"install">>, <<"--disable-pip-version-check">>, <<"--no-input">>],
    run(exe(Venv), Args ++ Extra ++ [<<"-r">>, File], Settings);
run_installer(Venv, File, #{installer := {uv, Uv}, extra_args := Extra} = Settings) ->
    Args = [<<"pip">>, <<"install">>, <<"--python">>, exe(Venv)],
    run(Uv, Args ++ Extra ++ [<<"-r">>, File], Settings).

-spec run(path(), [binary()], settings()) -> ok | {error, py_error:reason()}.
run(Program, Args, #{timeout := Timeout}) ->
    Clean = ["PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX", "PIP_USER"],
    Options = #{
        timeout => Timeout,
        env => [{Name, false} || Name <- Clean],
        kill => fun(OsPid) -> python(<<"kill_group">>, [OsPid]) end
    },
    case py_command:run(Program, Args, Options) of
        {ok, _Output} ->
            ok;
        {error, timeout} ->
            {error, timeout};
        {error, {posix, Code}} ->
            bad("~ts cannot be run: ~ts", [Program, file:format_error(Code)]);
        {error, {exit_status, Status, Output}} ->
            Command = lists:join($\s, [Program | lists:map(fun without_password/1, Args)]),
            bad("~ts ended with status ~b:~n~ts", [Command, Status, tail(Output)])
    end.

%% The error goes into logs: of `https://name:password@host' the part before the host is left out, as pip does.
without_password(Arg) ->
    re:replace(Arg, "://[^/\\s]*@", "://****@", [global, {return, binary}]).

tail(Output) ->
    Text =
        case unicode:characters_to_binary(Output) of
            Valid when is_binary(Valid) -> Valid;
            _ -> unicode:characters_to_binary(Output, latin1)
        end,
    Trimmed = string:trim(Text),
    string:slice(Trimmed, max(0, string:length(Trimmed) - ?TAIL)).

%%% Arguments

-spec settings(term()) -> {ok, settings()} | {error, {bad_argument, binary()}}.
settings(Options) when is_map(Options) ->
    case py_options:check(venv, Options) of
        {ok, #{installer := Which, timeout := Timeout} = Checked} ->
            case installer(Which) of
                {ok, Program} ->
                    Extra = maps:get(extra_args, Checked, []),
                    {ok, #{installer => Program, timeout => Timeout, extra_args => Extra}};
                {error, _} = Error ->
                    Error
            end;
        {error, _} = Error ->
            Error
    end;
settings(Options) ->
    bad("the options must be a map, got ~tP", [Options, 10]).

installer(Which) when Which =:= auto; Which =:= uv ->
    case os:find_executable("uv") of
        false when Which =:= auto -> {ok, pip};
        false -> bad("installer is uv, and there is no uv on the PATH", []);
        Uv -> {ok, {uv, Uv}}
    end;
installer(Other) ->
    {ok, Other}.

absolute(Path) ->
    case py_text:one(Path) of
        {ok, Text} -> {ok, py_text:absolute(Text)};
        error -> bad("the path of a virtual environment must be a string or binary, got ~tP", [Path, 10])
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

write(File, Text) ->
    case file:write_file(File, Text) of
        ok -> ok;
        {error, Code} -> bad("~ts cannot be written: ~ts", [File, file:format_error(Code)])
    end.

-spec bad(io:format(), [term()]) -> {error, {bad_argument, binary()}}.
bad(Format, Args) ->
    {error, {bad_argument, py_text:format(Format, Args)}}.
