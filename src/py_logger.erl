%% Hands the records of Python's `logging' to OTP's `logger'.
%%
%% Place: the end of the way of a log record: `erlang._logging' in Python → the native sink → one
%% message `{py_log, Level, Name, Message, Meta, About}' → here → the handlers of `logger'.
%% Process: one registered server; the handlers run in it, so a slow one slows only this process.
%% Never: lets its mailbox grow without end: with 10 000 records waiting here Python's threads drop further
%% ones; they are counted, and the count is logged (I8).
-module(py_logger).

-behaviour(gen_server).

-export([start_link/0, info/0, level/1, access/2, drain/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([log_record/0, meta/0, info/0]).

%% `Level' is Python's number: 10 debug, 20 info, 30 warning, 40 error, 50 critical, any between.
-type log_record() ::
    {py_log, Level :: integer(), LoggerName :: binary(), Message :: binary(), meta(), about()}.

%% The keys may be atoms or binaries: file, line, function, module, thread, pid (the Erlang process
%% the code ran for), time (microseconds since the epoch).
-type meta() :: #{atom() | binary() => term()}.

%% What the caller has said about the job that logs: `py_about'.
-type about() :: binary() | undefined.

-type info() :: #{logged := non_neg_integer(), dropped := non_neg_integer()}.

-type state() :: info().

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% How many records were handed over and how many dropped. Comes after all that were sent before.
-spec info() -> info().
info() -> gen_server:call(?MODULE, info, infinity).

-spec level(integer()) -> logger:level().
level(N) when N >= 50 -> critical;
level(N) when N >= 40 -> error;
level(N) when N >= 30 -> warning;
level(N) when N >= 20 -> info;
level(_) -> debug.

%% Lines of an access log, each behind its time in microseconds; `Missing' had no room to wait. The handlers run
%% in the calling process, which answers to the worker when all are logged: so only one batch is on its way.
-spec access(binary(), non_neg_integer()) -> ok.
access(Lines, Missing) ->
    Meta = #{domain => [python], logger_name => <<"erlang.serve.access">>, python => #{}},
    lists:foreach(
        fun(<<Time:16/binary, " ", Line/binary>>) ->
            ok = logger:log(info, "~ts", [printable(Line)], Meta#{time => binary_to_integer(Time)})
        end,
        binary:split(Lines, <<"\n">>, [global, trim_all])
    ),
    case Missing of
        0 ->
            ok;
        _ ->
            logger:log(
                warning,
                "~b requests were not logged: they came faster than the handlers of logger take them",
                [Missing],
                Meta
            )
    end.

-spec init([]) -> {ok, state()}.
init([]) ->
    %% A flood of records must not be copied by this process's garbage collections.
    _ = process_flag(message_queue_data, off_heap),
    %% OTP's default handler drops every domain but its own; without this nobody would see a record.
    Filter = {fun logger_filters:domain/2, {log, sub, [python]}},
    case logger:add_handler_filter(default, ?MODULE, Filter) of
        ok -> ok;
        {error, {already_exist, _}} -> ok;
        %% A node may have no default handler.
        {error, {not_found, _}} -> ok
    end,
    {ok, #{logged => 0, dropped => 0}}.

-spec handle_call(info | term(), gen_server:from(), state()) ->
    {reply, info() | {error, unknown}, state()}.
handle_call(info, _From, State) ->
    {reply, State, State};
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

-spec handle_info(log_record() | term(), state()) -> {noreply, state()}.
handle_info({py_log, Level, Name, Message, Meta, About}, #{logged := Logged} = State) when
    is_integer(Level), is_binary(Name), is_binary(Message), is_map(Meta), is_binary(About) orelse About =:= undefined
->
    Dropped = write(Level, Name, Message, Meta, About),
    {noreply, told(Dropped, State#{logged := Logged + 1})};
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).

%% Gives the number of records that were dropped before it.
write(Level, Name, Message, Meta, About) ->
    ok = logger:log(level(Level), "~ts", [printable(Message)], metadata(Name, Meta, About)),
    py_nif:logged().

%% Logs the records that wait in the mailbox of the calling process.
-spec drain() -> ok.
drain() ->
    receive
        {py_log, Level, Name, Message, Meta, About} ->
            _ = write(Level, Name, Message, Meta, About),
            drain()
    after 0 -> ok
    end.

told(0, State) ->
    State;
told(Count, #{dropped := Dropped} = State) ->
    ok = logger:log(
        warning,
        "~b log records of Python were dropped: they came faster than the handlers of "
        "logger take them. Raise the level of the noisy Python logger.",
        [Count],
        #{domain => [python]}
    ),
    State#{dropped := Dropped + Count}.

%% The caller's own, under that of the record.
-spec metadata(binary(), meta(), about()) -> logger:metadata().
metadata(Name, Meta, About) ->
    Known = [
        {Key, Value}
     || Key <- [file, line, pid, time],
        {ok, Given} <- [find(Key, Meta)],
        {ok, Value} <- [known(Key, Given)]
    ],
    Python = [
        {Key, Value}
     || Key <- [function, module, thread, process], {ok, Value} <- [find(Key, Meta)]
    ],
    Own = [{domain, [python]}, {logger_name, Name}, {python, maps:from_list(Python)} | Known],
    maps:merge(py_about:metadata(About), maps:from_list(Own)).

find(Key, Meta) ->
    case Meta of
        #{Key := Value} -> {ok, Value};
        #{} -> maps:find(atom_to_binary(Key), Meta)
    end.

%% Formatters rely on the types of these; what has another one is left out.
known(file, File) when is_binary(File) -> {ok, unicode:characters_to_list(printable(File))};
known(line, Line) when is_integer(Line), Line >= 0 -> {ok, Line};
known(pid, Pid) when is_pid(Pid) -> {ok, Pid};
known(time, Time) when is_integer(Time) -> {ok, Time};
known(_, _) -> error.

printable(Bytes) ->
    case unicode:characters_to_binary(Bytes) of
        Text when is_binary(Text) -> Text;
        _ -> unicode:characters_to_binary(io_lib:format("~tp", [Bytes]))
    end.
