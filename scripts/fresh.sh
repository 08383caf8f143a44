#!/usr/bin/env bash
# The first two commands of a newcomer, on a machine that has nothing: scripts/fresh.sh [COMMAND...]
#
# Builds a minimal Debian of the host's release in a folder, with make, gcc and the host's Rust toolchain, puts a
# clone of HEAD into it, and runs each COMMAND there (`make demo` and `make check`): in namespaces of its own, with an
# empty home, and with nothing of the host's environment but what is needed to reach the package registries. What a
# test needs and scripts/install-test-tools.sh does not install is missing there. What lies in the folder $FILES is
# copied to /root/files.
#
# Needs root: it makes device nodes and mounts. Keeps in target/fresh: the base system (base.tar, made again when it
# is older than 30 days), downloaded packages and crates, and log. KEEP=1 leaves the system in target/fresh/root.
set -euo pipefail
cd "$(dirname "$0")/.."

give_up() {
    echo "fresh: $1" >&2
    exit 1
}

# Debian's own archives among the host's package sources, as lines of a sources.list.
archives() {
    apt-get indextargets --format '$(ORIGIN) $(IDENTIFIER) $(CODENAME) deb $(REPO_URI) $(RELEASE) $(COMPONENT)' |
        awk -v release="$release" '$1 == "Debian" && $2 == "Packages" && index($3, release) == 1 { print $4, $5, $6, $7 }' |
        sort -u
}

# A base system as debootstrap makes it, with what the host needs to reach the archives.
make_base() {
    echo "fresh: making a minimal Debian ($release)"
    command -v debootstrap >/dev/null || apt-get install -y --no-install-recommends debootstrap >>"$log" 2>&1 ||
        give_up 'debootstrap is missing and cannot be installed'
    [ -n "$(archives)" ] || apt-get update >>"$log" 2>&1 || true
    mirror=$(archives | awk -v release="$release" '$3 == release { print $2; exit }')
    [ -n "$mirror" ] || give_up "no archive of Debian $release is among the package sources of this machine"
    debootstrap --variant=minbase "$release" "$root" "$mirror" >>"$log" 2>&1 || give_up "debootstrap failed: see $log"
    archives >"$root/etc/apt/sources.list"
    apt-config dump | grep -E '^Acquire::(https?|ftp|Retries|ForceIPv[46]|Check-Valid-Until)' \
        >"$root/etc/apt/apt.conf.d/99host" || true
    copy_network_settings
    inside '
        apt-get update
        apt-get install -y --no-install-recommends make gcc libc6-dev ca-certificates
        update-ca-certificates
        apt-get clean' >>"$log" 2>&1 || give_up "make, gcc and ca-certificates cannot be installed: see $log"
    tar -C "$root" --one-file-system -cf "$work/base.tar.new" .
    mv "$work/base.tar.new" "$work/base.tar"
}

# Name resolution, additional certificate authorities, pip's and cargo's registries.
copy_network_settings() {
    for file in /etc/resolv.conf /etc/hosts /etc/pip.conf; do
        [ ! -e "$file" ] || cp -L "$file" "$root$file"
    done
    mkdir -p "$root/usr/local/share/ca-certificates"
    cp -rL /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/" 2>/dev/null || true
    for file in .config/pip/pip.conf .pip/pip.conf; do
        [ ! -e "$HOME/$file" ] || install -D -m 600 "$HOME/$file" "$root/root/$file"
    done
    # Of cargo's settings, how registries are reached: not this machine's linker, options or credentials.
    for file in .cargo/config.toml .cargo/config; do
        [ ! -e "$HOME/$file" ] || { mkdir -p "$root/root/.cargo" &&
            awk '/^\[/ { keep = /^\[(source|registr|http|net)/ } keep' "$HOME/$file" >"$root/root/$file"; }
    done
    # Certificates that variables name have to be where these say.
    for file in "${SSL_CERT_FILE-}" "${PIP_CERT-}" "${CARGO_HTTP_CAINFO-}"; do
        [ ! -f "$file" ] || [ -e "$root$file" ] || install -D -m 644 "$file" "$root$file"
    done
}

# The variables that say how registries are reached.
registry_environment() {
    env -0 | while IFS= read -r -d '' variable; do
        case ${variable%%=*} in
        http_proxy | https_proxy | no_proxy | all_proxy | HTTP_PROXY | HTTPS_PROXY | NO_PROXY | ALL_PROXY) ;;
        PIP_* | SSL_CERT_FILE | SSL_CERT_DIR | CARGO_HTTP_* | CARGO_NET_* | CARGO_REGISTR* | CARGO_SOURCE_*) ;;
        *) continue ;;
        esac
        printf '%s\0' "$variable"
    done
}

# Runs a shell script in the system. Mounts and processes end with it. The root is pivoted, not changed: in a chroot no
# user namespace can be made, and tests make some.
inside() {
    mapfile -d '' -t variables < <(registry_environment)
    # shellcheck disable=SC2016 # expanded inside
    unshare --mount --pid --ipc --uts --fork --kill-child --propagation private sh -euc '
        root=$1 work=$2 toolchain=$3 script=$4
        shift 4
        mount --bind "$root" "$root"
        cd "$root"
        mkdir -p proc sys dev usr/local/rust var/cache/apt/archives root/.cargo/registry .host
        mount --bind "$toolchain" usr/local/rust
        mount -o remount,bind,ro usr/local/rust
        mount --bind "$work/packages" var/cache/apt/archives
        mount --bind "$work/crates" root/.cargo/registry
        mount -t proc proc proc
        mount -t sysfs -o ro sysfs sys
        mount -t tmpfs -o mode=755 tmpfs dev
        for node in null:3 zero:5 full:7 random:8 urandom:9; do
            mknod -m 666 "dev/${node%:*}" c 1 "${node#*:}"
        done
        mknod -m 666 dev/tty c 5 0
        ln -s /proc/self/fd dev/fd
        ln -s fd/0 dev/stdin
        ln -s fd/1 dev/stdout
        ln -s fd/2 dev/stderr
        mkdir dev/pts dev/shm
        mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
        ln -s pts/ptmx dev/ptmx
        mount -t tmpfs -o mode=1777 tmpfs dev/shm
        hostname fresh
        pivot_root . .host
        cd /
        umount -l /.host
        rmdir /.host
        # Some tests interrupt a program, which whoever was started in the background of a script would ignore.
        exec env --default-signal=INT,QUIT -i "$@" HOME=/root USER=root LOGNAME=root SHELL=/bin/sh TERM=dumb LANG=C.UTF-8 \
            PATH=/usr/local/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -euc "$script"
    ' fresh "$root" "$work" "$toolchain" "$1" "${variables[@]}" </dev/null
}

# A clean clone of HEAD. A bundle, because root may not clone from a repository of somebody else.
copy_project() {
    git -c safe.directory="$PWD" bundle create --quiet "$work/head.bundle" HEAD
    git -c advice.detachedHead=false -c init.defaultBranch=main clone --quiet "$work/head.bundle" "$root/root/tasting"
    rm "$work/head.bundle"
}

remove_root() {
    [ -n "${KEEP-}" ] || rm -rf --one-file-system "$root"
}

run_command() {
    echo "fresh: $1"
    local started=$SECONDS
    if inside "cd /root/tasting; $1" >>"$log" 2>&1; then
        echo "fresh: $1 passed in $((SECONDS - started)) s"
    else
        tail -n 40 "$log" >&2
        give_up "$1 failed on a fresh machine: see $log"
    fi
}

[ "$(id -u)" = 0 ] || give_up 'needs root, for device nodes and mounts'
for tool in unshare pivot_root apt-get git tar rustc; do
    command -v "$tool" >/dev/null || give_up "needs $tool on PATH"
done
release=$(. /etc/os-release && [ "$ID" = debian ] && echo "$VERSION_CODENAME") || give_up 'this machine is no Debian'
case ${CARGO_TARGET_DIR:-target} in /*) work=${CARGO_TARGET_DIR}/fresh ;; *) work=$PWD/${CARGO_TARGET_DIR:-target}/fresh ;; esac
root=$work/root
log=$work/log
toolchain=$(rustc --print sysroot)
[ $# -gt 0 ] || set -- 'make demo' 'make check'

mkdir -p "$work/packages/partial" "$work/crates"
exec 9>"$work/lock"
flock -n 9 || give_up "is running already in $work"
: >"$log"
trap remove_root EXIT
rm -rf --one-file-system "$root"
mkdir -p "$root"
if [ -z "$(find "$work" -maxdepth 1 -name base.tar -mtime -30)" ]; then
    make_base
else
    tar -C "$root" -xpf "$work/base.tar"
    copy_network_settings
fi
copy_project
[ -z "${FILES-}" ] || cp -r "$FILES" "$root/root/files"
for command; do
    run_command "$command"
done
