%% Terms of a failure in a form that Python can take.
-module(py_words).

-export([convertible/1, trace/1]).

%% The term itself if Python has something for it, else its text.
-spec convertible(term()) -> term().
convertible(Term) ->
    case fits(Term) of
        true -> Term;
        false -> text(Term)
    end.

%% `[{Module, Function, Arity, File, Line}]'
-spec trace([tuple()]) -> [{atom(), atom(), arity(), binary(), non_neg_integer()}].
trace(Trace) ->
    [frame(Frame) || Frame <- Trace].

frame({Module, Function, Args, Location}) ->
    Arity =
        case is_list(Args) of
            true -> length(Args);
            false -> Args
        end,
    File = unicode:characters_to_binary(proplists:get_value(file, Location, "")),
    {Module, Function, Arity, File, proplists:get_value(line, Location, 0)}.

fits(Term) when is_bitstring(Term) -> is_binary(Term);
fits([Head | Tail]) -> fits(Head) andalso fits_tail(Tail);
fits(Term) when is_tuple(Term) -> fits(tuple_to_list(Term));
fits(Term) when is_map(Term) ->
    lists:all(fun(Key) -> is_atom(Key) orelse is_binary(Key) end, maps:keys(Term)) andalso
        fits(maps:values(Term));
fits(Term) when is_function(Term) ->
    %% A closure is not decoded for this: its environment may be large.
    erlang:fun_info(Term, type) =:= {type, local} orelse py_term:decode(term_to_binary(Term)) =:= {ok, Term};
fits(_Term) -> true.

fits_tail([]) -> true;
fits_tail([Head | Tail]) -> fits(Head) andalso fits_tail(Tail);
fits_tail(_Improper) -> false.

text(Term) ->
    unicode:characters_to_binary(io_lib:format("~0P", [Term, 100])).
