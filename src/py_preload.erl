%% Imports the modules of the `preload' setting, then has nothing more to do.
-module(py_preload).

-export([start_link/1]).

-spec start_link(py_config:config()) -> ignore | {error, {preload, binary(), py_error:reason()}}.
start_link(#{preload := Modules}) ->
    load(Modules).

load([]) ->
    ignore;
load([Module | Rest]) ->
    case py:call(importlib, import_module, [Module], #{}, infinity) of
        {ok, _} -> load(Rest);
        {error, {not_convertible, _}} -> load(Rest);
        {error, Reason} -> {error, {preload, Module, Reason}}
    end.
