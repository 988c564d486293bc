%% The server of `./dev soak http' in a node: plain with two workers, which give each other connections as sockets, and
%% TLS. Prints `ready PLAIN TLS', and ends with SIGTERM.
-module(soak_node).

-export([main/1]).

-spec main([string()]) -> ok.
main([Dir, Certificate]) ->
    {ok, _} = application:ensure_all_started(erlang_python),
    ok = py:register_function(soak_numbers, fun numbers/1),
    Common = #{port => 0, app_dir => unicode:characters_to_binary(Dir), access_log => false, backlog => 1024},
    Secure = Common#{certificate => unicode:characters_to_binary(Certificate)},
    [Plain, Tls] = [serve(Opts) || Opts <- [Common#{workers => 2}, Secure]],
    io:format("ready ~b ~b~n", [Plain, Tls]).

serve(Opts) ->
    {ok, Server} = py_asgi:serve(<<"soak_app:app">>, Opts),
    py_asgi:port(Server).

%% What the emulator has. Processes that run functions for Python come and go by the dozen: some are kept ready, and an
%% idle one stays for two seconds.
numbers([]) ->
    #{
        processes => length([Pid || Pid <- processes(), not is_executor(Pid)]),
        ports => erlang:system_info(port_count),
        atoms => erlang:system_info(atom_count)
    }.

is_executor(Pid) -> {initial_call, {py_executor, init, 1}} =:= process_info(Pid, initial_call).
