# Fastify with PostgreSQL: INSERT ... ON CONFLICT DO NOTHING, then UPDATE (bench/peers/node/postgres.js). A cluster of its own with an
# empty folder. PostgreSQL refuses to run as root; then it runs as the user postgres, who must be able to reach the folder.

postgres_series="postgres"
POSTGRES_POOL=${POSTGRES_POOL:-32}

postgres_folder_of_programs() {
    local folder
    for folder in /usr/lib/postgresql/*/bin; do [ -x "$folder/postgres" ] && [ -x "$folder/initdb" ] && echo "$folder"; done | sort -V | tail -n 1
}

# Runs a command as whoever may run PostgreSQL.
postgres_as() {
    if [ "$(id -u)" -eq 0 ]; then exec setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; else exec "$@"; fi
}

postgres_missing() {
    [ -n "$(postgres_folder_of_programs)" ] || echo "PostgreSQL (initdb, postgres) is not installed"
    if [ "$(id -u)" -eq 0 ]; then
        if ! id -u postgres >/dev/null 2>&1; then
            echo "PostgreSQL does not run as root, and there is no user postgres"
        elif ! (cd / && postgres_as test -x "$base_folder") 2>/dev/null; then
            echo "the user postgres cannot reach $base_folder"
        fi
    fi
    node_missing
}

postgres_up() { "$postgres_programs/pg_isready" -q -h 127.0.0.1 -p "$postgres_port"; }

postgres_start() {
    local folder=$data/postgres
    postgres_programs=$(postgres_folder_of_programs)
    postgres_port=$(free_port)
    rm -rf "$folder"
    mkdir -p "$folder"
    chmod 755 "$data"
    [ "$(id -u)" -ne 0 ] || chown postgres: "$folder"
    (cd / && postgres_as "$postgres_programs/initdb" -D "$folder/data" -A trust -U bench -E UTF8 --locale=C.UTF-8) >"$dir/initdb.log" 2>&1 ||
        die "initdb failed: $(tail -n 3 "$dir/initdb.log")"
    spawn "$dir/postgres-server.log" postgres_as "$postgres_programs/postgres" -D "$folder/data" -h 127.0.0.1 -p "$postgres_port" \
        -c unix_socket_directories= -c synchronous_commit=on -c fsync=on -c shared_buffers=256MB -c max_wal_size=4GB \
        -c max_connections=$((POSTGRES_POOL + 10)) -c wal_compression=off
    postgres_pid=$spawned
    until_true 20 postgres_up || die "PostgreSQL did not start: $(tail -n 3 "$dir/postgres-server.log")"
    node_peer postgres postgres.js "$postgres_port" bench "$POSTGRES_POOL"
    metered_of[postgres]="$node_pid $postgres_pid"
    title_of[postgres]="Fastify + PostgreSQL"
    about_of[postgres]="Node.js $(node --version), Fastify $(node_version fastify), pg $(node_version pg) with a pool of $POSTGRES_POOL and prepared statements, $("$postgres_programs/postgres" --version | cut -d' ' -f1-3): synchronous_commit=on, shared_buffers=256MB, max_wal_size=4GB; the handler in process"
}

postgres_stop() {
    stop_pid "${metered_of[postgres]%% *}"
    kill -INT "$postgres_pid" # fast: it does not wait for clients
    stop_pid "$postgres_pid"
}
