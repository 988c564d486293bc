# shellcheck shell=sh
# shellcheck disable=SC2034 # for run.sh
heading="How to add a setting"

after src/py_config.erl '^        \{max_depth, ' <<'ERLANG'
        {made_up_ms, {integer, 1, 1000}, 7, <<"milliseconds that a recipe has made up">>},
ERLANG
