# Runs a PostgreSQL server in a new folder for as long as standard input stays open, so that it ends
# with the process that started it, however that process ends.
#
# sh serve.sh BIN PORT

set -eu
bin=$1 port=$2
folder=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-postgres.XXXXXX")
cd "$folder"
server=
finish() {
    if [ -n "$server" ]; then
        kill -QUIT "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    cd /
    rm -rf "$folder"
}
trap finish EXIT

export LC_ALL=C
"$bin/initdb" --pgdata=data --username=holdfast --auth=trust --encoding=UTF8 --no-sync >initdb.log 2>&1 || {
    cat initdb.log >&2
    exit 1
}
"$bin/postgres" -D data -p "$port" -c listen_addresses=127.0.0.1 -c unix_socket_directories= \
    -c fsync=off -c max_connections=500 >server.log 2>&1 </dev/null &
server=$!

tries=0
until "$bin/pg_isready" --quiet --host=127.0.0.1 --port="$port"; do
    tries=$((tries + 1))
    if [ "$tries" -ge 300 ] || ! kill -0 "$server" 2>/dev/null; then
        cat server.log >&2
        exit 1
    fi
    sleep 0.1
done
echo ready
cat >/dev/null
