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
    leaves := [non_neg_integer()]
}.
-type result(T) :: {ok, T} | {error, not_running | {bad_argument, py_error:what()}}.

%% From here on building takes longer than a scheduler shall be kept.
-define(LARGE, 50).

-spec compile(py_dag:graph(), [py_dag:node_name()]) -> result(compiled()).
compile(#{graph := Graph} = Compiled, _Inputs) when is_reference(Graph) ->
    {ok, Compiled};
compile(#{nodes := Nodes} = Graph, Inputs) when is_map(Nodes), map_size(Graph) =:= 1 ->
    try
        build(lists:keysort(1, maps:to_list(Nodes)), [text(Name) || Name <- Inputs])
    catch
        throw:{refused, What} -> {error, {bad_argument, What}};
        %% The application was never started.
        error:nif_not_loaded -> {error, not_running}
    end;
compile(_Graph, _Inputs) ->
    {error, {bad_argument, <<"a graph is #{nodes => #{Name => #{run => ...}}}">>}}.

build(Nodes, Inputs) ->
    {Described, {Functions, Limits}} = lists:mapfoldl(fun describe/2, {#{}, #{}}, Nodes),
    ByPlace = [Limit || {_, Limit} <- lists:sort([{Place, Limit} || {Limit, Place} <- maps:to_list(Limits)])],
    case new(length(Nodes) > ?LARGE, Inputs, term_to_binary(Described), ByPlace) of
        {ok, Graph, Leaves} ->
            Names = [Name || {Name, _} <- Nodes],
            {ok, #{
                graph => Graph,
                names => list_to_tuple(Names),
                index => maps:from_list([{Name, Place} || {Place, Name} <- lists:enumerate(0, Names)]),
                functions => Functions,
                python => lists:any(fun is_python/1, Described),
                leaves => Leaves
            }};
        {error, Text} ->
            {error, {bad_argument, Text}}
    end.

new(true, Inputs, Nodes, Limits) -> py_nif:dag_new_large(Inputs, Nodes, Limits);
new(false, Inputs, Nodes, Limits) -> py_nif:dag_new(Inputs, Nodes, Limits).

is_python({_Name, #{run := Run}}) -> element(1, Run) =:= python.

%% A node as the native side reads it: its keys, which that side checks, with everything in words that both
%% know. Beside it the functions of Erlang by their numbers, and the places of limits.
describe({Name, #{run := Run} = Keys}, {Functions, Limits}) ->
    {Body, Inputs} = body(Run, inputs(Name, Keys), Name),
    {Native, More} = numbered(Body, Functions),
    Described = maps:without([optional], Keys#{
        run := Native,
        inputs => [{text(Input), Maybe} || {Input, Maybe} <- Inputs]
    }),
    {Limited, Known} = limited(with_default(Name, Keys, conditional(Described)), Limits),
    {{text(Name), Limited}, {More, Known}};
describe({Name, _Keys}, _Beside) ->
    refuse("node ~0tp is no map with a key run", [Name]).

inputs(Name, Keys) ->
    case py_kind:value(list, maps:get(inputs, Keys, [])) of
        {ok, Inputs} -> [input(Input) || Input <- Inputs];
        error -> refuse("the inputs of node ~0tp are no list", [Name])
    end.

input({optional, Input}) -> {Input, true};
input(Input) -> {Input, false}.

conditional(#{condition := Condition} = Keys) -> Keys#{condition := text(Condition)};
conditional(Keys) -> Keys.

with_default(_Name, #{default := Default}, Described) -> Described#{default => term_to_binary(Default)};
with_default(_Name, #{optional := true}, Described) -> Described#{default => term_to_binary(none)};
with_default(Name, #{optional := Optional}, _Described) when Optional =/= false ->
    refuse("optional of node ~0tp is neither true nor false", [Name]);
with_default(_Name, _Keys, Described) -> Described.

%% Any other term is none to the native side, too.
limited(#{limit := Limit} = Keys, Limits) when is_reference(Limit) ->
    Place = maps:get(Limit, Limits, map_size(Limits)),
    {Keys#{limit := Place}, Limits#{Limit => Place}};
limited(#{limit := _} = Keys, Limits) ->
    {Keys#{limit := none_of_ours}, Limits};
limited(Keys, Limits) ->
    {Keys, Limits}.

%% A function of Erlang is known by a number of its own: a run may have those of several graphs.
numbered({function, Called}, Functions) ->
    Number = erlang:unique_integer([positive]),
    {{erlang, Number}, Functions#{Number => Called}};
numbered(Body, Functions) ->
    {Body, Functions}.

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

%% The name of a node or an input as pictures and messages show it. The empty one is the native side's own.
text(Name) when is_atom(Name), Name =/= '' -> atom_to_binary(Name);
text(Name) when is_binary(Name), Name =/= <<>> ->
    case unicode:characters_to_list(Name) of
        List when is_list(List) -> Name;
        _ -> py_text:format("~0tp", [Name])
    end;
text(Name) ->
    py_text:format("~0tp", [Name]).

%% What runs, of Python, Erlang or Redis, and all its inputs.
body({py, Module, Function}, Inputs, Name) ->
    {{python, called(Module, Name), called(Function, Name)}, Inputs};
body({input, Input}, Inputs, _Name) ->
    All = with(Input, Inputs),
    {{redis, given, place(Input, All)}, All};
body({Module, Function} = Called, Inputs, _Name) when is_atom(Module), is_atom(Function) ->
    {{function, Called}, Inputs};
body(Fun, Inputs, _Name) when is_function(Fun, 1) ->
    {{function, Fun}, Inputs};
body([_ | _] = Commands, Inputs, Name) ->
    All = lists:foldl(fun with/2, Inputs, py_dag_command:inputs(Commands)),
    case py_dag_command:parts(Commands, fun(Input) -> place(Input, All) end) of
        {ok, {How, Parts}} -> {{redis, How, Parts}, All};
        error -> refuse("node ~0tp has a command that is no list of words", [Name])
    end;
body(_Run, _Inputs, Name) ->
    refuse("node ~0tp runs none of {py, M, F}, {M, F}, fun/1, a Redis command", [Name]).

called(Text, Name) ->
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

%% The options of a run, checked, as the native side takes them.
-spec options(compiled(), py_options:given()) -> {ok, Checked} | {error, py_error:reason()} when
    Checked :: #{pool := py_nif:pool() | default, native := py_nif:dag_opts(), pictures := [atom()]}.
options(Compiled, Opts) ->
    case py_options:read(dag, Opts) of
        {ok, #{timeout := Timeout, flags := Flags, pool := Pool} = Options} ->
            try
                {Restrict, Wanted} = wanted(Compiled, Options),
                Pictures = maps:get(pictures, Options, []),
                Native = #{
                    deadline => deadline(Timeout),
                    partial => maps:get(partial, Options, false),
                    restrict => Restrict,
                    wanted => Wanted,
                    pictures => lists:sum([bit(Picture) || Picture <- Pictures]),
                    flags => Flags,
                    redis => redis(Options),
                    event_loop => loop(Compiled, Pool)
                },
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

-spec refuse(string(), [term()]) -> no_return().
refuse(Format, Args) -> throw({refused, py_text:format(Format, Args)}).
