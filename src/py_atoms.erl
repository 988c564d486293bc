%% Atoms that Python asks for: existing ones freely, new ones counted and bounded.
-module(py_atoms).

-export([init/1, make/1, minted/0]).

%% The count outlives restarts of the application: atoms are never given back.
-spec init(Quota :: non_neg_integer()) -> ok.
init(Quota) ->
    Count =
        case persistent_term:get(?MODULE, undefined) of
            undefined -> counters:new(1, []);
            {Old, _} -> Old
        end,
    persistent_term:put(?MODULE, {Count, Quota}).

%% The atom of that name; `error:system_limit' beyond the quota.
-spec make(binary()) -> atom().
make(Name) ->
    try
        binary_to_existing_atom(Name, utf8)
    catch
        error:badarg -> mint(Name)
    end.

mint(Name) ->
    {Count, Quota} = persistent_term:get(?MODULE),
    case counters:get(Count, 1) < Quota of
        true ->
            Atom = binary_to_atom(Name, utf8),
            ok = counters:add(Count, 1, 1),
            Atom;
        false ->
            error({atom_quota, <<"no more new atoms: raise atom_quota or use existing ones">>})
    end.

-spec minted() -> non_neg_integer().
minted() ->
    {Count, _Quota} = persistent_term:get(?MODULE),
    counters:get(Count, 1).
