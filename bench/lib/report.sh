# report.md, chart.svg and summary.txt from what the runs left behind. Sourced.

machine_line() {
    echo "$(nproc) processors ($(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)), $(awk '/^MemTotal:/ { printf "%.0f GB", $2 / 1e6 }' /proc/meminfo) of memory, $(df --output=fstype "$data" | tail -n 1) for the stores, Linux $(uname -r); $(date -u +%Y-%m-%d)"
}

report_peers() {
    local name
    for name in nonbis full nginx fixed redis idempotency postgres log; do
        [ -z "${about_of[$name]:-}" ] || echo "* **${title_of[$name]}**: ${about_of[$name]}"
    done
    for name in "${left_out[@]}"; do echo "* left out: $name"; done
}

report_promises() {
    [ -s "$dir/verify.tsv" ] || return 0
    echo
    echo "## Do they keep the promise?"
    echo
    echo "Each key is sent several times at once to a handler that takes 5 ms, then once again, then with another payload."
    echo
    echo "| | keys | each at once | executions | 201 | 409 | replayed, same bytes | other payload refused | odd answers |"
    echo "|---|---|---|---|---|---|---|---|---|"
    while IFS=$'\t' read -r name rest; do
        echo "| ${title_of[$name]} | ${rest//$'\t'/ | } |"
    done <"$dir/verify.tsv"
}

report_memory() {
    [ -s "$dir/memory.tsv" ] || return 0
    echo
    echo "## Memory and start"
    echo
    sed 's/^\([^\t]*\)\t\(.*\)/* `\1`: \2/' "$dir/memory.tsv"
}

# awk_report WHAT
awk_report() {
    awk -v what="$1" -v titles="$dir/titles.tsv" -f bench/lib/report.awk part=1 "$results" part=2 bench/goals.tsv part=3 "$dir/memory.tsv"
}

# write_report SECONDS
write_report() {
    local name
    [ -e "$dir/memory.tsv" ] || : >"$dir/memory.tsv"
    for name in "${!title_of[@]}"; do printf '%s\t%s\n' "$name" "${title_of[$name]}"; done >"$dir/titles.tsv"
    {
        echo "# nonbisd side by side"
        echo
        echo "$(machine_line). The load generator (wrk, one thread), the handler and what is measured share the processors: compare within a table, not across machines. $rounds interleaved rounds of $seconds s; medians; \"rel.\" is the median of the rounds' ratios to nginx in the same round. The run took $(($1 / 60)) min $(($1 % 60)) s."
        echo
        echo "## Goals"
        echo
        awk_report goals
        echo
        echo "## Who runs"
        echo
        report_peers
        report_promises
        report_memory
        echo
        echo "## All loads"
        awk_report tables
    } >"$dir/report.md"
    awk_report summary >"$dir/summary.txt"
    awk -v titles="$dir/titles.tsv" -v machine="$(machine_line)" -f bench/lib/chart.awk "$results" >"$dir/chart.svg"
}
