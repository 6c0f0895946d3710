# What every part of the benchmark needs: messages, waiting, processes that are ended by their id, ports, numbers. Sourced.

pids=() # of everything that was started and not ended yet

die() {
    echo "bench: $*" >&2
    exit 1
}

note() { echo "bench: $*" >&2; }

# until_true SECONDS COMMAND...
until_true() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -ge "$deadline" ] && return 1
        sleep 0.05
    done
}

# spawn LOG COMMAND...: in the background, standard output and error to LOG; sets `spawned`. The process is a child of this shell.
spawned=
spawn() {
    local log=$1
    shift
    : >"$log" # now, lest somebody read what an earlier run said
    "$@" >>"$log" 2>&1 </dev/null &
    spawned=$!
    pids+=("$spawned")
}

# stop_pid PID: waits for its end; its exit code. After 20 s it is killed, which is told.
ended() { ! kill -0 "$1" 2>/dev/null; }
stop_pid() {
    local pid=$1 left=() other code
    kill -TERM "$pid" 2>/dev/null
    until_true 20 ended "$pid" || { note "process $pid did not end within 20 s; killed"; kill -KILL "$pid"; }
    wait "$pid" 2>/dev/null
    code=$?
    for other in "${pids[@]}"; do [ "$other" = "$pid" ] || left+=("$other"); done
    pids=("${left[@]}")
    return "$code"
}

stop_all() {
    local pid
    for pid in "${pids[@]}"; do kill -TERM "$pid" 2>/dev/null; done
    for pid in "${pids[@]}"; do stop_pid "$pid"; done
}

free_port() { "$tools/upstream" --free-port; }

# http_get PORT PATH: the body of the answer, by bash alone.
http_get() {
    local line length=0 body=
    exec 3<>"/dev/tcp/127.0.0.1/$1" || return 1
    printf 'GET %s HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n' "$2" >&3
    IFS= read -r line <&3 || { exec 3<&-; return 1; }
    while IFS= read -r line <&3 && [ "$line" != $'\r' ]; do
        case $line in [Cc]ontent-[Ll]ength:*) length=${line#*: } ;; esac
    done
    LC_ALL=C IFS= read -r -d '' -N "$((${length%$'\r'}))" body <&3
    exec 3<&-
    printf '%s\n' "$body"
} 2>/dev/null

answers() { [ -n "$(http_get "$1" /count)" ]; }

# A line of digits alone, as a program prints the port that it listens on.
has_port() { grep -qsxE '[0-9]+' "$1"; }
port_in() { grep -xE '[0-9]+' "$1" | head -n 1; }

median() { printf '%s\n' "$@" | sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
divide() { awk -v a="$1" -v b="$2" -v digits="$3" 'BEGIN { printf "%." digits "f", (b > 0 ? a / b : 0) }'; }

program_path() { PATH=$PATH:/usr/sbin:/usr/local/sbin command -v "$1"; }
