%% Every function that users may call, with arguments for each: derived from the exports of the modules, so
%% that a new one can't be left out.
-module(py_entry_points).

-export([without_arguments/0, wrong_answers/1]).

%% The documented modules.
modules() ->
    [
        py,
        py_asgi,
        py_channel,
        py_context,
        py_dag,
        py_event_loop,
        py_event_loop_pool,
        py_event_router,
        py_event_worker,
        py_pg,
        py_pool,
        py_reactor_context,
        py_wsgi
    ].

%% Callbacks of OTP, what only our supervisors and Python call, and what asks nothing of Python.
is_internal(_Module, Function) when
    Function =:= module_info; Function =:= init; Function =:= terminate
->
    true;
is_internal(_Module, Function) when
    Function =:= handle_call; Function =:= handle_cast; Function =:= handle_info
->
    true;
is_internal(py, doctor) ->
    true;
is_internal(_Module, child_spec) ->
    true;
is_internal(py_channel, Function) ->
    lists:member(Function, [start_link, new_table, await_value, forget, give_back]);
is_internal(py_context, Function) ->
    lists:member(Function, [begin_link, subinterp_link, default]);
is_internal(py_dag, Function) ->
    lists:member(Function, [await, cancel, more]);
is_internal(py_event_loop, begin_link) ->
    true;
is_internal(py_event_loop_pool, Function) ->
    lists:member(Function, [start_main, loop_of, is_up, is_down, stats]);
is_internal(py_event_router, step) ->
    true;
is_internal(py_pg, Function) ->
    lists:member(Function, [start_link, scope]);
is_internal(py_pool, Function) ->
    Function =/= start_link;
is_internal(_Module, _Function) ->
    false.

exports() ->
    [
        {Module, Function, Arity}
     || Module <- modules(),
        {Function, Arity} <- lists:sort(Module:module_info(exports)),
        not is_internal(Module, Function)
    ].

%% The functions for which nothing is known here: give them arguments below.
-spec without_arguments() -> [mfa()].
without_arguments() -> [MFA || MFA <- exports(), arguments(MFA) =:= unknown].

%% What each function answers, where that is not `{error, not_running}' nor what `Others' says, by its name, or by that
%% and the number of its arguments.
-spec wrong_answers(#{{module(), atom()} | mfa() => term()}) -> [{mfa(), term()}].
wrong_answers(Others) ->
    Answers = [{MFA, answer(MFA)} || MFA <- exports()],
    [
        {MFA, Answer}
     || {{Module, Function, _} = MFA, Answer} <- Answers,
        Answer =/= maps:get(MFA, Others, maps:get({Module, Function}, Others, {error, not_running}))
    ].

answer({Module, Function, _} = MFA) ->
    try settled(apply(Module, Function, arguments(MFA))) of
        Answer -> Answer
    catch
        Class:Reason -> {Class, Reason}
    end.

%% What comes as a message.
settled({ok, Ref}) when is_reference(Ref) ->
    settled(Ref);
settled(Ref) when is_reference(Ref) ->
    receive
        {_Tag, Ref, Answer} -> Answer
    after 5000 -> no_message
    end;
settled(Answer) ->
    Answer.

arguments({py, Function, Arity}) -> of_py(Function, Arity);
arguments({py_asgi, ack, 2}) -> [make_ref(), 1];
arguments({py_asgi, await_response, N}) -> lists:sublist([make_ref(), 1000], N);
arguments({py_asgi, run, N}) -> lists:sublist([app, app, #{}, <<>>, 1000], N);
arguments({py_asgi, run_async, N}) -> lists:sublist([app, app, #{}, <<>>, 1000], N);
arguments({py_asgi, serve, N}) -> lists:sublist(["app:app", #{port => 0}], N);
arguments({py_asgi, start_link, 1}) -> [#{app => "app:app", port => 0}];
arguments({py_asgi, stop, 2}) -> [self_that_ended(), 0];
arguments({py_asgi, _Ask, 1}) -> [self_that_ended()];
arguments({py_channel, new, 0}) -> [];
arguments({py_channel, new, 1}) -> [#{}];
arguments({py_channel, new, 2}) -> [self(), #{}];
arguments({py_channel, _Ask, N}) -> lists:sublist([self_that_ended(), 1], N);
arguments({py_context, Start, 1}) when Start =:= new; Start =:= start_link -> [#{}];
arguments({py_context, _Ask, 1}) -> [self_that_ended()];
arguments({py_dag, limit, 1}) -> [1];
arguments({py_dag, new, 2}) -> [graph(), []];
arguments({py_dag, _Run, N}) -> lists:sublist([graph(), #{}, 1000], N);
arguments({Loops, Function, N}) when Loops =:= py_event_loop; Loops =:= py_event_loop_pool ->
    of_loop(Function, N);
arguments({py_event_router, start_link, N}) -> lists:sublist([make_ref(), #{}], N);
arguments({py_event_router, stop, 1}) -> [self_that_ended()];
arguments({py_event_worker, start_link, N}) -> lists:sublist([<<"worker">>, #{}], N);
arguments({py_event_worker, _Ask, N}) -> lists:sublist([self_that_ended(), 1], N);
arguments({py_pool, start_link, 1}) -> [#{name => entry_own_pool}];
arguments({py_pg, _Ask, N}) -> lists:nthtail(3 - N, [scope(), group, self()]);
arguments({py_reactor_context, start_link, 1}) -> [#{protocol => {'erlang.reactor', 'Protocol'}}];
arguments({py_reactor_context, _Ask, N}) -> lists:sublist([self_that_ended(), 1], N);
arguments({py_wsgi, run, N}) -> lists:sublist([m, app, #{}, 1000], N);
arguments(_) -> unknown.

of_loop(start_link, N) -> lists:sublist([#{}], N);
of_loop(await, N) -> lists:sublist([refused(), 1000], N);
of_loop(loop, 1) -> [self_that_ended()];
of_loop(run_async, 2) -> [make_ref(), #{module => math, func => sqrt, args => [4]}];
of_loop(get_loop, N) -> lists:sublist([self()], N);
of_loop(get_stats, N) -> lists:sublist([self()], N);
of_loop(_Run, 5) -> [self(), math, sqrt, [4], #{}];
of_loop(_Run, N) when N =:= 3; N =:= 4 -> lists:sublist([math, sqrt, [4], #{}], N);
of_loop(_, _) -> unknown.

%% Those that take a module, a function and arguments, the keyword arguments and options; or first a context.
of_py(Function, N) when
    Function =:= call;
    Function =:= cast;
    Function =:= spawn_call;
    Function =:= async_call;
    Function =:= async_stream;
    Function =:= stream;
    Function =:= stream_start
->
    case N of
        6 -> [main, math, sqrt, [4], #{}, 1000];
        _ -> lists:sublist([math, sqrt, [4], #{}, 1000], N)
    end;
of_py(Function, 4) when Function =:= eval; Function =:= stream_eval -> [main, <<"1">>, #{}, 1000];
of_py(Function, N) when Function =:= eval; Function =:= stream_eval -> lists:sublist([<<"1">>, #{}, 1000], N);
of_py(exec, 1) -> [<<"1">>];
of_py(exec, 2) -> [main, <<"1">>];
of_py(ctx_call, N) -> lists:sublist([make_ref(), math, sqrt, [4], #{}, 1000], N);
of_py(ctx_eval, N) -> lists:sublist([make_ref(), <<"1">>, #{}, 1000], N);
of_py(ctx_exec, 2) -> [make_ref(), <<"1">>];
of_py(Function, N) when Function =:= await; Function =:= async_await -> lists:sublist([refused(), 1000], N);
of_py(Function, 1) when Function =:= cancel; Function =:= stream_cancel -> [make_ref()];
of_py(stream_ack, 2) -> [make_ref(), 1];
of_py(Function, N) when Function =:= async_gather; Function =:= parallel ->
    lists:sublist([[{math, sqrt, [4]}], 1000], N);
of_py(map, 4) -> [math, sqrt, [4], 1000];
of_py(map, N) -> lists:sublist([{math, sqrt}, [4], 1000], N);
of_py(bind, 1) -> [new];
of_py(unbind, 1) -> [make_ref()];
of_py(with_context, 1) -> [fun() -> done end];
of_py(context, 1) -> [1];
of_py(register_pool, 2) -> [entry_pool, #{}];
of_py(unregister_pool, 1) -> [entry_pool];
of_py(register_function, 2) -> [entry, fun(_) -> ok end];
of_py(register_function, 3) -> [entry, erlang, length];
of_py(unregister_function, 1) -> [entry];
of_py(call_method, N) -> lists:sublist([object(), append, [1], #{}], N);
of_py(getattr, 2) -> [object(), append];
of_py(Function, 1) when Function =:= to_term; Function =:= is_ref -> [object()];
of_py(shared_dict_new, N) -> lists:sublist([#{}], N);
of_py(interrupt, 1) -> [main];
of_py(export_env, 1) -> [[<<"HOME">>]];
of_py(reload, 1) -> [json];
of_py(activate_venv, 1) -> ["/tmp"];
of_py(ensure_venv, N) -> lists:sublist(["/nonexistent/venv", [], #{}], N);
of_py(register_converter, 3) -> [to_python, entry, {builtins, list}];
of_py(_Function, 0) -> [];
of_py(Function, N) ->
    case atom_to_list(Function) of
        "shared_dict_" ++ _ -> lists:sublist([<<"entry">>, key, 1, 2], N);
        "state_" ++ _ -> lists:sublist([key, 1], N);
        _ -> unknown
    end.

%% What an asynchronous call gives whose answer is on its way.
refused() -> py:spawn_call(math, sqrt, [4]).

self_that_ended() ->
    {Pid, Monitor} = spawn_monitor(fun() -> ok end),
    receive
        {'DOWN', Monitor, process, Pid, _} -> Pid
    end.

object() -> {'$py_ref', 0, 1, 1, make_ref()}.

scope() -> py_pg:scope(none).

graph() -> #{nodes => #{a => #{run => {py, os, getpid}}}}.
