%% Runs one program to its end: no shell, an argument list, a deadline, bounded output.
%%
%% Place: beside the paths; py_python asks an interpreter with it, py_venv runs pip or uv.
%% Process: a helper of its own per run, so that the port's messages and exit signals never reach
%% the mailbox of the caller. The helper ends with the caller, and closes the port.
-module(py_command).

-export([run/3, kill_group/1, last_words/1]).

-export_type([options/0, failure/0]).

-type options() :: #{
    timeout := timeout(),
    env => [{string(), string() | false}],
    cd => file:filename_all(),
    %% For its standard input, which stays open until the program ends or is given up.
    input => iodata(),
    %% Called with the operating system's process id when the deadline has passed.
    kill => fun((OsPid :: non_neg_integer()) -> term())
}.

-type failure() ::
    timeout | {exit_status, pos_integer(), Output :: binary()} | {posix, atom()}.

%% Only the end of a long output tells what went wrong.
-define(MAX_OUTPUT, 65_536).

%% How much of a program's output goes into an error.
-define(LAST_WORDS, 2_000).

%% The end of what a program has said, as text.
-spec last_words(binary()) -> unicode:unicode_binary().
last_words(Output) ->
    Text =
        case unicode:characters_to_binary(Output) of
            Valid when is_binary(Valid) -> Valid;
            _ -> unicode:characters_to_binary(Output, latin1)
        end,
    Trimmed = string:trim(Text),
    unicode:characters_to_binary(string:slice(Trimmed, max(0, string:length(Trimmed) - ?LAST_WORDS))).

%% Ends a program with all of its process group, which `erl_child_setup' has made for it.
-spec kill_group(OsPid :: non_neg_integer()) -> ok.
kill_group(OsPid) ->
    case os:find_executable("kill") of
        false ->
            ok;
        Kill ->
            Port = open_port({spawn_executable, Kill}, [
                {args, ["-KILL", "--", "-" ++ integer_to_list(OsPid)]}, exit_status, stderr_to_stdout, hide
            ]),
            killed(Port)
    end.

killed(Port) ->
    receive
        {Port, {data, _}} -> killed(Port);
        {Port, {exit_status, _}} -> ok
    end.

%% Standard output and standard error together, its last 64 KiB at most.
-spec run(file:filename_all(), [string() | binary()], options()) ->
    {ok, Output :: binary()} | {error, failure()}.
run(Program, Args, Options) ->
    Caller = self(),
    Run = make_ref(),
    {Helper, Monitor} = spawn_monitor(fun() ->
        Result = helper(Caller, Program, Args, Options),
        Caller ! {Run, Result},
        ok
    end),
    receive
        {Run, Result} ->
            true = demonitor(Monitor, [flush]),
            Result;
        {'DOWN', Monitor, process, Helper, Crash} ->
            error({py_command, Crash})
    end.

-spec helper(pid(), file:filename_all(), [string() | binary()], options()) ->
    {ok, binary()} | {error, failure()}.
helper(Caller, Program, Args, #{timeout := Timeout} = Options) ->
    Watch = monitor(process, Caller),
    _ = process_flag(trap_exit, true),
    PortOptions =
        [{args, Args}, {env, maps:get(env, Options, [])}] ++
            [{cd, Dir} || #{cd := Dir} <- [Options]] ++
            [binary, exit_status, stderr_to_stdout, hide, use_stdio],
    try open_port({spawn_executable, Program}, PortOptions) of
        Port ->
            true = port_command(Port, maps:get(input, Options, [])),
            collect(Port, Watch, deadline(Timeout), Options, <<>>)
    catch
        error:Code when is_atom(Code) -> {error, {posix, Code}}
    end.

collect(Port, Watch, Deadline, Options, Output) ->
    receive
        {Port, {data, Data}} -> collect(Port, Watch, Deadline, Options, tail(Output, Data));
        {Port, {exit_status, 0}} -> {ok, Output};
        {Port, {exit_status, Status}} -> {error, {exit_status, Status, Output}};
        %% It ended before it had read its input; its status is not told then.
        {'EXIT', Port, Code} when Code =/= normal -> {error, {posix, Code}};
        {'DOWN', Watch, process, _, _} -> stop(Port, Options)
    after left(Deadline) ->
        stop(Port, Options)
    end.

stop(Port, Options) ->
    OsPid = erlang:port_info(Port, os_pid),
    try port_close(Port) of
        true -> ok
    catch
        %% It ended by itself a moment ago.
        error:badarg -> ok
    end,
    _ =
        case {OsPid, Options} of
            {{os_pid, Pid}, #{kill := Kill}} -> Kill(Pid);
            _ -> ok
        end,
    {error, timeout}.

tail(Output, Data) ->
    Joined = <<Output/binary, Data/binary>>,
    case byte_size(Joined) - ?MAX_OUTPUT of
        Over when Over > 0 -> binary:copy(binary:part(Joined, Over, ?MAX_OUTPUT));
        _ -> Joined
    end.

deadline(infinity) -> infinity;
deadline(Timeout) -> erlang:monotonic_time(millisecond) + Timeout.

left(infinity) -> infinity;
left(Deadline) -> max(0, Deadline - erlang:monotonic_time(millisecond)).
