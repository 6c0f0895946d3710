# What nonbisd holds in memory: idle, per idle connection, and whether it stays flat under load. Sourced.
#
# memory.tsv: name, value.

IDLE_CONNECTIONS=1000

pss_kib() { "$tools/meter" "$1" | cut -d' ' -f3; }
anon_kib() { "$tools/meter" "$1" | cut -d' ' -f4; }
memory_is() { printf '%s\t%s\n' "$1" "$2" >>"$dir/memory.tsv"; }

idle_pid=
# hold CONNECTIONS REQUESTS: runs until let_go.
hold() {
    coproc IDLE { exec "$tools/idle" "${port_of[nonbis]}" "$1" "$2" 2>"$dir/idle.log"; }
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

# nonbisd and its upstream alone.
start_alone() {
    delay=0
    store_size=empty
    start_upstream
    nonbis_start
}
stop_alone() {
    nonbis_stop
    stop_pid "$upstream_pid"
}

# The requests are made once before over one connection, so that the second time costs connections and no new keys.
measure_memory() {
    local pid without
    start_alone
    pid=${metered_of[nonbis]}
    memory_is idle_pss_mib "$(divide "$(pss_kib "$pid")" 1024 2)"
    hold 1 "$IDLE_CONNECTIONS"
    let_go
    without=$(pss_kib "$pid")
    hold "$IDLE_CONNECTIONS" 1
    memory_is connection_kib "$(divide $(($(pss_kib "$pid") - without)) "$IDLE_CONNECTIONS" 2)"
    let_go
    stop_alone
}

# Replays and refusals, which leave nothing behind: what the process holds after a tenth of the time against what it holds at its
# end. The keys are few, so that nothing else grows. Its own pages alone: its share of a library changes when another program ends.
measure_soak() {
    local pid early late tenth=$((soak / 10))
    connections=64 body=200
    new_seed 1000
    [ "$tenth" -ge 1 ] || tenth=1
    start_alone
    pid=${metered_of[nonbis]}
    seed nonbis
    wrk_run nonbis replay 0 "$tenth" >/dev/null
    early=$(anon_kib "$pid")
    wrk_run nonbis replay 0 $((soak - tenth)) >/dev/null
    late=$(anon_kib "$pid")
    memory_is soak_seconds "$soak"
    memory_is soak_growth "$(divide "$late" "$early" 3)"
    stop_alone
}
