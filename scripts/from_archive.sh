# shellcheck shell=sh
# Native libraries from a prebuilt archive, which ./dev artefacts makes and checksums.txt of the source knows.
# Nothing of an archive is unpacked before its checksum was found to be right. Used by scripts/install.sh.

# Read by scripts/install.sh.
# shellcheck disable=SC2034
from_archive=no

# The name of the archive for this version and machine; nif-2.16 is of OTP 24, and every newer one loads it.
wanted_archive() {
    printf 'erlang_python-%s-nif-2.16-%s-linux-%s.tar.gz\n' "$(version_of_app)" "$(machine)" "$(libc)"
}

machine() {
    case $(uname -m) in
        arm64) echo aarch64 ;;
        *) uname -m ;;
    esac
}

libc() {
    if getconf GNU_LIBC_VERSION >/dev/null 2>&1; then
        echo gnu
        return
    fi
    for libc_musl in /lib/ld-musl-*; do break; done
    if [ -e "$libc_musl" ]; then echo musl; else echo gnu; fi
}

# Puts the libraries of the archive into priv/. Returns without them where there is no archive for this machine.
install_archive() {
    case $ERLANG_PYTHON_ARTEFACTS in
        http://* | https://* | file:///* | /*) ;;
        *)
            die "ERLANG_PYTHON_ARTEFACTS is '$ERLANG_PYTHON_ARTEFACTS'. It must be the absolute path of a directory," \
                "or a URL that begins with http:// or https://"
            ;;
    esac
    archive=$(wanted_archive)
    # `*`: sha256sum's mark of a file read as bytes.
    archive_sum=$(awk -v name="$archive" '$2 == name || $2 == "*" name { print $1; exit }' "$root/checksums.txt" 2>/dev/null) ||
        archive_sum=''
    if [ -z "$archive_sum" ]; then
        say "$program: checksums.txt has no $archive, so the native library is built from source"
        return
    fi
    archive_work=$build_dir/archive
    rm -rf "$archive_work"
    mkdir -p "$archive_work" || die "$archive_work can't be made: $(why_unwritable "$out")"
    get_archive
    check_archive
    unpack_archive
    rm -rf "$archive_work"
    # shellcheck disable=SC2034
    from_archive=yes
    if [ -n "$chosen" ] && ! has_library; then
        say "$program: the archive has no library for Python $py_version, so that is built from source"
    fi
}

# Sets `archive_file`.
get_archive() {
    case $ERLANG_PYTHON_ARTEFACTS in
        http://* | https://*) download_archive "${ERLANG_PYTHON_ARTEFACTS%/}/$archive" ;;
        *) archive_file=${ERLANG_PYTHON_ARTEFACTS#file://} && archive_file=${archive_file%/}/$archive ;;
    esac
    [ -f "$archive_file" ] || die "there is no $archive_file. Put the archive there, or unset" \
        "ERLANG_PYTHON_ARTEFACTS to build from source"
}

download_archive() {
    archive_file=$archive_work/$archive
    # Passwords stay out of what is said.
    download_url=$(printf '%s' "$1" | sed 's|//[^/@]*@|//|')
    ! is_offline || die "the build is offline ($is_offline_by), so $download_url can't be fetched. Name a directory that" \
        "has the archive in ERLANG_PYTHON_ARTEFACTS"
    say "$program: fetching $download_url"
    if command -v curl >/dev/null 2>&1; then
        # One that sends nothing for a minute sends nothing any more.
        set -- curl -fsSL --connect-timeout 20 --speed-limit 1 --speed-time 60 --retry 2 -o "$archive_file" "$1"
    elif command -v wget >/dev/null 2>&1; then
        set -- wget -nv -T 20 -t 3 -O "$archive_file" "$1"
    else
        die "there is neither curl nor wget to fetch $download_url. Install one of them, or fetch the archive by other means and" \
            "name its directory in ERLANG_PYTHON_ARTEFACTS"
    fi
    if "$@" >"$archive_work/log" 2>&1; then return; fi
    download_why=$(tail -n 1 "$archive_work/log" | sed 's|//[^/@ ]*@|//|g')
    if [ "$(why_unwritable "$out")" != "see above" ]; then
        die "$download_url can't be kept in $archive_work: $(why_unwritable "$out")"
    fi
    die "$download_url can't be fetched: $download_why.$(proxy_in_use) Fetch the archive by other means and name its" \
        "directory in ERLANG_PYTHON_ARTEFACTS, or unset that to build from source"
}

check_archive() {
    check_sum=$(sha256sum <"$archive_file" | cut -d ' ' -f 1)
    [ "$check_sum" = "$archive_sum" ] || die "$archive_file is not the archive that checksums.txt knows: its SHA-256 is" \
        "$check_sum, not $archive_sum. Nothing of it was unpacked. Fetch it anew, or unset" \
        "ERLANG_PYTHON_ARTEFACTS to build from source"
}

unpack_archive() {
    mkdir "$archive_work/content"
    if ! gzip -dc "$archive_file" | tar -xf - -C "$archive_work/content" 2>"$archive_work/log"; then
        unpack_why=$(why_unwritable "$out")
        tail -n 3 "$archive_work/log" >&2
        rm -rf "$archive_work/content"
        die "$archive_file can't be unpacked into $archive_work: $unpack_why"
    fi
    # The Python package comes from the source, as always.
    find "$archive_work/content/priv" -type f \( -name '*.so' -o -name '*.txt' \) >"$archive_work/files"
    # Not in a pipe: a failure ends the program.
    while read -r unpack_file; do
        install_file "$unpack_file" "${unpack_file#"$archive_work/content/"}"
    done <"$archive_work/files"
}
