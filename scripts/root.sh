# shellcheck shell=sh
# The two commands of the README in a fresh Debian: `./dev test --root trixie` makes a root of that release with
# debootstrap, puts a clone of this commit into it, and runs ./dev there as a new user would.
#
# Roots are kept under ~/.cache/erlang_python/roots as debootstrap made them; each run works on a copy. Rust is the
# toolchain of this machine, since Debian's may be older than what the project asks for.

roots_dir=${XDG_CACHE_HOME:-${HOME:-}/.cache}/erlang_python/roots

# dev_in_root COMMAND: ./dev COMMAND with `words` in the root named by --root.
dev_in_root() {
    [ "$(id -u)" -eq 0 ] || die "a root is made by root: sudo ./dev $1 --root $opt_root"
    case $opt_root in
        bookworm | trixie | forky | sid) ;;
        *) usage_error "--root takes bookworm, trixie, forky or sid, not '$opt_root'" ;;
    esac
    find_cargo
    missing=''
    need_command debootstrap debootstrap
    [ -z "$missing" ] || install_missing
    root_base=$roots_dir/$opt_root
    root_now=$roots_dir/$opt_root.now
    if [ ! -e "$root_base/etc/debian_version" ]; then
        step_or_exit "Debian $opt_root" "root-$opt_root" make_root
    fi
    step_or_exit "a copy of it with this commit" "root-$opt_root-copy" copy_root
    trap 'unmount_root; exit 130' INT TERM
    mount_root
    root_status=0
    root_words=$(printf '%s' "$words" | tr '\n' ' ')
    # shellcheck disable=SC2086 # the words of the command
    chroot "$root_now" env -i HOME=/root CI="${CI:-}" LC_ALL=C.UTF-8 \
        PATH=/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        DEV_KEEP_RELEASES=/root/releases DEV_INSTALL_PARTS="${DEV_INSTALL_PARTS:-}" sh -c 'cd /root/erlang_python && exec ./dev "$@"' dev "$1" $root_words || root_status=$?
    unmount_root
    case $1\ $root_words in *install*) releases_in_bare_root || root_status=1 ;; esac
    trap - INT TERM
    say "  what it left: $root_now/root/erlang_python/_build"
    return "$root_status"
}

make_root() {
    rm -rf "$root_base.new" "$root_base"
    mkdir -p "$roots_dir"
    # --variant=minbase: what a machine has that nobody has prepared. Mirrors of sid can be past their date.
    debootstrap --variant=minbase --include=ca-certificates,git "$opt_root" "$root_base.new" "$(debian_mirror)" &&
        printf 'Acquire::Check-Valid-Until "false";\n' >"$root_base.new/etc/apt/apt.conf.d/90dated" &&
        mv "$root_base.new" "$root_base"
}

# The releases that the tests of installing have left, in a root with Python and nothing else: no Erlang, no compiler.
releases_in_bare_root() {
    [ -d "$root_now/root/releases" ] || return 0
    rm -rf "$roots_dir/releases"
    mv "$root_now/root/releases" "$roots_dir/releases"
    root_now=$roots_dir/$opt_root.bare
    step "releases where nothing else is" "root-$opt_root-bare" run_in_bare_root
}

run_in_bare_root() {
    bare_status=0
    copy_base && mv "$roots_dir/releases" "$root_now/opt/releases" || return
    mount_root
    # shellcheck disable=SC2016 # for the shell in there
    chroot "$root_now" env -i LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -euc '
        apt-get update
        apt-get install -y --no-install-recommends python3
        apt-get install -y --no-install-recommends "lib$(basename "$(readlink -f /usr/bin/python3)")"
        for tool in erl elixir cc gcc cargo rustc; do ! command -v "$tool" || exit 1; done
        cd /
        for project in erlang elixir; do
            start="/opt/releases/$project/bin/hello foreground"
            [ "$project" = erlang ] || start="/opt/releases/$project/bin/hello start"
            setpriv --reuid 65534 --regid 65534 --clear-groups env -i PATH=/usr/bin:/bin RELEASE_DISTRIBUTION=none \
                RELEASE_TMP=/tmp RELX_OUT_FILE_PATH=/tmp $start >/tmp/said 2>&1 || :
            cat /tmp/said
            grep -q "ok,  *4.0\|ok,4.0" /tmp/said
        done' || bare_status=$?
    unmount_root
    return "$bare_status"
}

copy_root() {
    copy_base || return
    mkdir -p "$root_now/root/.cargo"
    for root_part in .rustup .cargo/bin .cargo/config.toml .cargo/registry; do
        [ ! -e "$HOME/$root_part" ] || cp -a "$HOME/$root_part" "$root_now/root/$root_part" || return
    done
    git clone -q --no-hardlinks "$root" "$root_now/root/erlang_python"
}

copy_base() {
    unmount_root
    rm -rf --one-file-system "$root_now"
    # -x: debootstrap may leave /proc mounted there.
    cp -ax "$root_base" "$root_now" || return
    # debootstrap makes neither.
    printf '127.0.0.1 localhost\n::1 localhost\n' >"$root_now/etc/hosts"
    cp /etc/resolv.conf "$root_now/etc/resolv.conf"
    # Certificates and settings of the package clients that this machine needs are needed there too.
    cp /etc/ssl/certs/ca-certificates.crt "$root_now/etc/ssl/certs/ca-certificates.crt"
    [ ! -f /etc/pip.conf ] || cp /etc/pip.conf "$root_now/etc/pip.conf" || return
}

mount_root() {
    if ! { mount -t proc proc "$root_now/proc" && mount -t sysfs sysfs "$root_now/sys" &&
        mount --rbind /dev "$root_now/dev" && mount --make-rslave "$root_now/dev"; }; then
        die "can't mount /proc, /sys and /dev into $root_now"
    fi
}

unmount_root() {
    for root_part in sys dev proc; do
        ! mountpoint -q "$root_now/$root_part" || umount -R -l "$root_now/$root_part"
    done
}
