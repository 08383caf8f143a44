#!/usr/bin/env bash
# Makes a package of the binaries in $BUILT: scripts/package.sh deb|tarball FOLDER
#
# deb      for Debian 12 and newer, and what is made of it. The names of compilers in /usr/lib/tasting are made when it is
#          installed, for the compilers that the machine has, and again when others come.
# tarball  a folder that works wherever it is unpacked, with install.sh for those who have no root. Its programs are linked
#          statically, with musl: without $BUILT, they are built so first. Programs in $BUILT are taken as they are.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
built=${BUILT:-$target/release}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

# The newest version of the C library that the programs ask for.
libc_version() {
    objdump -T "$built"/tasting "$built"/tasting-{cc,cxx,ld} | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1 | cut -d_ -f2
}

# What the programs need of Debian: the C library, and unwinding where that is not linked into them.
dependencies() {
    echo -n "libc6 (>= $(libc_version))"
    if objdump -p "$built"/tasting "$built"/tasting-{cc,cxx,ld} | grep -q 'NEEDED.*libgcc_s'; then echo -n ', libgcc-s1'; fi
}

deb() {
    local architecture file
    architecture=$(dpkg --print-architecture)
    root=$(mktemp -d)
    trap 'rm -rf "$root"' EXIT
    chmod 755 "$root"
    umask 022
    BUILT=$built DESTDIR=$root PART=files scripts/install.sh /usr >/dev/null
    strip "$root"/usr/bin/tasting "$root"/usr/bin/tasting-{cc,cxx,ld}
    install -d "$root/usr/share/zsh/vendor-completions" "$root/DEBIAN"
    mv "$root/usr/share/zsh/site-functions/_tasting" "$root/usr/share/zsh/vendor-completions/"
    rmdir "$root/usr/share/zsh/site-functions"
    (cd "$root/usr/share/doc/tasting" && cat LICENSE-MIT LICENSE-APACHE >copyright && rm LICENSE-MIT LICENSE-APACHE &&
        gzip -9n CHANGELOG.md && mv CHANGELOG.md.gz changelog.gz)
    find "$root/usr/share/man" -type f -exec gzip -9n {} +
    find "$root" -exec touch -hd "@${SOURCE_DATE_EPOCH:-0}" {} +
    cat >"$root/DEBIAN/control" <<END
Package: tasting
Version: $version
Architecture: $architecture
Maintainer: The developers of Tasting <tasting@localhost>
Installed-Size: $(du -sk --apparent-size "$root/usr" | cut -f1)
Depends: $(dependencies)
Suggests: gcc | clang
Section: devel
Priority: optional
Description: reuses test results of C and C++ programs
 Tasting stands in front of the tests of a project, and runs a test only if
 something that it uses has changed: a function that it executes, a file that
 it reads, a library, an argument. Otherwise its stored outcome is replayed.
END
    cat >"$root/DEBIAN/postinst" <<'END'
#!/bin/sh
set -e
tasting setup --prefix /usr --only compilers >/dev/null
END
    cat >"$root/DEBIAN/prerm" <<'END'
#!/bin/sh
set -e
[ "$1" = upgrade ] || tasting setup --prefix /usr --only compilers --remove >/dev/null
END
    # A new compiler gets its link.
    echo 'interest-noawait /usr/lib/gcc' >"$root/DEBIAN/triggers"
    chmod 755 "$root"/DEBIAN/{postinst,prerm}
    (cd "$root" && find usr -type f -exec md5sum {} + | sort -k 2 >DEBIAN/md5sums)
    file=$1/tasting_${version}_$architecture.deb
    dpkg-deb --root-owner-group -Zxz --build "$root" "$file" >/dev/null
    echo "$file"
}

# Rust's own half of the C library comes with rustup, the headers with Debian's musl-tools.
build_static() {
    local musl
    musl=$(uname -m)-unknown-linux-musl
    if ! [ -d "$(rustc --print sysroot)/lib/rustlib/$musl" ] && ! rustup target add "$musl"; then
        echo "package.sh: Rust has no target $musl here: static programs cannot be built" >&2 && exit 1
    fi
    command -v musl-gcc >/dev/null || { echo 'package.sh: install musl-tools first' >&2; exit 1; }
    "${CARGO:-cargo}" build --release --locked --bins --target "$musl" >&2
    built=$target/$musl/release
}

# The C library that a program needs: none, or that of the machine it was built on.
library_of() { if readelf -lW "$1" | grep -q INTERP; then echo gnu; else echo musl; fi; }

tarball() {
    local name
    [ -n "${BUILT-}" ] || build_static
    name=tasting-$version-$(uname -m)-linux-$(library_of "$built/tasting")
    rm -f "$1/tasting-$version-$(uname -m)-linux-"*.tar.gz
    root=$(mktemp -d)
    trap 'rm -rf "$root"' EXIT
    BUILT=$built DESTDIR=$root PART=files scripts/install.sh "/$name" >/dev/null
    strip "$root/$name"/bin/tasting "$root/$name"/bin/tasting-{cc,cxx,ld}
    install -m 755 scripts/install-tarball.sh "$root/$name/install.sh"
    tar -C "$root" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-0}" -czf "$1/$name.tar.gz" "$name"
    echo "$1/$name.tar.gz"
}

case ${1-}:${2-} in
deb:?* | tarball:?*) mkdir -p "$2" && "$1" "$2" ;;
*) echo 'usage: package.sh deb|tarball FOLDER' >&2 && exit 2 ;;
esac
