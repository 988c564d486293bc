# shellcheck shell=sh
# Building a Python. The stand-in of curl has one release, and whatever it is told to give for it.

# fake_pool RELEASE: the only one that the mirror has.
fake_pool() {
    pythons_dir="$work/built pythons"
    rm -rf "$pythons_dir" "${work:?}/bin" "$work/asked"
    fake_command curl "
        echo \"\$@\" >>'$work/asked'
        for url; do :; done
        case \$url in *_$1.orig.tar.xz) ;; *) exit 22 ;; esac
        while [ \$# -gt 1 ]; do
            [ \"\$1\" != -o ] || echo 'not the source' >\"\$2\"
            shift
        done"
    PATH=$work/bin:$PATH
    install_for_python() { :; }
    debian_mirror() { printf 'http://127.0.0.1/debian/'; }
}

what_is_there_is_not_built_again() {
    fake_pool none
    mkdir -p "$pythons_dir/3.14.6t/bin"
    ln -s /bin/true "$pythons_dir/3.14.6t/bin/python3"
    contains "$(make_python 3.14t)" "Python 3.14.6t is in $pythons_dir/3.14.6t"
    [ ! -e "$work/asked" ]
}

only_what_has_the_checksum_is_built() {
    fake_pool 3.14.6
    status=0
    said=$( (make_python 3.14t) 2>&1) || status=$?
    same 1 "$status"
    contains "$said" "source of Python 3.14.6"
    contains "$said" "another checksum"
    contains "$(sed -n 1p "$work/asked")" "/pool/main/p/python3.14/python3.14_3.14.7.orig.tar.xz"
    [ ! -e "$pythons_dir/build/3.14.6.tar.xz" ]
}

a_mirror_without_any_is_an_error() {
    fake_pool none
    status=0
    said=$( (make_python 3.14) 2>&1) || status=$?
    same 1 "$status"
    contains "$said" "has none of the known sources"
}

what_is_not_known_is_refused() {
    fake_pool none
    for unknown in 3.9 3.1 3.14.99 3.13t; do
        if said=$( (make_python "$unknown") 2>&1); then exit 1; fi
    done
    contains "$said" "free threads begin with 3.14t"
    [ ! -e "$work/asked" ]
}

what_was_built_is_found() {
    pythons_dir="$work/built pythons"
    PYENV_ROOT=$work/no-pyenv
    mkdir -p "$pythons_dir/3.14.7t/bin"
    cp /bin/true "$pythons_dir/3.14.7t/bin/python3"
    contains "$(python_candidates)" "$pythons_dir/3.14.7t/bin/python3"
}

where_to_get_3_15_is_said() {
    fake_pool none
    for unknown in 3.15 3.15t 3.15.2; do
        if said=$( (make_python "$unknown") 2>&1); then exit 1; fi
        contains "$said" "the source of Python 3.15 can't be had yet"
        contains "$said" "Debian sid has it as a package"
    done
    [ ! -e "$work/asked" ]
}

prove "for Python 3.15 it is said where it comes from" where_to_get_3_15_is_said
prove "a Python that was built is not built again" what_is_there_is_not_built_again
prove "the newest source that the mirror has is taken, if its checksum is right" \
    only_what_has_the_checksum_is_built
prove "a mirror without any known source is an error" a_mirror_without_any_is_an_error
prove "an unknown version and the free-threaded 3.13 are refused" what_is_not_known_is_refused
prove "what ./dev python has built is found" what_was_built_is_found
