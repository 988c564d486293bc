# shellcheck shell=sh
# Builds a CPython with a shared library, for `./dev python X.Y[.Z][t]`; `t` is the free-threaded one.
#
# The source is the upstream tarball in the pool of a Debian mirror. Its checksum here is the one in
# the signed description (.dsc) of Debian's source package. A pool forgets old releases, so the
# newest that can be fetched is taken. No profile-guided optimisation: that takes an hour.

# Release and checksum of its tarball, the newest of each X.Y first.
python_sources() {
    cat <<'TABLE'
3.14.7 3b48dac8fb59f62eaa67ac83c1eb12bda1b7a08406dd286e252c11a66be27f81
3.14.6 143b1dddefaec3bd2e21e3b839b34a2b7fb9842272883c576420d605e9f30c63
3.14.5 7e32597b99e5d9a39abed35de4693fa169df3e5850d4c334337ffd6a19a36db6
3.13.15 1e66a7945a48390ee4c2a4268a0e4185884059a13c4aab6d148aa208deea4a76
3.13.14 639e43243c620a308f968213df9e00f2f8f62332f7adbaa7a7eeb9783057c690
3.13.12 2a84cd31dd8d8ea8aaff75de66fc1b4b0127dd5799aa50a64ae9a313885b4593
3.13.5 93e583f243454e6e9e4588ca2c2662206ad961659863277afcdb96801647d640
TABLE
}

dev_python() {
    [ -n "$words" ] || usage_error "./dev python needs a version, such as 3.14t or 3.14"
    while read -r python_word; do
        [ -z "$python_word" ] || make_python "$python_word" || exit 1
    done <<WORDS
$words
WORDS
}

# make_python X.Y[.Z][t]: a release that is there already is not built again.
make_python() {
    python_flag=''
    case $1 in *t) python_flag=t ;; esac
    python_known=$(python_sources | awk -v want="${1%t}" '
        $1 == want || index($1, want ".") == 1')
    [ -n "$python_known" ] || no_python_source "$1"
    case $1 in
        3.13*t) die "the free-threaded 3.13 is not supported; free threads begin with 3.14t" ;;
    esac
    while read -r python_release python_checksum; do
        python_prefix=$pythons_dir/$python_release$python_flag
        if [ -x "$python_prefix/bin/python3" ]; then
            say "Python $python_release$python_flag is in $python_prefix"
            return 0
        fi
    done <<KNOWN
$python_known
KNOWN
    install_for_python
    mkdir -p "$pythons_dir/build" || return
    # One at a time: two would write the same files.
    exec 8>"$pythons_dir/build/lock"
    flock 8
    fetch_newest && build_python || return
    say "Python $python_release$python_flag is in $python_prefix; ./dev test --python ${1} uses it"
}

no_python_source() {
    case $1 in
        3.15 | 3.15[.t]*)
            die "the source of Python 3.15 can't be had yet: the pool of Debian's mirrors does not have it. Debian sid has" \
                "it as a package: ./dev finds it where python3.15-dev is installed"
            ;;
    esac
    say "dev: there is no known source of Python $1; those of these are known:" >&2
    python_sources | awk '{ print "  " $1 }' >&2
    exit 1
}

# The libraries that the modules of the standard library need.
install_for_python() {
    missing=''
    need_command curl curl
    need_command xz-utils xz
    need_command gcc cc
    need_command make make
    need libssl-dev /usr/include/openssl/ssl.h
    need zlib1g-dev /usr/include/zlib.h
    need libbz2-dev /usr/include/bzlib.h
    need liblzma-dev /usr/include/lzma.h
    need libsqlite3-dev /usr/include/sqlite3.h
    for python_header in /usr/include/ffi.h /usr/include/*/ffi.h; do
        [ ! -e "$python_header" ] || break
    done
    need libffi-dev "$python_header"
    [ -z "$missing" ] || install_missing
}

# The archive that apt was told to use; Debian's own without one.
debian_mirror() {
    debian_mirror_found=''
    if command -v apt-get >/dev/null 2>&1; then
        # shellcheck disable=SC2016 # a name of apt's, not of the shell
        debian_mirror_found=$(apt-get indextargets --format '$(REPO_URI)' \
            'Created-By: Packages' 'Origin: Debian' 2>/dev/null |
            awk '$0 ~ /^https?:/ && $0 !~ /security/ { print; exit }')
    fi
    printf '%s' "${debian_mirror_found:-http://deb.debian.org/debian/}"
}

# Sets python_release, python_prefix and python_tarball to the newest that the mirror still has.
fetch_newest() {
    python_pool=$(debian_mirror)pool/main/p
    while read -r python_release python_checksum; do
        python_prefix=$pythons_dir/$python_release$python_flag
        python_tarball=$pythons_dir/build/$python_release.tar.xz
        python_package=python${python_release%.*}
        python_url=$python_pool/$python_package/${python_package}_$python_release.orig.tar.xz
        has_checksum "$python_tarball" && return 0
        curl -fsIL --retry 2 -o /dev/null "$python_url" || continue
        step "source of Python $python_release" "python-fetch-$python_release" fetch_python
        return
    done <<KNOWN
$python_known
KNOWN
    say "dev: the mirror $python_pool has none of the known sources of Python" >&2
    return 1
}

fetch_python() {
    curl -fsSL --retry 2 -o "$python_tarball.new" "$python_url" || return
    if ! has_checksum "$python_tarball.new"; then
        say "what $python_url gave has another checksum than Debian's description of it"
        return 1
    fi
    mv "$python_tarball.new" "$python_tarball"
}

has_checksum() {
    [ -f "$1" ] && printf '%s  %s\n' "$python_checksum" "$1" | sha256sum -c --status
}

build_python() {
    python_name=$python_release$python_flag
    python_tree=$pythons_dir/build/$python_name
    step "Python $python_name: configure" "python-configure-$python_name" configure_python &&
        step "Python $python_name: make" "python-make-$python_name" compile_python &&
        step "Python $python_name: install" "python-install-$python_name" install_python
}

configure_python() {
    rm -rf "$python_tree"
    mkdir -p "$python_tree" &&
        tar -xJf "$python_tarball" -C "$python_tree" --strip-components=1 &&
        cd "$python_tree" || return
    set -- --prefix="$python_prefix" --enable-shared --with-ensurepip=install
    [ -z "$python_flag" ] || set -- "$@" --disable-gil
    # It finds its library wherever it is started from.
    LDFLAGS="-Wl,-rpath,$python_prefix/lib" nice -n 19 ./configure "$@"
}

compile_python() {
    nice -n 19 make -C "$python_tree" -j2
}

# Into another directory first: a prefix that is there is whole.
install_python() {
    python_stage=$python_tree/stage
    rm -rf "$python_stage"
    nice -n 19 make -C "$python_tree" install DESTDIR="$python_stage" &&
        rm -rf "$python_prefix" &&
        mv "$python_stage$python_prefix" "$python_prefix" &&
        [ -x "$python_prefix/bin/python3" ] &&
        rm -rf "$python_tree"
}
