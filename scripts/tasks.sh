# shellcheck shell=sh
# Runs tasks side by side. A task is a function with its arguments, and begins when the tasks it needs have ended.
#
# Lanes are subshells that take the next task that is ready, in the order they were added. What a task leaves for
# later is files: a variable it sets is gone with it. What it needs and did not succeed is the end of it too.

task_dir=$root/_build/tasks
tasks=''

# task NAME 'NEED…' FUNCTION [ARG…]: one that is there already stays as it is.
task() {
    task_name=$1 task_needs=$2
    ! has_task "$1" || return 0
    shift 2
    tasks="$tasks$task_name|$task_needs|$*$newline"
}

has_task() {
    case $newline$tasks in *"$newline$1|"*) return 0 ;; esac
    return 1
}

# run_tasks LANES
run_tasks() {
    rm -rf "$task_dir"
    mkdir -p "$task_dir"
    lanes=''
    trap 'end_lanes; exit 130' INT TERM
    lane=0
    while [ "$lane" -lt "$1" ]; do
        lane=$((lane + 1))
        # 9 is the lock of the tree, which a process that a test leaves behind must not keep.
        run_lane 9>&- &
        lanes="$lanes $!"
    done
    lane=''
    if [ "$live" = yes ]; then
        tick_tasks &
        ticker=$!
    fi
    for task_lane in $lanes; do wait "$task_lane" || :; done
    stop_ticker
    trap - INT TERM
}

end_lanes() {
    stop_ticker
    for task_lane in $lanes; do end_tree "$task_lane"; done
}

# end_tree PID: the process and what it has started.
end_tree() {
    end_tree_children=
    read -r end_tree_children 2>/dev/null <"/proc/$1/task/$1/children" || :
    for end_tree_child in ${end_tree_children:-}; do (end_tree "$end_tree_child"); done
    kill "$1" 2>/dev/null || :
}

run_lane() {
    while claim_task; do
        task_status=ok
        # shellcheck disable=SC2086 # a function and its words
        ($task_call) || task_status=failed
        printf '%s\n' "$task_status" >"$task_dir/$task_name.new" &&
            mv "$task_dir/$task_name.new" "$task_dir/$task_name.end"
    done
}

# Sets task_name and task_call; waits while something that runs may make another task ready.
claim_task() {
    while :; do
        claim_status=0
        (exec 8>"$task_dir/lock" && flock 8 && find_task >"$task_dir/found.$lane") || claim_status=$?
        case $claim_status in
            0)
                IFS='|' read -r task_name task_call <"$task_dir/found.$lane"
                return 0
                ;;
            1) return 1 ;;
        esac
        sleep 0.1
    done
}

# Prints and claims the first task that is ready. Status 1: nothing is left; 2: nothing is ready yet.
find_task() {
    find_left=1
    while IFS='|' read -r find_name find_needs find_call; do
        if [ -z "$find_name" ] || [ -e "$task_dir/$find_name.began" ]; then continue; fi
        case $(needs_of "$find_needs") in
            ok)
                : >"$task_dir/$find_name.began"
                printf '%s|%s\n' "$find_name" "$find_call"
                return 0
                ;;
            failed)
                : >"$task_dir/$find_name.began"
                echo failed >"$task_dir/$find_name.end"
                ;;
            *) find_left=2 ;;
        esac
    done <<TASKS
$tasks
TASKS
    return "$find_left"
}

# needs_of 'NEED…': ok, failed or waiting. What was never added is not needed.
needs_of() {
    needs_state=ok
    for need_name in $1; do
        has_task "$need_name" || continue
        read -r need_end 2>/dev/null <"$task_dir/$need_name.end" || need_end=waiting
        case $need_end in
            failed) echo failed && return ;;
            waiting) needs_state=waiting ;;
        esac
    done
    echo "$needs_state"
}

# For a person who watches: which tasks run.
tick_tasks() {
    tick_count=0
    while sleep 1; do
        tick_count=$((tick_count + 1))
        tick_names=''
        for tick_file in "$task_dir"/*.began; do
            tick_name=${tick_file##*/}
            tick_name=${tick_name%.began}
            [ -e "$task_dir/$tick_name.end" ] || tick_names="$tick_names $tick_name"
        done
        printf '\r\033[K  %s%d s:%.60s%s' "$dim" "$tick_count" "$tick_names" "$plain"
    done
}
