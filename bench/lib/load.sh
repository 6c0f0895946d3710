# One run of one load against one peer, and what it used: a line of results.tsv. Sourced.
#
# Columns: store delay_ms body connections load round series requests_per_s cpu_us p50_us p99_us requests errors commits
# write_bytes pss_kib executed device_bytes. "-": not known.

results=
raw=
run_number=0
seed_run=0

new_seed() {
    new_run
    seed_run=$run_number
    seed_keys=$1
}

# A number that no earlier run of this or another invocation had, so that its keys are new.
new_run() {
    [ "$run_number" -ne 0 ] || run_number=$(($(date +%s) % 2147483648))
    run_number=$((run_number + 1))
}

# wrk_run SERIES LOAD RUN SECONDS: wrk's words to raw.txt; prints its closing line without the first word.
wrk_run() {
    local text
    text=$(wrk -t1 "-c$connections" "-d${4}s" --timeout 20s --latency -s bench/keyed.lua "http://127.0.0.1:${port_of[$1]}" -- \
        "$2" "$3" "$seed_keys" "$body" "$seed_run" 2>&1) || die "wrk could not run: $text"
    printf '== %s %s (run %s, connections %s, body %s, delay %s)\n%s\n' "$1" "$2" "$3" "$connections" "$body" "$delay" "$text" >>"$raw"
    sed -n 's/^RESULT //p' <<<"$text"
}

# The keys that repeats are made of, of a run of their own in every block (a kept store knows those of earlier ones, which came
# under another host and with other bodies). Over many connections, and again until all of them went by and none was executed.
seed() {
    local connections=64 before after requests=0 long=1
    while [ "$long" -le 64 ]; do
        before=$(executions "$1")
        read -r requests _ <<<"$(wrk_run "$1" replay 0 "$long")"
        after=$(executions "$1")
        [ "${requests:-0}" -ge "$seed_keys" ] && [ "$before" = "$after" ] && return 0
        [ "${requests:-0}" -ge "$((2 * seed_keys))" ] || long=$((long * 2))
    done
    note "$1: there are still repeats that are executed"
}

# Before the first round: what compiles itself when it is used, opens its connections or fills its caches does it now.
warm() {
    new_run
    wrk_run "$1" "$2" "$run_number" 1 >/dev/null
}

# What the file system's device was given to write, by whomever; "-" where it has no such counter. The kernel's count per process
# takes whole folios for a part of them, so it may be many times what was written.
device_bytes() {
    local number
    number=$(stat -c %d "$1") && awk '{ printf "%.0f\n", $7 * 512 }' "/sys/dev/block/$((number >> 8)):$((number & 255))/stat" 2>/dev/null || echo -
}

# executions SERIES: how often its handler ran; "-" for those that have none.
executions() {
    local port=${handler_port_of[$1]}
    if [ -n "$port" ]; then http_get "$port" /count; else echo -; fi
}
commits() { if [ -n "${admin_port_of[$1]:-}" ]; then http_get "${admin_port_of[$1]}" /metrics | awk '$1 == "nonbis_store_commit_seconds_count" { print $2 }'; else echo -; fi; }
difference() { if [ "$1" = - ] || [ -z "$1" ] || [ -z "$2" ]; then echo -; else echo $(($2 - $1)); fi; }

# measure SERIES LOAD ROUND
measure() {
    local series=$1 load=$2 round=$3 before after result device0 device1 cpu0 cpu1 io0 io1 pss executed0 executed1 commits0 commits1
    local requests us p50 p99 max status_errors socket_errors errors
    new_run
    executed0=$(executions "$series")
    commits0=$(commits "$series")
    device0=$(device_bytes "$data")
    # shellcheck disable=SC2086 # ids, separated by blanks
    before=$("$tools/meter" ${metered_of[$series]})
    result=$(wrk_run "$series" "$load" "$run_number" "$seconds")
    # shellcheck disable=SC2086
    after=$("$tools/meter" ${metered_of[$series]})
    device1=$(device_bytes "$data")
    commits1=$(commits "$series")
    executed1=$(executions "$series")
    read -r cpu0 io0 _ <<<"$before"
    read -r cpu1 io1 pss _ <<<"$after"
    read -r requests us p50 p99 max status_errors socket_errors <<<"$result"
    [ "${requests:-0}" -gt 0 ] || die "$series $load: no request was answered; see $raw"
    errors=$((status_errors + socket_errors))
    # A payload that differs is to be refused: what was not, is an error.
    [ "$load" = mismatch ] && [ "$series" != fixed ] && errors=$((requests - status_errors + socket_errors))
    [ "$errors" -eq 0 ] || note "$series $load: $errors of $requests answers were none of the expected"
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$store_size" "$delay" "$body" "$connections" "$load" \
        "$round" "$series" "$(divide "$requests" "$(divide "$us" 1000000 6)" 1)" \
        "$(divide $((cpu1 - cpu0)) $((requests * 1000)) 3)" "$p50" "$p99" "$requests" "$errors" \
        "$(difference "$commits0" "$commits1")" $((io1 - io0)) "$pss" "$(difference "$executed0" "$executed1")" \
        "$(difference "$device0" "$device1")" >>"$results"
}

runs_load() { case " ${loads_of[$1]} " in *" $2 "*) return 0 ;; *) return 1 ;; esac }

# measure_load LOAD SERIES...: rounds of A B C; each round begins with another one, so that what is left behind (a checkpoint, pages
# to be written) meets everybody.
measure_load() {
    local load=$1 all=() series round i
    shift
    for series in "$@"; do runs_load "$series" "$load" && all+=("$series"); done
    # What nothing of ours does is not worth a run.
    [[ " ${all[*]} " == *" nonbis "* ]] || return 0
    for series in "${all[@]}"; do
        case $load-$series in
        first-* | get-* | *-fixed | *-nginx) warm "$series" "$load" ;;
        *) seed "$series" ;;
        esac
    done
    for ((round = 1; round <= rounds; round++)); do
        for ((i = 0; i < ${#all[@]}; i++)); do
            measure "${all[$(((i + round) % ${#all[@]}))]}" "$load" "$round"
        done
    done
    show_load "$load"
}

# One line for who watches; the table comes in the report.
show_load() {
    awk -F'\t' -v store="$store_size" -v delay="$delay" -v body="$body" -v connections="$connections" -v load="$1" '
        $1 == store && $2 == delay && $3 == body && $4 == connections && $5 == load { sum[$7] += $8; n[$7]++; if (n[$7] == 1) order[++count] = $7 }
        END {
            printf "%s, %d connections, body %s, delay %s ms, store %s:", load, connections, body, delay, store
            for (i = 1; i <= count; i++) printf "  %s %d/s", order[i], sum[order[i]] / n[order[i]]
            print ""
        }' "$results"
}
