%% Stands in `erl_signal_server' in the place of OTP's own handler while Python handles signals: those
%% are `py_signal''s, all others are still OTP's.
-module(py_signal_handler).

-behaviour(gen_event).

-export([install/0, uninstall/0]).
-export([init/1, handle_event/2, handle_call/2, handle_info/2, terminate/2]).

-define(OTP, erl_signal_handler).

%% The state of OTP's handler; `none' where somebody had taken that out.
-type state() :: {otp, term()} | none.

-spec install() -> ok.
install() ->
    case lists:member(?MODULE, gen_event:which_handlers(erl_signal_server)) of
        true -> ok;
        false -> gen_event:swap_handler(erl_signal_server, {?OTP, swap}, {?MODULE, []})
    end.

-spec uninstall() -> ok.
uninstall() ->
    case gen_event:call(erl_signal_server, ?MODULE, replaces) of
        otp ->
            gen_event:swap_handler(erl_signal_server, {?MODULE, swap}, {?OTP, []});
        none ->
            _ = gen_event:delete_handler(erl_signal_server, ?MODULE, swap),
            ok;
        {error, bad_module} ->
            ok
    end.

-spec init({[], term()}) -> {ok, state()}.
init({[], error}) ->
    {ok, none};
init({[], _Ended}) ->
    {ok, State} = ?OTP:init([]),
    {ok, {otp, State}}.

-spec handle_event(term(), state()) -> {ok, state()}.
handle_event(Signal, State) ->
    case py_signal:came(Signal) of
        true -> {ok, State};
        false -> {ok, hand_on(Signal, State)}
    end.

hand_on(_Signal, none) ->
    none;
hand_on(Signal, {otp, State}) ->
    {ok, New} = ?OTP:handle_event(Signal, State),
    {otp, New}.

-spec handle_call(replaces, state()) -> {ok, otp | none, state()}.
handle_call(replaces, none) -> {ok, none, none};
handle_call(replaces, State) -> {ok, otp, State}.

-spec handle_info(term(), state()) -> {ok, state()}.
handle_info(_Message, State) -> {ok, State}.

-spec terminate(term(), state()) -> ok.
terminate(_Why, _State) -> ok.
