%% What a job is told about its caller beside the pid: `trace_id', `reply_to', and the metadata that the
%% caller's process has for `logger'. It goes with the job into Python (`erlang.current()'), and from
%% there into the processes of its callbacks.
%%
%% Process: the caller's own, or an executor.
-module(py_about).

-export([flags/0, flags/2, adopt/1, metadata/1]).

-include("py_nif.hrl").

%% The flag for the next jobs of this process, if there is something to tell. Most processes have no
%% metadata; then this is all it costs.
-spec flags() -> py_nif:flags().
flags() ->
    case logger:get_process_metadata() of
        undefined -> 0;
        Metadata -> tell(trace_id(#{}, Metadata), self(), Metadata)
    end.

%% The same with the options of a call.
-spec flags(map(), ReplyTo :: pid()) -> py_nif:flags().
flags(Opts, ReplyTo) ->
    case {logger:get_process_metadata(), Opts} of
        {undefined, #{trace_id := TraceId}} -> tell(TraceId, ReplyTo, #{});
        {undefined, #{reply_to := _}} -> tell(undefined, ReplyTo, #{});
        {undefined, #{}} -> 0;
        {Metadata, #{}} -> tell(trace_id(Opts, Metadata), ReplyTo, Metadata)
    end.

trace_id(#{trace_id := TraceId}, _Metadata) -> TraceId;
trace_id(#{}, #{trace_id := TraceId}) -> TraceId;
trace_id(#{}, #{}) -> undefined.

tell(TraceId, ReplyTo, Metadata) ->
    Words = maps:map(fun(_Key, Value) -> py_words:convertible(Value) end, Metadata),
    About = {py_words:convertible(TraceId), ReplyTo, Words},
    ok = py_nif:slot_about(py_call:slot(), term_to_binary(About)),
    ?FLAG_ABOUT.

%% This process logs, and calls Python, as the one whose job has called it.
-spec adopt(binary() | undefined) -> ok.
adopt(undefined) -> ok;
adopt(About) -> logger:set_process_metadata(metadata(About)).

%% What was told, as metadata; the trace's number is part of it.
-spec metadata(binary() | undefined) -> logger:metadata().
metadata(undefined) ->
    #{};
metadata(About) ->
    case py_term:decode(About) of
        {ok, {undefined, _ReplyTo, Metadata}} when is_map(Metadata) -> Metadata;
        {ok, {TraceId, _ReplyTo, Metadata}} when is_map(Metadata) -> Metadata#{trace_id => TraceId};
        %% Not readable, or forged by Python code: nothing is known.
        _ -> #{}
    end.
