# The peers that are programs of Node.js: their packages, under $dir/node, and how one is started. Sourced.
#
# The packages are installed by npm from bench/peers/node/package-lock.json, once; without npm or a registry the peers are left out.

node_missing() {
    if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
        echo "node or npm is not installed"
    elif [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 18 ]; then
        echo "node $(node --version) is older than 18"
    elif ! node_install; then
        echo "npm could not install the packages: $(tail -n 1 "$dir/npm.log" 2>/dev/null)"
    fi
}

node_install() {
    local folder=$dir/node
    cmp -s bench/peers/node/package-lock.json "$folder/installed" && { cp bench/peers/node/*.js "$folder/"; return 0; }
    [ -e "$dir/npm.failed" ] && return 1 # asked once in a run
    mkdir -p "$folder"
    cp bench/peers/node/* "$folder/"
    note "installing the packages of the Node.js peers into $folder"
    if (cd "$folder" && npm ci --omit=dev --ignore-scripts --no-audit --no-fund) >"$dir/npm.log" 2>&1; then
        cp bench/peers/node/package-lock.json "$folder/installed"
        return 0
    fi
    : >"$dir/npm.failed"
    return 1
}

node_version() { node -p "require('$dir/node/node_modules/$1/package.json').version"; }

# node_peer SERIES PROGRAM ARGUMENT...: sets node_pid and the series' ports.
node_peer() {
    local series=$1 program=$2
    shift 2
    spawn "$dir/$series.log" env NODE_ENV=production ANSWER_BYTES="$answer" DELAY_MS="$delay" node "$dir/node/$program" "$@"
    node_pid=$spawned
    until_true 20 has_port "$dir/$series.log" || die "$program did not start: $(cat "$dir/$series.log")"
    port_of[$series]=$(port_in "$dir/$series.log")
    handler_port_of[$series]=${port_of[$series]}
    loads_of[$series]="first replay mixed mismatch"
}
