%% The listening sockets of a server: opened here, so that they outlive the loops that accept from
%% them, and end with the process that opened them.
%%
%% Process: a `py_asgi_server'.
-module(py_asgi_socket).

-export([listen/1, fd/1, address/1, file/1, close/2]).
-export([new_owned/0, own/1, owned/0, ends/0, is_ending/1, is_left/1, disown/0]).

-export_type([sockets/0, file/0]).

-include_lib("kernel/include/file.hrl").

%% One for all workers, or with `reuse_port' one for each. Not of the module `socket': closing one of
%% these makes its copies blocking, and accepting from such a one would stop all of Python.
-type sockets() :: [gen_tcp:socket()].

%% The path of a Unix socket and its inode.
-type file() :: {file:name_all(), Inode :: non_neg_integer() | none} | none.

%% Servers that users own, where each listens, and whether it does so.
-define(OWNED, py_asgi_owned).

%% SOL_SOCKET and SO_REUSEPORT of Linux, which `inet' has no name for before OTP 26.
-define(REUSE_PORT, {raw, 1, 15, <<1:32/native>>}).

-spec listen(py_asgi_options:options()) -> {ok, sockets()} | {error, py_error:reason()}.
listen(#{uds := Path} = Options) ->
    ok = forget_old(Path),
    case one([local, {ifaddr, {local, Path}}], 0, Options) of
        {ok, Sockets} -> allowed(file:change_mode(Path, maps:get(uds_mode, Options)), Sockets, file(Options));
        {error, _} = Error -> Error
    end;
listen(#{host := Host, port := Port, reuse_port := Reuse, workers := Workers} = Options) ->
    case resolve(Host) of
        {ok, Family, Ip} ->
            Settings = [Family, {ip, Ip}, {reuseaddr, true} | [?REUSE_PORT || Reuse]],
            case one(Settings, Port, Options) of
                {ok, [First]} when Reuse -> more(Workers - 1, Settings, [First], Options);
                Answer -> Answer
            end;
        {error, _} = Error ->
            Error
    end.

allowed(ok, Sockets, _File) ->
    {ok, Sockets};
allowed({error, Reason}, Sockets, File) ->
    ok = close(Sockets, File),
    {error, {posix, Reason}}.

%% The next ones have the port that the first one got.
more(0, _Settings, Sockets, _Options) ->
    {ok, lists:reverse(Sockets)};
more(Left, Settings, [Last | _] = Sockets, Options) ->
    {ok, Port} = inet:port(Last),
    case one(Settings, Port, Options) of
        {ok, [Next]} ->
            more(Left - 1, Settings, [Next | Sockets], Options);
        {error, _} = Error ->
            lists:foreach(fun gen_tcp:close/1, Sockets),
            Error
    end.

one(Settings, Port, #{backlog := Backlog}) ->
    All = [{inet_backend, inet}, {active, false}, {backlog, Backlog} | Settings],
    case gen_tcp:listen(Port, All) of
        {ok, Socket} -> {ok, [Socket]};
        {error, Reason} -> {error, {posix, Reason}}
    end.

resolve(Host) ->
    Name = binary_to_list(Host),
    case inet:parse_address(Name) of
        {ok, Ip} -> {ok, family(Ip), Ip};
        {error, einval} -> look_up(Name, [inet, inet6])
    end.

family(Ip) when tuple_size(Ip) =:= 4 -> inet;
family(_Ip) -> inet6.

look_up(_Name, []) ->
    {error, {posix, nxdomain}};
look_up(Name, [Family | Rest]) ->
    case inet:getaddr(Name, Family) of
        {ok, Ip} -> {ok, Family, Ip};
        {error, _} -> look_up(Name, Rest)
    end.

%% What a server left that had no time to clean up.
forget_old(Path) ->
    case file:read_file_info(Path) of
        {ok, #file_info{type = other}} -> _ = file:delete(Path), ok;
        _ -> ok
    end.

%% ---- whose addresses are in use

%% Makes the table of the servers that users own; its owner is the calling process.
-spec new_owned() -> ok.
new_owned() ->
    ?OWNED = ets:new(?OWNED, [named_table, public]),
    ok.

%% The calling process listens there. One that was killed has left its entry.
-spec own(py_asgi_options:options()) -> ok.
own(Options) ->
    Gone = [Pid || {Pid, _, _, _} <- ets:tab2list(?OWNED), not is_process_alive(Pid)],
    lists:foreach(fun(Pid) -> ets:delete(?OWNED, Pid) end, Gone),
    true = ets:insert(?OWNED, {self(), place(Options), up, py_asgi_options:shutdown(Options)}),
    ok.

%% All of them, with the milliseconds that each may take for its end.
-spec owned() -> [{pid(), timeout()}].
owned() -> [{Pid, Shutdown} || {Pid, _, _, Shutdown} <- ets:tab2list(?OWNED)].

%% It does so no more, and answers what it has begun.
-spec ends() -> ok.
ends() ->
    changed(fun() -> ets:update_element(?OWNED, self(), {3, ending}) end).

-spec disown() -> ok.
disown() ->
    changed(fun() -> ets:delete(?OWNED, self()) end).

%% The application may have ended, and the table with it.
changed(Change) ->
    try Change() of
        _ -> ok
    catch
        error:badarg -> ok
    end.

-spec is_ending(pid()) -> boolean().
is_ending(Server) -> ets:match(?OWNED, {Server, '_', ending, '_'}) =/= [].

%% Whether a server has listened there that was killed, or is ending: its loops have copies of the socket.
-spec is_left(py_asgi_options:options()) -> boolean().
is_left(Options) ->
    Found = ets:match_object(?OWNED, {'_', place(Options), '_', '_'}),
    lists:any(fun({Pid, _, Phase, _}) -> Phase =:= ending orelse not is_process_alive(Pid) end, Found).

place(#{uds := Path}) -> {uds, Path};
place(#{host := Host, port := Port}) -> {Host, Port}.

-spec fd(gen_tcp:socket()) -> non_neg_integer().
fd(Socket) ->
    {ok, Fd} = inet:getfd(Socket),
    Fd.

%% For people: `#{host, port}' or `#{uds}'.
-spec address(sockets()) -> #{host | uds := binary(), port => inet:port_number()}.
address([Socket | _]) ->
    case inet:sockname(Socket) of
        {ok, {local, Path}} -> #{uds => iolist_to_binary(Path)};
        {ok, {Ip, Port}} -> #{host => list_to_binary(inet:ntoa(Ip)), port => Port}
    end.

%% Of a socket that was just made.
-spec file(py_asgi_options:options()) -> file().
file(#{uds := Path}) -> {Path, inode(Path)};
file(_Options) -> none.

inode(Path) ->
    case file:read_link_info(Path) of
        {ok, #file_info{inode = Inode}} -> Inode;
        {error, _} -> none
    end.

%% A path that another server has taken over stays.
-spec close(sockets(), file()) -> ok.
close(Sockets, File) ->
    %% Before the sockets: while they are open nobody else gets this inode.
    ok = remove(File),
    lists:foreach(fun gen_tcp:close/1, Sockets).

remove({Path, Inode}) when is_integer(Inode) ->
    _ = inode(Path) =:= Inode andalso file:delete(Path),
    ok;
remove(_File) ->
    ok.
