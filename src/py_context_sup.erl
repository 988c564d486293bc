%% Contexts and named pools: started when somebody asks for one.
-module(py_context_sup).

-behaviour(supervisor).

-export([start_link/0, start_context/1, stop_context/1, start_pool/3, stop_pool/1]).
-export([init/1]).

-spec start_link() -> supervisor:startlink_ret().
start_link() ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-spec start_context(map()) -> {ok, pid()} | {error, term()}.
start_context(Opts) ->
    Id = {py_context, make_ref()},
    Spec = #{id => Id, start => {py_context, begin_link, [Opts]}, restart => temporary},
    case ask(fun() -> supervisor:start_child(?MODULE, Spec) end) of
        {ok, Pid} -> {ok, Pid};
        %% A supervisor tells of the child, too.
        {error, {Reason, Child}} when element(1, Child) =:= child -> {error, Reason};
        {error, Reason} -> {error, Reason}
    end.

%% Whether it was one.
-spec stop_context(pid()) -> boolean().
stop_context(Pid) ->
    case ask(fun() -> supervisor:which_children(?MODULE) end) of
        {error, not_running} ->
            false;
        Children ->
            Ids = [Id || {{py_context, _} = Id, Child, _, _} <- Children, Child =:= Pid],
            End = fun(Id) -> ask(fun() -> supervisor:terminate_child(?MODULE, Id) end) end,
            ok = lists:foreach(End, Ids),
            Ids =/= []
    end.

-spec start_pool(worker | subinterp, atom(), pos_integer()) -> ok | {error, py_error:reason()}.
start_pool(Mode, Name, Size) ->
    Kind =
        case Mode of
            worker -> #{start => {py_pool_sup, start_link, [Name, Size]}, type => supervisor};
            subinterp -> #{start => {py_interp_pool, start_link, [Name, Size]}}
        end,
    case ask(fun() -> supervisor:start_child(?MODULE, Kind#{id => {py_pool, Name}}) end) of
        {ok, _} -> ok;
        {error, not_running} -> {error, not_running};
        {error, {not_supported, _Child}} -> {error, not_supported};
        {error, _} -> {error, {bad_argument, <<"a pool of this name exists">>}}
    end.

-spec stop_pool(atom()) -> ok | {error, py_error:reason()}.
stop_pool(Name) ->
    case ask(fun() -> supervisor:terminate_child(?MODULE, {py_pool, Name}) end) of
        ok ->
            %% Now, and not when the news of its end has come: nobody shall find it any more.
            _ = ask(fun() -> py_registry:remove_pool(Name) end),
            ask(fun() -> supervisor:delete_child(?MODULE, {py_pool, Name}) end);
        {error, not_running} -> {error, not_running};
        {error, not_found} -> {error, {bad_argument, <<"no such pool">>}}
    end.

%% The supervisor's answer, or that it is not there.
ask(Question) -> py_ask:otherwise(Question, {error, not_running}).

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    {ok, {#{strategy => one_for_one, intensity => 100, period => 10}, []}}.
