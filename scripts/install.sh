#!/usr/bin/env bash
# Installs the binaries in $BUILT under $DESTDIR and the prefix that is given, or removes them again:
#   BUILT=target/release DESTDIR= scripts/install.sh [--remove] /usr/local
#
# libexec/tasting/ld   the linkers' names, for the drivers: what COMPILER_PATH is pointed to
# lib/tasting          the compilers' and linkers' names: put it first in PATH, and every build goes through the shims
set -eu
cd "$(dirname "$0")/.."

linkers='ld ld.bfd ld.gold ld.lld ld.mold'
target='[^-]+(-[^-]+){1,3}' # as in aarch64-linux-gnu-gcc

main() {
    local remove=
    if [ "${1-}" = --remove ]; then remove=yes && shift; fi
    case ${1-} in
    /*) root=${DESTDIR-}$1 ;;
    *) echo 'usage: install.sh [--remove] PREFIX (an absolute path)' >&2 && exit 2 ;;
    esac
    if [ -n "$remove" ]; then remove_all; else install_all; fi
}

install_all() {
    install_programs
    link_linkers "$root/libexec/tasting/ld" ../../../bin
    masquerade "$root/lib/tasting" ../../bin
    install_integrations
    install_documents
    echo "installed in $root"
}

install_programs() {
    local name
    install -d "$root/bin"
    for name in tasting tasting-cc tasting-cxx tasting-ld; do
        install -m 755 "${BUILT:-target/release}/$name" "$root/bin/$name"
    done
    ln -sfn tasting-cxx "$root/bin/tasting-c++"
}

# link_linkers FOLDER BIN: BIN is relative to FOLDER, so that the tree can be moved.
link_linkers() {
    local name
    install -d "$1"
    for name in $linkers; do ln -sfn "$2/tasting-ld" "$1/$name"; done
}

masquerade() {
    local name
    install -d "$1"
    for name in cc gcc clang $(names_on_path "($target-)?(gcc|clang)(-[0-9.]+)?"); do
        ln -sfn "$2/tasting-cc" "$1/$name"
    done
    for name in c++ g++ clang++ $(names_on_path "($target-)?(g|clang)\+\+(-[0-9.]+)?"); do
        ln -sfn "$2/tasting-cxx" "$1/$name"
    done
    for name in $linkers $(names_on_path "$target-ld(\.(bfd|gold|lld|mold))?"); do
        ln -sfn "$2/tasting-ld" "$1/$name"
    done
}

# The tools of this machine whose whole names match the expression; those for Windows make no ELF.
names_on_path() {
    local folder path
    local -a folders
    IFS=: read -ra folders <<<"$PATH"
    for folder in "${folders[@]}"; do
        for path in "$folder"/*; do
            [ ! -x "$path" ] || echo "${path##*/}"
        done
    done | grep -Ex "$1" | grep -v mingw | sort -u
}

install_integrations() {
    install -d "$root"/share/tasting/{cmake,meson} "$root/lib/cmake/Tasting" "$root/share/meson/native"
    install -m 644 cmake/tasting.cmake cmake/ctest.cmake.in "$root/share/tasting/cmake"
    install -m 644 cmake/TastingConfig.cmake "$root/lib/cmake/Tasting"
    install -m 644 meson/tasting.ini "$root/share/tasting/meson"
    # Meson looks for `--native-file tasting.ini` there.
    ln -sfn ../../tasting/meson/tasting.ini "$root/share/meson/native/tasting.ini"
}

install_documents() {
    local file
    install -d "$root/share/doc/tasting"
    for file in README.md ARCHITECTURE.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE; do
        [ ! -e "$file" ] || install -m 644 "$file" "$root/share/doc/tasting"
    done
}

remove_all() {
    rm -f "$root"/bin/tasting "$root"/bin/tasting-{cc,cxx,c++,ld} "$root/share/meson/native/tasting.ini"
    rm -rf "$root"/{lib,libexec,share,share/doc}/tasting "$root/lib/cmake/Tasting"
    echo "removed from $root"
}

main "$@"
