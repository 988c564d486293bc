%% `./dev bench calls [-SECTION…]': what calls cost, beside their floors; then start and memory,
%% which need nodes of their own.
-module(bench_calls).

-export([main/1]).

-spec main([string()]) -> ok.
main(Args) ->
    case [list_to_atom(Name) || "-" ++ Name <- Args] of
        [] ->
            py_unified_bench:run_all(),
            bench_start:main([]);
        Only ->
            py_unified_bench:run_all(#{only => Only})
    end.
