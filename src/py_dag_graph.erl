%% A graph as users write it, checked and made ready for the native side; the options of a run.
%%
%% Process: the caller's. Pure but for building the native graph.
-module(py_dag_graph).

-export([compile/2, options/2, encoded/1, event_loop/2]).

-export_type([compiled/0]).

-type compiled() :: #{
    graph := py_nif:dag_graph(),
    %% By their place in the graph.
    names := tuple(),
    index := #{py_dag:node_name() => non_neg_integer()},
    functions := py_dag_runner:functions(),
    %% Whether coroutines may run in it, of its own or of nodes that its functions ask for.
    python := boolean(),
    %% What nobody else takes as an input.
    leaves := [non_neg_integer()],
    inputs := [py_dag:node_name()]
}.
-type result(T) :: {ok, T} | {error, not_running | {bad_argument, py_error:what()}}.

%% From here on building takes longer than a scheduler shall be kept.
-define(LARGE, 50).

-spec compile(py_dag:graph(), [py_dag:node_name()]) -> result(compiled()).
compile(#{graph := Graph, inputs := Known} = Compiled, Inputs) when is_reference(Graph) ->
    case lists:sort(Inputs) of
        Known -> {ok, Compiled};
        Others -> {error, {bad_argument, wrong_inputs(Known, Others)}}
    end;
compile(#{nodes := Nodes} = Graph, Inputs) when is_map(Nodes), map_size(Graph) =:= 1 ->
    try
        {ok, build(lists:keysort(1, maps:to_list(Nodes)), lists:sort(Inputs))}
    catch
        throw:{refused, What} -> {error, {bad_argument, What}};
        %% The application was never started.
        error:nif_not_loaded -> {error, not_running}
    end;
compile(_Graph, _Inputs) ->
    {error, {bad_argument, <<"a graph is #{nodes => #{Name => #{run => ...}}}">>}}.

wrong_inputs(Known, Given) ->
    case Known -- Given of
        [Missing | _] -> py_text:format("the run has no input ~0tp", [Missing]);
        [] -> py_text:format("the graph takes no input ~0tp", [hd(Given -- Known)])
    end.

build(Nodes, Inputs) ->
    Lines = [node_line(Name, Spec) || {Name, Spec} <- Nodes],
    Names = [Name || {Name, _} <- Nodes],
    Known = maps:from_keys(Names ++ Inputs, []),
    Taken = maps:from_keys(lists:append([check_inputs(Line, Known) || Line <- Lines]), []),
    Numbered = lists:enumerate(0, Lines),
    Texts = [text(Name) || Name <- Inputs],
    Build = fun(Native) -> build_native(length(Native) > ?LARGE, Texts, Native) end,
    case Build([native_line(Line) || Line <- Lines]) of
        {ok, Graph} ->
            #{
                graph => Graph,
                names => list_to_tuple(Names),
                index => maps:from_list([{Name, Index} || {Index, #{name := Name}} <- Numbered]),
                functions => maps:from_list([Called || #{function := Called} <- Lines]),
                python => lists:any(fun is_python/1, Lines),
                leaves => [
                    Index
                 || {Index, #{name := Name}} <- Numbered, not is_map_key(Name, Taken)
                ],
                inputs => Inputs
            };
        {error, Text} ->
            refuse(Text)
    end.

build_native(true, Inputs, Nodes) -> py_nif:dag_new_large(Inputs, Nodes);
build_native(false, Inputs, Nodes) -> py_nif:dag_new(Inputs, Nodes).

is_python(#{body := Body}) -> element(1, Body) =:= python.

check_inputs(#{name := Name, inputs := Inputs, condition := Condition}, Known) ->
    [
        case Known of
            #{Input := _} -> Input;
            #{} -> refuse("node ~0tp needs ~0tp, which is neither a node nor an input", [Name, Input])
        end
     || Input <- [Input || {Input, _Maybe} <- Inputs] ++ Condition
    ].

native_line(#{name := Name, body := Body, inputs := Inputs} = Line) ->
    #{policy := Policy, default := Default, condition := Condition, limit := Limit} = Line,
    Given = [{text(Input), Maybe} || {Input, Maybe} <- Inputs],
    {text(Name), Body, Given, Policy, Default, native_condition(Condition), Limit}.

native_condition([]) -> none;
native_condition([Name]) -> text(Name).

%% The inputs of a run as the native side takes them.
-spec encoded(#{py_dag:node_name() => term()}) -> [{binary(), binary()}].
encoded(Inputs) -> [{text(Name), term_to_binary(Value)} || {Name, Value} <- maps:to_list(Inputs)].

%% Where the coroutines of a graph run that has some: a context has a loop of its own; a thread of a
%% named pool awaits by itself.
-spec event_loop(compiled(), py_nif:pool() | default) ->
    {ok, py_nif:event_loop() | none} | {error, py_error:reason()}.
event_loop(#{python := false}, _Pool) -> {ok, none};
event_loop(#{python := true}, default) -> py_event_loop_pool:get_loop();
event_loop(#{python := true}, Pool) -> {ok, py_nif:pool_loop(Pool)}.

%% The name of a node or an input as pictures and messages show it.
text(Name) when is_atom(Name) -> atom_to_binary(Name);
text(Name) when is_binary(Name), Name =/= <<>> ->
    case unicode:characters_to_list(Name) of
        List when is_list(List) -> Name;
        _ -> py_text:format("~0tp", [Name])
    end;
text(Name) ->
    py_text:format("~0tp", [Name]).

node_line(Name, #{run := Run} = Spec) ->
    Allowed = [run, kind, inputs, timeout, retries, backoff, hedge, default, optional, condition, limit],
    case maps:keys(maps:without(Allowed, Spec)) of
        [] -> ok;
        [Key | _] -> refuse("node ~0tp has an unknown key ~0tp", [Name, Key])
    end,
    Declared = [input(Name, Input) || Input <- list(Name, Spec)],
    Line = #{
        name => Name,
        policy => {
            time(Name, timeout, Spec, -1),
            count(Name, retries, Spec),
            time(Name, backoff, Spec, 10),
            time(Name, hedge, Spec, -1)
        },
        default => default(Name, Spec),
        condition => [Condition || {condition, Condition} <- maps:to_list(Spec)],
        limit => limit(Name, Spec)
    },
    Kind = maps:get(kind, Spec, any),
    kind(Kind, body(Run, Kind =:= io, Declared, Line));
node_line(Name, _Spec) ->
    refuse("node ~0tp is no map with a key run", [Name]).

list(Name, Spec) ->
    case maps:get(inputs, Spec, []) of
        Inputs when is_list(Inputs) -> Inputs;
        _ -> refuse("the inputs of node ~0tp are no list", [Name])
    end.

input(_Name, {optional, Input}) -> {Input, true};
input(_Name, Input) -> {Input, false}.

time(Name, Key, Spec, Default) ->
    case Spec of
        #{Key := Time} when is_integer(Time), Time >= 0, Time < 1 bsl 40 -> Time;
        #{Key := infinity} -> -1;
        #{Key := _} -> refuse("the ~ts of node ~0tp is no number of milliseconds", [Key, Name]);
        #{} -> Default
    end.

count(Name, Key, Spec) ->
    case maps:get(Key, Spec, 0) of
        Count when is_integer(Count), Count >= 0, Count < 1 bsl 32 -> Count;
        _ -> refuse("the ~ts of node ~0tp are no count", [Key, Name])
    end.

default(_Name, #{default := Default}) -> term_to_binary(Default);
default(_Name, #{optional := true}) -> term_to_binary(none);
default(Name, #{optional := Optional}) when Optional =/= false ->
    refuse("optional of node ~0tp is neither true nor false", [Name]);
default(_Name, #{}) -> undefined.

limit(_Name, #{limit := Limit}) when is_reference(Limit) -> Limit;
limit(Name, #{limit := _}) -> refuse("the limit of node ~0tp is not from py_dag:limit/1", [Name]);
limit(_Name, #{}) -> none.

%% What runs: Python, Erlang or Redis.
body({py, Module, Function}, Io, Inputs, Line) ->
    Line#{body => {python, called(Module, Line), called(Function, Line), Io}, inputs => Inputs};
body({input, Name}, _Io, Inputs, Line) ->
    All = with(Name, Inputs),
    Line#{body => {redis, given, place(Name, All)}, inputs => All};
body({Module, Function} = Called, _Io, Inputs, Line) when is_atom(Module), is_atom(Function) ->
    function(Called, Inputs, Line);
body(Fun, _Io, Inputs, Line) when is_function(Fun, 1) ->
    function(Fun, Inputs, Line);
body([_ | _] = Commands, _Io, Inputs, #{name := Name} = Line) ->
    All = lists:foldl(fun with/2, Inputs, py_dag_command:inputs(Commands)),
    case py_dag_command:parts(Commands, fun(Input) -> place(Input, All) end) of
        {ok, {How, Parts}} -> Line#{body => {redis, How, Parts}, inputs => All};
        error -> refuse("node ~0tp has a command that is no list of words", [Name])
    end;
body(_Run, _Io, _Inputs, #{name := Name}) ->
    refuse("node ~0tp runs none of {py, M, F}, {M, F}, fun/1, a Redis command", [Name]).

%% Known by a number of its own: a run may have the functions of several graphs.
function(Called, Inputs, Line) ->
    Number = erlang:unique_integer([positive]),
    Line#{body => {erlang, Number}, inputs => Inputs, function => {Number, Called}}.

called(Text, #{name := Name}) ->
    case py_call:text(Text) of
        Called when is_atom(Called) -> atom_to_binary(Called);
        Called when is_binary(Called) -> Called;
        _ -> refuse("node ~0tp names no module and function of Python", [Name])
    end.

with(Name, Inputs) ->
    case lists:keymember(Name, 1, Inputs) of
        true -> Inputs;
        false -> Inputs ++ [{Name, false}]
    end.

place(Name, Inputs) -> place(Name, Inputs, 0).

place(Name, [{Name, _} | _], Place) -> Place;
place(Name, [_ | Rest], Place) -> place(Name, Rest, Place + 1).

kind(any, Line) ->
    Line;
kind(redis, #{body := {redis, _, _}} = Line) ->
    Line;
kind(Kind, #{body := Body} = Line) when Kind =:= cpu orelse Kind =:= io, element(1, Body) =/= redis ->
    Line;
kind(Kind, #{name := Name}) ->
    refuse("node ~0tp can't be of kind ~0tp", [Name, Kind]).

%% The options of a run, checked, as the native side takes them.
-spec options(compiled(), py_options:given()) -> {ok, map()} | {error, py_error:reason()}.
options(Compiled, Opts) ->
    case py_options:read(dag, Opts) of
        {ok, #{timeout := Timeout, flags := Flags, pool := Pool} = Options} ->
            try
                Partial = maps:get(partial, Options, false),
                {Restrict, Wanted} = wanted(Compiled, Options),
                Pictures = maps:get(pictures, Options, []),
                Bits = lists:sum([bit(Picture) || Picture <- Pictures]),
                Time = deadline(Timeout),
                Places = {redis(Options), loop(Compiled, Pool)},
                Native = {Time, Partial, Restrict, Wanted, Bits, Flags, Places},
                {ok, #{pool => Pool, native => Native, pictures => Pictures}}
            catch
                throw:{refused, What} -> {error, {bad_argument, What}};
                throw:{no_loop, Reason} -> {error, Reason}
            end;
        {error, _} = Error ->
            Error
    end.

loop(Compiled, Pool) ->
    case event_loop(Compiled, Pool) of
        {ok, Loop} -> Loop;
        {error, Reason} -> throw({no_loop, Reason})
    end.

deadline(infinity) -> -1;
deadline(Timeout) -> Timeout.

wanted(#{index := Index}, #{want := Names}) ->
    {true, [
        case Index of
            #{Name := Place} -> Place;
            #{} -> refuse("the graph has no node ~0tp", [Name])
        end
     || Name <- Names
    ]};
wanted(#{leaves := Leaves}, _Options) ->
    {false, Leaves}.

bit(dot) -> 1;
bit(svg) -> 2;
bit(chrome_trace) -> 4.

redis(#{redis := embedded}) -> <<"embedded">>;
redis(#{redis := Url}) -> Url;
redis(#{}) -> <<>>.

-spec refuse(string() | binary()) -> no_return().
refuse(Text) -> refuse("~ts", [Text]).

-spec refuse(string(), [term()]) -> no_return().
refuse(Format, Args) -> throw({refused, py_text:format(Format, Args)}).
