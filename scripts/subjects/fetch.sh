#!/usr/bin/env bash
# Unpacks the upstream sources of a Debian source package, or of a crate: fetch.sh PACKAGE|crate:NAME@VERSION FOLDER
#
# Takes them from the mirrors that this machine is set up for, whether or not it lists their sources, and keeps all
# that apt writes in a folder of its own. A tarball that lies in FOLDER.download already is used as it is.
set -euo pipefail

package=$1 folder=$2
private=$(mktemp -d)
trap 'rm -rf "$private"' EXIT

# This machine's entries for binary packages, turned into entries for sources.
source_lists() {
    local file
    mkdir -p "$private/lists.d"
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ ! -e "$file" ] || sed -nE 's/^[[:space:]]*deb[[:space:]]/deb-src /p' "$file" >"$private/lists.d/${file##*/}.list"
    done
    for file in /etc/apt/sources.list.d/*.sources; do
        [ ! -e "$file" ] || sed -E 's/^Types:.*/Types: deb-src/' "$file" >"$private/lists.d/${file##*/}"
    done
}

private_apt() {
    apt-get -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$private/lists.d" \
        -o Dir::State::Lists="$private/lists" -o Dir::Cache="$private/cache" -o APT::Sandbox::User= "$@"
}

tarball() { find "$folder.download" -name '*.orig.tar.*' ! -name '*.asc' -print -quit; }

# The newest version; a mirror of security updates may lack its tarball, which the release itself has.
take_source() {
    (cd "$folder.download" && private_apt source --download-only --tar-only "$@") >>"$private/log" 2>&1
}

download() {
    mkdir -p "$private"/{lists,cache/archives}/partial "$folder.download"
    source_lists
    # A third party's list may have no sources: only the package counts.
    { private_apt update || true; } >"$private/log" 2>&1
    take_source "$package" || take_source --target-release="$(. /etc/os-release && echo "$VERSION_CODENAME")" "$package" || {
        tail -n 20 "$private/log" >&2
        echo "fetch: no sources of the Debian package $package; put its .orig.tar into $(realpath "$folder.download")" >&2
        exit 1
    }
}

# By cargo, from wherever this machine takes its crates.
crate() {
    local name=${package#crate:}
    printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[lib]\npath = "lib.rs"\n[dependencies]\n%s = "=%s"\n' \
        "${name%@*}" "${name#*@}" >"$private/Cargo.toml"
    touch "$private/lib.rs"
    (cd "$private" && cargo vendor --quiet >/dev/null)
    rm -rf "$folder"
    mv "$private/vendor/${name%@*}" "$folder"
    # It is a project of its own here.
    printf '\n[workspace]\n' >>"$folder/Cargo.toml"
}

if [ "${package#crate:}" != "$package" ]; then
    crate
    exit
fi
[ -n "$(tarball 2>/dev/null)" ] || download
rm -rf "$folder" "$folder.new"
mkdir "$folder.new"
tar -xf "$(tarball)" -C "$folder.new" --strip-components=1
mv "$folder.new" "$folder"
