#!/bin/sh
# Installs this folder below a prefix, or removes it there: ./install.sh [--remove] [PREFIX]; PREFIX is ~/.local
set -eu
remove=
if [ "${1-}" = --remove ]; then remove=yes && shift; fi
prefix=${1:-$HOME/.local}
here=$(cd "$(dirname "$0")" && pwd)

if [ -n "$remove" ]; then
    "$here/bin/tasting" setup --remove --prefix "$prefix" >/dev/null
    for name in tasting tasting-cc tasting-cxx tasting-ld; do rm -f "$prefix/bin/$name"; done
    rm -rf "$prefix/share/doc/tasting"
    echo "removed from $prefix"
    exit
fi
mkdir -p "$prefix/bin" "$prefix/share/doc/tasting"
for name in tasting tasting-cc tasting-cxx tasting-ld; do
    # Not over a program that runs.
    cp "$here/bin/$name" "$prefix/bin/.$name.new"
    mv -f "$prefix/bin/.$name.new" "$prefix/bin/$name"
done
cp "$here"/share/doc/tasting/* "$prefix/share/doc/tasting/"
"$prefix/bin/tasting" setup --prefix "$prefix"
case :$PATH: in
*:"$prefix/bin":*) ;;
*) echo "put it in PATH: export PATH=$prefix/bin:\$PATH" ;;
esac
