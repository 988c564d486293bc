# shellcheck shell=sh
# shellcheck disable=SC2034 # for run.sh
heading="How to add a call option"

after src/py_options.erl '^        \{cancel, boolean, ' <<'ERLANG'
        {backwards, boolean, [parallel], <<"`true`: the values in the reverse order">>},
ERLANG

after src/py_parallel.erl '^    Error;$' <<'ERLANG'
start(Payloads, {ok, #{backwards := true} = Options}, Progress) ->
    case start(Payloads, {ok, Options#{backwards := false}}, Progress) of
        {ok, Values} -> {ok, lists:reverse(Values)};
        {error, _} = Error -> Error
    end;
ERLANG
