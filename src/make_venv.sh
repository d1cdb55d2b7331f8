#!/bin/sh
# make_venv.sh PYTHON VENV: make the environment, or say in one sentence what is missing.
# VENV/.ready, written last, says that it is whole; VENV/.making marks one that we began.
set -eu
wanted=$1 venv=$2
log=${TMPDIR:-/tmp}/book-pip.$$.log
trap 'rm -f "$log"' EXIT

stop() {
    printf '\n%s\n' "$*" >&2
    exit 1
}

supported() {
    command -v "$1" >/dev/null 2>&1 &&
        "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null
}

python=
for name in ${wanted:-python3 python3.12 python3.11}; do
    if supported "$name"; then
        python=$name
        break
    fi
done
[ -n "$python" ] || stop "Python 3.11 or 3.12 is needed, and ${wanted:-python3} is not one:" \
    "install one and name it, as in: make book PYTHON=/path/to/python3.12"

compiler=${CXX:-}
for name in c++ g++ clang++; do
    [ -n "$compiler" ] || ! command -v "$name" >/dev/null 2>&1 || compiler=$name
done
[ -n "$compiler" ] && echo 'int main() { return 0; }' | "$compiler" -x c++ -fsyntax-only - 2>/dev/null ||
    stop "A C++ compiler is needed by torch.compile, and none works here: install one" \
        "(Debian, Ubuntu: apt install g++; macOS: xcode-select --install), or set CXX."

[ ! -e "$venv/.making" ] || rm -rf "$venv" # an interrupted run left half of it
free=$(df -Pk . | awk 'NR == 2 { print int($4 / 1048576) }')
[ -x "$venv/bin/python" ] || [ "$free" -ge 4 ] ||
    stop "The environment needs 4 GB of disk (10 with torch's CUDA build), and $free GB are free: make room," \
        "or put it elsewhere with VENV=/path/to/folder."

if [ ! -x "$venv/bin/python" ]; then
    mkdir -p "$venv"
    touch "$venv/.making"
    "$python" -m venv "$venv" ||
        stop "$python cannot make an environment: install its venv module (Debian, Ubuntu: apt install python3-venv)."
fi
supported "$venv/bin/python" || stop "$venv holds an unsupported Python: remove the folder and run make again."

pip() {
    "$venv/bin/python" -m pip --disable-pip-version-check --log "$log" "$@" && return
    grep -q 'No space left on device' "$log" && stop "The disk is full: free some space and run make again."
    grep -Eq 'NewConnectionError|NameResolution|name resolution|ConnectTimeout|ReadTimeout|Max retries|ProxyError' "$log" &&
        stop "The packages could not be fetched: there is no network to the package index" \
            "(behind a proxy, set HTTPS_PROXY; with a mirror, set PIP_INDEX_URL). Then run make again."
    stop "pip could not install what requirements.txt names; its last words are above."
}
pip install -r requirements.txt --editable .
rm -f "$venv/.making"
touch "$venv/.ready"
