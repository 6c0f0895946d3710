# From results.tsv, goals.tsv and memory.tsv (in this order, with part=1, 2, 3) the goals as a table and all medians as tables.
#   -v what=goals|tables|summary   -v titles=FILE (series, tab, title)

function median(list,    n, v, i, j, t) {
    n = split(list, v, " ")
    for (i = 2; i <= n; i++) {
        t = v[i] + 0
        for (j = i - 1; j >= 1 && v[j] + 0 > t; j--) v[j + 1] = v[j]
        v[j + 1] = t
    }
    return n == 0 ? "" : n % 2 ? v[(n + 1) / 2] + 0 : (v[n / 2] + v[n / 2 + 1]) / 2
}

# The median over the rounds of one measure, as it was, or against the same round of another series.
function over_rounds(group, measure, series, against,    list, round, a, b) {
    list = ""
    for (round = 1; round <= rounds[group]; round++) {
        if (!((group, measure, series, round) in value)) continue
        a = value[group, measure, series, round]
        if (a == "-") continue
        if (against != "-") {
            if (!((group, measure, against, round) in value)) continue
            b = value[group, measure, against, round]
            if (b + 0 == 0) continue
            a = a / b
        }
        list = list " " a
    }
    return median(list)
}

function number(x, digits) { return x == "" ? "" : sprintf("%." digits "f", x) }
function title(s) { return s in titled ? titled[s] : s }
function baseline(load) { return load == "first" || load == "mixed" || load == "get" ? "nginx" : "fixed" }

# What can be measured and the unit in which a goal tells it.
function goal_value(i,    group) {
    if (goal[i, "measure"] == "memory") return memory[goal[i, "series"]]
    for (group in groups) {
        split(group, g, SUBSEP)
        if (g[2] + 0 != 0 || g[3] + 0 != 200 || g[4] != goal[i, "connections"] || g[5] != goal[i, "load"]) continue
        if ((goal[i, "series"] == "full") != (g[1] != "empty")) continue
        v = over_rounds(group, goal[i, "measure"], goal[i, "series"], goal[i, "against"])
        if (v != "") return v
    }
    return ""
}

BEGIN {
    FS = "\t"
    while ((getline line < titles) > 0) {
        split(line, f, "\t")
        titled[f[1]] = f[2]
    }
}

part == 1 {
    group = $1 SUBSEP $2 SUBSEP $3 SUBSEP $4 SUBSEP $5
    if (!(group in groups)) {
        groups[group] = 1
        order[++group_count] = group
    }
    if (!((group, $7) in seen)) {
        seen[group, $7] = 1
        members[group] = members[group] " " $7
    }
    if ($6 > rounds[group]) rounds[group] = $6
    value[group, "rps", $7, $6] = $8
    value[group, "cpu", $7, $6] = $9
    value[group, "p50", $7, $6] = $10 / 1000
    value[group, "p99", $7, $6] = $11 / 1000
    value[group, "errors", $7, $6] = $13
    errors[group, $7] += $13
    value[group, "commits", $7, $6] = $14 == "-" ? "-" : $14 / $12
    value[group, "bytes", $7, $6] = $15 / $12
    value[group, "pss", $7, $6] = $16 / 1024
    value[group, "executed", $7, $6] = $17
    value[group, "device", $7, $6] = $18 == "-" ? "-" : $18 / $12
    repeats_executed[group, $7] += $17 == "-" ? 0 : $17
}

part == 2 && !/^#/ && NF == 8 {
    goal_count++
    goal[goal_count, "text"] = $1; goal[goal_count, "load"] = $2; goal[goal_count, "connections"] = $3
    goal[goal_count, "measure"] = $4; goal[goal_count, "series"] = $5; goal[goal_count, "against"] = $6
    goal[goal_count, "operator"] = $7; goal[goal_count, "bound"] = $8
}

part == 3 { memory[$1] = $2 }

function verdict(i, v) {
    if (v == "") return "not measured"
    return (goal[i, "operator"] == ">=" ? v >= goal[i, "bound"] + 0 : v <= goal[i, "bound"] + 0) ? "pass" : "fail"
}

function write_goals(    i, v, word) {
    if (what == "goals") {
        print "| goal | measured | at least / at most | |"
        print "|---|---|---|---|"
    }
    for (i = 1; i <= goal_count; i++) {
        v = goal_value(i)
        word = verdict(i, v)
        counted[word]++
        if (what == "goals") {
            printf "| %s | %s | %s %s | %s |\n", goal[i, "text"], v == "" ? "" : number(v, v >= 100 ? 0 : 3), goal[i, "operator"],
                goal[i, "bound"], word
        } else if (word != "not measured") {
            printf "%-68s %10s   goal %s %-6s %s\n", goal[i, "text"], number(v, v >= 100 ? 0 : 3), goal[i, "operator"], goal[i, "bound"], word
        }
    }
    printf "%sgoals: %d passed, %d failed, %d not measured in this run\n", what == "goals" ? "\n" : "", counted["pass"], counted["fail"],
        counted["not measured"]
}

function write_table(group,    g, n, s, i, base, load) {
    split(group, g, SUBSEP)
    load = g[5]
    base = baseline(load)
    printf "\n### %s: %d connections, bodies of %d bytes, handler takes %d ms%s\n\n", load, g[4], g[3], g[2],
        g[1] == "empty" ? "" : ", " g[1] " live keys"
    print "| | requests/s | rel. | processor us | rel. | p50 ms | p99 ms | commits/request | bytes written/request: process | disk | memory MiB | remarks |"
    print "|---|---|---|---|---|---|---|---|---|---|---|---|"
    n = split(members[group], s, " ")
    for (i = 1; i <= n; i++) {
        remark = errors[group, s[i]] > 0 ? errors[group, s[i]] " answers not as expected" : ""
        if ((load == "replay" || load == "mismatch") && repeats_executed[group, s[i]] > 0) {
            remark = remark " " repeats_executed[group, s[i]] " repeats executed"
        }
        printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", title(s[i]), number(over_rounds(group, "rps", s[i], "-"), 0),
            number(over_rounds(group, "rps", s[i], base), 2), number(over_rounds(group, "cpu", s[i], "-"), 1),
            number(over_rounds(group, "cpu", s[i], base), 2), number(over_rounds(group, "p50", s[i], "-"), 2),
            number(over_rounds(group, "p99", s[i], "-"), 2), number(over_rounds(group, "commits", s[i], "-"), 3),
            number(over_rounds(group, "bytes", s[i], "-"), 0), number(over_rounds(group, "device", s[i], "-"), 0),
            number(over_rounds(group, "pss", s[i], "-"), 0), remark
    }
}

END {
    if (what == "tables") {
        for (i = 1; i <= group_count; i++) write_table(order[i])
    } else {
        write_goals()
    }
}
