# Whether each rival keeps the promise whose price is measured: a comparison with a broken one says nothing. Sourced.
#
# verify.tsv: series, keys, at once, executions at the handler, 201, 409, replayed with the same bytes, another payload refused, odd.

VERIFY_KEYS=200
VERIFY_AT_ONCE=8

verify_one() {
    local name=$1 before after created running replayed odd refused
    new_run
    before=$(http_get "${handler_port_of[$name]}" /count)
    read -r created running replayed odd refused <<<"$("$tools/same" "${port_of[$name]}" "$VERIFY_KEYS" "$VERIFY_AT_ONCE" "$run_number")"
    after=$(http_get "${handler_port_of[$name]}" /count)
    [ -n "${refused:-}" ] || die "$name: the check of its promise did not end"
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$name" "$VERIFY_KEYS" "$VERIFY_AT_ONCE" $((after - before)) "$created" "$running" \
        "$replayed" "$refused" "$odd" >>"$dir/verify.tsv"
    if [ $((after - before)) -ne "$VERIFY_KEYS" ] || [ "$odd" -ne 0 ]; then
        note "$name BREAKS THE PROMISE: $VERIFY_KEYS keys, each sent $VERIFY_AT_ONCE times at once, were executed $((after - before)) times; $odd odd answers"
    else
        note "$name: $VERIFY_KEYS keys, each sent $VERIFY_AT_ONCE times at once, were executed $((after - before)) times, replayed $replayed, refused with another payload $refused"
    fi
}

# With a handler that takes 5 ms, so that repeats find the first one running. Peers without dedup have nothing to be checked.
verify_all() {
    local name
    : >"$dir/verify.tsv"
    delay=5
    body=200
    store_size=empty
    start_all
    for name in "${series[@]}"; do
        case $name in nginx | fixed | log) ;; *) verify_one "$name" ;; esac
    done
    stop_started
}
