%% What a shared library or a program was built for, read from the file: nothing of it is loaded.
%%
%% Place: behind `py_doctor'.
%% Process: the one that asks; reads the file, no more.
-module(py_elf).

-export([read/1, glibc/1]).

-export_type([built/0]).

-type built() :: #{
    bits := 32 | 64,
    %% As `uname -m' has it, or its number.
    machine := binary(),
    %% The C library it wants; a static program wants none.
    libc := glibc | musl | none,
    %% The newest symbols that it wants of glibc.
    glibc := {non_neg_integer(), non_neg_integer()} | none
}.

-define(LOAD, 1).
-define(DYNAMIC, 2).
-define(NEEDED, 1).
-define(STRINGS, 5).

-spec read(file:filename_all()) -> {ok, built()} | {error, Why :: unicode:chardata()}.
read(File) ->
    case file:read_file(File) of
        {ok, <<16#7f, "ELF", Class, 1, _/binary>> = Elf} when Class =:= 1; Class =:= 2 ->
            try
                {ok, built(Class, Elf)}
            catch
                error:_ -> {error, "it is cut off"}
            end;
        {ok, _} ->
            {error, "it is no ELF file of a little-endian machine"};
        {error, Code} ->
            {error, file:format_error(Code)}
    end.

built(Class, <<_:16/binary, _Type:16/little, Machine:16/little, _/binary>> = Elf) ->
    Needed = needed(Class, Elf),
    #{
        bits => 32 * Class,
        machine => machine(Machine),
        libc => libc(Needed),
        glibc => glibc_wanted(Elf)
    }.

machine(62) -> <<"x86_64">>;
machine(183) -> <<"aarch64">>;
machine(3) -> <<"i686">>;
machine(40) -> <<"armv7">>;
machine(243) -> <<"riscv64">>;
machine(Number) -> py_text:format("machine ~b", [Number]).

libc(Needed) ->
    IsMusl = fun(Name) -> string:find(Name, "musl") =/= nomatch orelse Name =:= <<"libc.so">> end,
    case {lists:any(IsMusl, Needed), lists:member(<<"libc.so.6">>, Needed)} of
        {true, _} -> musl;
        {false, true} -> glibc;
        {false, false} -> none
    end.

%% The names of the libraries that it needs.
needed(Class, Elf) ->
    Segments = segments(Class, Elf),
    case [binary:part(Elf, At, Size) || {?DYNAMIC, At, _, Size} <- Segments] of
        [Dynamic | _] ->
            Entries = entries(Class, Dynamic),
            [Strings | _] = [offset(Value, Segments) || {?STRINGS, Value} <- Entries],
            [text(Elf, Strings + Value) || {?NEEDED, Value} <- Entries];
        [] ->
            []
    end.

%% {Type, Offset in the file, Address, Size in the file}
segments(2, <<_:32/binary, At:64/little, _:14/binary, Each:16/little, Count:16/little, _/binary>> = Elf) ->
    [
        begin
            <<Type:32/little, _:32, Offset:64/little, Address:64/little, _:64, Size:64/little, _/binary>> =
                binary:part(Elf, At + N * Each, Each),
            {Type, Offset, Address, Size}
        end
     || N <- lists:seq(0, Count - 1)
    ];
segments(1, <<_:28/binary, At:32/little, _:10/binary, Each:16/little, Count:16/little, _/binary>> = Elf) ->
    [
        begin
            <<Type:32/little, Offset:32/little, Address:32/little, _:32, Size:32/little, _/binary>> =
                binary:part(Elf, At + N * Each, Each),
            {Type, Offset, Address, Size}
        end
     || N <- lists:seq(0, Count - 1)
    ].

entries(2, Dynamic) -> [{Tag, Value} || <<Tag:64/little, Value:64/little>> <= Dynamic];
entries(1, Dynamic) -> [{Tag, Value} || <<Tag:32/little, Value:32/little>> <= Dynamic].

offset(Address, Segments) ->
    [Offset | _] = [
        At + Address - Start
     || {?LOAD, At, Start, Size} <- Segments, Address >= Start, Address < Start + Size
    ],
    Offset.

text(Elf, At) ->
    [Text | _] = binary:split(binary:part(Elf, At, min(256, byte_size(Elf) - At)), <<0>>),
    Text.

glibc_wanted(Elf) ->
    case re:run(Elf, "GLIBC_2\\.(\\d+)", [global, {capture, [1], binary}]) of
        {match, Versions} -> {2, lists:max([binary_to_integer(Minor) || [Minor] <- Versions])};
        nomatch -> none
    end.

%% The version of a libc.so.6.
-spec glibc(file:filename_all()) -> {non_neg_integer(), non_neg_integer()} | none.
glibc(File) ->
    case file:read_file(File) of
        {ok, Text} ->
            case re:run(Text, "GNU C Library [^\n]* version 2\\.(\\d+)", [{capture, [1], binary}]) of
                {match, [Minor]} -> {2, binary_to_integer(Minor)};
                nomatch -> none
            end;
        {error, _} ->
            none
    end.
