#!/usr/bin/env bash
# Runs the test programs of the groups named, adds up what they counted, and closes with "N passed, N failed".
# A program that dies, or that ran no test, is a failure. Called by `make test`. What failed is told where it ran, and in a line "failed: ..." each
# before the closing line, so that the end of a long log says it too.
#
# A group that starts nonbisd runs twice, with one loop and with two (or with LOOPS="1 2 4"), both runs at the same time.
# Groups that do not start it run side by side (LANES=2).
set -u
cd "$(dirname "$0")/.." || exit 2
out=${OUT:-build}
loops=${LOOPS:-1 2}
lanes=${LANES:-2}
# What earlier runs left: stores and logs, for whoever looks into a failure.
[ ! -d "$out/scratch" ] || find "$out/scratch" -mindepth 1 -maxdepth 1 -mmin +120 -exec rm -rf {} + 2>/dev/null
passed=0
failed=0
failures=() # a line for each, which are told once more at the end
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

starts_nonbisd() { [ "$1" = integration ] || [ "$1" = contract ]; }

# run NAME GROUP [SETTING=VALUE]: leaves NAME.log and NAME.time, its exit code, and its time in ms.
run() {
    local start
    start=$(date +%s%N)
    local code=0 suite
    if [[ $out == *san-address* && $2 = unit ]]; then
        # One process for each suite: a fork out of a process that has grown costs many times as much under this sanitizer.
        # shellcheck disable=SC2013
        for suite in $(grep -rhoE 'suite_create\("[^"]+"' "tests/$2" | cut -d'"' -f2 | sort -u); do
            env TEST_OUT="$out" CK_RUN_SUITE="$suite" "$out/tests/$2" >>"$logs/$1.log" 2>&1 || code=$?
        done
    else
        env TEST_OUT="$out" ${3:+"$3"} "$out/tests/$2" >"$logs/$1.log" 2>&1 || code=$?
    fi
    echo "$code $((($(date +%s%N) - start) / 1000000))" >"$logs/$1.time"
}

# failure NAME WHAT: remembers one, cut to a line that can be read.
failure() { failures+=("failed: $1: ${2:0:400}"); }

tell() {
    local name=$1 log=$logs/$1.log code took counts p f line
    read -r code took <"$logs/$1.time"
    counts=$(awk '/^@count [0-9]+ [0-9]+$/ { p += $2; f += $3; n++ } END { if (n) print p, f }' "$log")
    if [ -z "$counts" ]; then
        echo "$name: the test program ended with exit code $code before it counted its tests"
        tail -n 40 "$log"
        failed=$((failed + 1))
        failure "$name" "ended with exit code $code before it counted its tests"
        return
    fi
    read -r p f <<<"$counts"
    if [ $((p + f)) -eq 0 ]; then
        echo "$name: no test ran"
        failure "$name" "no test ran"
        f=1
    fi
    if [ "$code" -ne 0 ] && [ "$f" -eq 0 ]; then
        echo "$name: exit code $code although every test passed"
        failure "$name" "exit code $code although every test passed"
        f=1
    fi
    # A failure or an error as Check tells it: FILE:LINE:F:CASE:TEST:ITERATION: message
    while IFS= read -r line; do
        failure "$name" "$line"
    done < <(grep -E '^[^ :]+:[0-9]+:[FE]:' "$log")
    if [ "$f" -ne 0 ] || [ -n "${VERBOSE:-}" ]; then
        grep -v '^@count' "$log"
    else
        grep '^# ' "$log" # figures that tests print: seeds, counts
    fi
    printf '%-20s %4d passed, %d failed, %d.%03d s\n' "$name" "$p" "$f" $((took / 1000)) $((took % 1000))
    passed=$((passed + p))
    failed=$((failed + f))
}

# Those that start nonbisd come last, one group after the other, so that their figures are disturbed by no others.
names=()
for group in "$@"; do
    if starts_nonbisd "$group"; then
        continue
    fi
    while [ "$(jobs -rp | wc -l)" -ge "$lanes" ]; do
        wait -n
    done
    run "$group" "$group" &
    names+=("$group")
done
wait
for name in "${names[@]}"; do
    tell "$name"
done
for group in "$@"; do
    if ! starts_nonbisd "$group"; then
        continue
    fi
    for n in $loops; do
        run "$group-loops-$n" "$group" "NONBIS_SERVER_LOOPS=$n" &
    done
    wait
    for n in $loops; do
        tell "$group-loops-$n"
    done
done
if [ $((passed + failed)) -eq 0 ]; then
    echo "no test ran"
    failed=1
fi
[ "${#failures[@]}" -eq 0 ] || printf '%s\n' "${failures[@]}"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
