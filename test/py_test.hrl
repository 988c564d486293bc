-include_lib("stdlib/include/assert.hrl").

%% The error is one of the closed list, and the one that is meant.
-define(assertReason(Pattern, Expr), ?assertMatch(Pattern, py_test:reason(Expr))).
