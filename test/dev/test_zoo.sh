# shellcheck shell=sh
# Packages of others. The stand-ins are those of the machine, of pip and of the node.

# A tree with one package to try.
fake_zoo() {
    find_cargo() { :; }
    find_erlang() { :; }
    find_pythons() { :; }
    need_for_build() { :; }
    need_venv_package() { :; }
    check_otp() { :; }
    pythons=cp399 chosen=''
    choose_pythons() { :; }
    build() { :; }
    select_python() { py_tag=cp399 py_version=3.99.1 py_exe=false; }
    zoo_prepare() {
        zoo_dir=$root/_build/zoo
        mkdir -p "$zoo_dir/$zoo_kind"
    }
    zoo_versions() { echo "version one 1.0"; }
    zoo_node() { echo "zoo call ok"; }
    profile=release opt_again=no
    rm -rf _build/zoo && mkdir -p test/zoo
    echo "one one" >test/zoo/packages.txt
    words="packages$newline"
}

the_zoo_needs_no_words_of_tests() {
    fake_zoo
    zoo_install() { :; }
    contains "$(dev_zoo)" "call ok;stop ok"
    contains "$(cat _build/zoo/packages/one.txt)" "version one 1.0"
    contains "$(dev_zoo)" "as before"
}

what_is_not_installed_is_told_and_tried_again() {
    fake_zoo
    zoo_install() {
        echo "no wheel for it"
        return 1
    }
    contains "$(dev_zoo)" "not installed: no wheel for it"
    python3 "$project/test/zoo/table.py" _build/zoo page.md
    contains "$(cat page.md)" "| one | not installed: no wheel for it |  |  |  |  |  |  | 3.99.1 |"
    zoo_install() { :; }
    contains "$(dev_zoo)" "call ok;stop ok"
}

a_failed_step_fails_the_zoo() {
    fake_zoo
    zoo_install() { :; }
    zoo_node() { echo "zoo call failed: why" && exit 7; }
    status=0
    said=$(dev_zoo) || status=$?
    same 1 "$status"
    contains "$said" "call failed: why;stop failed: exit code 7"
}

# The client of the frameworks ends with a traceback: its last line is neither `ok` nor `failed`.
a_client_that_crashes_fails_the_zoo() {
    fake_zoo
    zoo_install() { :; }
    zoo_free_port() { zoo_port=1; }
    zoo_serve() { :; }
    timeout() { echo "ModuleNotFoundError: No module named 'httpx'"; }
    use_venv() { :; }
    install_wheel() { :; }
    echo "one one" >test/zoo/frameworks.txt
    zoo_venv=$work words="frameworks$newline"
    status=0
    said=$(dev_zoo) || status=$?
    contains "$said" "uvicorn failed: ModuleNotFoundError"
    same 1 "$status"
}

prove "./dev zoo sets up without the words of ./dev test" the_zoo_needs_no_words_of_tests
prove "what can't be installed stands in the table, and is tried again" what_is_not_installed_is_told_and_tried_again
prove "a package that does not work is a failure of ./dev zoo" a_failed_step_fails_the_zoo
prove "a client of the frameworks that crashes is a failure of ./dev zoo" a_client_that_crashes_fails_the_zoo
