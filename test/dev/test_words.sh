# shellcheck shell=sh
# The command line, through the program itself.

# says STATUS TEXT ARG…: ./dev ARG… ends with STATUS and says TEXT.
says() {
    says_status=$1 says_text=$2 says_got=0
    shift 2
    says_said=$(cd / && "$project/dev" "$@" 2>&1) || says_got=$?
    same "$says_status" "$says_got"
    contains "$says_said" "$says_text"
}

what_it_does_not_know() {
    says 2 "unknown command 'rum'" rum
    says 2 "unknown option --fast" build --fast
    says 2 "takes no argument 'now'" build now
    says 2 "--python needs a path or a version" build --python
    says 2 "--root takes bookworm, trixie, forky or sid, not 'potato'" test --root potato
    says 2 "--root is for run, test and check" build --root sid
    says 2 "--sanitize needs address or thread" test --sanitize
    says 2 "--sanitize takes address or thread, not 'memory'" test --sanitize memory
    says 2 "--sanitize thread is for crates" test --sanitize thread test/python/test_smoke.py
    says 2 "one case at a time, and no other suite beside it" test py_config_SUITE:a py_config_SUITE:b
    says 2 "one case at a time, and no other suite beside it" test py_config_SUITE:a py_error_SUITE
    says 2 "there is no benchmark 'nothing'" bench nothing
    says 2 "soak takes a number, not 'many'" soak many
    says 2 "there is no 'nunpy' in test/zoo/packages.txt" zoo packages numpy nunpy
    says 2 "soak http takes a number and node, wheel, uvloop or asyncio, not 'nowhere'" soak http 10 nowhere
}

help_is_shown() {
    says 0 "usage: ./dev COMMAND" help
    says 0 "usage: ./dev COMMAND"
    says 0 "usage: ./dev COMMAND" test --help
}

it_is_called_by_a_link() {
    ln -sf "$project/dev" "$work/link"
    contains "$(cd / && "$work/link" help)" "usage: ./dev COMMAND"
}

words_choose_the_runners() {
    mkdir -p test native/pyrt
    touch test/py_SUITE.erl native/pyrt/Cargo.toml
    words="py_SUITE${newline}pyrt${newline}test/python/test_a.py::test_b$newline"
    sort_words
    same " ct rust python" "$want"
    same "test/py_SUITE" "$want_suites"
    same " -p pyrt" "$want_crates"
    words="py_SUITE:one_case$newline"
    sort_words
    same "one_case" "$want_case"
    words=''
    sort_words
    same "dev rust ct python cpython elixir" "$want"
}

prove "a word it does not know is refused with a sentence and status 2" what_it_does_not_know
prove "help is shown when asked for and without a command" help_is_shown
prove "it finds its tree when called through a link from elsewhere" it_is_called_by_a_link
prove "the words of ./dev test choose the runners" words_choose_the_runners
