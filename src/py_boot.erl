%% The boot step: what the settings ask of Python and of the native library, before `application:start' returns.
%%
%% Process: the one that starts the application, once per start, when the whole tree is up: the modules of `preload'
%% may use all of it. What is set here outlives every process of the tree, so a part that is replaced needs nothing of
%% it again. To repeat it would empty the embedded store, and undo what programs have set since.
-module(py_boot).

-export([run/1, settings/1]).

%% What it does for the user, and how; an error ends the start.
-type step() :: {unicode:chardata(), fun(() -> ok | {error, py_error:reason()})}.

-spec run(py_config:config()) -> ok | {error, Sentence :: binary()}.
run(Config) ->
    Done = each(steps(Config)),
    %% The process lives as long as the application and seldom does anything: what came back would stay with it.
    true = garbage_collect(),
    Done.

each([]) ->
    ok;
each([{What, Step} | Rest]) ->
    case Step() of
        ok -> each(Rest);
        {error, Why} -> {error, py_text:format("erlang_python: ~ts failed. ~ts", [What, py_error:format(Why)])}
    end.

%% In this order: the modules of users come last.
-spec steps(py_config:config()) -> [step()].
steps(#{redis_url := Url, preload := Modules, python_path := Dirs} = Config) ->
    [
        {"python_path", fun() -> py_path:export(Dirs) end},
        {"redis_url", fun() -> py_nif:dag_default(default(Url)) end},
        {"telling Python its settings", call('erlang._boot', settle, [settings(Config)])},
        {"looking for a wheel", call('erlang._boot', warn_of_wheel, [])}
        | [{["preload of ", Module], call(importlib, import_module, [Module])} || Module <- Modules]
    ].

default(undefined) -> <<>>;
default(Url) -> Url.

call(Module, Function, Args) ->
    fun() ->
        %% A module stays in Python.
        case py:call(Module, Function, Args, #{}, #{timeout => infinity, return => ref}) of
            {ok, _} -> ok;
            {error, _} = Error -> Error
        end
    end.

%% For `settle' of `erlang._boot', which carries out in an interpreter what concerns it. `keyboard': Erlang reads the
%% standard input of this process, unless the node was started with `-noinput', which `-detached' is, too.
-spec settings(py_config:config()) -> #{atom() => term()}.
settings(Config) -> Config#{keyboard => init:get_argument(noinput) =:= error}.
