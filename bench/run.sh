#!/usr/bin/env bash
# nonbisd side by side with nginx proxy_pass, on one machine, in one run. `make bench`; ./dev bench installs nginx and wrk.
#
#   OUT=build     where the programs are; everything is written to $OUT/bench, wrk's own words to $OUT/bench/raw.txt
#   ROUNDS=5      rounds, each of them proxy_pass, first-time, replay; the median of the rounds' ratios counts
#   LOGS=off      a line per request: off on both sides, or on on both sides
#   LOOPS=1       nonbisd's threads that serve clients (setting server.loops)
#   SECONDS_EACH=3
#   BENCH_DIR     where nonbisd's store is ($OUT/bench/store): the speed of its disk is part of the figures
#
# A goal that is missed is shown and is no error; exit 1 means that something could not run. Never part of a test: figures
# belong to a machine. The load generator, the upstream, nginx and nonbisd share the processors.
set -u
cd "$(dirname "$0")/.." || exit 2
out=${OUT:-build}
rounds=${ROUNDS:-5}
logs=${LOGS:-off}
loops=${LOOPS:-1}
seconds=${SECONDS_EACH:-3}
dir=$PWD/$out/bench
case $out in /*) dir=$out/bench ;; esac
store=${BENCH_DIR:-$dir/store}
connections=64
replay_keys=1000
idle_connections=1000
pids=()

cleanup() {
    for pid in "${pids[@]}"; do
        kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    done
}
trap cleanup EXIT
trap 'exit 130' INT TERM

die() {
    echo "bench: $*" >&2
    exit 1
}

until_true() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -ge "$deadline" ] && return 1
        sleep 0.05
    done
}

# ---- the programs ---------------------------------------------------------------------------------------------

start_upstream() {
    rm -f "$dir/upstream.port" # of an earlier run
    "$out/bench/upstream" >"$dir/upstream.port" &
    pids+=($!)
    until_true 5 test -s "$dir/upstream.port" || die "the upstream did not start"
    upstream_port=$(cat "$dir/upstream.port")
}

start_nginx() {
    local program
    program=$(PATH=$PATH:/usr/sbin:/usr/local/sbin command -v nginx)
    mkdir -p "$dir/nginx"
    nginx_port=$("$out/bench/upstream" --free-port)
    local access_log=off
    [ "$logs" = on ] && access_log="$dir/nginx/access.log"
    sed "s|@ACCESS_LOG@|$access_log|; s|@DIR@|$dir/nginx|; s|@PORT@|$nginx_port|; s|@UPSTREAM@|$upstream_port|" bench/nginx.conf.in >"$dir/nginx/nginx.conf"
    "$program" -p "$dir/nginx" -c "$dir/nginx/nginx.conf" -e "$dir/nginx/error.log" &
    pids+=($!)
    until_true 5 curl_free_get "$nginx_port" || die "nginx did not start: $(cat "$dir/nginx/error.log")"
}

# GET /count by bash alone; true when there was an answer.
curl_free_get() {
    local line
    exec 3<>"/dev/tcp/127.0.0.1/$1" || return 1
    printf 'GET /count HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n' >&3
    IFS= read -r line <&3
    exec 3<&-
    [ -n "$line" ]
} 2>/dev/null

posts() {
    local line count
    exec 3<>"/dev/tcp/127.0.0.1/$upstream_port"
    printf 'GET /count HTTP/1.1\r\nHost: bench\r\n\r\n' >&3
    while IFS= read -r line <&3 && [ "$line" != $'\r' ]; do case $line in Content-Length:*) count=${line#*: } ;; esac; done
    IFS= read -r -N "$((${count%$'\r'}))" line <&3
    exec 3<&-
    echo "$line"
}

nonbisd_started() {
    kill -0 "$nonbisd_pid" 2>/dev/null || die "nonbisd ended while starting: $(cat "$dir/nonbisd.log")"
    grep -qs ' start .*listen=' "$dir/nonbisd.log"
}

# A fresh store each time. Sets nonbisd_pid, nonbisd_port.
start_nonbisd() {
    rm -rf "$store" "$dir/nonbisd.log"
    mkdir -p "$store"
    "$out/nonbisd" --upstream "http://127.0.0.1:$upstream_port" --listen 127.0.0.1:0 --admin 127.0.0.1:0 \
        --store "$store/nonbis.db" --set "server.loops=$loops" --log-level "$([ "$logs" = on ] && echo info || echo warn)" 2>"$dir/nonbisd.log" &
    nonbisd_pid=$!
    pids+=("$nonbisd_pid")
    until_true 10 nonbisd_started || die "nonbisd did not say where it listens"
    nonbisd_port=$(sed -n 's/.* start .*listen=[^ ]*:\([0-9]*\).*/\1/p' "$dir/nonbisd.log" | head -n 1)
}

stop_nonbisd() {
    kill "$nonbisd_pid"
    wait "$nonbisd_pid" || die "nonbisd ended with $?: $(tail -n 3 "$dir/nonbisd.log")"
}

pss_kib() { awk '/^Pss:/ { print $2 }' "/proc/$1/smaps_rollup"; }

# ---- measuring ------------------------------------------------------------------------------------------------

raw=$dir/raw.txt

# load NAME PORT RUN COUNT SECONDS: appends wrk's words to raw.txt; prints requests per second.
load() {
    local text
    text=$(wrk -t1 "-c$connections" "-d${5}s" --latency -s bench/keyed.lua "http://127.0.0.1:$2" -- "$3" "$4" 2>&1) ||
        die "wrk could not run: $text"
    printf '== %s (run %s, keys %s)\n%s\n' "$1" "$3" "$4" "$text" >>"$raw"
    if [ "$1" != seed ]; then
        local bad
        bad=$(sed -n 's/ *Non-2xx or 3xx responses: //p; s/ *Socket errors: //p' <<<"$text" | paste -sd' ')
        [ -z "$bad" ] || echo "bench: $1: answers that are none of the expected: $bad" >&2
    fi
    sed -n 's|^Requests/sec: *||p' <<<"$text"
}

median() { printf '%s\n' "$@" | sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

missed=0
# row WHAT VALUE UNIT GOAL ("<= N" or ">= N")
row() {
    local verdict
    verdict=$(awk -v value="$2" -v goal="$4" 'BEGIN { split(goal, g, " "); ok = g[1] == ">=" ? value >= g[2] : value <= g[2]; print ok ? "pass" : "fail" }')
    [ "$verdict" = pass ] || missed=$((missed + 1))
    printf '%-44s %10s %-6s goal %-9s %s\n' "$1" "$2" "$3" "$4" "$verdict"
}
divide() { awk -v a="$1" -v b="$2" -v digits="$3" 'BEGIN { printf "%." digits "f", (b > 0 ? a / b : 0) }'; }

measure_speed() {
    local round base run
    base=$(date +%s)
    load seed "$nonbisd_port" 1 "$replay_keys" 1 >/dev/null
    for ((round = 1; round <= rounds; round++)); do
        run=$(((base + round) % 4294967295))
        proxy+=("$(load proxy_pass "$nginx_port" "$run" 0 "$seconds")")
        first+=("$(load first-time "$nonbisd_port" "$run" 0 "$seconds")")
        local before
        before=$(posts)
        replay+=("$(load replay "$nonbisd_port" 1 "$replay_keys" "$seconds")")
        leaked=$((leaked + $(posts) - before))
        first_ratio+=("$(divide "${first[-1]}" "${proxy[-1]}" 3)")
        replay_ratio+=("$(divide "${replay[-1]}" "${proxy[-1]}" 3)")
        printf 'round %d: proxy_pass %s/s  first-time %s/s (%s)  replay %s/s (%s)\n' "$round" "${proxy[-1]}" \
            "${first[-1]}" "${first_ratio[-1]}" "${replay[-1]}" "${replay_ratio[-1]}"
    done
}

idle_pid=
# hold CONNECTIONS REQUESTS: runs until let_go.
hold() {
    coproc IDLE { exec "$out/bench/idle" "$nonbisd_port" "$1" "$2" 2>"$dir/idle.log"; }
    # shellcheck disable=SC2153 # bash names it after the coprocess
    idle_pid=$IDLE_PID
    local line=
    read -r -t 60 line <&"${IDLE[0]}"
    [ "$line" = ready ] || die "the idle connections could not be made: $(cat "$dir/idle.log")"
}
let_go() {
    local in=${IDLE[1]}
    exec {in}>&-
    wait "$idle_pid"
}

# The requests are made once before over one connection, so that the second time costs connections and no new keys.
measure_memory() {
    idle_kib=$(pss_kib "$nonbisd_pid")
    hold 1 "$idle_connections"
    let_go
    local without
    without=$(pss_kib "$nonbisd_pid")
    hold "$idle_connections" 1
    connection_kib=$(divide $(($(pss_kib "$nonbisd_pid") - without)) "$idle_connections" 2)
    printf 'memory: %s KiB after start, %s KiB with %s keys stored, %s KiB with %s idle connections\n' "$idle_kib" "$without" \
        "$idle_connections" "$(pss_kib "$nonbisd_pid")" "$idle_connections"
    let_go
}

# ---- the run --------------------------------------------------------------------------------------------------

for program in nonbisd bench/upstream; do [ -x "$out/$program" ] || die "$out/$program is not there; make bench builds it"; done
command -v wrk >/dev/null || die "wrk is not installed; ./dev bench installs it"
PATH=$PATH:/usr/sbin:/usr/local/sbin command -v nginx >/dev/null || die "nginx is not installed; ./dev bench installs it"
mkdir -p "$dir"
: >"$raw"
"${CC:-cc}" -std=c11 -O2 -D_GNU_SOURCE -o "$out/bench/idle" bench/idle.c || die "bench/idle.c could not be built"

proxy=()
first=()
replay=()
first_ratio=()
replay_ratio=()
leaked=0
start_upstream
start_nginx
echo "logs of single requests: $logs, on both sides; loops: $loops"
echo "machine: $(nproc) processors, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), Linux $(uname -r); $(date -u +%Y-%m-%d)"

start_nonbisd
measure_memory
stop_nonbisd

start_nonbisd
keys_before=$(posts)
measure_speed
stop_nonbisd
nginx_posts=$(awk '/^== / { name = $2 } / requests in / { if (name == "proxy_pass") sum += $1 } END { print sum + 0 }' "$raw")
keys=$(($(posts) - keys_before - nginx_posts))
bytes=$(du -cb "$store"/* | tail -n 1 | cut -f1)

echo
proxy_median=$(median "${proxy[@]}")
first_median=$(median "${first[@]}")
replay_median=$(median "${replay[@]}")
echo "medians of $rounds: nginx proxy_pass $proxy_median/s, nonbisd first-time $first_median/s, replay $replay_median/s"
echo "store: $(grep -oE '(sqlite|memory)[^"]*' "$dir/nonbisd.log" | head -n 1)"
echo "store: $(grep -oE 'synchronous=[A-Z0-9]+' "$dir/nonbisd.log" | head -n 1) as read back; $keys keys, $bytes bytes after a clean stop"
row "first-time / proxy_pass" "$(divide "$(median "${first_ratio[@]}")" 1 2)" "" ">= 0.35"
row "replay / proxy_pass" "$(divide "$(median "${replay_ratio[@]}")" 1 2)" "" ">= 0.9"
row "replays that reached the upstream" "$leaked" "" "<= 0"
row "memory idle (PSS)" "$(divide "$idle_kib" 1024 1)" "MiB" "<= 10"
row "memory per idle client connection (PSS)" "$connection_kib" "KiB" "<= 20"
row "disk per key (36 B key, 300 B body)" "$(divide "$bytes" "$keys" 0)" "bytes" "<= 850"
[ "$missed" -eq 0 ] || echo "$missed of the goals missed"
echo "wrk's own words: $raw"
