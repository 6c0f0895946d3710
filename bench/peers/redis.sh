# Fastify with Redis: what a team writes by hand (bench/peers/node/redis.js). The answer is stored before it is sent, and Redis
# answers each write when its append-only file is on the disk.

redis_series="redis"
redis_missing() {
    command -v redis-server >/dev/null || echo "redis-server is not installed"
    node_missing
}

redis_up() { [ "$(timeout 2 redis-cli -p "$1" ping 2>/dev/null)" = PONG ]; }

# redis_server NAME: a server of its own with an empty folder. Sets redis_pid, redis_port. Redis is asked for nothing that it would
# do beside: no snapshots, no rewriting of the file within a run.
redis_server() {
    local folder=$data/$1
    rm -rf "$folder"
    mkdir -p "$folder"
    redis_port=$(free_port)
    spawn "$folder/log" redis-server --bind 127.0.0.1 --port "$redis_port" --dir "$folder" --appendonly yes --appendfsync always \
        --save '' --auto-aof-rewrite-percentage 0 --tcp-backlog 511 --daemonize no
    redis_pid=$spawned
    until_true 10 redis_up "$redis_port" || die "redis-server did not start: $(cat "$folder/log")"
}

redis_start() {
    redis_server redis
    node_peer redis redis.js "$redis_port"
    metered_of[redis]="$node_pid $redis_pid"
    redis_store_pid=$redis_pid
    title_of[redis]="Fastify + Redis"
    about_of[redis]="Node.js $(node --version), Fastify $(node_version fastify), ioredis $(node_version ioredis) with one connection and automatic pipelining, Redis $(redis_release): SET NX GET, appendfsync always; no snapshots, no rewriting; one process each, the handler in process"
}

redis_release() { redis-server --version | sed -n 's/.* v=\([^ ]*\).*/\1/p'; }

redis_stop() {
    stop_pid "${metered_of[redis]%% *}"
    stop_pid "$redis_store_pid"
}
