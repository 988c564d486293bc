# shellcheck shell=sh
# Putting files where the node finds them, and showing steps.

only_modules_are_copied() {
    rm -rf from to
    mkdir -p "from/erlang/sub dir" from/erlang/__pycache__
    touch from/erlang/__init__.py from/erlang/py.typed from/erlang/_native.pyi \
        "from/erlang/sub dir/a b.py" from/erlang/_native.so from/erlang/__pycache__/x.py
    copy_python_package from to
    same "./erlang/__init__.py ./erlang/_native.pyi ./erlang/py.typed ./erlang/sub dir/a b.py " \
        "$(cd to && find . -type f | LC_ALL=C sort | tr '\n' ' ')"
}

what_is_gone_goes() {
    rm -rf from to
    mkdir -p from/erlang/old
    touch from/erlang/__init__.py from/erlang/gone.py from/erlang/old/__init__.py
    copy_python_package from to
    mkdir -p to/erlang/old/__pycache__ to/erlang/__pycache__
    rm -r from/erlang/gone.py from/erlang/old
    copy_python_package from to
    same "./erlang ./erlang/__init__.py ./erlang/__pycache__ " \
        "$(cd to && find . -mindepth 1 | LC_ALL=C sort | tr '\n' ' ')"
}

an_equal_file_stays() {
    rm -rf from to
    mkdir from to
    echo new >from/lib.so
    echo old >to/lib.so
    exec 3<to/lib.so
    place from/lib.so to/lib.so
    same new "$(cat to/lib.so)"
    same old "$(cat <&3)"
    before=$(stat -c %i to/lib.so)
    place from/lib.so to/lib.so
    same "$before" "$(stat -c %i to/lib.so)"
}

a_step_shows_its_log_when_it_fails() {
    noisy() {
        echo "the reason"
        return 7
    }
    status=0
    said=$(step "a label" noisy-log noisy) || status=$?
    same 7 "$status"
    contains "$said" "a label"
    contains "$said" "failed"
    contains "$said" "  | the reason"
}

a_step_is_one_plain_line() {
    quiet() { echo "not shown"; }
    said=$(step "a label" quiet-log quiet)
    same 1 "$(printf '%s\n' "$said" | wc -l)"
    case $said in *"$(printf '\033')"* | *"not shown"*) exit 1 ;; esac
    contains "$(cat "$log_dir/quiet-log.log")" "not shown"
}

perf_build_chooses_the_profile() {
    cargo() { printf '%s|%s\n' "${RUSTFLAGS:-}" "$*"; }
    built_with() (
        PERF_BUILD=$1 RUSTFLAGS=''
        # shellcheck source=scripts/build.sh
        . "$project/scripts/build.sh"
        cargo_build x -p nif
        built x lib.so
    )
    tuned=" -C target-cpu=native|build --profile perf --target-dir target/x-perf -p nif${newline}target/x-perf/perf/lib.so"
    plain="|build --profile release --target-dir target/x -p nif${newline}target/x/release/lib.so"
    same "$tuned" "$(built_with 1)"
    same "$plain" "$(built_with 0)"
    same "$plain" "$(built_with '')"
}

prove "only modules, stubs and py.typed are copied" only_modules_are_copied
prove "a module that is gone from the package goes from priv" what_is_gone_goes
prove "a library that is in use keeps its old bytes, an equal one its file" an_equal_file_stays
prove "PERF_BUILD=1 builds for this processor, as --perf does" perf_build_chooses_the_profile
prove "a step that fails shows the end of its log and gives its status" \
    a_step_shows_its_log_when_it_fails
prove "a step that is fine is one plain line" a_step_is_one_plain_line
