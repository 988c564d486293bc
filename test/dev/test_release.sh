# shellcheck shell=sh
# Archives, the package for Hex and the readiness for a release, with stand-ins for the libraries.

# A tree with two modules and the libraries of two Pythons, dated YEAR.
fake_libraries() {
    artefact_dir="$work/artefacts $1" dist_dir="$work/dist $1" tags='cp313 cp314t'
    rm -rf "$artefact_dir" "$dist_dir" python
    mkdir -p "$artefact_dir/x86_64-linux-musl" "$dist_dir" python/erlang
    echo 'x = 1' >python/erlang/__init__.py
    echo '[workspace.package]
version = "1.2.3"' >Cargo.toml
    for fake_library in py_loader py_nif-cp313 py_nif-cp314t _native.cpython-313-x86_64-linux-musl \
        _native.cpython-314t-x86_64-linux-musl; do
        echo "$fake_library" >"$artefact_dir/x86_64-linux-musl/$fake_library.so"
    done
    find "$artefact_dir" python -exec touch -d "$1-01-01" {} +
    licence_texts() { echo texts >"$1"; }
}

archive=erlang_python-1.2.3-nif-2.16-x86_64-linux-musl.tar.gz

an_archive_has_the_files_of_each_python() {
    fake_libraries 2026
    make_archive x86_64-linux-musl
    same "priv/THIRD-PARTY.txt priv/py_loader.so priv/py_nif-cp313.so priv/py_nif-cp314t.so \
priv/python/erlang/__init__.py priv/python/erlang/_native.cpython-313-x86_64-linux-musl.so \
priv/python/erlang/_native.cpython-314t-x86_64-linux-musl.so " "$(tar -tzf "$dist_dir/$archive" | tr '\n' ' ')"
    write_checksums
    (cd "$dist_dir" && sha256sum -c checksums.txt) >/dev/null
    same "$archive" "$(awk '{ print $2 }' "$dist_dir/checksums.txt")"
}

the_same_libraries_make_the_same_archive() {
    fake_libraries 2025
    make_archive x86_64-linux-musl
    first="$dist_dir/$archive"
    fake_libraries 2026
    (umask 077 && make_archive x86_64-linux-musl)
    cmp "$first" "$dist_dir/$archive"
}

every_target_and_python_has_its_names() {
    usage_error() { echo "$*" && exit 2; }
    fake_libraries 2026
    same _native.cpython-314t-aarch64-linux-gnu.so "$(native_name aarch64-linux-gnu cp314t)"
    contains "$(python_config cp314t)" "version=3.14
shared=true
pointer_width=64
build_flags=Py_GIL_DISABLED"
    contains "$(python_config cp311)" "version=3.11$newline"
    words="riscv64-linux-gnu$newline" command=artefacts
    if said=$( (choose_targets) 2>&1); then exit 1; fi
    contains "$said" "knows no target 'riscv64-linux-gnu', but x86_64-linux-gnu aarch64-linux-gnu"
    opt_pythons="3.14t${newline}3.11$newline"
    choose_tags
    same " cp314t cp311" "$tags"
    opt_pythons="3.9$newline"
    if said=$( (choose_tags) 2>&1); then exit 1; fi
    contains "$said" "not for '3.9'"
}

# auditwheel's answer about the wheel $1 is that it fits the platform $2, with lines broken where it breaks them.
auditwheel_says() {
    venv="$work/fake venv"
    mkdir -p "$venv/bin"
    printf '#!/bin/sh\ncat <<TEXT\n\n%s is consistent\nwith the following platform tag: "%s".\nTEXT\n' "$1" "$2" \
        >"$venv/bin/auditwheel"
    chmod +x "$venv/bin/auditwheel"
}

a_wheel_is_what_auditwheel_calls_it() {
    audit_name=erlang_python-1.2.3-cp313-cp313-musllinux_1_2_x86_64.whl
    auditwheel_says $audit_name musllinux_1_2_x86_64
    audit_wheel $audit_name musllinux_1_2_x86_64 >/dev/null
    auditwheel_says $audit_name linux_x86_64
    if said=$(audit_wheel $audit_name musllinux_1_2_x86_64); then exit 1; fi
    contains "$said" "auditwheel finds another platform than musllinux_1_2_x86_64"
}

# A source that git knows, with what is not for Hex.
fake_source() {
    rm -rf source
    mkdir -p source/src source/test source/scripts source/_build
    cd source
    git init -q
    echo '{application, sample, [{description, "A sample"}, {vsn, "1.2.3"}, {licenses, ["Apache-2.0"]}]}.' \
        >src/sample.app.src
    echo '%% ü' >src/sample.erl
    printf '#!/bin/sh\n' >scripts/run.sh
    chmod +x scripts/run.sh
    echo '/_build/' >.gitignore
    : >test/sample_SUITE.erl
    : >_build/left
}

# hex_package: the package of ./source, as make_hex_package makes it.
hex_package() {
    hex_files >"$work/files"
    pack_files "$PWD" "$work/files" "$work/contents.tar.gz"
    escript "$project/scripts/hex_package.escript" src/sample.app.src "$work/contents.tar.gz" "$work/files" "$1"
}

a_hex_package_has_four_parts() {
    fake_source
    hex_package "$work/package.tar"
    tar -C "$work" -xf "$work/package.tar"
    same "VERSION CHECKSUM metadata.config contents.tar.gz " "$(tar -tf "$work/package.tar" | tr '\n' ' ')"
    same 3 "$(cat "$work/VERSION")"
    same "$(cd "$work" && cat VERSION metadata.config contents.tar.gz | sha256sum | cut -c 1-64 | tr a-f A-F)" \
        "$(cat "$work/CHECKSUM")"
    same "scripts/run.sh src/sample.app.src src/sample.erl " "$(tar -tzf "$work/contents.tar.gz" | tr '\n' ' ')"
    contains "$(tar -tvzf "$work/contents.tar.gz" scripts/run.sh)" "-rwxr-xr-x"
    said=$(erl -noinput -eval '
        {ok, Terms} = file:consult(hd(init:get_plain_arguments())),
        io:format("~0tp", [[{K, proplists:get_value(K, Terms)} || K <- [<<"name">>, <<"app">>, <<"version">>,
            <<"description">>, <<"licenses">>, <<"requirements">>, <<"build_tools">>, <<"files">>]]]),
        halt()' -extra "$work/metadata.config")
    same '[{<<"name">>,<<"sample">>},{<<"app">>,<<"sample">>},{<<"version">>,<<"1.2.3">>},'\
'{<<"description">>,<<"A sample">>},{<<"licenses">>,[<<"Apache-2.0">>]},{<<"requirements">>,[]},'\
'{<<"build_tools">>,[<<"rebar3">>,<<"mix">>]},'\
'{<<"files">>,[<<"scripts/run.sh">>,<<"src/sample.app.src">>,<<"src/sample.erl">>]}]' "$said"
}

the_same_source_makes_the_same_package() {
    fake_source
    hex_package "$work/first.tar"
    find . -name '*.erl' -exec touch -d 2025-01-01 {} +
    hex_package "$work/second.tar"
    cmp "$work/first.tar" "$work/second.tar"
}

a_release_wants_a_dated_section_and_a_clean_tree() {
    fake_source
    release_version=1.2.3 opt_dry_run=yes
    printf '## [Unreleased]\n\n## [1.2.30] - 2026-01-01\n## [1.2.3]\n' >CHANGELOG.md
    said=$(is_it_ready)
    contains "$said" "not ready: CHANGELOG.md has no section '## [1.2.3] - YYYY-MM-DD'"
    contains "$said" "not ready: there are changes that are not committed"
    opt_dry_run=no
    if (is_it_ready) >/dev/null 2>&1; then exit 1; fi
    printf '## [Unreleased]\n\n## [1.2.3] - 2026-01-01\n' >CHANGELOG.md
    git add -A && git -c user.name=- -c user.email=- commit -q -m -
    same "" "$(is_it_ready)"
    git tag v1.2.3
    if said=$( (is_it_ready) 2>/dev/null); then exit 1; fi
    contains "$said" "there is a tag v1.2.3 already"
}

prove "an archive has the loader, the package and two libraries for each Python" an_archive_has_the_files_of_each_python
prove "libraries packed at another time make the same archive" the_same_libraries_make_the_same_archive
prove "every target and Python has its names, and an unknown one is refused" every_target_and_python_has_its_names
prove "a wheel that auditwheel calls one for another platform is refused" a_wheel_is_what_auditwheel_calls_it
prove "a package for Hex has its four parts, and the checksum is over them" a_hex_package_has_four_parts
prove "a source packed at another time makes the same package for Hex" the_same_source_makes_the_same_package
prove "a release wants a dated section of the changelog and a tree without changes" \
    a_release_wants_a_dated_section_and_a_clean_tree
