%% The public face: Erlang calls Python.
%%
%% Process: the caller's own. Starts nothing; what takes long happens on interpreter threads.
%% `M' and `F' are atoms, binaries or strings, dotted ones too. After the keyword arguments comes a
%% timeout or a map of options. Where the first argument is a context or a pool, the rest follows.
-module(py).

-export([call/3, call/4, call/5, call/6, eval/1, eval/2, eval/3, eval/4, exec/1, exec/2]).
-export([cast/3, cast/4, cast/5, cast/6, spawn_call/3, spawn_call/4, spawn_call/5, spawn_call/6]).
-export([async_call/3, async_call/4, async_call/5, async_call/6, async_gather/1, async_gather/2]).
-export([async_stream/3, async_stream/4, async_stream/5, async_stream/6]).
-export([await/1, await/2, async_await/1, async_await/2, cancel/1]).
-export([stream/3, stream/4, stream/5, stream/6]).
-export([stream_eval/1, stream_eval/2, stream_eval/3, stream_eval/4]).
-export([stream_start/3, stream_start/4, stream_start/5, stream_start/6]).
-export([stream_ack/2, stream_cancel/1]).
-export([parallel/1, parallel/2, map/2, map/3, map/4]).
-export([bind/0, bind/1, unbind/0, unbind/1, is_bound/0, with_context/1]).
-export([ctx_call/4, ctx_call/5, ctx_call/6, ctx_eval/2, ctx_eval/3, ctx_eval/4, ctx_exec/2]).
-export([context/0, context/1, register_pool/2, unregister_pool/1]).
-export([register_function/2, register_function/3, unregister_function/1]).
-export([call_method/3, call_method/4, getattr/2, to_term/1, is_ref/1]).
-export([state_fetch/1, state_store/2, state_remove/1, state_keys/0, state_clear/0]).
-export([state_incr/1, state_incr/2, state_decr/1, state_decr/2]).
-export([shared_dict_new/0, shared_dict_new/1, shared_dict_close/1, shared_dict_clear/1]).
-export([shared_dict_get/2, shared_dict_put/3, shared_dict_put_new/3, shared_dict_swap/4]).
-export([shared_dict_incr/2, shared_dict_incr/3, shared_dict_take/2]).
-export([shared_dict_keys/1, shared_dict_to_list/1, shared_dict_size/1]).
-export([version/0, stats/0, memory_stats/0, gc/0, interrupt/1, reload/1, execution_mode/0]).
-export([activate_venv/1, deactivate_venv/0, venv_info/0, ensure_venv/2, ensure_venv/3]).
-export([register_converter/3, last_error/0, export_env/0, export_env/1]).
-export([doctor/0]).

-export_type([object/0, context/0, result/0, timeout_or_opts/0]).

-include("py_nif.hrl").

%% An object that stays in Python.
-type object() :: {'$py_ref', non_neg_integer(), non_neg_integer(), pos_integer(), reference()}.
%% A context's process, a bound handle, or the name of a pool.
-type context() :: pid() | reference() | atom().
-type result() :: {ok, term()} | {error, py_error:reason()}.
-type name() :: py_call:name().
-type kwargs() :: py_call:kwargs().
-type timeout_or_opts() :: timeout() | py_call:opts().

-spec call(name(), name(), [term()]) -> result().
call(M, F, A) -> call(M, F, A, #{}, #{}).

-spec call(name() | context(), name(), [term()] | name(), kwargs() | [term()]) -> result().
call(M, F, A, Kw) when is_map(Kw) -> call(M, F, A, Kw, #{});
call(Ctx, M, F, A) -> call(Ctx, M, F, A, #{}, #{}).

-spec call(name() | context(), name(), [term()] | name(), kwargs() | [term()], timeout_or_opts()) ->
    result().
call(M, F, A, Kw, Opts) when is_map(Kw) ->
    py_request:run(?OP_CALL, py_call:payload(M, F, A, Kw), Opts);
call(Ctx, M, F, A, Kw) ->
    call(Ctx, M, F, A, Kw, #{}).

-spec call(context(), name(), name(), [term()], kwargs(), timeout_or_opts()) -> result().
call(Ctx, M, F, A, Kw, Opts) ->
    py_request:run(?OP_CALL, py_call:payload(M, F, A, Kw), py_request:in(Ctx, Opts)).

%% An expression.
-spec eval(iodata()) -> result().
eval(Code) -> eval(Code, #{}, #{}).

-spec eval(iodata() | context(), kwargs() | iodata()) -> result().
eval(Ctx, Code) when is_pid(Ctx); is_reference(Ctx); is_atom(Ctx) -> eval(Ctx, Code, #{}, #{});
eval(Code, Locals) -> eval(Code, Locals, #{}).

-spec eval(iodata() | context(), kwargs() | iodata(), timeout_or_opts()) -> result().
eval(Ctx, Code, Locals) when is_pid(Ctx); is_reference(Ctx); is_atom(Ctx) ->
    eval(Ctx, Code, Locals, #{});
eval(Code, Locals, Opts) ->
    py_request:run(?OP_EVAL, py_call:source(Code, Locals), Opts).

-spec eval(context(), iodata(), kwargs(), timeout_or_opts()) -> result().
eval(Ctx, Code, Locals, Opts) ->
    eval(Code, Locals, py_request:in(Ctx, Opts)).

%% Statements.
-spec exec(iodata()) -> ok | {error, py_error:reason()}.
exec(Code) ->
    py_request:run(?OP_EXEC, py_call:source(Code, #{}), #{}).

-spec exec(context(), iodata()) -> ok | {error, py_error:reason()}.
exec(Ctx, Code) ->
    py_request:run(?OP_EXEC, py_call:source(Code, #{}), #{context => Ctx}).

%% No result; a failure is logged, and so are a refusal and the end of its time.
-spec cast(name(), name(), [term()]) -> ok.
cast(M, F, A) -> cast(M, F, A, #{}, #{}).

-spec cast(name() | context(), name(), [term()] | name(), kwargs() | [term()]) -> ok.
cast(M, F, A, Kw) when is_map(Kw) -> cast(M, F, A, Kw, #{});
cast(Ctx, M, F, A) -> cast(M, F, A, #{}, #{context => Ctx}).

-spec cast(name() | context(), name(), [term()] | name(), kwargs() | [term()], timeout_or_opts()) -> ok.
cast(M, F, A, Kw, Opts) when is_map(Kw) -> py_request:cast({M, F}, py_call:payload(M, F, A, Kw), Opts);
cast(Ctx, M, F, A, Kw) -> cast(Ctx, M, F, A, Kw, #{}).

-spec cast(context(), name(), name(), [term()], kwargs(), timeout_or_opts()) -> ok.
cast(Ctx, M, F, A, Kw, Opts) ->
    py_request:cast({M, F}, py_call:payload(M, F, A, Kw), py_request:in(Ctx, Opts)).

%% `{py_response, Ref, Result}' will come.
-spec spawn_call(name(), name(), [term()]) -> reference().
spawn_call(M, F, A) -> spawn_call(M, F, A, #{}, #{}).

-spec spawn_call(name() | context(), name(), [term()] | name(), kwargs() | [term()]) -> reference().
spawn_call(M, F, A, Kw) when is_map(Kw) -> spawn_call(M, F, A, Kw, #{});
spawn_call(Ctx, M, F, A) -> spawn_call(M, F, A, #{}, #{context => Ctx}).

-spec spawn_call(
    name() | context(), name(), [term()] | name(), kwargs() | [term()], timeout_or_opts()
) -> reference().
spawn_call(M, F, A, Kw, Opts) when is_map(Kw) ->
    py_request:spawn(py_response, ?OP_CALL, py_call:payload(M, F, A, Kw), Opts);
spawn_call(Ctx, M, F, A, Kw) ->
    spawn_call(Ctx, M, F, A, Kw, #{}).

-spec spawn_call(context(), name(), name(), [term()], kwargs(), timeout_or_opts()) ->
    reference().
spawn_call(Ctx, M, F, A, Kw, Opts) ->
    py_request:spawn(py_response, ?OP_CALL, py_call:payload(M, F, A, Kw), py_request:in(Ctx, Opts)).

%% A coroutine function runs on an event loop, any other on the workers.
%% `{async_result, Ref, Result}' will come.
-spec async_call(name(), name(), [term()]) -> reference().
async_call(M, F, A) -> py_request:spawn(async_result, ?OP_ASYNC, py_call:payload(M, F, A, #{}), #{}).

-spec async_call(name() | context(), name(), [term()] | name(), kwargs() | [term()]) -> reference().
async_call(M, F, A, Kw) when is_map(Kw) -> async_call(M, F, A, Kw, #{});
async_call(Ctx, M, F, A) -> async_call(M, F, A, #{}, #{context => Ctx}).

-spec async_call(
    name() | context(), name(), [term()] | name(), kwargs() | [term()], timeout_or_opts()
) -> reference().
async_call(M, F, A, Kw, Opts) when is_map(Kw) ->
    py_request:spawn(async_result, ?OP_ASYNC, py_call:payload(M, F, A, Kw), Opts);
async_call(Ctx, M, F, A, Kw) ->
    py_request:spawn(async_result, ?OP_ASYNC, py_call:payload(M, F, A, Kw), #{context => Ctx}).

-spec async_call(context(), name(), name(), [term()], kwargs(), timeout_or_opts()) ->
    reference().
async_call(Ctx, M, F, A, Kw, Opts) ->
    py_request:spawn(async_result, ?OP_ASYNC, py_call:payload(M, F, A, Kw), py_request:in(Ctx, Opts)).

%% All calls at once: `{M, F, A}' or `{M, F, A, Kw}'; their values in order.
-spec async_gather([tuple()]) -> {ok, [term()]} | {error, py_error:reason()}.
async_gather(Calls) -> py_gather:all(Calls, #{}).

-spec async_gather([tuple()], timeout_or_opts()) -> {ok, [term()]} | {error, py_error:reason()}.
async_gather(Calls, Opts) -> py_gather:all(Calls, Opts).

%% All items of a generator, asynchronous or not.
-spec async_stream(name(), name(), [term()]) -> {ok, [term()]} | {error, py_error:reason()}.
async_stream(M, F, A) -> async_stream(M, F, A, #{}, #{}).

-spec async_stream(name() | context(), name(), [term()] | name(), kwargs() | [term()]) ->
    {ok, [term()]} | {error, py_error:reason()}.
async_stream(M, F, A, Kw) when is_map(Kw) -> async_stream(M, F, A, Kw, #{});
async_stream(Ctx, M, F, A) -> async_stream(M, F, A, #{}, #{context => Ctx}).

-spec async_stream(
    name() | context(), name(), [term()] | name(), kwargs() | [term()], timeout_or_opts()
) -> {ok, [term()]} | {error, py_error:reason()}.
async_stream(M, F, A, Kw, Opts) when is_map(Kw) ->
    py_request:run(?OP_ASYNC_COLLECT, py_call:payload(M, F, A, Kw), Opts);
async_stream(Ctx, M, F, A, Kw) ->
    py_request:run(?OP_ASYNC_COLLECT, py_call:payload(M, F, A, Kw), #{context => Ctx}).

-spec async_stream(context(), name(), name(), [term()], kwargs(), timeout_or_opts()) ->
    {ok, [term()]} | {error, py_error:reason()}.
async_stream(Ctx, M, F, A, Kw, Opts) ->
    py_request:run(?OP_ASYNC_COLLECT, py_call:payload(M, F, A, Kw), py_request:in(Ctx, Opts)).

-spec await(reference()) -> result().
await(Ref) -> py_call:await(Ref, py_call:default_timeout()).

-spec await(reference(), timeout()) -> result().
await(Ref, Timeout) -> py_call:await(Ref, Timeout).

-spec async_await(reference()) -> result().
async_await(Ref) -> await(Ref).

-spec async_await(reference(), timeout()) -> result().
async_await(Ref, Timeout) -> await(Ref, Timeout).

%% Nothing is sent for Ref after it returned.
-spec cancel(reference()) -> ok | {error, py_error:reason()}.
cancel(Ref) -> py_call:cancel(Ref).

%% All items of a generator (of anything that can be iterated).
-spec stream(name(), name(), [term()]) -> {ok, [term()]} | {error, py_error:reason()}.
stream(M, F, A) -> stream(M, F, A, #{}, #{}).

-spec stream(name() | context(), name(), [term()] | name(), kwargs() | [term()]) ->
    {ok, [term()]} | {error, py_error:reason()}.
stream(M, F, A, Kw) when is_map(Kw) -> stream(M, F, A, Kw, #{});
stream(Ctx, M, F, A) -> stream(M, F, A, #{}, #{context => Ctx}).

-spec stream(name() | context(), name(), [term()] | name(), kwargs() | [term()], timeout_or_opts()) ->
    {ok, [term()]} | {error, py_error:reason()}.
stream(M, F, A, Kw, Opts) when is_map(Kw) -> py_request:run(?OP_COLLECT, py_call:payload(M, F, A, Kw), Opts);
stream(Ctx, M, F, A, Kw) -> stream(Ctx, M, F, A, Kw, #{}).

-spec stream(context(), name(), name(), [term()], kwargs(), timeout_or_opts()) ->
    {ok, [term()]} | {error, py_error:reason()}.
stream(Ctx, M, F, A, Kw, Opts) ->
    py_request:run(?OP_COLLECT, py_call:payload(M, F, A, Kw), py_request:in(Ctx, Opts)).

-spec stream_eval(iodata()) -> {ok, [term()]} | {error, py_error:reason()}.
stream_eval(Code) -> stream_eval(Code, #{}).

-spec stream_eval(iodata() | context(), kwargs() | iodata()) ->
    {ok, [term()]} | {error, py_error:reason()}.
stream_eval(Ctx, Code) when is_pid(Ctx); is_reference(Ctx); is_atom(Ctx) -> stream_eval(Ctx, Code, #{}, #{});
stream_eval(Code, Locals) -> stream_eval(Code, Locals, #{}).

-spec stream_eval(iodata() | context(), kwargs() | iodata(), timeout_or_opts()) ->
    {ok, [term()]} | {error, py_error:reason()}.
stream_eval(Ctx, Code, Locals) when is_pid(Ctx); is_reference(Ctx); is_atom(Ctx) ->
    stream_eval(Ctx, Code, Locals, #{});
stream_eval(Code, Locals, Opts) ->
    py_request:run(?OP_COLLECT_EVAL, py_call:source(Code, Locals), Opts).

-spec stream_eval(context(), iodata(), kwargs(), timeout_or_opts()) ->
    {ok, [term()]} | {error, py_error:reason()}.
stream_eval(Ctx, Code, Locals, Opts) -> stream_eval(Code, Locals, py_request:in(Ctx, Opts)).

%% `{py_stream, Ref, {data, V} | done | {error, R}}' will come.
-spec stream_start(name(), name(), [term()]) -> {ok, reference()} | {error, py_error:reason()}.
stream_start(M, F, A) -> stream_start(M, F, A, #{}, #{}).

-spec stream_start(name() | context(), name(), [term()] | name(), kwargs() | [term()]) ->
    {ok, reference()} | {error, py_error:reason()}.
stream_start(M, F, A, Kw) when is_map(Kw) -> stream_start(M, F, A, Kw, #{});
stream_start(Ctx, M, F, A) -> stream_start(M, F, A, #{}, #{context => Ctx}).

-spec stream_start(
    name() | context(), name(), [term()] | name(), kwargs() | [term()], timeout_or_opts()
) -> {ok, reference()} | {error, py_error:reason()}.
stream_start(M, F, A, Kw, Opts) when is_map(Kw) -> py_request:stream(py_call:payload(M, F, A, Kw), Opts);
stream_start(Ctx, M, F, A, Kw) -> stream_start(Ctx, M, F, A, Kw, #{}).

-spec stream_start(context(), name(), name(), [term()], kwargs(), timeout_or_opts()) ->
    {ok, reference()} | {error, py_error:reason()}.
stream_start(Ctx, M, F, A, Kw, Opts) ->
    py_request:stream(py_call:payload(M, F, A, Kw), py_request:in(Ctx, Opts)).

-spec stream_ack(reference(), pos_integer()) -> ok | {error, py_error:reason()}.
stream_ack(Ref, N) -> py_call:stream_ack(Ref, N).

-spec stream_cancel(reference()) -> ok | {error, py_error:reason()}.
stream_cancel(Ref) -> py_call:stream_cancel(Ref).

%% Many calls at once on every core; the values in the order of the calls, or the first error.
-spec parallel([tuple()]) -> {ok, [term()]} | {error, py_error:reason()}.
parallel(Calls) -> py_parallel:calls(Calls, #{}).

-spec parallel([tuple()], timeout_or_opts()) -> {ok, [term()]} | {error, py_error:reason()}.
parallel(Calls, Opts) -> py_parallel:calls(Calls, Opts).

%% The function of each item, on every core.
-spec map({name(), name()}, [term()]) -> {ok, [term()]} | {error, py_error:reason()}.
map(Function, List) -> py_parallel:map(Function, List, #{}).

-spec map({name(), name()}, [term()], timeout_or_opts()) -> {ok, [term()]} | {error, py_error:reason()}.
map(Function, List, Opts) -> py_parallel:map(Function, List, Opts).

-spec map(name(), name(), [term()], timeout_or_opts()) -> {ok, [term()]} | {error, py_error:reason()}.
map(M, F, List, Opts) -> py_parallel:map({M, F}, List, Opts).

%% Keeps one interpreter thread for the calling process.
-spec bind() -> ok | {error, py_error:reason()}.
bind() -> py_bind:bind().

-spec bind(new) -> {ok, context()} | {error, py_error:reason()}.
bind(new) -> py_bind:new().

-spec unbind() -> ok.
unbind() -> py_bind:unbind().

-spec unbind(context()) -> ok.
unbind(Ctx) -> py_bind:unbind(Ctx).

-spec is_bound() -> boolean().
is_bound() -> py_bind:is_bound().

-spec with_context(fun(() -> T) | fun((context()) -> T)) -> T | {error, py_error:reason()}.
with_context(Fun) -> py_bind:with_context(Fun).

-spec ctx_call(context(), name(), name(), [term()]) -> result().
ctx_call(Ctx, M, F, A) -> ctx_call(Ctx, M, F, A, #{}, #{}).

-spec ctx_call(context(), name(), name(), [term()], kwargs()) -> result().
ctx_call(Ctx, M, F, A, Kw) -> ctx_call(Ctx, M, F, A, Kw, #{}).

-spec ctx_call(context(), name(), name(), [term()], kwargs(), timeout_or_opts()) -> result().
ctx_call(Ctx, M, F, A, Kw, Opts) -> call(py_bind:check(Ctx), M, F, A, Kw, Opts).

-spec ctx_eval(context(), iodata()) -> result().
ctx_eval(Ctx, Code) -> ctx_eval(Ctx, Code, #{}, #{}).

-spec ctx_eval(context(), iodata(), kwargs()) -> result().
ctx_eval(Ctx, Code, Locals) -> ctx_eval(Ctx, Code, Locals, #{}).

-spec ctx_eval(context(), iodata(), kwargs(), timeout_or_opts()) -> result().
ctx_eval(Ctx, Code, Locals, Opts) -> eval(Code, Locals, py_request:in(py_bind:check(Ctx), Opts)).

-spec ctx_exec(context(), iodata()) -> ok | {error, py_error:reason()}.
ctx_exec(Ctx, Code) -> exec(py_bind:check(Ctx), Code).

%% A context that anybody may use; the same one for the same scheduler.
-spec context() -> pid() | {error, py_error:reason()}.
context() -> context(erlang:system_info(scheduler_id)).

-spec context(pos_integer()) -> pid() | {error, py_error:reason()}.
context(N) -> py_context:default(N).

-spec register_pool(atom(), py_options:given()) -> ok | {error, py_error:reason()}.
register_pool(Name, Opts) -> py_pool:register(Name, Opts).

-spec unregister_pool(atom()) -> ok | {error, py_error:reason()}.
unregister_pool(Name) -> py_pool:unregister(Name).

%% Python calls it as `erlang.Name(...)'; the function gets the list of arguments.
-spec register_function(name(), fun(([term()]) -> term()) | {module(), atom()}) ->
    ok | {error, py_error:reason()}.
register_function(Name, Function) -> py_functions:register(Name, Function).

-spec register_function(name(), module(), atom()) -> ok | {error, py_error:reason()}.
register_function(Name, Module, Function) -> py_functions:register(Name, {Module, Function}).

-spec unregister_function(name()) -> ok.
unregister_function(Name) -> py_functions:unregister(Name).

-spec call_method(object(), name(), [term()]) -> result().
call_method(Object, Name, Args) -> call_method(Object, Name, Args, #{}).

-spec call_method(object(), name(), [term()], kwargs()) -> result().
call_method(Object, Name, Args, Kw) -> py_object:call_method(Object, Name, Args, Kw).

-spec getattr(object(), name()) -> result().
getattr(Object, Name) -> py_object:getattr(Object, Name).

-spec to_term(object()) -> result().
to_term(Object) -> py_object:to_term(Object).

-spec is_ref(term()) -> boolean().
is_ref(Term) -> py_object:is_ref(Term).

-spec state_fetch(term()) -> {ok, term()} | {error, not_found | not_running}.
state_fetch(Key) -> py_state:state_fetch(Key).

-spec state_store(term(), term()) -> ok | {error, full | not_running}.
state_store(Key, Value) -> py_state:state_store(Key, Value).

-spec state_remove(term()) -> ok | {error, not_running}.
state_remove(Key) -> py_state:state_remove(Key).

-spec state_keys() -> [term()] | {error, not_running}.
state_keys() -> py_state:state_keys().

-spec state_clear() -> ok | {error, not_running}.
state_clear() -> py_state:state_clear().

-spec state_incr(term()) -> integer() | {error, full | not_running | {bad_argument, binary()}}.
state_incr(Key) -> py_state:state_incr(Key).

-spec state_incr(term(), integer()) ->
    integer() | {error, full | not_running | {bad_argument, binary()}}.
state_incr(Key, By) -> py_state:state_incr(Key, By).

-spec state_decr(term()) -> integer() | {error, full | not_running | {bad_argument, binary()}}.
state_decr(Key) -> py_state:state_decr(Key).

-spec state_decr(term(), integer()) ->
    integer() | {error, full | not_running | {bad_argument, binary()}}.
state_decr(Key, By) -> py_state:state_decr(Key, By).

-spec shared_dict_new() -> {ok, py_shared_dict:dict()} | {error, full | not_running}.
shared_dict_new() -> shared_dict_new(#{}).

-spec shared_dict_new(py_options:given()) ->
    {ok, py_shared_dict:dict()} | {error, exists | full | not_running | {bad_argument, term()}}.
shared_dict_new(Opts) -> py_shared_dict:new(Opts).

-spec shared_dict_close(py_shared_dict:dict()) -> ok | {error, py_shared_dict:gone()}.
shared_dict_close(Dict) -> py_shared_dict:close(Dict).

-spec shared_dict_get(py_shared_dict:dict(), term()) ->
    {ok, term()} | {error, not_found | py_shared_dict:gone()}.
shared_dict_get(Dict, Key) -> py_shared_dict:get(Dict, Key).

-spec shared_dict_put(py_shared_dict:dict(), term(), term()) ->
    ok | {error, full | py_shared_dict:gone()}.
shared_dict_put(Dict, Key, Value) -> py_shared_dict:put(Dict, Key, Value).

-spec shared_dict_put_new(py_shared_dict:dict(), term(), term()) ->
    boolean() | {error, full | py_shared_dict:gone()}.
shared_dict_put_new(Dict, Key, Value) -> py_shared_dict:put_new(Dict, Key, Value).

-spec shared_dict_swap(py_shared_dict:dict(), term(), Old :: term(), New :: term()) ->
    boolean() | {error, py_shared_dict:gone()}.
shared_dict_swap(Dict, Key, Old, New) -> py_shared_dict:swap(Dict, Key, Old, New).

-spec shared_dict_incr(py_shared_dict:dict(), term()) ->
    integer() | {error, full | py_shared_dict:gone() | {bad_argument, not_an_integer}}.
shared_dict_incr(Dict, Key) -> shared_dict_incr(Dict, Key, 1).

-spec shared_dict_incr(py_shared_dict:dict(), term(), integer()) ->
    integer() | {error, full | py_shared_dict:gone() | {bad_argument, not_an_integer}}.
shared_dict_incr(Dict, Key, By) -> py_shared_dict:incr(Dict, Key, By).

-spec shared_dict_take(py_shared_dict:dict(), term()) ->
    {ok, term()} | {error, not_found | py_shared_dict:gone()}.
shared_dict_take(Dict, Key) -> py_shared_dict:take(Dict, Key).

-spec shared_dict_keys(py_shared_dict:dict()) -> [term()] | {error, py_shared_dict:gone()}.
shared_dict_keys(Dict) -> py_shared_dict:keys(Dict).

-spec shared_dict_to_list(py_shared_dict:dict()) ->
    [{term(), term()}] | {error, py_shared_dict:gone()}.
shared_dict_to_list(Dict) -> py_shared_dict:to_list(Dict).

-spec shared_dict_size(py_shared_dict:dict()) ->
    non_neg_integer() | {error, py_shared_dict:gone()}.
shared_dict_size(Dict) -> py_shared_dict:size(Dict).

-spec shared_dict_clear(py_shared_dict:dict()) -> ok | {error, py_shared_dict:gone()}.
shared_dict_clear(Dict) -> py_shared_dict:clear(Dict).

%% These tell of Python, which stays when the application is stopped.
-spec version() -> {ok, binary()} | {error, not_running}.
version() -> py_stats:version().

-spec stats() -> map() | {error, not_running}.
stats() -> py_stats:stats().

-spec memory_stats() -> map() | {error, py_error:reason()}.
memory_stats() -> py_stats:memory().

%% How many objects Python's collector found unreachable.
-spec gc() -> {ok, non_neg_integer()} | {error, py_error:reason()}.
gc() -> call(gc, collect, []).

-spec interrupt(context()) -> ok | not_running.
interrupt(Ctx) -> py_context:interrupt(Ctx).

-spec reload(name()) -> ok | {error, py_error:reason()}.
reload(Module) ->
    case call('erlang._object', reload, [py_call:text(Module)]) of
        {ok, _} -> ok;
        {error, _} = Error -> Error
    end.

-spec execution_mode() -> py_stats:mode() | {error, not_running}.
execution_mode() -> py_stats:execution_mode().

-spec activate_venv(file:filename_all()) -> ok | {error, py_error:reason()}.
activate_venv(Path) -> py_venv:activate_venv(Path).

-spec deactivate_venv() -> ok | {error, py_error:reason()}.
deactivate_venv() -> py_venv:deactivate_venv().

%% Prints what was found of Erlang, Python and the native libraries, what is missing, and the command that mends it.
%% The application need not be started, nor be able to.
-spec doctor() -> ok | {wrong, pos_integer()}.
doctor() -> py_doctor:print().

-spec venv_info() -> {ok, py_venv:info()} | {error, py_error:reason()}.
venv_info() -> py_venv:venv_info().

-spec ensure_venv(file:filename_all(), py_venv:requirements()) -> ok | {error, py_error:reason()}.
ensure_venv(Path, Requirements) -> py_venv:ensure_venv(Path, Requirements).

-spec ensure_venv(file:filename_all(), py_venv:requirements(), py_options:given()) ->
    ok | {error, py_error:reason()}.
ensure_venv(Path, Requirements, Options) -> py_venv:ensure_venv(Path, Requirements, Options).

%% `to_python': tuples `{Tag, ...}' become what the Python function makes of the rest.
%% `to_erlang': instances of the class become what the Python function makes of them.
-spec register_converter(to_python | to_erlang, name(), {Module :: name(), Function :: name()}) ->
    ok | {error, py_error:reason()}.
register_converter(Direction, What, Function) -> py_converter:register(Direction, What, Function).

%% The whole story of the last exception this process was told of.
-spec last_error() -> py_error:details() | undefined.
last_error() -> py_details:last().

%% Copies the environment of Erlang (`os:getenv/1', `os:putenv/2') to `os.environ' of the main interpreter.
-spec export_env() -> ok | {error, py_error:reason()}.
export_env() -> py_env:export().

%% The same for these variables alone; those that Erlang does not have are unset.
-spec export_env([unicode:chardata()]) -> ok | {error, py_error:reason()}.
export_env(Names) -> py_env:export(Names).
