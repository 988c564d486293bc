%% Ends jobs that nobody waits for when their time is up, and tells whom it concerns.
%%
%% Process: gets a message per deadline that was asked for. A synchronous call needs none of it: its
%% caller waits with its own timeout.
-module(py_deadline).

-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/0, set/2, set/4]).

-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-spec start_link() -> gen_server:start_ret().
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% After `Limit' milliseconds `{Tag, Ref, {error, timeout}}' goes to `To', unless the job is over.
-spec set(py_nif:job_ref(), pid(), atom(), timeout()) -> ok.
set(_Ref, _To, _Tag, infinity) ->
    ok;
set(Ref, To, Tag, Limit) ->
    _Timer = erlang:send_after(Limit, ?MODULE, {expired, Ref, To, Tag}),
    ok.

%% The same for work that nobody hears of: the log does.
-spec set(py_nif:job_ref(), timeout()) -> ok.
set(_Ref, infinity) ->
    ok;
set(Ref, Limit) ->
    _Timer = erlang:send_after(Limit, ?MODULE, {expired, Ref, Limit}),
    ok.

-spec init([]) -> {ok, []}.
init([]) ->
    {ok, []}.

-spec handle_call(term(), gen_server:from(), State) -> {reply, {error, unknown}, State}.
handle_call(_Request, _From, State) ->
    {reply, {error, unknown}, State}.

-spec handle_cast(term(), State) -> {noreply, State}.
handle_cast(_Request, State) ->
    {noreply, State}.

-spec handle_info(term(), State) -> {noreply, State}.
handle_info({expired, Ref, To, Tag}, State) ->
    _ =
        case expire(Ref) of
            true -> To ! {Tag, Ref, {error, timeout}};
            false -> ok
        end,
    {noreply, State};
handle_info({expired, Ref, Limit}, State) ->
    _ =
        case expire(Ref) of
            true -> ?LOG_WARNING("py:cast was stopped: its ~b ms were over", [Limit]);
            false -> ok
        end,
    {noreply, State};
handle_info(_Message, State) ->
    {noreply, State}.

%% What was refused has an ordinary reference.
expire(Ref) ->
    try
        py_nif:expire_ref(Ref)
    catch
        error:badarg -> false
    end.
