#!/usr/bin/env bash
# The main job on real input: orders through nonbisd to a handler that knows nothing of idempotency.
# Run by `make demo` (or ./dev demo, which installs what is missing). Some seconds; exit 0 when everything was as expected.
#
#   KEEP=1                  leaves both programs running afterwards, with commands to try
#   DEMO_DIRECT=1    the control: the same orders straight to the handler. Has to fail, and to say where.
#   OUT=build               where the programs were built
set -u
cd "$(dirname "$0")/.." || exit 2
out=${OUT:-build}
direct=${DEMO_DIRECT:-}
keep=${KEEP:-}
dir=$(mktemp -d "${TMPDIR:-/tmp}/nonbis-demo.XXXXXX")
handler_pid=
nonbisd_pid=
answer_ms=700    # from the order's effect to the handler's answer
give_up_s=0.25   # the impatient client

finish() {
    code=$?
    if [ -n "$keep" ] && [ "$code" -eq 0 ]; then
        return
    fi
    for pid in $nonbisd_pid $handler_pid; do
        kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    done
    rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT TERM

die() {
    echo "demo: $*" >&2
    [ -s "$dir/nonbisd.log" ] && sed 's/^/  nonbisd: /' "$dir/nonbisd.log" >&2
    exit 1
}

# until_true SECONDS COMMAND...: tries every 50 ms.
until_true() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -ge "$deadline" ] && return 1
        sleep 0.05
    done
}

# ---- starting -------------------------------------------------------------------------------------------------

start_handler() {
    "$out/order-handler" --listen 127.0.0.1:0 --db "$dir/orders.db" --latency "$answer_ms" >"$dir/handler.log" 2>&1 &
    handler_pid=$!
    until_true 5 grep -q '^order-handler listening on ' "$dir/handler.log" ||
        die "the handler did not start: $(cat "$dir/handler.log")"
    handler=http://$(sed -n 's/^order-handler listening on //p' "$dir/handler.log")
}

nonbisd_started() {
    kill -0 "$nonbisd_pid" 2>/dev/null || die "nonbisd ended while starting"
    grep -q ' start .*listen=' "$dir/nonbisd.log"
}

# start_nonbisd ADDRESS: the start-up line tells which port the kernel chose for port 0.
start_nonbisd() {
    : >"$dir/nonbisd.log"
    "$out/nonbisd" --upstream "$handler" --listen "$1" --admin 127.0.0.1:0 --store "$dir/nonbis.db" \
        >>"$dir/nonbisd.log" 2>&1 &
    nonbisd_pid=$!
    until_true 10 nonbisd_started || die "nonbisd did not say within 10 s where it listens"
    nonbis_address=$(sed -n 's/.* start .*listen=\([^ ]*\).*/\1/p' "$dir/nonbisd.log" | head -n 1)
    admin_address=$(sed -n 's/.* start .*admin=\([^ ]*\).*/\1/p' "$dir/nonbisd.log" | head -n 1)
    front=http://$nonbis_address
}

# ---- talking --------------------------------------------------------------------------------------------------

# order NAME KEY BODY [curl options]: leaves NAME.head, NAME.body, NAME.status (000: no answer).
order() {
    local name=$1 key=$2 body=$3
    shift 3
    : >"$dir/$name.head"
    : >"$dir/$name.body"
    curl -s -m 10 -D "$dir/$name.head" -o "$dir/$name.body" -w '%{http_code}' "$@" "$front/orders" \
        -H "Idempotency-Key: $key" -H 'Content-Type: application/json' -d "$body" >"$dir/$name.status"
}

status() { cat "$dir/$1.status"; }
field() { sed -n "s/^$2: *//Ip" "$dir/$1.head" | tr -d '\r' | head -n 1; }
effect() { curl -s -m 5 "$handler/effects?key=$1" | sed -n "s/.*\"$2\":\([0-9]*\).*/\1/p"; }
arrived() { [ "$(effect "$1" arrivals)" -ge 1 ] 2>/dev/null; }
same() { if [ -s "$1" ] && cmp -s "$1" "$2"; then echo yes; else echo no; fi; }
problem() { sed -n 's/.*"type":"\(urn:nonbis:problem:\)\{0,1\}\([^"]*\)".*/\2/p' "$dir/$1.body"; }

# ask_until_told NAME KEY BODY: repeats the POST while it is answered with 409.
ask_until_told() {
    told() { order "$@" && [ "$(status "$1")" != 409 ]; }
    until_true 10 told "$@" || true
}

# ---- the table ------------------------------------------------------------------------------------------------

failed=0
rows=()
# expect WHAT EXPECTED SEEN [PATTERN]: with a shell pattern, EXPECTED is only what a person reads.
expect() {
    local ok=ok pattern=${4:-$2}
    # shellcheck disable=SC2053
    if [[ $3 != $pattern ]]; then
        ok=DIFFERS
        failed=$((failed + 1))
    fi
    rows+=("$(printf '%-58s %-21s %-34s %s' "$1" "$2" "${3:-nothing}" "$ok")")
}

# ---- the story ------------------------------------------------------------------------------------------------

a_lost_answer() {
    local body='{"item":"tea","amount":1250}'
    echo "(a) an order is sent; its answer is lost: the client gives up after ${give_up_s} s, the handler needs 0.7 s"
    order lost "$key_a" "$body" -m "$give_up_s"
    expect "(a) the answer is lost" "000" "$(status lost)"
    ask_until_told retry "$key_a" "$body"
    order again "$key_a" "$body"
    echo "    retried: $(status retry) $(cat "$dir/retry.body")"
    expect "(a) the retry gets the handler's answer" "201" "$(status retry)"
    expect "(a)   marked Idempotent-Replayed" "true" "$(field retry Idempotent-Replayed)"
    expect "(a)   a later retry: the same bytes" "yes" "$(same "$dir/retry.body" "$dir/again.body")"
    curl -s -m 5 -o "$dir/stored.body" "$handler$(field retry Location)"
    expect "(a)   the order in the handler's ledger: the same bytes" "yes" "$(same "$dir/retry.body" "$dir/stored.body")"
    expect "(a)   executions in the handler's ledger" "1" "$(effect "$key_a" executions)"
}

b_other_body() {
    echo "(b) the same key with another amount"
    order other "$key_a" '{"item":"tea","amount":9999}'
    echo "    answered: $(status other) $(cat "$dir/other.body")"
    expect "(b) another body under the same key is refused" "422" "$(status other)"
    expect "(b)   and it is told what differs" '"differs":["body"]' \
        "$(grep -o '"differs":[^]]*]' "$dir/other.body" | tr -d ' ')" '"differs":\["body"\]'
    expect "(b)   executions in the handler's ledger" "1" "$(effect "$key_a" executions)"
}

c_two_at_once() {
    local body='{"item":"cups","amount":4800}' one two
    echo "(c) two clients send one key at the same time"
    order one "$key_c" "$body" &
    one=$!
    order two "$key_c" "$body" &
    two=$!
    wait "$one" "$two"
    local seen
    seen=$(printf '%s\n%s\n' "$(status one) $(field one Idempotency-Status)" \
        "$(status two) $(field two Idempotency-Status)" | sort | paste -sd, | sed 's/,/, /')
    echo "    answered: $seen"
    expect "(c) one is executed" "201 executed" "$seen" "*201 executed*"
    expect "(c)   the other is told to wait, or gets the replay" "409 or 201 replayed" "$seen" "*@(409 in-progress|201 replayed)*"
    expect "(c)   executions in the handler's ledger" "1" "$(effect "$key_c" executions)"
}

d_crash() {
    local body='{"item":"kettle","amount":3900}' client
    echo "(d) nonbisd is killed (kill -9) in the middle of an order, and started again on the same store"
    order cut "$key_d" "$body" &
    client=$!
    until_true 5 arrived "$key_d" || die "the order of (d) did not reach the handler"
    if [ -z "$direct" ]; then
        kill -9 "$nonbisd_pid"
        wait "$nonbisd_pid" 2>/dev/null
        start_nonbisd "$nonbis_address" # the same address: the authority is part of a request's identity
    fi
    wait "$client"
    order after "$key_d" "$body"
    echo "    retried: $(status after) $(cat "$dir/after.body")"
    order after2 "$key_d" "$body"
    order after3 "$key_d" "$body"
    expect "(d) the retry is told the truth: not known" "504 outcome-unknown" "$(status after) $(problem after)"
    expect "(d)   and so are the next two" "504 504" "$(status after2) $(status after3)"
    expect "(d)   executions in the handler's ledger: never 2" "0 or 1" "$(effect "$key_d" executions)" "[01]"
    expect "(d)   arrivals at the handler" "1" "$(effect "$key_d" arrivals)"
}

shopt -s extglob
for program in nonbisd order-handler; do
    [ -x "$out/$program" ] || { [ -n "$direct" ] && [ "$program" = nonbisd ]; } ||
        die "$out/$program is not there; make demo builds it"
done
run=$(date +%s)-$$
key_a=order-a-$run
key_c=order-c-$run
key_d=order-d-$run

start_handler
if [ -n "$direct" ]; then
    front=$handler
    echo "control: clients -> order-handler $handler, without nonbis"
else
    start_nonbisd 127.0.0.1:0
    echo "clients -> nonbisd $front -> order-handler $handler"
fi
echo
a_lost_answer
b_other_body
c_two_at_once
d_crash

echo
printf '%-58s %-21s %-34s %s\n' "what" "expected" "seen" ""
printf '%s\n' "${rows[@]}"
echo
if [ "$failed" -ne 0 ]; then
    echo "$failed of ${#rows[@]} differ from what is expected (marked DIFFERS)"
    exit 1
fi
echo "all ${#rows[@]} as expected: every order was executed at most once"
if [ -n "$keep" ]; then
    cat <<END

Both are still running. To try (the first one twice):
  curl -i $front/orders -H 'Idempotency-Key: my-order-1' -H 'Content-Type: application/json' -d '{"item":"tea","amount":1250}'
  curl -s '$handler/effects?key=my-order-1'
  curl -i http://$admin_address/readyz
To stop:
  kill $nonbisd_pid $handler_pid && rm -rf $dir
END
fi
