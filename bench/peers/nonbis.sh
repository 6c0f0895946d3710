# nonbisd as it comes: synchronous=FULL, one loop (LOOPS), a fresh store. With KEYS a second series `full` runs over a store that
# holds so many live keys.

nonbis_series="nonbis full"
nonbis_missing() { [ -x "$out/nonbisd" ] || echo "$out/nonbisd is not built"; }

nonbis_started() {
    kill -0 "$spawned" 2>/dev/null || die "nonbisd ended while starting: $(cat "$1")"
    grep -qs ' start .*listen=' "$1"
}

# nonbis_run SERIES STORE
nonbis_run() {
    local series=$1 log=$dir/$1.log line level=warn
    [ "$logs" = on ] && level=info
    spawn "$log" "$out/nonbisd" --upstream "http://127.0.0.1:$upstream_port" --listen 127.0.0.1:0 --admin 127.0.0.1:0 \
        --store "$2" --set "server.loops=$loops" --log-level "$level"
    metered_of[$series]=$spawned
    until_true 120 nonbis_started "$log" || die "nonbisd did not say where it listens: $(cat "$log")"
    line=$(grep ' start .*listen=' "$log" | head -n 1)
    port_of[$series]=$(sed -n 's/.* listen=[^ ]*:\([0-9]*\).*/\1/p' <<<"$line")
    admin_port_of[$series]=$(sed -n 's/.* admin=[^ ]*:\([0-9]*\).*/\1/p' <<<"$line")
    handler_port_of[$series]=$upstream_port
    loads_of[$series]="first replay mixed mismatch status get"
    about_of[$series]="$("$out/nonbisd" --version), loops: $loops, $(sed -n 's/.* kind="\([^"]*\)".*/\1/p' <<<"$line"); proxies to the upstream"
}

nonbis_start() {
    rm -rf "$data/nonbis"
    mkdir -p "$data/nonbis"
    nonbis_run nonbis "$data/nonbis/nonbis.db"
    title_of[nonbis]="nonbisd"
    if [ "$store_size" != empty ]; then
        filled_store "$store_size"
        nonbis_run full "$filled"
        title_of[full]="nonbisd, $store_size live keys"
    fi
}

nonbis_stop() {
    stop_pid "${metered_of[nonbis]}" || die "nonbisd ended with an error: $(tail -n 3 "$dir/nonbis.log")"
    if [ -n "${metered_of[full]:-}" ]; then
        stop_pid "${metered_of[full]}" || die "nonbisd ended with an error: $(tail -n 3 "$dir/full.log")"
        unset 'metered_of[full]'
    fi
}
