# results.tsv as bars: an SVG without dependencies. Requests per second and processor time per request, of the first-time and the
# replay load (first block of each that was measured), medians over the rounds.  -v titles=FILE  -v machine=TEXT

function median(list,    n, v, i, j, t) {
    n = split(list, v, " ")
    for (i = 2; i <= n; i++) {
        t = v[i] + 0
        for (j = i - 1; j >= 1 && v[j] + 0 > t; j--) v[j + 1] = v[j]
        v[j + 1] = t
    }
    return n % 2 ? v[(n + 1) / 2] + 0 : (v[n / 2] + v[n / 2 + 1]) / 2
}
function escaped(text) { gsub(/&/, "\\&amp;", text); gsub(/</, "\\&lt;", text); gsub(/>/, "\\&gt;", text); return text }
function title(s) { return s in titled ? titled[s] : s }
function thousands(x) { return x >= 10000 ? sprintf("%.1f k", x / 1000) : x >= 100 ? sprintf("%.0f", x) : sprintf("%.1f", x) }

BEGIN {
    FS = "\t"
    while ((getline line < titles) > 0) {
        split(line, f, "\t")
        titled[f[1]] = f[2]
    }
}

{
    group = $1 SUBSEP $2 SUBSEP $3 SUBSEP $4
    if (!($5 in block)) {
        block[$5] = group
        loads[++load_count] = $5
    }
    if (block[$5] != group) next
    if (!(($5, $7) in rps)) members[$5] = members[$5] " " $7
    rps[$5, $7] = rps[$5, $7] " " $8
    cpu[$5, $7] = cpu[$5, $7] " " $9
}

function bars(x, load, heading, unit, cpu_instead,    n, s, i, v, values, most, colour) {
    printf "<text x=\"%d\" y=\"%d\" class=\"h\">%s</text>\n", x, y, escaped(heading)
    n = split(members[load], s, " ")
    most = 0
    for (i = 1; i <= n; i++) {
        values[i] = median(cpu_instead ? cpu[load, s[i]] : rps[load, s[i]])
        if (values[i] > most) most = values[i]
    }
    for (i = 1; i <= n; i++) {
        colour = s[i] == "nonbis" || s[i] == "full" ? "#1f6f8b" : "#b8bfc6"
        printf "<text x=\"%d\" y=\"%d\" class=\"l\">%s</text>\n", x + 216, y + 2 + i * 24, escaped(title(s[i]))
        printf "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"16\" fill=\"%s\"/>\n", x + 224, y - 11 + i * 24, (most > 0 ? 150 * values[i] / most : 0), colour
        printf "<text x=\"%.1f\" y=\"%d\" class=\"v\">%s %s</text>\n", x + 230 + (most > 0 ? 150 * values[i] / most : 0), y + 2 + i * 24, thousands(values[i]), unit
    }
    return n
}

END {
    for (i = 1; i <= load_count; i++) height += (split(members[loads[i]], s, " ") + 1) * 24 + 44
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 960 %d\" font-family=\"sans-serif\">\n", height + 56
    print "<style>.h{font-size:14px;font-weight:bold}.l{font-size:12px;text-anchor:end}.v{font-size:12px}.s{font-size:11px;fill:#555}</style>"
    printf "<rect width=\"960\" height=\"%d\" fill=\"white\"/>\n", height + 56
    y = 34
    for (i = 1; i <= load_count; i++) {
        split(block[loads[i]], g, SUBSEP)
        heading = loads[i] == "first" ? "first-time" : loads[i]
        n = bars(16, loads[i], heading ": requests per second (" g[4] " connections)", "/s", 0)
        bars(496, loads[i], heading ": processor time per request", "us", 1)
        y += (n + 1) * 24 + 44
    }
    printf "<text x=\"16\" y=\"%d\" class=\"s\">%s</text>\n</svg>\n", height + 40, escaped(machine)
}
