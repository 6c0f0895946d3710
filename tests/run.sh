#!/usr/bin/env bash
# Runs the test programs of the groups named, adds up what they counted, and closes with "N passed, N failed".
# A program that dies, or that ran no test, is a failure. Called by `make test`.
set -u
cd "$(dirname "$0")/.." || exit 2
out=${OUT:-build}
passed=0
failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for group in "$@"; do
    start=$(date +%s%N)
    TEST_OUT="$out" "$out/tests/$group" >"$log" 2>&1
    code=$?
    took=$((($(date +%s%N) - start) / 1000000))
    counts=$(sed -n 's/^@count \([0-9]*\) \([0-9]*\)$/\1 \2/p' "$log" | tail -n 1)
    if [ -z "$counts" ]; then
        echo "$group: the test program ended with exit code $code before it counted its tests"
        tail -n 40 "$log"
        failed=$((failed + 1))
        continue
    fi
    read -r p f <<<"$counts"
    if [ $((p + f)) -eq 0 ]; then
        echo "$group: no test ran"
        f=1
    fi
    if [ "$code" -ne 0 ] && [ "$f" -eq 0 ]; then
        echo "$group: exit code $code although every test passed"
        f=1
    fi
    if [ "$f" -ne 0 ] || [ -n "${VERBOSE:-}" ]; then
        grep -v '^@count' "$log"
    else
        grep '^# ' "$log" # figures that tests print: seeds, counts
    fi
    printf '%-12s %4d passed, %d failed, %d.%03d s\n' "$group" "$p" "$f" $((took / 1000)) $((took % 1000))
    passed=$((passed + p))
    failed=$((failed + f))
done
if [ $((passed + failed)) -eq 0 ]; then
    echo "no test ran"
    failed=1
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
