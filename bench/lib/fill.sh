# A store that holds many live keys, for the series `full`, and what such a store costs beside speed. Sourced.

# filled_store KEYS: sets `filled`, the file; made by bench/fill.c when it is not there yet, which takes minutes for millions, and kept.
# Runs add to it what they store; a file that was made by another version of the store is made anew by `rm -r build/bench/filled`.
filled=
filled_store() {
    local began=$SECONDS
    filled=$filled_folder/$1.db
    [ ! -e "$filled.done" ] || return 0
    note "filling a store with $1 keys: $filled"
    rm -f "$filled" "$filled"-* "$filled".*
    mkdir -p "$filled_folder"
    "$tools/fill" "$filled" "$1" >&2 || die "the store could not be filled"
    note "$1 keys took $((SECONDS - began)) s, $(du -m "$filled" | cut -f1) MB"
    : >"$filled.done"
}

# The start over many keys, and the memory that they take: what the process holds by itself, less what it holds over an empty store
# and less SQLite's page cache, which the scan at the start has filled (cache_size, 16 MiB); below a million keys that is not so, and nothing is told.
PAGE_CACHE_KIB=16384
measure_filled() {
    local empty_kib full_kib began_ns keys=$1
    filled_store "$keys"
    start_alone
    empty_kib=$(anon_kib "${metered_of[nonbis]}")
    began_ns=$(date +%s%N)
    nonbis_run full "$filled"
    memory_is start_s "$(divide $(($(date +%s%N) - began_ns)) 1000000000 2)"
    full_kib=$(anon_kib "${metered_of[full]}")
    [ "$keys" -lt 1000000 ] || memory_is key_bytes "$(divide $(((full_kib - empty_kib - PAGE_CACHE_KIB) * 1024)) "$keys" 1)"
    memory_is filled_keys "$keys"
    stop_alone
}
