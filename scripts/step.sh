# shellcheck shell=sh
# Shows one line per step with the time it took. What a step prints goes to _build/log and is
# shown only when the step fails.

# What a build leaves that is not its result; scripts/install.sh has another one where the source is read-only.
build_dir=${build_dir:-$root/_build}
log_dir=$build_dir/log
tail_lines=40
# Which of the lanes of tasks.sh this is; empty outside of them.
lane=''

newline='
'
tab=$(printf '\t')

bold='' red='' green='' dim='' plain='' live=no
if [ -t 1 ] && [ -z "${CI:-}" ]; then
    live=yes
    if [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
        escape=$(printf '\033')
        bold="${escape}[1m" red="${escape}[31m" green="${escape}[32m"
        dim="${escape}[2m" plain="${escape}[0m"
    fi
fi

die() {
    printf '%s%s: %s%s\n' "$red" "${program:-dev}" "$*" "$plain" >&2
    exit 1
}

say() {
    printf '%s\n' "$*"
}

# Sets `now`, in hundredths of a second, without starting a process.
clock() {
    read -r clock_uptime clock_idle </proc/uptime
    : "$clock_idle"
    now=$((${clock_uptime%.*} * 100 + 1${clock_uptime#*.} - 100))
}

# seconds HUNDREDTHS
seconds() {
    printf '%d.%d s' $(($1 / 100)) $(($1 % 100 / 10))
}

# Repaints the line of the running step once a second, for a person who watches.
tick() {
    tick_count=0
    while sleep 1; do
        tick_count=$((tick_count + 1))
        printf '\r  %-52s %s%d s%s ' "$1" "$dim" "$tick_count" "$plain"
    done
}

stop_ticker() {
    [ -n "${ticker:-}" ] || return 0
    kill "$ticker" 2>/dev/null || :
    wait "$ticker" 2>/dev/null || :
    ticker=''
}

# step LABEL LOG COMMAND [ARG…]: the status is the command's, the time is left in `step_time`.
# COMMAND runs in a subshell without `errexit`: a function given here returns its own failures.
# In a lane (tasks.sh) other steps run too, so its line is printed when it is over.
step() {
    step_label=$1
    step_log=$log_dir/$2.log
    shift 2
    mkdir -p "$log_dir"
    [ -n "$lane" ] || printf '  %-52s ' "$step_label"
    clock
    step_start=$now
    step_status=0
    if [ "$live" = yes ] && [ -z "$lane" ]; then
        tick "$step_label" &
        ticker=$!
        trap 'stop_ticker; exit 130' INT TERM
    fi
    # A dumb terminal: rebar3 would put colours into the log.
    (export TERM=dumb && "$@") >"$step_log" 2>&1 </dev/null || step_status=$?
    if [ -z "$lane" ]; then
        stop_ticker
        trap - INT TERM
    fi
    clock
    step_time=$((now - step_start))
    step_start_of_line='' step_verdict="${green}ok$plain    "
    [ "$live" = no ] || step_start_of_line=$(printf '\r\033[K')
    [ "$step_status" -eq 0 ] || step_verdict="${red}failed$plain"
    if [ -n "$lane" ] || [ "$live" = yes ]; then
        printf '%s  %-52s %s  %8s\n' "$step_start_of_line" "$step_label" "$step_verdict" "$(seconds "$step_time")"
    else
        printf '%s  %8s\n' "$step_verdict" "$(seconds "$step_time")"
    fi
    [ "$step_status" -ne 0 ] || return 0
    show_failure "$step_log"
    return "$step_status"
}

# show_failure LOG: what the runner itself calls a failure, then the end of the log.
show_failure() {
    grep -a -A 12 '^FAILED' "$1" | head -n 80 | sed 's/^/  | /'
    printf '%s--- the end of %s%s\n' "$dim" "$1" "$plain"
    tail -n "$tail_lines" "$1" | sed 's/^/  | /'
}

# step_or_exit LABEL LOG COMMAND [ARG…]
step_or_exit() {
    step "$@" || exit 1
}

# One build at a time in one tree; the lock goes with the process, or earlier by `unlock`.
lock() {
    mkdir -p "$build_dir"
    exec 9>"$build_dir/lock"
    flock -n 9 && return 0
    say "  waiting for another build of $root to end"
    flock 9
}

unlock() {
    exec 9>&-
}
