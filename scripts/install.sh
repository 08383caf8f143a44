#!/usr/bin/env bash
# Installs the binaries in $BUILT under $DESTDIR and the prefix that is given, or removes them again:
#   BUILT=target/release DESTDIR= scripts/install.sh [--remove] /usr/local
#
# All that is no program (files for CMake and Meson, names of compilers and linkers, the manual, completions) is inside
# `tasting`, and written by `tasting setup`.
set -eu
cd "$(dirname "$0")/.."

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
    local name
    install -d "$root/bin"
    for name in tasting tasting-cc tasting-cxx tasting-ld; do
        install -m 755 "${BUILT:-target/release}/$name" "$root/bin/$name"
    done
    "$root/bin/tasting" setup --prefix "$root" ${PART:+--only "$PART"} >/dev/null
    install_documents
    echo "installed in $root"
}

install_documents() {
    local file
    install -d "$root/share/doc/tasting"
    for file in README.md ARCHITECTURE.md CHANGELOG.md SECURITY.md LICENSE-MIT LICENSE-APACHE; do
        [ ! -e "$file" ] || install -m 644 "$file" "$root/share/doc/tasting"
    done
}

remove_all() {
    [ ! -x "$root/bin/tasting" ] || "$root/bin/tasting" setup --remove --prefix "$root" >/dev/null
    rm -f "$root"/bin/tasting "$root"/bin/tasting-{cc,cxx,c++,ld}
    rm -rf "$root/share/doc/tasting"
    echo "removed from $root"
}

main "$@"
