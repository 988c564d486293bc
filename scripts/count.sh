# shellcheck shell=sh
# Reads from a runner's log how many tests passed, failed and were skipped.
#
# Each count_KIND LOG prints three numbers. A log without a summary gives "0 0 0"; what that means
# is decided where the runner's exit status is known.

count_rust() {
    awk '/^test result: / {
             for (i = 2; i <= NF; i++) {
                 if ($i ~ /^passed;/) passed += $(i - 1)
                 if ($i ~ /^failed;/) failed += $(i - 1)
                 if ($i ~ /^ignored;/) skipped += $(i - 1)
             }
         }
         END { print passed + 0, failed + 0, skipped + 0 }' "$1"
}

# "3 passed, 0 failed, 1 skipped", a line for each suite, as test/py_ct.erl ends.
count_ct() {
    awk '/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { passed += $1; failed += $3; skipped += $5 }
         END { print passed + 0, failed + 0, skipped + 0 }' "$1"
}

# "3 failed, 10 passed, 2 skipped, 1 error in 1.2s"; an expected failure is a skipped test.
count_python() {
    strip_colours "$1" | awk '
        / in [0-9.]+s/ && /(passed|failed|error|errors|skipped|deselected|xfailed|xpassed)/ {
            passed = failed = skipped = 0
            for (i = 2; i <= NF; i++) {
                word = $i
                sub(/,$/, "", word)
                if (word == "passed" || word == "xpassed") passed += $(i - 1)
                if (word == "failed" || word ~ /^errors?$/) failed += $(i - 1)
                if (word == "skipped" || word == "xfailed") skipped += $(i - 1)
            }
        }
        END { print passed + 0, failed + 0, skipped + 0 }'
}

# "3 passed, 0 failed, 1 skipped", as elixir/test/test_helper.exs ends: ExUnit's own summary differs by release.
count_elixir() {
    count_cpython "$1"
}

# "3 passed, 0 failed", as test/dev/run.sh ends.
count_dev() {
    awk '/^[0-9]+ passed, [0-9]+ failed$/ { passed = $1; failed = $3 }
         END { print passed + 0, failed + 0, 0 }' "$1"
}

# The same, as scripts/zoo.sh ends.
count_zoo() {
    count_ct "$1"
}

# "3 passed, 0 failed, 1 skipped", as test/cpython/run.py ends.
count_cpython() {
    awk '/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { passed = $1; failed = $3; skipped = $5 }
         END { print passed + 0, failed + 0, skipped + 0 }' "$1"
}

strip_colours() {
    sed "s/$(printf '\033')\[[0-9;]*m//g" "$1"
}
