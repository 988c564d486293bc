%% Says which Redis the graphs ask by default, then has nothing more to do.
%%
%% Process: the supervisor's, at every start: the setting may have changed, and the embedded store
%% starts empty.
-module(py_redis).

-export([start_link/1]).

-spec start_link(py_config:config()) -> ignore.
start_link(#{redis_url := Url}) ->
    ok = py_nif:dag_default(url(Url)),
    ignore.

url(undefined) -> <<>>;
url(Url) -> Url.
