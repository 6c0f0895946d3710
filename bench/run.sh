#!/usr/bin/env bash
# nonbisd side by side with what stands for its cost, its limit and its rivals, on one machine, in one run. `make bench` (three
# minutes), `make bench-all` (everything; it says at its start how long). ./dev bench and ./dev bench-all install what they want.
#
#   PEERS="nginx redis"      of nginx redis idempotency postgres log; nonbis is always there. One that cannot run here is left out,
#                            which is said
#   LOADS="first replay"     of first replay mixed mismatch status get
#   CONNECTIONS="64"         of wrk, one after the other, as BODIES and UPSTREAM_DELAY
#   BODIES="200"             bytes of a request's body: 200, 20k, 1M
#   UPSTREAM_DELAY="0"       how long the handler takes: 0, 20ms
#   KEYS=0                   over 0: beside the empty store one that holds so many live keys, as a series of its own
#   ROUNDS=5 SECONDS_EACH=3  rounds of A B C; the median of the rounds' ratios counts
#   ANSWER=300               bytes of the handler's answer
#   LOGS=off LOOPS=1         a line per request (nonbisd and nginx, both or none); nonbisd's threads that serve clients
#   MEMORY=1                 idle memory, memory per connection; 0: not
#   SOAK=0                   seconds of load over which memory is to stay flat
#   ALL=0                    1: everything (`make bench-all`): all peers and the blocks that plan_all lists, 3 rounds, KEYS=10000000,
#                            SOAK=600, as far as the variables above do not say otherwise
#   OUT=build                where the programs are; everything is written to $OUT/bench
#   BENCH_DIR=$OUT/bench     where the data of all of them is: the speed of that disk is part of the figures
#
# Results: report.md and chart.svg in $OUT/bench; every run is a line of results.tsv, wrk's own words are in raw.txt. A goal that is
# missed is shown and is no error; exit 1 means that something could not run. Never part of a test: figures belong to a machine.
# The load generator, the upstream and what is measured share the processors.
set -u
cd "$(dirname "$0")/.." || exit 2
out=${OUT:-build}
dir=$PWD/$out/bench
case $out in /*) dir=$out/bench ;; esac
tools=$dir
all=${ALL:-0}
every_peer="nginx redis idempotency postgres log"
peers=${PEERS-"$([ "$all" = 1 ] && echo "$every_peer" || echo nginx redis)"}
loads=${LOADS-"first replay"}
all_connections=${CONNECTIONS:-64}
all_bodies=${BODIES:-200}
all_delays=${UPSTREAM_DELAY:-0}
all_keys=${KEYS:-$([ "$all" = 1 ] && echo 10000000 || echo 0)}
rounds=${ROUNDS:-$([ "$all" = 1 ] && echo 3 || echo 5)}
seconds=${SECONDS_EACH:-3}
answer=${ANSWER:-300}
logs=${LOGS:-off}
loops=${LOOPS:-1}
memory=${MEMORY:-1}
soak=${SOAK:-$([ "$all" = 1 ] && echo 600 || echo 0)}
base_folder=${BENCH_DIR:-$dir}
data=$base_folder/bench-data # emptied again and again: of every peer a folder in it
filled_folder=$base_folder/bench-filled

declare -A port_of admin_port_of handler_port_of metered_of loads_of title_of about_of
for part in base load node verify memory fill report; do
    # shellcheck source=/dev/null
    . "bench/lib/$part.sh"
done
for peer in nonbis $every_peer; do
    # shellcheck source=/dev/null
    . "bench/peers/$peer.sh"
done

trap stop_all EXIT
trap 'exit 130' INT TERM

# number TEXT: 20k, 1M, 20ms as a plain number.
number() {
    case $1 in
    *ms) echo "${1%ms}" ;;
    *k | *K) echo $((${1%[kK]} * 1000)) ;;
    *M) echo $((${1%M} * 1000000)) ;;
    *) echo "$1" ;;
    esac
}

start_upstream() {
    rm -f "$dir/upstream.port" # of an earlier run
    spawn "$dir/upstream.port" "$tools/upstream" --delay "$delay" --answer "$answer"
    upstream_pid=$spawned
    until_true 5 has_port "$dir/upstream.port" || die "the upstream did not start"
    upstream_port=$(port_in "$dir/upstream.port")
}

# Sets `running` (peers) and `series` (what is measured), each peer started anew with empty stores. start_all [PEER|-]: of the chosen
# ones that alone.
start_all() {
    local peer
    running=()
    series=()
    start_upstream
    for peer in nonbis "${chosen[@]}"; do
        [ "$peer" = nonbis ] || [ "${1:--}" = - ] || [ "$1" = "$peer" ] || continue
        "${peer}_start"
        running+=("$peer")
        local names=${peer}_series name
        for name in ${!names}; do [ -z "${metered_of[$name]:-}" ] || series+=("$name"); done
    done
}

stop_started() {
    local peer
    for peer in "${running[@]}"; do "${peer}_stop"; done
    stop_pid "$upstream_pid"
}

# Which of the wanted peers can run here.
choose() {
    local peer why
    chosen=()
    left_out=()
    rm -f "$dir/npm.failed"
    for peer in $peers; do
        [[ " $every_peer " == *" $peer "* ]] || die "there is no peer $peer"
        why=$("${peer}_missing")
        if [ -z "$why" ]; then
            chosen+=("$peer")
        else
            note "$peer is left out: ${why//$'\n'/; }"
            left_out+=("$peer: ${why//$'\n'/; }")
        fi
    done
}

# The blocks, a line each: KEYS DELAY BODY CONNECTIONS PEERS|- LOAD...; `-`: all that were chosen.
plan_product() {
    local keys delay body connections
    for keys in $all_keys; do for delay in $all_delays; do for body in $all_bodies; do for connections in $all_connections; do
        echo "$keys $delay $body $connections - $loads"
    done; done; done; done
}
plan_all() {
    local connections
    for connections in 64 1 16 256; do echo "0 0 200 $connections - first replay mixed mismatch status get"; done
    echo "0 0 20k 64 - first replay get"
    echo "0 0 1M 64 - first replay"
    for connections in 64 256; do echo "0 20ms 200 $connections - first replay"; done
    [ "$all_keys" = 0 ] || echo "$all_keys 0 200 64 nginx first replay"
}
plan() { if [ "$all" = 1 ]; then plan_all; else plan_product; fi; }

# One block: everything started anew, all its loads.
run_block() {
    local keys=$1 load only=$5
    delay=$(number "$2")
    body=$(number "$3")
    connections=$4
    shift 5
    store_size=empty
    [ "$keys" = 0 ] || store_size=$(number "$keys")
    new_seed "$([ "$body" -ge 500000 ] && echo 100 || echo 1000)"
    start_all "$only"
    for load in "$@"; do measure_load "$load" "${series[@]}"; done
    stop_started
}

say_plan() {
    local blocks=0 runs=0 keys delay body connections only rest load count
    while read -r keys delay body connections only rest; do
        blocks=$((blocks + 1))
        count=${#chosen[@]}
        [ "$only" = - ] || count=1
        for load in $rest; do
            case $load in status | get) runs=$((runs + 2)) ;; *) runs=$((runs + 1 + count)) ;; esac
            [ "$keys" = 0 ] || runs=$((runs + 1))
        done
    done < <(plan)
    local total=$((runs * (rounds * (seconds + 1) + 2) + blocks * 8 + soak + 30))
    note "$blocks block(s), $runs series of $rounds rounds of $seconds s: about $(((total + 59) / 60)) minutes$([ "$all_keys" = 0 ] || echo ', and 5 to 15 more when the store is filled')"
}

# ---- the run --------------------------------------------------------------------------------------------------

for program in upstream idle meter same; do [ -x "$tools/$program" ] || die "$tools/$program is not there; make bench builds it"; done
[ -x "$out/nonbisd" ] || die "$out/nonbisd is not there; make bench builds it"
command -v wrk >/dev/null || die "wrk is not installed; ./dev bench installs it"
mkdir -p "$dir" "$data"
results=$dir/results.tsv
raw=$dir/raw.txt
: >"$results"
: >"$raw"
: >"$dir/memory.tsv"
began=$SECONDS
choose
say_plan

verify_all
[ "$memory" = 0 ] || measure_memory
for keys in $all_keys; do
    keys=$(number "$keys")
    [ "$keys" = 0 ] || measure_filled "$keys"
done
while read -r -a block <&9; do run_block "${block[@]}"; done 9< <(plan)
[ "$soak" = 0 ] || measure_soak
write_report $((SECONDS - began))
cat "$dir/summary.txt"
echo "written: $dir/report.md, $dir/chart.svg"
