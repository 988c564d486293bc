%% The audit events of Python, for the `audit' setting: a name that refuses nothing is a mistake, and a silent one.
%%
%% Place: behind `py_config'. Python itself has no list of them; this one has those of 3.11 to 3.14 on Linux.
%% Process: the one that starts the application. Pure.
-module(py_audit_events).

-export([check/1]).

%% Fine, or what is wrong with the first name that is.
-spec check([binary()]) -> ok | {error, unicode:chardata()}.
check([]) ->
    ok;
check([Name | Rest]) ->
    case known(unicode:characters_to_list(Name)) of
        true -> check(Rest);
        {false, Hint} -> {error, io_lib:format("audit names ~ts, which refuses nothing~ts", [Name, Hint])}
    end.

%% A group, an event, or an event of a package, which Python has no table of either.
known(Name) ->
    Groups = [Group || {Group, _} <- groups()],
    case string:split(Name, ".") of
        [Group] -> named(Group, Groups);
        [Group, _Event] -> named_in_full(Name, Group, lists:keyfind(Group, 1, groups()), Groups)
    end.

named(Group, Groups) ->
    case lists:member(Group, Groups) of
        true -> true;
        false -> {false, nearest(Group, Groups, ": it is no group of Python's audit events")}
    end.

named_in_full(Name, Group, {Group, Events}, _Groups) ->
    All = [Group ++ "." ++ Event || Event <- string:lexemes(Events, " ")],
    case lists:member(Name, All) of
        true -> true;
        false -> {false, nearest(Name, All, [": ", Group, " refuses all of its events"])}
    end;
named_in_full(_Name, Group, false, Groups) ->
    case py_kind:nearest(Group, Groups) of
        {ok, _} = Nearest -> {false, did_you_mean(Nearest)};
        none -> true
    end.

nearest(Name, Known, Otherwise) ->
    case py_kind:nearest(Name, Known) of
        {ok, _} = Nearest -> did_you_mean(Nearest);
        none -> Otherwise
    end.

did_you_mean({ok, Nearest}) -> ["; did you mean ", Nearest, "?"].

%% The part before the first dot, and the events that begin with it.
groups() ->
    [
        {"_thread", "start_joinable_thread start_new_thread"},
        {"array", "__new__"},
        {"builtins", "breakpoint id input input/result"},
        {"code", "__new__"},
        {"compile", ""},
        {"cpython",
            "PyInterpreterState_Clear PyInterpreterState_New _PySys_ClearAuditHooks remote_debugger_script "
            "run_command run_file run_interactivehook run_module run_startup run_stdin"},
        {"ctypes",
            "PyObj_FromPtr addressof call_function cdata cdata/buffer create_string_buffer create_unicode_buffer "
            "dlopen dlsym dlsym/handle get_errno memoryview_at set_errno string_at wstring_at"},
        {"ensurepip", "bootstrap"},
        {"exec", ""},
        {"fcntl", "fcntl flock ioctl lockf"},
        {"ftplib", "connect sendcmd"},
        {"function", "__new__"},
        {"gc", "get_objects get_referents get_referrers"},
        {"glob", "glob glob/2"},
        {"http", "client.connect client.send"},
        {"imaplib", "open send"},
        {"import", ""},
        {"marshal", "dumps load loads"},
        {"mmap", "__new__"},
        {"nntplib", "connect putline"},
        {"object", "__delattr__ __getattr__ __setattr__"},
        {"open", ""},
        {"os",
            "chdir chflags chmod chown exec fork forkpty fwalk getxattr kill killpg link listdir listxattr lockf mkdir "
            "posix_spawn putenv remove removexattr rename rmdir scandir setxattr spawn symlink system truncate "
            "unsetenv utime walk"},
        {"pathlib", "Path.glob Path.rglob Path.walk"},
        {"pdb", "Pdb"},
        {"pickle", "find_class"},
        {"poplib", "connect putline"},
        {"pty", "spawn"},
        {"resource", "prlimit setrlimit"},
        {"setopencodehook", ""},
        {"shutil", "chown copyfile copymode copystat copytree make_archive move rmtree unpack_archive"},
        {"signal", "pthread_kill"},
        {"smtplib", "connect send"},
        {"socket",
            "__new__ bind connect getaddrinfo gethostbyaddr gethostbyname gethostname getnameinfo getservbyname "
            "getservbyport sendmsg sendto sethostname"},
        {"sqlite3", "connect connect/handle enable_load_extension load_extension"},
        {"subprocess", "Popen"},
        {"sys",
            "_current_exceptions _current_frames _getframe _getframemodulename addaudithook excepthook "
            "monitoring.register_callback remote_exec set_asyncgen_hook_finalizer set_asyncgen_hook_firstiter "
            "set_asyncgen_hooks_finalizer set_asyncgen_hooks_firstiter setprofile settrace unraisablehook"},
        {"syslog", "closelog openlog setlogmask syslog"},
        {"telnetlib", "Telnet.open Telnet.write"},
        {"tempfile", "_rmtree mkdtemp mkstemp"},
        {"time", "sleep"},
        {"urllib", "Request"},
        {"webbrowser", "open"}
    ].
