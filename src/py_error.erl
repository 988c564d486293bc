%% The closed list of reasons a caller can get in `{error, Reason}', and the sentence for each.
%%
%% Place: the end of every path; whoever answers a user takes the reason from here.
%% Process: none of its own, every function is pure and runs in the process that calls it.
%% Never: makes an atom; fails on a reason it does not know (it prints it instead).
-module(py_error).

-export([format/1, format_error/2, is_reason/1, is_builtin_exception/1]).

-export_type([
    reason/0,
    exception/0,
    exception_type/0,
    frame/0,
    details/0,
    syntax/0,
    what/0
]).

%% An atom for a class built into Python, else the qualified name of the class.
-type exception_type() :: atom() | binary().

-type frame() :: #{
    file => binary(),
    line => non_neg_integer() | none,
    function => binary(),
    text => binary() | none
}.

%% What `py:last_error/0' gives, and the third element under `#{traceback => true}'.
-type details() :: #{
    type => exception_type(),
    message => binary(),
    args => term(),
    traceback => [frame()],
    cause => details() | undefined,
    context => details() | undefined,
    notes => [binary()],
    formatted => binary(),
    %% Frames between the first and the last of `traceback'.
    left_out => pos_integer(),
    %% Raised `from None': Python does not print the context.
    suppress_context => true,
    %% Of a group of exceptions.
    exceptions => [details()],
    %% Of a `SyntaxError'.
    syntax => syntax()
}.

%% Where the source is wrong, in Python's own numbers.
-type syntax() :: #{
    message | file | text => binary() | none,
    line | column | end_line | end_column => integer() | none
}.

-type exception() ::
    {exception_type(), Message :: binary()}
    | {exception_type(), Message :: binary(), details()}.

%% What was wrong: a name from our own code, or a sentence, or a name with the term it is about.
-type what() :: atom() | binary() | {atom(), term()}.

-type reason() ::
    exception()
    | timeout
    | cancelled
    | interrupted
    | overload
    | not_running
    | no_workers_available
    | not_supported
    | would_block
    | {context_died, Why :: term()}
    | {bad_argument, what()}
    | {not_convertible, what()}
    | {gather_failed, [{Index :: pos_integer(), reason()}]}
    | {asgi, what()}
    | {dag, Node :: term(), reason()}
    | {posix, atom()}.

-include("py_nif.hrl").
-include("py_exceptions.hrl").

-spec is_builtin_exception(term()) -> boolean().
is_builtin_exception(Type) -> is_map_key(Type, ?BUILTIN_EXCEPTIONS).

%% Whether the term belongs to the closed list: the tests ask this of every error they provoke.
-spec is_reason(term()) -> boolean().
is_reason(timeout) -> true;
is_reason(cancelled) -> true;
is_reason(interrupted) -> true;
is_reason(overload) -> true;
is_reason(not_running) -> true;
is_reason(no_workers_available) -> true;
is_reason(not_supported) -> true;
is_reason(would_block) -> true;
is_reason({context_died, _Why}) -> true;
is_reason({bad_argument, What}) -> is_what(What);
is_reason({not_convertible, What}) -> is_what(What);
is_reason({asgi, What}) -> is_what(What);
is_reason({posix, Code}) -> is_atom(Code);
is_reason({gather_failed, Failed}) -> is_failed_list(Failed);
is_reason({dag, _Node, Reason}) -> is_reason(Reason);
is_reason({Type, Message}) -> is_type(Type) andalso is_text(Message);
is_reason({Type, Message, Details}) -> is_type(Type) andalso is_text(Message) andalso is_map(Details);
is_reason(_) -> false.

is_type(Type) -> is_builtin_exception(Type) orelse is_text(Type).

is_text(Text) -> is_binary(Text) andalso is_list(unicode:characters_to_list(Text)).

is_what({Name, _Term}) -> is_atom(Name);
is_what(What) -> is_atom(What) orelse is_text(What).

is_failed_list([_ | _] = Failed) ->
    lists:all(
        fun
            ({Index, Reason}) -> is_integer(Index) andalso Index > 0 andalso is_reason(Reason);
            (_) -> false
        end,
        Failed
    );
is_failed_list(_) ->
    false.

%% The callback of `erlang:error(Reason, Args, [{error_info, #{module => py_error}}])': the shell
%% and the crash reports of OTP print what it returns beside the stack.
-spec format_error(reason() | context_not_bound | term(), erlang:stacktrace()) ->
    #{general := binary()}.
format_error(Reason, _StackTrace) -> #{general => format(Reason)}.

%% One sentence or more: what happened, and what to do about it. With details, the traceback.
-spec format(reason() | context_not_bound | term()) -> unicode:unicode_binary().
format(timeout) ->
    <<"The call did not finish in time and was cancelled. Give it more time (the Timeout argument, "
        "#{timeout => Ms}, or call_timeout in the configuration), or make it shorter.">>;
format(cancelled) ->
    <<"The work was cancelled, by py:cancel/1 or because the process it ran for ended. "
        "Start it again if its result is still wanted.">>;
format(interrupted) ->
    <<"The running Python code was interrupted by py:interrupt/1. "
        "Its context is still usable: call again.">>;
format(overload) ->
    <<"The queue of waiting calls is full. Raise num_workers or max_queue in the configuration "
        "of erlang_python, or call more slowly.">>;
format(not_running) ->
    <<"Python is not running, or it is stopping: start it with "
        "application:ensure_all_started(erlang_python). Of a function of py_asgi: there is no such server.">>;
format(no_workers_available) ->
    <<"As many workers are bound as max_bound allows. Raise max_bound in the configuration of "
        "erlang_python, or release one with py:unbind/0,1 (py:with_context/1 does so by itself).">>;
format(not_supported) ->
    <<"This Python, this kind of interpreter or this kind of loop cannot do that. "
        "py:execution_mode/0 and py:version/0 tell what is running; the documentation of the "
        "function says what it needs.">>;
format(would_block) ->
    <<"Nothing is ready yet. Wait for readiness, then try again.">>;
format(context_not_bound) ->
    <<"The context handle is not bound any more. Get a new one with py:bind(new), and use it "
        "before py:unbind/1 and before the process that bound it ends.">>;
format({context_died, Why}) ->
    text("The context that ran this call ended before it answered (~tp). Its Python state is lost: "
        "make a new context and call again.", [Why]);
format({bad_argument, What}) -> format_bad_argument(What);
format({not_convertible, <<"<coroutine object ", _/binary>> = What}) ->
    text("The function is a coroutine function: the call gave ~ts, which nobody has run. "
        "Call it with py:async_call/3 and py:await/1.", [what(What)]);
format({not_convertible, What}) ->
    text("The value ~ts has no Erlang form. Ask for a reference to it with #{return => ref}, "
        "return something simpler, or register a converter for its type.", [what(What)]);
format({posix, Code}) when is_atom(Code) ->
    text("The operating system refused: ~ts (~ts).", [file:format_error(Code), Code]);
format({asgi, What}) ->
    text("The ASGI application broke the protocol: ~ts. Correct the application; the ASGI 3.0 "
        "specification names the messages it may send.", [what(What)]);
format({gather_failed, Failed}) when is_list(Failed) ->
    join_lines([
        text("~b of the gathered calls failed:", [length(Failed)])
        | [format_failed(Each) || Each <- Failed]
    ]);
%% What a supervisor makes of the reason of a child.
format({shutdown, {failed_to_start_child, Child, Reason}}) ->
    text("The child ~tp did not start. ~ts", [Child, format(Reason)]);
format({dag, Node, Reason}) ->
    text("Node ~tp of the graph failed. ~ts~n"
        "Give it retries or a default if the graph shall go on without it.", [Node, format(Reason)]);
format({Type, Message, Details}) when is_map(Details), is_binary(Message) ->
    format_exception(Type, Message, Details);
format({<<"erlang.serve.AppNotFound">>, Message}) when is_binary(Message) ->
    text("The application was not found: ~ts. Correct its name (\"module:attribute\"), or give the directory of "
        "the module in the option app_dir.", [printable(Message)]);
format({'ModuleNotFoundError', Message}) when is_binary(Message) ->
    text("Python raised ~ts. Install the package with py:ensure_venv/2, activate its environment with "
        "py:activate_venv/1, or name the directory of the module in the setting python_path.", [
        headline('ModuleNotFoundError', Message)
    ]);
format({'NameError', Message}) when is_binary(Message) ->
    not_known('NameError', Message);
format({'AttributeError', <<"module '__main__' ", _/binary>> = Message}) ->
    not_known('AttributeError', Message);
format({<<"redis">>, Message}) when is_binary(Message) ->
    text("Redis: ~ts. Correct the command, or see that the server of redis_url can be reached.", [
        printable(Message)
    ]);
format({<<"erlang.", Class/binary>>, Message}) when is_binary(Message) ->
    text("A function of Erlang ended with ~ts: ~ts.", [printable(Class), printable(Message)]);
format({Type, Message}) when is_binary(Message), is_atom(Type) orelse is_binary(Type) ->
    text("Python raised ~ts. py:last_error() in the same process has the traceback, or ask for it "
        "with #{traceback => true}.", [headline(Type, Message)]);
format(Other) ->
    text("Unexpected reason ~tp, which is not in the list of py_error:reason(). "
        "Please report it as a defect of erlang_python.", [Other]).

not_known(Type, Message) ->
    text("Python raised ~ts. Names belong to the Erlang process that made them and end with it; in the shell any "
        "exception ends that process. Run py:exec/1 again in this one, or use a context.", [headline(Type, Message)]).

format_bad_argument(too_deep) ->
    <<"The value is nested deeper than max_depth. Make it flatter, or raise max_depth in the "
        "configuration of erlang_python.">>;
format_bad_argument(timeout) ->
    text("A timeout is infinity or 0 to ~b milliseconds, as an integer. Correct it and call again.", [?MAX_TIMEOUT]);
format_bad_argument(args) ->
    <<"The arguments of a Python function are a proper list, also when there is only one: [16].">>;
format_bad_argument(calls) ->
    <<"The calls are a list of {Module, Function, Args}, or with a map of keyword arguments as a fourth element.">>;
format_bad_argument(code) ->
    <<"Python code is a string or a binary in UTF-8.">>;
format_bad_argument(module) ->
    <<"The name of a module is an atom, a string or a binary.">>;
format_bad_argument(function) ->
    <<"The name of a function is an atom, a string or a binary; where one argument names it, {Module, Function}.">>;
format_bad_argument(name) ->
    <<"A name is missing or of the wrong type: that of a pool is an atom, that of a function an atom, a string or a "
        "binary.">>;
format_bad_argument({no_such_pool, Name}) ->
    text("There is no pool or context ~0tp. Register it with py:register_pool/2; if it is meant as a module, "
        "give the keyword arguments as a map.", [Name]);
format_bad_argument(What) ->
    text("An argument was refused: ~ts. Correct it and call again.", [what(What)]).

what({Name, Term}) when is_atom(Name) -> text("~ts (~tp)", [words(Name), Term]);
what(Name) when is_atom(Name) -> words(Name);
what(Text) when is_binary(Text) -> text("~ts", [trim_stop(printable(Text))]);
what(Other) -> text("~tp", [Other]).

words(Name) -> string:replace(atom_to_binary(Name), <<"_">>, <<" ">>, all).

trim_stop(Text) -> string:trim(Text, trailing, ".").

format_failed({Index, Reason}) -> text("  ~tp. ~ts", [Index, format(Reason)]);
format_failed(Other) -> text("  ~tp", [Other]).

%% Python's own text is the best one; without it the frames are laid out as Python does.
format_exception(_Type, _Message, #{formatted := Formatted}) when is_binary(Formatted) ->
    printable(string:trim(Formatted, trailing, "\n"));
format_exception(Type, Message, Details) ->
    Frames = maps:get(traceback, Details, []),
    Notes = maps:get(notes, Details, []),
    join_lines(
        [<<"Traceback (most recent call last):">> || Frames =/= []] ++
            [format_frame(Frame) || Frame <- Frames] ++
            [headline(Type, Message)] ++
            [printable(Note) || Note <- Notes, is_binary(Note)]
    ).

format_frame(Frame) ->
    Where = text("  File \"~ts\", line ~tp, in ~ts", [
        printable(maps:get(file, Frame, <<"?">>)),
        maps:get(line, Frame, none),
        printable(maps:get(function, Frame, <<"?">>))
    ]),
    case Frame of
        #{text := Text} when is_binary(Text), Text =/= <<>> ->
            join_lines([Where, text("    ~ts", [string:trim(printable(Text))])]);
        #{} ->
            Where
    end.

headline(Type, <<>>) -> name(Type);
headline(Type, Message) -> text("~ts: ~ts", [name(Type), printable(Message)]).

name(Type) when is_atom(Type) -> atom_to_binary(Type);
name(Type) when is_binary(Type) -> printable(Type);
name(Type) -> text("~tp", [Type]).

%% `~ts' fails on bytes that are not UTF-8; a message must be printed whatever it holds.
printable(Text) when is_binary(Text) ->
    case unicode:characters_to_binary(Text) of
        Printable when is_binary(Printable) -> Printable;
        _ -> text("~tp", [Text])
    end;
printable(Other) ->
    text("~tp", [Other]).

join_lines(Lines) -> text("~ts", [lists:join($\n, Lines)]).

text(Format, Args) -> py_text:format(Format, Args).
