#!/usr/bin/env bash
# Makes .venv from nothing: Python packages at pinned versions, and a Toxiproxy server. Quick when nothing changed.
# Exits 4 with one line where a part cannot be had, before anything is installed.
#
#     deploy/setup.sh [packages]      `packages`: without the archive of Spark's classes, which `make test` makes itself
set -eu
cd "$(dirname "$0")/.."
TOXIPROXY_VERSION=v2.12.0

missing() { echo "nemesrv set-up: $1" >&2; exit 4; }

# What it installed would be this tree's, in an environment that another tree uses.
[ ! -L .venv ] || missing ".venv is a link to $(readlink .venv): remove it, and set-up makes one of this tree"

python=""
for candidate in ${PYTHON:-} python3.13 python3.12 python3.11 python3; do
    if command -v "$candidate" >/dev/null 2>&1 && "$candidate" -c 'import sys; raise SystemExit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || missing "Python 3.11 or newer is missing: install it (Debian: apt-get install python3 python3-venv) or set PYTHON=/path/to/python3"
java=java
[ -z "${JAVA_HOME:-}" ] || java=$JAVA_HOME/bin/java
java_version=$( { "$java" -version 2>&1 || true; } | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1)
need_java="Spark needs a JDK 17 or newer (Debian: apt-get install openjdk-17-jdk-headless, and unset JAVA_HOME or point it there)"
[ -n "$java_version" ] || missing "there is no $java that runs: $need_java"
[ "$java_version" -ge 17 ] || missing "$java is Java $java_version: $need_java"
have_toxiproxy() {
    command -v toxiproxy-server >/dev/null 2>&1 || [ -x .venv/bin/toxiproxy-server ]
}
if ! have_toxiproxy && ! command -v go >/dev/null 2>&1; then
    missing "toxiproxy-server is missing: put one on PATH, or install Go so that set-up can build it (Debian: apt-get install golang)"
fi

stamp=.venv/.nemesrv-$(cat pyproject.toml constraints.txt deploy/setup.sh | cksum | tr -d ' ')
archived=.venv/.nemesrv-archive-$java_version
begun="" build="" parts=""
trap 'kill $begun 2>/dev/null || true; rm -rf "$build" "$parts"' EXIT

# One line a part, with its size, and one when it is there, with its time; and what is still at work where nothing was said
# for ten seconds. `parts` has a file for each part at work.
part() {
    [ -n "$parts" ] || watch_parts
    echo "$1 ($2)"
    echo "$SECONDS" >"$parts/$1"
}
ready() {
    echo "$1: $((SECONDS - $(cat "$parts/$1"))) s"
    rm -f "$parts/$1"
}
watch_parts() {
    parts=$(mktemp -d)
    (trap 'kill $! 2>/dev/null; exit 0' TERM
    while sleep 10 & wait $!; do
        now=$(ls "$parts" 2>/dev/null | paste -sd, - | sed 's/,/, /g')
        [ -z "$now" ] || echo "  $SECONDS s: still at $now"
    done) &
    begun="$begun $!" watching=$!
}

# The report's tests open it in a real browser, and Apache's programs go faster than the clock by libfaketime. Nobody's
# machine gets them unasked; CI does, where it can.
install_for_tests() {
    part "$*" "for the tests"
    apt-get update -qq >/dev/null 2>&1 || true
    for each in "$@"; do
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$each" >/dev/null 2>&1 \
            || echo "$each could not be installed: the tests that need it will be skipped" >&2
    done
    ready "$*"
}
if [ -n "${CI:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    absent=""
    command -v chromium >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 || absent="chromium"
    command -v faketime >/dev/null 2>&1 || absent="faketime $absent"
    if [ -n "$absent" ]; then
        watch_parts
        # shellcheck disable=SC2086
        install_for_tests $absent &
        begun="$begun $!"
    fi
fi

# Of what is installed so far, what our processes import. A file that cannot be compiled is nobody's, as pip takes it.
compile_packages() {
    never='/tests?/|/ray/(air|data|llm|rllib|serve|train|tune)/|/pyspark/(examples|ml|mllib|pandas|pipelines|streaming)/|/(libcst|textual)/'
    .venv/bin/python -m compileall -q -j 2 -x "$never" .venv/lib/python3.*/site-packages >/dev/null || true
}

# uv unpacks on all cores and links what it has unpacked before: a fifth of the CPU that pip takes. It knows none of pip's settings,
# so where those name an index or a proxy, or where it cannot be had or fails, it is pip that installs.
fetch_uv() {
    [ -x .venv/bin/uv ] || .venv/bin/python -m pip config list | grep -qE 'index|proxy' \
        || .venv/bin/python -m pip install "${quiet[@]}" uv >/dev/null 2>&1 || true
}

# Nothing is compiled here, but by `compile_packages`, while another is unpacked: pip would do it with one core, and half of
# it is never imported.
install() {
    [ -x .venv/bin/uv ] \
        && UV_NATIVE_TLS=true .venv/bin/uv pip install --quiet --python .venv/bin/python --constraint constraints.txt "$@" \
        || .venv/bin/python -m pip install --no-compile "${quiet[@]}" "$@"
}

install_packages() {
    free_kb=$(df -Pk . | awk 'NR == 2 { print $4 }')
    [ -d .venv ] || [ "$free_kb" -ge 2500000 ] || missing "the packages need 2.5 GB and $(pwd) has $((free_kb / 1024)) MB left: free some of it"
    if [ ! -x .venv/bin/python ]; then
        part "virtual environment" "20 MB"
        "$python" -m venv .venv || missing "the venv module is missing: install it (Debian: apt-get install python3-venv)"
        ready "virtual environment"
    fi
    build=$(mktemp -d)
    # Beside each other: two of these are built, the rest is only fetched and unpacked.
    toxiproxy=""
    if ! have_toxiproxy; then
        part "toxiproxy-server" "$TOXIPROXY_VERSION, built with Go, 16 MB"
        { GOBIN=$build go install "github.com/Shopify/toxiproxy/v2/cmd/server@$TOXIPROXY_VERSION" && ready "toxiproxy-server"; } &
        toxiproxy=$!
        begun="$begun $toxiproxy"
    fi
    quiet=(--quiet --disable-pip-version-check --constraint constraints.txt)
    # Pip keeps the wheel that it builds of Spark's sources; uv would build it again each time.
    part "PySpark" "485 MB"
    .venv/bin/python -m pip wheel "${quiet[@]}" --no-deps --wheel-dir "$build" pyspark &
    pyspark=$!
    begun="$begun $pyspark"
    part "Ray and the other packages" "440 MB"
    fetch_uv
    install --editable '.[ray,report,statistics,watch,dev]' \
        || missing "the Python packages could not be installed: see the message above"
    ready "Ray and the other packages"
    wait "$pyspark" || missing "the Python packages could not be installed: see the message above"
    compile_packages &
    compiling=$!
    begun="$begun $compiling"
    install --find-links "$build" pyspark \
        || missing "the Python packages could not be installed: see the message above"
    ready "PySpark"
    part "compiling" "what nodes import"
    wait "$compiling" && compile_packages
    ready "compiling"
    if [ -n "$toxiproxy" ]; then
        wait "$toxiproxy" \
            || missing "toxiproxy-server $TOXIPROXY_VERSION could not be built with Go: see its message above, or put a toxiproxy-server on PATH"
        mv "$build/server" .venv/bin/toxiproxy-server
    fi
    rm -f .venv/.nemesrv-*
    touch "$stamp"
}
# One that was on PATH then may be there no more.
[ -f "$stamp" ] && [ -x .venv/bin/nemesrv ] && have_toxiproxy || install_packages

# As pip does for what it installs, which this tree is not: else each process compiles it where PYTHONDONTWRITEBYTECODE is
# set, and a cluster is a dozen processes. What is compiled already costs a twentieth of a second.
.venv/bin/python -m compileall -q actors chaos clients conformance operations remoting

# Spark then starts in half the time; without it, it only takes longer, and the command has said why.
if [ "${1:-}" != packages ] && [ ! -f "$archived" ]; then
    part "an archive of Spark's classes" "170 MB, so that Spark starts in half the time"
    .venv/bin/python -m tests.spark_classes >/dev/null || true
    ready "an archive of Spark's classes"
    touch "$archived"
fi
[ -z "$parts" ] || kill "$watching" 2>/dev/null || true
wait
begun=""
