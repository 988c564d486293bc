%% Stubs of the loader library: opens libpython before the library that needs it.
-module(py_loader).

-export([load/1, open/1]).

-nifs([open/1]).

%% Loads the loader itself. A second time is a success.
-spec load(file:filename_all()) -> ok | {error, {atom(), string()}}.
load(Path) ->
    case erlang:load_nif(path(Path), 0) of
        ok -> ok;
        {error, {reload, _}} -> ok;
        {error, {upgrade, _}} -> ok;
        {error, _} = Error -> Error
    end.

-spec open(binary()) -> {ok, Version :: binary()} | {error, binary()}.
open(_LibPython) ->
    erlang:nif_error(nif_not_loaded).

path(Path) -> unicode:characters_to_list(Path).
