# shellcheck shell=sh
# Everything that a release consists of, built and checked on this machine; RELEASE.md tells the steps around it.
# It publishes nothing: the end shows what to type.

# ./dev release [--dry-run] [--python X.Y…] [TARGET…]: --dry-run does not ask whether the tree is ready for a release,
# and changes nothing but dist/.
dev_release() {
    clock
    release_start=$now
    release_version=$(project_version)
    setup check
    choose_targets
    choose_tags
    say "erlang_python $release_version"
    is_it_ready
    rm -rf "$dist_dir"
    # In a subshell: it ends by itself where a check fails.
    (opt_pythons='' && dev_check) || exit 1
    use_release_tools
    step_or_exit "list of crates (CycloneDX)" release-sbom write_sbom
    lock
    for release_target in $targets; do
        make_artefacts "$release_target" || exit 1
    done
    unlock
    make_sdist || exit 1
    step_or_exit "checksums of the archives" artefacts-checksums write_checksums
    known_checksums
    step_or_exit "Hex package" release-hex make_hex_package
    step_or_exit "checksums of everything" release-checksums checksum_everything
    list_dist
    clock
    say "took $(seconds $((now - release_start)))"
    what_is_left
}

# A release wants all of this; a dry run says what of it is missing.
is_it_ready() {
    release_faults=''
    [ -z "$(git status --porcelain)" ] || release_fault "there are changes that are not committed"
    has_section "$release_version" ||
        release_fault "CHANGELOG.md has no section '## [$release_version] - YYYY-MM-DD'"
    [ -z "$(git tag --list "v$release_version")" ] || release_fault "there is a tag v$release_version already"
    [ -z "$release_faults" ] || [ "$opt_dry_run" = yes ] || die "this is not ready for a release; see RELEASE.md"
}

release_fault() {
    release_faults=$release_faults$1$newline
    say "  not ready: $1"
}

# has_section VERSION: one with a date.
has_section() {
    grep -qE "^## \\[$(printf '%s' "$1" | sed 's/\./\\./g')\\] - 20[0-9]{2}-[0-9]{2}-[0-9]{2}\$" CHANGELOG.md
}

write_sbom() {
    crates | "$release_python" scripts/licences.py check &&
        crates | "$release_python" scripts/licences.py sbom "$release_version" \
            >"$dist_dir/erlang_python-$release_version.cdx.json"
}

# checksums.txt of the source is what an installation compares an archive with, so it is part of what is tagged.
known_checksums() {
    ! cmp -s "$dist_dir/checksums.txt" checksums.txt || return 0
    if [ "$opt_dry_run" = yes ]; then
        say "  checksums.txt is not that of these archives; a release would write it"
        return 0
    fi
    cp "$dist_dir/checksums.txt" checksums.txt
    say "checksums.txt has the checksums of these archives now. Commit it, and type ./dev release again:"
    say "the archives will have the same bytes."
    exit 0
}

make_hex_package() {
    hex_stage=$artefact_dir/hex
    rm -rf "$hex_stage"
    mkdir -p "$hex_stage" && hex_files >"$hex_stage/files" &&
        pack_files "$root" "$hex_stage/files" "$hex_stage/contents.tar.gz" &&
        escript scripts/hex_package.escript src/erlang_python.app.src "$hex_stage/contents.tar.gz" "$hex_stage/files" \
            "$dist_dir/erlang_python-$release_version.tar"
}

# What a user's build needs, and the documentation.
hex_files() {
    git ls-files -co --exclude-standard | LC_ALL=C sort | while read -r hex_file; do
        case $hex_file in
            .* | bench/* | test/* | elixir/test/* | native/*/tests/* | native/dag/peers/*) continue ;;
        esac
        [ ! -f "$hex_file" ] || printf '%s\n' "$hex_file"
    done
}

checksum_everything() {
    (cd "$dist_dir" && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum) \
        >"$artefact_dir/SHA256SUMS" && mv "$artefact_dir/SHA256SUMS" "$dist_dir/SHA256SUMS"
}

what_is_left() {
    say "Not looked at: security advisories. Their data can't be had offline; where there is a network, cargo audit has it."
    if [ "$opt_dry_run" = yes ]; then
        say "a dry run: nothing was written outside of dist/"
        return
    fi
    say "what is left to type:"
    say "  git tag -s v$release_version -m 'erlang_python $release_version' && git push origin v$release_version"
    say "  # the archives, checksums.txt, the list of crates: where ERLANG_PYTHON_ARTEFACTS of users points to"
    say "  twine upload dist/*.whl dist/erlang_python-$release_version.tar.gz"
    say "  # dist/erlang_python-$release_version.tar: POST https://hex.pm/api/publish, with the key of the owner"
}
