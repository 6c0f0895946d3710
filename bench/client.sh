#!/usr/bin/env bash
# A keyed POST through libnonbis beside one through plain libcurl, on one machine, in one run. `make bench-client`.
#
#   OUT=build      where the programs are
#   ROUNDS=20      rounds; the median of the rounds' ratios counts
#   POSTS=500      of each kind in a round, taking turns; a tenth of them once more with the journal
#   JOURNAL_DIR    where the journal is ($OUT/bench/journal): the speed of its disk is part of the figures
#
# A goal that is missed is shown and is no error; exit 1 means that something could not run. Never part of a test: figures belong
# to a machine.
set -u
cd "$(dirname "$0")/.." || exit 2
out=${OUT:-build}
dir=$out/bench
journal=${JOURNAL_DIR:-$dir/journal}

for program in upstream client; do
    [ -x "$dir/$program" ] || { echo "bench: $dir/$program is not there; make bench-client builds it" >&2; exit 1; }
done
rm -rf "$journal" "$dir/upstream.port"
"$dir/upstream" >"$dir/upstream.port" &
upstream=$!
trap 'kill "$upstream" 2>/dev/null; wait "$upstream" 2>/dev/null' EXIT
trap 'exit 130' INT TERM
for ((i = 0; i < 100; i++)); do
    [ -s "$dir/upstream.port" ] && break
    sleep 0.05
done
[ -s "$dir/upstream.port" ] || { echo "bench: the upstream did not start" >&2; exit 1; }
"$dir/client" "http://127.0.0.1:$(cat "$dir/upstream.port")/orders" "${ROUNDS:-20}" "${POSTS:-500}" "$journal"
