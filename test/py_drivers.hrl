%% For a suite whose cases, all functions with one argument, run twice: on loops with a thread each, and on
%% loops that the BEAM drives.

-export([all/0, groups/0, init_per_suite/1, end_per_suite/1]).
-export([init_per_group/2, end_per_group/2]).

all() ->
    [{group, thread}, {group, beam}].

groups() ->
    Cases = py_test:cases(?MODULE),
    [{Driver, py_test:order(), Cases} || Driver <- [thread, beam]].

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

init_per_group(Driver, Config) -> py_test:start_on(Driver, Config).

end_per_group(_Driver, _Config) -> py_test:stop_driver().
