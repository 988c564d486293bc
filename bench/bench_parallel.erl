%% `./dev bench parallel': what sub-interpreters bring and cost, beside processes of plain python3.
-module(bench_parallel).

-export([main/1]).

-spec main([string()]) -> ok.
main(_Args) ->
    py_parallel_bench:run().
