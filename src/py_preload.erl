%% Imports the modules of the `preload' setting, then has nothing more to do.
-module(py_preload).

-export([start_link/1]).

-spec start_link(py_config:config()) -> ignore | {error, {preload, binary(), py_error:reason()}}.
start_link(#{preload := Modules}) ->
    load(Modules).

load([]) ->
    ignore;
load([Module | Rest]) ->
    Opts = #{timeout => infinity, return => ref},
    case py:call(importlib, import_module, [Module], #{}, Opts) of
        {ok, _} -> load(Rest);
        {error, Reason} -> {error, {preload, Module, Reason}}
    end.
