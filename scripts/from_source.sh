# shellcheck shell=sh
# Native libraries by cargo, for the chosen Python: what must be there is looked at before, and what cargo fails of is
# said in a sentence. Used by scripts/install.sh.

install_from_source() {
    need_rust
    need_linker
    say "$program: building the native library for Python $py_version with $rust_version, which takes a minute or more"
    source_log=$log_dir/install.log
    mkdir -p "$log_dir"
    watch_cargo 9>&- &
    watcher=$!
    trap 'stop_watcher' EXIT
    source_status=0
    make_natives >"$source_log" 2>&1 </dev/null || source_status=$?
    stop_watcher
    trap - EXIT
    [ "$source_status" -eq 0 ] || explain_cargo
    install_file "$(built "$source_target" libpy_loader.so)" priv/py_loader.so
    install_file "$(built "$source_target" libpy_nif.so)" "priv/py_nif-$py_tag.so"
    install_file "$(built "$source_target" lib_native.so)" "priv/python/erlang/_native$(extension_suffix)"
    # Some hundred megabytes, of no use before the source changes.
    rm -rf "target/$source_target" "target/$source_target-perf"
}

# Not that of ./dev, which a source may have, too.
source_target=install

make_natives() (
    cd "$out"
    like_maturin
    export CARGO_TERM_PROGRESS_WHEN=never
    # It would put the libraries elsewhere.
    unset CARGO_BUILD_TARGET
    ! is_offline || export CARGO_NET_OFFLINE=true
    cargo_build "$source_target" --manifest-path "$root/Cargo.toml" --locked -p loader -p nif -p wheel
)

# What Python's import looks for, such as .cpython-313-x86_64-linux-gnu.so.
extension_suffix() {
    "$py_base" -I -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))'
}

# For one who waits: a line every ten seconds. Nothing of it outlives the build: a process that is left would keep the
# lock, and whoever reads what the build prints would wait for its end, too.
watch_cargo() {
    watch_seconds=0
    trap 'kill "$watch_sleep" 2>/dev/null; exit 0' TERM
    while kill -0 $$ 2>/dev/null; do
        sleep 10 &
        watch_sleep=$!
        wait "$watch_sleep" || :
        watch_seconds=$((watch_seconds + 10))
        say "$program: $watch_seconds s, $(grep -c '^ *Compiling ' "$source_log") crates"
    done
}

stop_watcher() {
    kill "$watcher" 2>/dev/null || :
    wait "$watcher" 2>/dev/null || :
}

wanted_rust() {
    sed -n 's/^rust-version = "\([0-9.]*\)"$/\1/p' "$root/Cargo.toml"
}

how_to_get_rust="https://rustup.rs installs it by this command:
  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh
or set ERLANG_PYTHON_ARTEFACTS to a directory or a URL of prebuilt archives. Then compile again"

# Sets `rust_version`, as "Rust 1.95.0".
need_rust() {
    if ! command -v cargo >/dev/null 2>&1 && [ -x "${HOME:-}/.cargo/bin/cargo" ]; then
        PATH=$HOME/.cargo/bin:$PATH
    fi
    need_rust_wanted=$(wanted_rust)
    for need_rust_command in cargo rustc; do
        command -v "$need_rust_command" >/dev/null 2>&1 ||
            die "its native library is built by Rust $need_rust_wanted or newer, and there is no" \
                "$need_rust_command on the PATH.$newline$how_to_get_rust"
    done
    rust_version=$(rustc --version 2>&1) ||
        die "rustc does not run: $rust_version$newline$how_to_get_rust"
    rust_version=$(printf '%s\n' "$rust_version" | awk '$1 == "rustc" { print $2; exit }')
    is_at_least "$rust_version" "$need_rust_wanted" ||
        die "its native library is built by Rust $need_rust_wanted or newer, and $(command -v rustc) is" \
            "$rust_version.$newline$how_to_get_rust"
    rust_version="Rust $rust_version"
}

# is_at_least 1.95.0-nightly 1.91
is_at_least() {
    awk -v has="$1" -v wants="$2" 'BEGIN {
        split(has, h, /[.-]/)
        split(wants, w, ".")
        exit !(h[1] > w[1] || (h[1] == w[1] && h[2] + 0 >= w[2] + 0))
    }'
}

need_linker() {
    command -v cc >/dev/null 2>&1 ||
        die "Rust needs a C compiler to link with, and there is no cc on the PATH. Debian: apt install gcc libc6-dev"
    need_linker_said=$(echo 'int main(void) { return 0; }' | cc -x c -o "$build_dir/linked" - 2>&1) ||
        die "$(command -v cc) can't build a program: $(first_line "$need_linker_said")." \
            "Debian: apt install gcc libc6-dev"
    rm -f "$build_dir/linked"
}

# The build tools' own variables, which say that nothing is to be fetched.
is_offline() {
    is_offline_by=''
    for is_offline_name in REBAR_OFFLINE HEX_OFFLINE CARGO_NET_OFFLINE; do
        is_offline_value=$(printenv "$is_offline_name") || is_offline_value=''
        case $is_offline_value in
            '' | 0 | false) ;;
            *) is_offline_by=$is_offline_name && return 0 ;;
        esac
    done
    return 1
}

# " The proxy is …", or nothing. Passwords stay out of it.
proxy_in_use() {
    for proxy_name in https_proxy HTTPS_PROXY ALL_PROXY all_proxy http_proxy HTTP_PROXY; do
        proxy_value=$(printenv "$proxy_name") || proxy_value=''
        [ -n "$proxy_value" ] || continue
        printf ' The proxy is %s, from $%s.' "$(printf '%s' "$proxy_value" | sed 's|//[^/@]*@|//|')" "$proxy_name"
        return
    done
    # shellcheck disable=SC2016 # the name of the variable is meant
    printf ' If this machine has a proxy, name it in $https_proxy.'
}

# What cargo failed of, by what it said; the whole of it is in the log.
explain_cargo() {
    explain_end="All that cargo said is in $source_log"
    if says 'No space left on device'; then
        die "the disk of $out is full: the build needs about 1 GB for a while. Free some space and compile again; it" \
            "goes on where it was. $explain_end"
    elif is_offline && says 'offline|failed to download|no matching package'; then
        die "the build is offline ($is_offline_by), and not all crates are on this machine. Fetch them once with a" \
            "network by 'cargo fetch --locked --manifest-path $root/Cargo.toml', or set ERLANG_PYTHON_ARTEFACTS to a" \
            "directory with a prebuilt archive. $explain_end"
    elif says 'resolve proxy|CONNECT tunnel|HTTP code .* from proxy|407 Proxy|connect to proxy|Failed to connect to .* port'; then
        die "cargo can't reach the registry of crates: $(said 'proxy|tunnel|Failed to connect').$(proxy_in_use) Or set" \
            "ERLANG_PYTHON_ARTEFACTS to a directory with a prebuilt archive. $explain_end"
    elif says 'resolve host|failed to download|spurious network error|connect to server|Timeout was reached|SSL|[Tt]imed out'; then
        die "cargo can't reach the registry of crates: $(said 'resolve host|connect to server|Timeout|SSL|imed out').$(proxy_in_use)" \
            "Or set ERLANG_PYTHON_ARTEFACTS to a directory with a prebuilt archive. $explain_end"
    elif says 'SIGKILL|signal: 9'; then
        die "the kernel has ended the compiler, as it does when memory is short: linking needs about 2 GB. $explain_end"
    fi
    tail -n "$tail_lines" "$source_log" | sed 's/^/  | /' >&2
    die "the native library could not be built. $explain_end"
}

# says PATTERN, said PATTERN: whether the log has it, and the last line that does.
says() {
    grep -Eq "$1" "$source_log"
}

said() {
    grep -E "$1" "$source_log" | tail -n 1 | sed 's/^ *//; s/[. ]*$//; s/^\[[0-9]*\] *//'
}
