# The physical limit with two durable records per request: a program that appends each to a log and syncs it, forwards, and finds no
# repeat (bench/peers/log.c).

log_series="log"
log_missing() { [ -x "$tools/log" ] || echo "$tools/log is not built"; }

log_start() {
    local folder=$data/log
    rm -rf "$folder"
    mkdir -p "$folder"
    spawn "$dir/log.out" "$tools/log" "$upstream_port" "$folder/log"
    metered_of[log]=$spawned
    until_true 20 has_port "$dir/log.out" || die "the log did not start: $(cat "$dir/log.out")"
    port_of[log]=$(port_in "$dir/log.out")
    handler_port_of[log]=$upstream_port
    loads_of[log]="first"
    [ "$body" -le 50000 ] || loads_of[log]= # its buffers are smaller than that
    title_of[log]="append and fdatasync"
    about_of[log]="no index, no dedup: request and answer appended to a preallocated log of 64 MiB, used in turn, one fdatasync per batch in a thread of its own, bare epoll, kept upstream connections"
}

log_stop() { stop_pid "${metered_of[log]}"; }
