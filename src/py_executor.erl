%% Runs the functions that Python calls for one caller, one after another, and answers the waiting thread.
%%
%% A synchronous `py' call made by such a function nests on the Python thread that waits for it.
-module(py_executor).

-export([start_link/1]).
-export([init/1]).

%% Milliseconds without work after which an executor ends, if others stay.
-define(STAY, 2000).

%% What a function may have changed, beside the dictionary and the mailbox.
-define(CHANGES, [links, monitors, trap_exit, priority, registered_name]).

-export_type([request/0]).

-type caller() :: pid() | undefined.
-type request() ::
    {
        py_callback,
        Id :: pos_integer(),
        Name :: binary(),
        Args :: binary(),
        caller(),
        Leader :: caller(),
        %% See `py_about'.
        About :: binary() | undefined
    }.

-spec start_link(request() | none) -> pid().
start_link(Request) ->
    spawn_link(?MODULE, init, [Request]).

-spec init(request() | none) -> ok.
init(none) ->
    Slot = py_call:slot(),
    ok = py_nif:executor_ready(Slot),
    wait(Slot);
init({py_callback, Id, _, _, _, _, _} = Request) ->
    Slot = py_call:slot(),
    case py_nif:executor_takes(Slot, Id) of
        true -> serve(Request, Slot);
        false -> init(none)
    end.

wait(Slot) ->
    receive
        {py_callback, _, _, _, _, _, _} = Request -> serve(Request, Slot);
        py_leave -> leave(Slot)
    after ?STAY -> leave(Slot)
    end.

leave(Slot) ->
    case py_nif:executor_leaves(Slot) of
        true -> ok;
        false -> wait(Slot)
    end.

serve({py_callback, Id, Name, Args, Caller, Leader, About}, Slot) ->
    ok = borrow(Leader, Slot),
    ok = py_about:adopt(About),
    {Ok, Bytes, Encoded} = answer(Name, Args, Caller),
    ok = clean(),
    case py_nif:callback_reply(Slot, Id, Ok, Bytes, Encoded, is_clean()) of
        true -> wait(Slot);
        false -> ok;
        Next -> serve(Next, Slot)
    end.

%% A process whose function has changed more than can be undone runs no other one. Functions of other callers never run
%% here: a message that comes too late can't be told from one that they wait for.
is_clean() ->
    case process_info(self(), ?CHANGES) of
        [{links, [_Manager]}, {monitors, []}, {trap_exit, false}, {priority, normal}, {registered_name, []}] -> true;
        _ -> false
    end.

%% The next callback begins with an empty dictionary and an empty mailbox.
clean() ->
    Slot = py_call:forget_all(),
    true = is_reference(Slot),
    flush().

flush() ->
    receive
        _ -> flush()
    after 0 -> ok
    end.

%% Output of the function goes where the caller's goes, and so does what Python prints for the function. For a
%% thread that runs for nobody that is where the application's goes, not where the last caller's went.
borrow(undefined, Slot) ->
    case process_info(whereis(py_callback), group_leader) of
        {group_leader, Leader} -> borrow(Leader, Slot);
        undefined -> ok
    end;
borrow(Leader, Slot) ->
    case group_leader() of
        Leader ->
            ok;
        _ ->
            true = group_leader(Leader, self()),
            py_nif:slot_leader(Slot, Leader)
    end.

%% The bytes may name objects, which live as long as the term does: it is kept until it was answered.
answer(Name, Args, Caller) ->
    try apply_function(Name, binary_to_term(Args, [safe]), Caller) of
        Value -> {true, term_to_binary(Value), Value}
    catch
        Kind:Reason:Trace -> {false, raised(Kind, Reason, Trace), Reason}
    end.

-spec apply_function(binary(), [term()], caller()) -> term().
apply_function(<<"$", Name/binary>>, Args, Caller) ->
    py_builtin:call(Name, Args, Caller);
apply_function(Name, Args, _Caller) ->
    case py_registry:function(Name) of
        {ok, {Module, Function}} -> Module:Function(Args);
        {ok, Fun} -> Fun(Args);
        error -> error({no_function, <<"no function is registered as ", Name/binary>>})
    end.

%% `{Kind, Reason, Stacktrace}'; what Python can't take (an improper list, a bitstring in the
%% reason) is told in words.
raised(Kind, Reason, Trace) ->
    term_to_binary({Kind, py_words:convertible(Reason), py_words:trace(Trace)}).
