%% Messages that a process of the application does not know: logged and dropped. One stray call, cast or
%% message must not end a process that others depend on.
%%
%% Process: the server that got the message. It logs at most one line a second, with the number of those
%% that came since.
-module(py_stray).

-include_lib("kernel/include/logger.hrl").

-export([call/3, cast/3, info/3]).

%% In the process dictionary: the second of the last line, and how many were dropped since.
-define(KEY, '$py_stray').
%% Parts of the message that are logged.
-define(DEPTH, 20).

%% These three end the callbacks of every `gen_server' here.
-spec call(module(), term(), State) -> {reply, {error, unknown}, State}.
call(Server, Request, State) ->
    ok = log(Server, call, Request),
    {reply, {error, unknown}, State}.

-spec cast(module(), term(), State) -> {noreply, State}.
cast(Server, Request, State) ->
    ok = log(Server, cast, Request),
    {noreply, State}.

-spec info(module(), term(), State) -> {noreply, State}.
info(Server, Message, State) ->
    ok = log(Server, message, Message),
    {noreply, State}.

log(Server, Kind, Term) ->
    Now = erlang:monotonic_time(second),
    case get(?KEY) of
        {Now, Dropped} ->
            _ = put(?KEY, {Now, Dropped + 1}),
            ok;
        Before ->
            _ = put(?KEY, {Now, 0}),
            ?LOG_WARNING("~ts dropped a ~ts that it does not know~ts: ~0tP", [
                Server, Kind, more(Before), Term, ?DEPTH
            ])
    end.

more({_, Dropped}) when Dropped > 0 -> [" (and ", integer_to_list(Dropped), " before it)"];
more(_) -> "".
