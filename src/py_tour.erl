%% The guided tour of `./dev run': what this application can do, shown by doing it.
%%
%% Process: the one that asks. Every step is the text a user would type: it is shown, then that very
%% text is evaluated, so what is on the screen is what ran.
-module(py_tour).

-export([main/0, run/1, steps/0, callers/3]).

-export_type([step/0]).

-type step() :: #{
    title := string(),
    %% Typed one after another; the variables of the last steps are still there.
    code := [string()],
    %% What the last answer must match, as it would stand in a `case'.
    answer := string(),
    %% Shown as it is, not as a term.
    show => text,
    %% A module of Python, and a file, without which the step is left out.
    needs => atom(),
    file => file:filename()
}.

-define(WIDTH, 78).
-define(INDENT, "    ").
%% Of an answer that is shown: some are long.
-define(DEPTH, 40).

%% Shows the tour and ends the node: 0 if every answer was the right one, else 1.
-spec main() -> no_return().
main() ->
    Status =
        case start() of
            ok -> min(1, run(steps()));
            failed -> 1
        end,
    ok = keep_chat(),
    ok = init:stop(Status),
    receive after infinity -> ok end.

%% Whoever sits at a terminal may try the chat.
keep_chat() ->
    case py_asgi:port(chat) of
        Port when is_integer(Port) ->
            case is_terminal(0) of
                true ->
                    say("The chat is at http://127.0.0.1:~b/; open it in two windows.", [Port]),
                    say("Enter ends the node.", []),
                    _ = io:get_line(""),
                    ok;
                false ->
                    ok
            end;
        _ ->
            ok
    end.

start() ->
    {Time, Started} = timer:tc(fun() -> application:ensure_all_started(erlang_python) end),
    case Started of
        {ok, _} ->
            {ok, Text} = py:version(),
            [Version | _] = binary:split(Text, <<" ">>),
            Otp = erlang:system_info(otp_release),
            say("~n~ts", [bold("Python inside an Erlang node")]),
            say("Erlang/OTP ~ts, Python ~ts, started in ~ts", [Otp, Version, time(Time)]),
            ok;
        {error, Reason} ->
            say("erlang_python did not start:~n~ts", [reason(Reason)]),
            failed
    end.

reason({_App, {Sentence, _Where}}) when is_binary(Sentence) -> Sentence;
reason(Reason) -> io_lib:format("~tp", [Reason]).

%% Shows the steps; how many of them gave another answer than they should.
-spec run([step()]) -> non_neg_integer().
run(Steps) ->
    {Failed, _Names, _Number} = lists:foldl(fun step/2, {0, erl_eval:new_bindings(), 1}, Steps),
    case Failed of
        0 -> say("~n~ts", [next()]);
        _ -> say("~n~ts", [red(io_lib:format("~b of the steps went wrong", [Failed]))])
    end,
    Failed.

-spec steps() -> [step()].
steps() ->
    [
        #{
            title => "Call a function; the first time its module is imported",
            code => ["py:call(math, sqrt, [16]).", "py:call(math, sqrt, [16])."],
            answer => "{ok, 4.0}"
        },
        #{
            title => "Evaluate an expression; integers have no limit on either side",
            code => ["py:eval(\"base ** 70 + 1\", #{base => 2})."],
            answer => "{ok, 1180591620717411303425}"
        },
        #{
            title => "Run statements; names belong to the calling process",
            code => [
                "py:exec(\"def area(r): return 3 * r * r\").",
                "py:call('__main__', area, [2])."
            ],
            answer => "{ok, 12}"
        },
        #{
            title => "Values cross as what they are",
            code => ["py:eval(\"{'on': True, 'parts': [1, 2.5, ('two', None)]}\")."],
            answer => "{ok, #{<<\"on\">> := true, <<\"parts\">> := [1, 2.5, {<<\"two\">>, none}]}}"
        },
        #{
            title => "An exception is a value",
            code => ["py:call('__main__', area, [<<\"two\">>])."],
            answer => "{error, {'TypeError', _}}"
        },
        #{
            title => "... and its traceback is not lost",
            code => ["maps:get(formatted, py:last_error())."],
            answer => "<<\"Traceback (most recent call last):\", _/binary>>",
            show => text
        },
        #{
            title => "A timeout comes on time (later the log tells that sleep can't be stopped)",
            code => ["py:call(time, sleep, [60], #{}, 200)."],
            answer => "{error, timeout}"
        },
        #{
            title => "Python calls Erlang",
            code => [
                "py:register_function(shout, fun([Text]) -> string:uppercase(Text) end).",
                "py:eval(\"__import__('erlang').shout('hello')\")."
            ],
            answer => "{ok, <<\"HELLO\">>}"
        },
        #{
            title => "A generator as messages; at most two unread ones at a time",
            code => [
                "{ok, Ref} = py:stream_start(itertools, count, [7], #{}, #{window => 2}).",
                "[receive {py_stream, Ref, Item} -> Item end || _ <- [1, 2]].",
                "py:stream_cancel(Ref)."
            ],
            answer => "ok"
        },
        #{
            title => "... or all of it at once",
            code => ["py:stream_eval(\"(n * n for n in range(10))\")."],
            answer => "{ok, [0, 1, 4, 9, 16, 25, 36, 49, 64, 81]}"
        },
        #{
            title => "An object may stay in Python; Erlang holds a reference to it",
            code => [
                "{ok, Counter} = py:call(collections, 'Counter', [<<\"mississippi\">>], #{},\n"
                "                        #{return => ref}).",
                "py:call_method(Counter, most_common, [2])."
            ],
            answer => "{ok, [{<<\"i\">>, 4}, {<<\"s\">>, 4}]}"
        },
        #{
            title => "A context: one thread and one set of names, for whoever has its pid",
            code => [
                "{ok, Context} = py_context:new(#{}).",
                "py:exec(Context, \"answer = 42\").",
                "py:eval(Context, \"answer\")."
            ],
            answer => "{ok, 42}"
        },
        #{
            title => "print goes where the caller's io:format goes",
            code => ["py:exec(\"print('    printed by Python')\")."],
            answer => "ok"
        },
        #{
            title => "numpy: the array's own memory is the binary, without a copy",
            code => ["py:call(numpy, arange, [4])."],
            answer => "{ok, {ndarray, <<\"<i8\">>, [4], <<0:64/little, 1:64/little, _/binary>>}}",
            needs => numpy
        },
        #{
            title => "A graph: 300 reads of Redis at once, then Python (a store in memory answers)",
            code => [
                "Set = [[\"SET\", {join, [\"n:\", N]}, N] || N <- lists:seq(1, 300)], ok.",
                "Get = [[\"GET\", {join, [\"n:\", N]}] || N <- lists:seq(1, 300)], ok.",
                "py:exec(\"def total(found): return sum(map(int, found))\").",
                "{ok, #{results := Results}} = py_dag:run(#{nodes => #{\n"
                "    write => #{run => Set},\n"
                "    read => #{run => Get, inputs => [write]},\n"
                "    sum => #{run => {py, '__main__', total}, inputs => [read]}}}, #{}).",
                "Results."
            ],
            answer => "#{sum := 45150}"
        },
        #{
            title => "A web application served by the node (WSGI here; ASGI is the same)",
            code => [
                "App = {wsgi, \"wsgiref.simple_server:demo_app\"}.",
                "{ok, Server} = py_asgi:serve(App, #{port => 0}).",
                "{ok, Socket} = gen_tcp:connect(\"127.0.0.1\", py_asgi:port(Server),\n"
                "                               [binary, {active, false}]).",
                "gen_tcp:send(Socket, \"GET / HTTP/1.1\\r\\nhost: tour\\r\\n\\r\\n\").",
                "{ok, Response} = gen_tcp:recv(Socket, 15).",
                "py_asgi:stop(Server).",
                "Response."
            ],
            answer => "<<\"HTTP/1.1 200 OK\">>"
        },
        #{
            title => "A FastAPI application: a chat of browsers, Python and Erlang processes",
            code => [
                "{ok, chat} = c:c(\"examples/chat/chat\", [{outdir, \"_build\"}]).",
                "{ok, _} = application:ensure_all_started(inets).",
                "{ok, Chat} = chat:start(\"examples/chat\", 0).",
                "Url = lists:concat([\"http://127.0.0.1:\", py_asgi:port(Chat), \"/\"]).",
                "{ok, {Status, _, _}} = httpc:request(Url), Status."
            ],
            answer => "{\"HTTP/1.1\", 200, \"OK\"}",
            needs => fastapi,
            file => "examples/chat/chat.erl"
        },
        #{
            title => "1000 processes at once",
            code => ["py_tour:callers(1000, 20, fun() -> py:call(math, sqrt, [16]) end)."],
            answer => "{20000, calls, _, per_second}"
        }
    ].

%% Calls from so many processes at once, so many times each.
-spec callers(pos_integer(), pos_integer(), fun(() -> {ok, term()})) ->
    {pos_integer(), calls, pos_integer(), per_second}.
callers(Processes, Times, Call) ->
    Repeat = fun() -> lists:foreach(fun(_) -> {ok, _} = Call() end, lists:seq(1, Times)) end,
    {Time, ok} = timer:tc(fun() ->
        Spawned = [spawn_monitor(Repeat) || _ <- lists:seq(1, Processes)],
        lists:foreach(
            fun({Pid, Monitor}) ->
                receive
                    {'DOWN', Monitor, process, Pid, normal} -> ok;
                    {'DOWN', Monitor, process, Pid, Why} -> exit(Why)
                end
            end,
            Spawned
        )
    end),
    Calls = Processes * Times,
    {Calls, calls, Calls * 1_000_000 div Time, per_second}.

next() ->
    [
        bold("What to do next"),
        "\n",
        [
            [?INDENT, string:pad(What, 24), Why, "\n"]
         || {What, Why} <- [
                {"./dev shell", "an Erlang shell with the application started"},
                {"./dev test", "the tests, on every Python found"},
                {"./dev bench calls", "how fast it is here, beside gen_server:call"},
                {"docs/getting-started.md", "the first page of the documentation"},
                {"examples/", "small programs to copy from"}
            ]
        ]
    ].

%% ---- one step

step(#{title := Title} = Step, {Failed, Names, Number}) ->
    say("~n~ts", [bold(io_lib:format("~2b  ~ts", [Number, Title]))]),
    case obstacle(Step) of
        none ->
            {Outcome, After} = type_all(Step, Names),
            {Failed + Outcome, After, Number + 1};
        Why ->
            say(?INDENT "left out: ~ts", [Why]),
            {Failed, Names, Number + 1}
    end.

obstacle(#{file := File} = Step) ->
    case filelib:is_regular(File) of
        true -> obstacle(maps:remove(file, Step));
        false -> ["there is no ", File, " here"]
    end;
obstacle(#{needs := Module}) ->
    case py:call('importlib.util', find_spec, [Module]) of
        {ok, none} -> io_lib:format("there is no ~ts in this Python", [Module]);
        _ -> none
    end;
obstacle(#{}) ->
    none.

type_all(#{code := Lines, answer := Wanted} = Step, Names) ->
    try lists:foldl(fun(Line, {_, Now}) -> type(Line, Now, Step) end, {none, Names}, Lines) of
        {Answer, After} -> {judge(Answer, Wanted), After}
    catch
        Class:Reason:Stack ->
            say("~ts", [red(indent(erl_error:format_exception(Class, Reason, Stack)))]),
            {1, Names}
    end.

type(Line, Names, Step) ->
    say("~ts", [dim(indent(["> ", string:replace(Line, "\n", "\n  ", all)]))]),
    Expressions = parse(Line),
    {Time, {value, Answer, After}} = timer:tc(fun() -> erl_eval:exprs(Expressions, Names) end),
    show(Answer, Time, Step),
    {Answer, After}.

judge(Answer, Wanted) ->
    [Pattern] = parse(Wanted ++ "."),
    Match = {match, erl_anno:new(1), Pattern, {var, erl_anno:new(1), 'Answer'}},
    try erl_eval:expr(Match, [{'Answer', Answer}]) of
        {value, _, _} -> 0
    catch
        error:{badmatch, _} ->
            say("~ts", [red(indent(["this should have been ", Wanted]))]),
            1
    end.

parse(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    {ok, Expressions} = erl_parse:parse_exprs(Tokens),
    Expressions.

%% ---- what it looks like

%% The answer, and at the right margin the time it took.
show(Answer, Time, Step) ->
    Room = ?WIDTH - length(?INDENT),
    Text =
        case Step of
            #{show := text} -> string:trim(Answer);
            #{} -> io_lib:format("~*tP", [Room, Answer, ?DEPTH])
        end,
    Lines = string:split(unicode:characters_to_list(Text), "\n", all),
    Last = lists:last(Lines),
    Took = time(Time),
    Gap = Room - string:length(Last) - string:length(Took),
    lists:foreach(fun(Line) -> say(?INDENT "~ts", [Line]) end, lists:droplast(Lines)),
    case Gap > 0 of
        true -> say(?INDENT "~ts~*c~ts", [Last, Gap, $\s, dim(Took)]);
        false -> say(?INDENT "~ts~n~*ts", [Last, ?WIDTH, Took])
    end.

time(Us) when Us < 10_000 -> io_lib:format("~b us", [Us]);
time(Us) -> io_lib:format("~.1f ms", [Us / 1000]).

indent(Text) ->
    Lines = string:split(unicode:characters_to_list(Text), "\n", all),
    lists:join("\n", [[?INDENT, Line] || Line <- Lines]).

say(Format, Args) -> io:format(Format ++ "~n", Args).

bold(Text) -> paint("1", Text).
dim(Text) -> paint("2", Text).
red(Text) -> paint("31", Text).

paint(Code, Text) ->
    case has_colours() of
        true -> ["\e[", Code, "m", Text, "\e[0m"];
        false -> Text
    end.

has_colours() ->
    os:getenv("NO_COLOR") =:= false andalso os:getenv("TERM") =/= "dumb" andalso is_terminal(1).

is_terminal(Descriptor) ->
    case file:read_link(lists:concat(["/proc/self/fd/", Descriptor])) of
        {ok, "/dev/" ++ Device} -> Device =/= "null";
        _ -> false
    end.
