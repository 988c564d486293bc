%% Limits of work whose answer no process waits for: the native side stops the job when its time is up, and tells whom
%% it concerns. With the answer the deadline is gone.
%%
%% Process: the caller's own. A synchronous call needs none of it: its caller waits with its own timeout.
-module(py_deadline).

-include("py_nif.hrl").

-export([flag/1, set/2, set/4, at/1, left/1]).

%% For the flags of the job that will have the limit.
-spec flag(timeout()) -> py_nif:flags().
flag(infinity) -> 0;
flag(_Limit) -> ?FLAG_TIMED.

%% After `Limit' milliseconds `{Tag, Ref, {error, timeout}}' goes to `To', unless the job is over.
-spec set(py_nif:job_ref(), pid(), atom(), timeout()) -> ok.
set(_Ref, _To, _Tag, infinity) -> ok;
set(Ref, To, Tag, Limit) -> py_nif:deadline_set(Ref, Limit, To, Tag).

%% The same for work that nobody hears of: the log does.
-spec set(py_nif:job_ref(), timeout()) -> ok.
set(_Ref, infinity) -> ok;
set(Ref, Limit) -> py_nif:deadline_set(Ref, Limit, none, none).

%% For a caller that waits in several steps: when its time is up, and how much of it is left.
-spec at(timeout()) -> integer() | infinity.
at(infinity) -> infinity;
at(Timeout) -> erlang:monotonic_time(millisecond) + Timeout.

-spec left(integer() | infinity) -> timeout().
left(infinity) -> infinity;
left(Deadline) -> max(0, Deadline - erlang:monotonic_time(millisecond)).
