%% Owns Python: finds it, loads the library made for it, starts it; at the node's end lets Python
%% programs finish.
%%
%% Python is started once per node and stays: stopping the application only takes its work away.
-module(py_runtime).

-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/1, refuse/0, python/0, priv_dir/0]).

-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-spec start_link(py_config:config()) -> gen_server:start_ret().
start_link(Config) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Config, []).

%% No new work from here on.
-spec refuse() -> ok.
refuse() ->
    case py_nif:is_loaded() of
        true -> py_nif:clear_main_pool();
        false -> ok
    end.

%% The Python of this node, as `py_python' found it.
-spec python() -> py_python:python().
python() ->
    persistent_term:get(py_python).

-spec init(py_config:config()) -> {ok, py_config:config()} | {stop, binary()}.
init(Config) ->
    process_flag(trap_exit, true),
    case start(Config) of
        ok -> {ok, Config};
        {error, Sentence} -> {stop, Sentence}
    end.

start(Config) ->
    Priv = priv_dir(),
    case py_install:check(Priv) of
        ok -> maybe_found(py_python:find(Config, Priv), Config, Priv);
        {error, _} = Error -> Error
    end.

maybe_found({ok, Python}, Config, Priv) ->
    ok = explain(Python),
    case load(Python, Priv) of
        ok ->
            ok = py_python:warn_if_newer(Python),
            run(Python, Config, Priv);
        {error, _} = Error -> Error
    end;
maybe_found({error, _} = Error, _Config, _Priv) ->
    Error.

%% One line where the choice was ours; what a user has named needs none.
explain(#{detected := true, executable := Executable, version := {Major, Minor}, chosen := Why}) ->
    ?LOG_NOTICE("erlang_python: uses Python ~b.~b, ~ts, ~ts. {python, Path} names another", [Major, Minor, Executable, Why]);
explain(_Python) ->
    ok.

%% The loader opens libpython for everyone, then the library for this Python is loaded, once.
load(#{libpython := LibPython} = Python, Priv) ->
    case py_nif:is_loaded() of
        true ->
            same_python(Python);
        false ->
            case py_loader:load(filename:join(Priv, "py_loader")) of
                ok -> open(py_loader:open(LibPython), Python, Priv);
                {error, Why} -> {error, not_loaded(filename:join(Priv, "py_loader.so"), Why, Priv)}
            end
    end.

open({ok, Version}, #{version := {Major, Minor}, library := Library} = Python, Priv) ->
    Wanted = iolist_to_binary(io_lib:format("~b.~b.", [Major, Minor])),
    case string:prefix(Version, Wanted) of
        nomatch ->
            {error, sentence("libpython says it is ~ts, not ~ts", [Version, Wanted])};
        _ ->
            case py_nif:init(filename:rootname(Library)) of
                ok -> right_library(py_nif:built_for(), Python, Priv);
                {error, {Why, _}} when Why =:= upgrade; Why =:= reload ->
                    {error, sentence("py_nif was loaded again, without its library: restart this node", [])};
                {error, Why} -> {error, not_loaded(Library, Why, Priv)}
            end
    end;
open({error, Text}, #{libpython := LibPython}, _Priv) ->
    {error, sentence("~ts can't be opened: ~ts", [LibPython, Text])}.

%% One that was copied under the name of another would take its objects for something else.
right_library({Major, Minor, Free}, #{version := {Major, Minor}, free_threaded := Free}, _Priv) ->
    keep_loaded();
right_library({Major, Minor, Free}, #{library := Library, executable := Executable}, Priv) ->
    ok = keep_loaded(),
    Text = "~ts was built for Python ~b.~b~ts, not for ~ts: ~ts. Then restart the node",
    {error, sentence(Text, [Library, Major, Minor, [$t || Free], Executable, py_install:how_to_install(Executable, Priv)])}.

not_loaded(Library, Why, Priv) ->
    sentence("~ts", [py_install:not_loaded(py_text:path(Library), Why, Priv)]).

%% Loaded again, the module would be without its library, and the threads of that one without it: nothing but
%% a new node would help. So OTP refuses to load it again, and says why.
keep_loaded() ->
    true = code:stick_mod(py_nif),
    ok.

same_python(#{version := {Major, Minor}, free_threaded := Free, executable := Executable}) ->
    case py_nif:built_for() of
        {Major, Minor, Free} ->
            ok;
        {M, N, _} ->
            Text = "this node runs Python ~b.~b already: restart it to use ~ts",
            {error, sentence(Text, [M, N, Executable])}
    end.

run(#{executable := Executable} = Python, Config, Priv) ->
    %% The BEAM ignores SIGCHLD, and then no child's exit code can be read.
    ok = os:set_signal(sigchld, default),
    #{max_depth := Depth, switch_interval_us := Switch} = Config,
    Package = to_binary(filename:join(Priv, "python")),
    case py_nif:start(Executable, Package, Depth, Switch, group_leader()) of
        {ok, _} ->
            persistent_term:put(py_python, Python),
            ok;
        {error, Text} ->
            {error, sentence("Python does not start: ~ts", [Text])}
    end.

-spec handle_call(term(), gen_server:from(), State) -> {reply, {error, unknown}, State}.
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

-spec handle_cast(term(), State) -> {noreply, State}.
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

-spec handle_info(term(), State) -> {noreply, State}.
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).

%% Only when the node itself ends: `atexit' functions run and Python's threads are joined.
-spec terminate(term(), py_config:config()) -> ok.
terminate(_Reason, #{stop_timeout := Limit}) ->
    case init:get_status() of
        {stopping, _} ->
            %% The logger of Python's records has ended before this process.
            ok = py_nif:set_process(logger, self()),
            _InTime = py_nif:finish(Limit),
            py_logger:drain();
        _ ->
            ok
    end.

%% Where the native libraries and the Python package are.
-spec priv_dir() -> file:filename_all().
priv_dir() ->
    case code:priv_dir(erlang_python) of
        {error, bad_name} ->
            %% Started with a bare -pa: beside the ebin this module comes from.
            Ebin = filename:dirname(code:which(?MODULE)),
            filename:join(filename:dirname(Ebin), "priv");
        Dir ->
            Dir
    end.

sentence(Format, Args) ->
    unicode:characters_to_binary(io_lib:format("erlang_python: " ++ Format, Args)).

to_binary(Path) -> unicode:characters_to_binary(Path).
