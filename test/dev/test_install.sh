# shellcheck shell=sh
# scripts/install.sh with stand-ins for cargo, the compilers, Python and the network.

# Makes a source in ./source and the stand-ins in ./bin; cargo "builds" libraries with one word in them, "$built_word".
a_source() {
    # The functions that read the version and the like.
    root=$project
    rm -rf source bin out home archives cargo-said
    mkdir -p source/native/nif source/python/erlang source/src bin home
    cp -r "$project/scripts" source/scripts
    sed -n '/^\[workspace.package\]/,/^$/p' "$project/Cargo.toml" >source/Cargo.toml
    cp "$project/src/erlang_python.app.src" source/src/
    touch source/Cargo.lock source/src/py_nif.hrl source/python/erlang/__init__.py source/native/nif/lib.rs
    # shellcheck disable=SC2016 # for the stand-in
    stand_in python '
case "$*" in
    *probe_python.py) printf "1013000d00f0\tcp313\t3.13.0\t%s\t%s\t/lib\tyes\tok\n" "$0" "$0" ;;
    *EXT_SUFFIX*) echo .cpython-313-here.so ;;
esac'
    stand_in rustc 'echo "rustc 1.95.0 (abcdef 2026-03-21)"'
    stand_in cc 'cat >/dev/null'
    # shellcheck disable=SC2016 # for the stand-in
    stand_in cargo '
echo "$*" >>"$CARGO_SAID"
while [ $# -gt 0 ]; do
    [ "$1" != --target-dir ] || target=$2
    shift
done
mkdir -p "$target/dist"
for library in libpy_loader libpy_nif lib_native; do echo "$WORD" >"$target/dist/$library.so"; done'
    for a_source_tool in sh sed awk grep find xargs sort cut head tail sha256sum stat readlink tr cat cp mv rm mkdir \
        cmp df touch flock getconf uname sleep dirname printenv tar gzip env id chmod ls kill wc timeout; do
        ln -s "$(command -v "$a_source_tool")" bin/
    done
}

# stand_in NAME SCRIPT
stand_in() {
    rm -f "bin/$1"
    printf '#!/bin/sh\n%s\n' "$2" >"bin/$1"
    chmod +x "bin/$1"
}

# installs [NAME=VALUE…]: runs it in a bare environment; sets `said` and `status`.
installs() {
    status=0
    said=$(env -i PATH="$PWD/bin" HOME="$PWD/home" PYTHON="$PWD/bin/python" CARGO_SAID="$PWD/cargo-said" WORD=first \
        "$@" sh source/scripts/install.sh 2>&1) || status=$?
}

# fails_with SENTENCE [NAME=VALUE…]
fails_with() {
    fails_with_sentence=$1
    shift
    installs "$@"
    contains "$said" "erlang_python: "
    contains "$said" "$fails_with_sentence"
    [ "$status" -ne 0 ]
}

libraries() {
    (cd source/priv && find . -type f | LC_ALL=C sort | tr '\n' ' ')
}

all_libraries='./py_loader.so ./py_nif-cp313.so ./python/erlang/__init__.py ./python/erlang/_native.cpython-313-here.so '

# An archive with libraries for 3.13 that have the word "archived" in them, and its checksum in the source.
an_archive() {
    mkdir -p archives/content/priv/python/erlang
    for an_archive_file in py_loader.so py_nif-cp313.so python/erlang/_native.cpython-313-here.so; do
        echo archived >"archives/content/priv/$an_archive_file"
    done
    an_archive_name=erlang_python-$(version_of_app)-nif-2.16-$(machine)-linux-$(libc).tar.gz
    tar -czf "archives/$an_archive_name" -C archives/content priv
    (cd archives && sha256sum "$an_archive_name") >source/checksums.txt
}

all_is_built_and_the_second_time_nothing() {
    a_source
    installs
    same 0 "$status"
    contains "$said" "Rust 1.95.0"
    same "$all_libraries" "$(libraries)"
    contains "$(cat cargo-said)" "build --profile dist --target-dir target/install --manifest-path"
    contains "$(cat cargo-said)" "--locked -p loader -p nif -p wheel"
    [ ! -e source/target/install ]
    rm cargo-said
    installs
    same "0 " "$status $said"
    [ ! -e cargo-said ]
}

what_is_lost_or_changed_is_built_again() {
    a_source
    installs
    rm source/priv/py_loader.so cargo-said
    installs WORD=second
    same second "$(cat source/priv/py_loader.so)"
    echo more >source/native/nif/lib.rs
    installs WORD=third
    same "third third" "$(cat source/priv/py_loader.so) $(cat source/priv/py_nif-cp313.so)"
    touch source/python/erlang/new.py
    installs
    [ -f source/priv/python/erlang/new.py ]
}

libraries_of_another_source_go() {
    a_source
    installs
    sed -i s/cp313/cp312/ bin/python
    echo more >source/native/nif/lib.rs
    installs
    same "./py_loader.so ./py_nif-cp312.so" "$(cd source/priv && echo ./*.so)"
}

another_python_comes_beside() {
    a_source
    installs
    sed 's/cp313/cp312/' bin/python >bin/python3.12 && chmod +x bin/python3.12
    installs PYTHON="$PWD/bin/python3.12"
    [ -f source/priv/py_nif-cp313.so ] && [ -f source/priv/py_nif-cp312.so ]
}

nothing_is_built_in_the_tree_itself() {
    a_source
    installs REBAR_ROOT_DIR="$PWD/source"
    same "0 " "$status $said"
    [ ! -e source/priv ]
}

# Root may write everywhere, so the script is made to find that it can't.
a_source_that_is_read_only_is_left_alone() {
    a_source
    mkdir -p out/lib/erlang_python
    # shellcheck disable=SC2016 # the script's text
    sed -i 's|\[ -w "$root" \]|false|' source/scripts/install.sh
    installs REBAR_BUILD_DIR="$PWD/out"
    same 0 "$status"
    [ ! -e source/priv ] && [ ! -e source/_build ] && [ ! -e source/target ]
    [ -f out/lib/erlang_python/priv/py_nif-cp313.so ]
}

two_at_once_take_turns() {
    a_source
    installs WORD=first >one 2>&1 &
    installs WORD=first
    wait
    same 0 "$status"
    same 1 "$(wc -l <cargo-said)"
    same "$all_libraries" "$(libraries)"
}

# As Ctrl-C would: the hook's processes end in the middle of the build.
after_an_interrupt_the_next_one_works() {
    a_source
    cp bin/cargo bin/cargo.whole
    # shellcheck disable=SC2016 # for the stand-in
    stand_in cargo 'mkdir -p "target/install/dist"; echo half >target/install/dist/libpy_nif.so; kill -INT 0; sleep 60'
    status=0
    setsid -w env -i PATH="$PWD/bin" HOME="$PWD/home" PYTHON="$PWD/bin/python" sh source/scripts/install.sh || status=$?
    [ "$status" -ne 0 ]
    [ ! -e source/priv/py_nif-cp313.so ]
    mv bin/cargo.whole bin/cargo
    installs
    same 0 "$status"
    same "$all_libraries" "$(libraries)"
}

without_rust_it_says_so() {
    a_source
    rm bin/cargo
    fails_with "there is no cargo on the PATH"
    contains "$said" "Rust $(wanted_rust) or newer"
    contains "$said" "https://sh.rustup.rs"
    contains "$said" "ERLANG_PYTHON_ARTEFACTS"
}

an_old_rust_is_refused() {
    a_source
    stand_in rustc 'echo "rustc 1.85.0 (4d91de4e4 2025-02-17) (built from a source tarball)"'
    fails_with "Rust $(wanted_rust) or newer, and $PWD/bin/rustc is 1.85.0"
    [ ! -e cargo-said ]
}

without_a_linker_it_says_so() {
    a_source
    rm bin/cc
    fails_with "there is no cc on the PATH"
    stand_in cc 'echo "cc: cannot find Scrt1.o"; exit 1'
    fails_with "can't build a program: cc: cannot find Scrt1.o. Debian: apt install gcc libc6-dev"
}

without_python_it_says_so() {
    a_source
    sed -i 's|tok|thas no shared library (looked for /lib/x.so)|' bin/python
    fails_with "has no shared library (looked for /lib/x.so)"
    # Where there is none at all.
    sed -i 's| /usr/local/bin /usr/bin;|;|' source/scripts/pythons.sh
    fails_with "there is no CPython 3.11+ with a shared library here (Debian: apt install python3-dev)" PYTHON=
}

# cargo_fails SENTENCE WORDS [NAME=VALUE…]: WORDS is what cargo says.
cargo_fails() {
    cargo_fails_sentence=$1
    a_source
    stand_in cargo "echo '$2'; exit 101"
    shift 2
    fails_with "$cargo_fails_sentence" "$@"
    contains "$said" "source/_build/log/install.log"
    [ ! -e source/priv/py_nif-cp313.so ]
}

# A process that is left would keep the lock, and the pipe to rebar3.
a_build_leaves_no_process() {
    a_source
    stand_in cargo 'echo broken; exit 101'
    # Not read by a pipe, which would end with the last of them.
    env -i PATH="$PWD/bin" HOME="$PWD/home" PYTHON="$PWD/bin/python" sh source/scripts/install.sh >first 2>&1 || :
    installs
    case $said in *waiting*) exit 1 ;; esac
    contains "$said" "could not be built"
}

what_cargo_fails_of_is_a_sentence() {
    cargo_fails "the disk of $PWD/source is full" \
        "error: failed to write x: No space left on device (os error 28)"
    cargo_fails "can't reach the registry of crates: Could not resolve host: index.crates.io" \
        "  [6] Could not resolve host: index.crates.io"
    cargo_fails "The proxy is http://proxy.example:3128, from \$https_proxy" \
        "  [56] CONNECT tunnel failed, response 407" https_proxy=http://user:secret@proxy.example:3128
    case $said in *secret*) exit 1 ;; esac
    cargo_fails "the build is offline (REBAR_OFFLINE), and not all crates are on this machine" \
        "error: no matching package named x found; you are running in the offline mode" REBAR_OFFLINE=1
    cargo_fails "the native library could not be built" "error[E0425]: cannot find value x"
    contains "$said" "  | error[E0425]"
}

the_libraries_of_an_archive_are_taken() {
    a_source
    an_archive
    rm bin/cargo bin/rustc bin/cc
    installs ERLANG_PYTHON_ARTEFACTS="$PWD/archives"
    same 0 "$status"
    same "$all_libraries" "$(libraries)"
    same archived "$(cat source/priv/py_nif-cp313.so)"
    installs ERLANG_PYTHON_ARTEFACTS="$PWD/archives"
    same "0 " "$status $said"
}

an_archive_by_url_is_fetched() {
    a_source
    an_archive
    # shellcheck disable=SC2016 # for the stand-in
    stand_in curl 'while [ $# -gt 1 ]; do [ "$1" != -o ] || to=$2; shift; done; cp "archives/${1##*/}" "$to" || cp "../archives/${1##*/}" "$to"'
    installs ERLANG_PYTHON_ARTEFACTS=https://example.org/releases/
    same 0 "$status"
    contains "$said" "fetching https://example.org/releases/erlang_python-"
    same archived "$(cat source/priv/py_nif-cp313.so)"
}

a_password_of_a_url_is_not_said() {
    a_source
    an_archive
    fails_with "to fetch https://example.org/erlang_python-" ERLANG_PYTHON_ARTEFACTS=https://me:secret@example.org
    case $said in *secret*) exit 1 ;; esac
    # shellcheck disable=SC2016 # for the stand-in
    stand_in curl 'for url; do :; done; echo "curl: no $url"; exit 5'
    fails_with "can't be fetched: curl: no https://example.org/" ERLANG_PYTHON_ARTEFACTS=https://me:secret@example.org
    case $said in *secret*) exit 1 ;; esac
}

a_wrong_checksum_is_refused() {
    a_source
    an_archive
    echo other >>"archives/$an_archive_name"
    fails_with "Nothing of it was unpacked" ERLANG_PYTHON_ARTEFACTS="$PWD/archives"
    same '' "$(libraries)"
    [ ! -e cargo-said ]
}

an_archive_that_cannot_be_had_says_why() {
    a_source
    an_archive
    rm "archives/$an_archive_name"
    fails_with "there is no $PWD/archives/$an_archive_name" ERLANG_PYTHON_ARTEFACTS="$PWD/archives"
    fails_with "must be the absolute path of a directory" ERLANG_PYTHON_ARTEFACTS=archives
    fails_with "the build is offline (HEX_OFFLINE)" ERLANG_PYTHON_ARTEFACTS=https://example.org HEX_OFFLINE=1
    fails_with "neither curl nor wget" ERLANG_PYTHON_ARTEFACTS=https://example.org
    stand_in curl 'echo "curl: (5) Could not resolve proxy: nowhere"; exit 5'
    fails_with "can't be fetched: curl: (5) Could not resolve proxy: nowhere. The proxy is http://nowhere:1" \
        ERLANG_PYTHON_ARTEFACTS=https://example.org https_proxy=http://nowhere:1
}

without_an_archive_for_this_machine_it_is_built() {
    a_source
    : >source/checksums.txt
    fails_with "must be the absolute path of a directory" ERLANG_PYTHON_ARTEFACTS=archives
    installs ERLANG_PYTHON_ARTEFACTS="$PWD/archives"
    contains "$said" "checksums.txt has no erlang_python-"
    same first "$(cat source/priv/py_nif-cp313.so)"
    # Nor is one for this Python in the archive.
    a_source
    an_archive
    sed -i s/cp313/cp399/ bin/python
    installs ERLANG_PYTHON_ARTEFACTS="$PWD/archives"
    contains "$said" "the archive has no library for Python"
    same "archived first" "$(cat source/priv/py_nif-cp313.so) $(cat source/priv/py_nif-cp399.so)"
}

# A node would take the older one, which has a library.
a_python_that_no_archive_has_asks_for_no_rust() {
    a_source
    an_archive
    rm bin/cargo
    sed 's/1013000d00f0/1099000d00f0/; s/cp313/cp399/' bin/python >bin/python3
    mv bin/python bin/python3.13
    chmod +x bin/python3
    installs PYTHON= ERLANG_PYTHON_ARTEFACTS="$PWD/archives"
    same 0 "$status"
    installs PYTHON= ERLANG_PYTHON_ARTEFACTS="$PWD/archives"
    same "0 " "$status $said"
    fails_with "there is no cargo" PYTHON="$PWD/bin/python3" ERLANG_PYTHON_ARTEFACTS="$PWD/archives"
}

# Where the shell completes the name of a directory, it ends with a slash.
a_bundle_is_made_anew_where_its_name_ends_with_a_slash() {
    rm -rf bin rel
    mkdir -p bin rel/python
    touch rel/python/bundled
    # shellcheck disable=SC2016 # for the stand-in
    stand_in uv 'mkdir -p "$5/cpython-3.13.1/bin" && cp "$0" "$5/cpython-3.13.1/bin/python3.13"'
    PATH=$PWD/bin:$PATH sh "$project/scripts/bundle_python.sh" rel/python// 3.13
    same "bin bundled" "$(cd rel/python && echo ?*)"
    same python "$(ls -A rel)"
    status=0
    sh "$project/scripts/bundle_python.sh" / 3.13 || status=$?
    same 1 "$status"
}

prove "all is built, and the second time nothing" all_is_built_and_the_second_time_nothing
prove "what is lost or of a changed source is built again" what_is_lost_or_changed_is_built_again
prove "libraries of another source go" libraries_of_another_source_go
prove "a library for another Python comes beside the first" another_python_comes_beside
prove "in the tree itself the hook builds nothing" nothing_is_built_in_the_tree_itself
prove "a source that is read-only is left alone" a_source_that_is_read_only_is_left_alone
prove "two builds at once take turns" two_at_once_take_turns
prove "after an interrupted build the next one works" after_an_interrupt_the_next_one_works
prove "without Rust a sentence says how to get it" without_rust_it_says_so
prove "a Rust that is too old is refused" an_old_rust_is_refused
prove "without a linker a sentence says so" without_a_linker_it_says_so
prove "without a Python to embed a sentence says so" without_python_it_says_so
prove "a build leaves no process behind" a_build_leaves_no_process
prove "what cargo fails of is a sentence" what_cargo_fails_of_is_a_sentence
prove "the libraries of an archive are taken, without Rust" the_libraries_of_an_archive_are_taken
prove "an archive is fetched from a URL" an_archive_by_url_is_fetched
prove "an archive with a wrong checksum is not unpacked" a_wrong_checksum_is_refused
prove "an archive that can't be had says why" an_archive_that_cannot_be_had_says_why
prove "a Python that no archive has is not built for unasked" a_python_that_no_archive_has_asks_for_no_rust
prove "what no archive has is built" without_an_archive_for_this_machine_it_is_built
prove "a password of a URL is not said" a_password_of_a_url_is_not_said
prove "a bundle is made anew where its name ends with a slash" a_bundle_is_made_anew_where_its_name_ends_with_a_slash
