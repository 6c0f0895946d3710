# Express with @node-idempotency/core and its Redis adapter (bench/peers/node/idempotency.js); the same Redis as `redis`, its own
# process.

idempotency_series="idempotency"
idempotency_missing() { redis_missing; }

idempotency_start() {
    redis_server idempotency
    node_peer idempotency idempotency.js "$redis_port"
    metered_of[idempotency]="$node_pid $redis_pid"
    idempotency_store_pid=$redis_pid
    title_of[idempotency]="Express + node-idempotency + Redis"
    about_of[idempotency]="Node.js $(node --version), Express $(node_version express), @node-idempotency/core $(node_version @node-idempotency/core) with its Redis adapter, NODE_ENV=production, no etag, Redis $(redis_release): appendfsync always, as above; one process each, the handler in process"
}

idempotency_stop() {
    stop_pid "${metered_of[idempotency]%% *}"
    stop_pid "$idempotency_store_pid"
}
