# nginx, one worker, nothing written. Two series of one process: `nginx` passes everything on to the upstream (proxy_pass, kept
# connections), `fixed` answers by itself (return 200). No repeat is noticed, nothing is durable.

nginx_series="nginx fixed"
nginx_missing() { program_path nginx >/dev/null || echo "nginx is not installed"; }

nginx_start() {
    local folder=$dir/nginx access_log=off program fixed_port
    program=$(program_path nginx)
    mkdir -p "$folder"
    [ "$logs" = on ] && access_log=$folder/access.log
    port_of[nginx]=$(free_port)
    fixed_port=$(free_port)
    while [ "$fixed_port" = "${port_of[nginx]}" ]; do fixed_port=$(free_port); done
    port_of[fixed]=$fixed_port
    sed "s|@ACCESS_LOG@|$access_log|; s|@DIR@|$folder|; s|@PORT@|${port_of[nginx]}|; s|@FIXED_PORT@|$fixed_port|; s|@UPSTREAM@|$upstream_port|
         s|@BODY@|$(printf 'x%.0s' $(seq 300))|" bench/peers/nginx.conf.in >"$folder/nginx.conf"
    spawn "$folder/out" "$program" -p "$folder" -c "$folder/nginx.conf" -e "$folder/error.log"
    metered_of[nginx]=$spawned
    metered_of[fixed]=$spawned
    handler_port_of[nginx]=$upstream_port
    handler_port_of[fixed]=
    until_true 5 answers "${port_of[nginx]}" || die "nginx did not start: $(cat "$folder/error.log")"
    loads_of[nginx]="first mixed get"
    loads_of[fixed]="replay mismatch status"
    title_of[nginx]="nginx proxy_pass"
    title_of[fixed]="nginx return 200"
    about_of[nginx]="$("$program" -v 2>&1 | sed 's|.*: ||; s|/| |'), 1 worker, 256 kept upstream connections, no logs of single requests ($logs), request bodies in memory; no dedup, nothing durable"
    about_of[fixed]="the same process: 300 bytes and the fields of the upstream's answer, from its configuration"
}

nginx_stop() { stop_pid "${metered_of[nginx]}"; }
