#!/usr/bin/env bash
# Installs each package that lies in a folder, builds and tests a project with it, and removes it again: what was not there
# before must not be there after. To be run as root on a machine that may be spoilt (`make packages-test`, in a minimal Debian).
set -euo pipefail
cd "$(dirname "$0")/.."
packages=$1
work=$(mktemp -d)
chmod 755 "$work"
# Where others than root can read it.
demo=$work/fixture
cp -r fixtures/demo "$demo"

# All files of the machine, but for what package management notes and what lies in the folders of this script.
files() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path "$work" -o -path /var/lib/dpkg -o \
        -path /var/log -o -path /var/cache -o -path /root \) -prune -o ! -type d -print | sort
}

# A project, built and tested twice: the second time its test is reused.
try() {
    rm -rf "$work/demo" && cp -r "$demo" "$work/demo"
    (
        cd "$work/demo"
        export TASTING_DIR=$work/store-$1 TASTING_ROOT=$work/demo
        make CC=tasting-cc RUNNER='tasting run --' till >/dev/null
        make CC=tasting-cc RUNNER='tasting run --' check >/dev/null
        make CC=tasting-cc RUNNER='tasting run --' check >/dev/null
        tasting log --json -n 1 | grep -q '"decision":"reused"' || { tasting log; tasting doctor; exit 1; }
        tasting --version | head -n 1
    )
}

try_deb() {
    files >"$work/before"
    dpkg -i "$packages"/tasting_*.deb
    [ -e /usr/share/man/man1/tasting-run.1.gz ] && [ -e /usr/share/bash-completion/completions/tasting ]
    [ "$(readlink -f /usr/lib/tasting/gcc)" = /usr/bin/tasting-cc ]
    try deb
    dpkg -P tasting
    files >"$work/after"
    diff "$work/before" "$work/after"
}

# By a user who is not root.
try_tarball() {
    export HOME=$work/home
    mkdir -p "$HOME" "$work/unpacked"
    tar -C "$work/unpacked" -xf "$packages"/tasting-*.tar.gz
    chown -R nobody "$HOME" "$work"
    as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
    as_nobody "$work"/unpacked/tasting-*/install.sh
    PATH=$HOME/.local/bin:$PATH
    export -f try
    export work demo
    as_nobody bash -euc 'try tarball'
    as_nobody "$work"/unpacked/tasting-*/install.sh --remove
    [ -z "$(find "$HOME" ! -type d)" ] || { find "$HOME"; exit 1; }
}

try_deb
try_tarball
echo 'packages: installed, used and removed'
