#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sourced by the other scripts, after packages.sh: makes Debian root file systems and keeps them in a cache.

cache=${CLOISTER_CACHE:-${XDG_CACHE_HOME:-/var/cache}/cloister}
suite=bookworm

# The archive that this machine uses itself; the one everybody knows otherwise.
debian_mirror() {
    uri=$(apt-get indextargets --format '$(REPO_URI)' 2>/dev/null | grep -v security | head -n 1)
    echo "${CLOISTER_MIRROR:-${uri:-http://deb.debian.org/debian}}"
}

make_cache() {
    as_root mkdir -p "$cache"
    [ -w "$cache" ] || as_root chmod 777 "$cache"
}

# debian_root DIR PACKAGE…: makes a Debian tree with these; fails when the archive can't be reached.
debian_root() {
    target=$1
    shift
    install_packages debootstrap || return 1
    command -v debootstrap >/dev/null || PATH=$PATH:/usr/sbin
    as_root rm -rf "$target.new"
    {
        as_root debootstrap --variant=minbase $suite "$target.new" "$(debian_mirror)" &&
            # no daemon starts in the tree
            printf '#!/bin/sh\nexit 101\n' | as_root tee "$target.new/usr/sbin/policy-rc.d" &&
            as_root chmod 755 "$target.new/usr/sbin/policy-rc.d" &&
            as_root chroot "$target.new" env DEBIAN_FRONTEND=noninteractive \
                apt-get install -y -qq --no-install-recommends "$@"
    } >"$cache/debootstrap.log" 2>&1 || return 1
    as_root rm -rf "$target.new/var/cache/apt/archives" "$target.new/var/lib/apt/lists"
    as_root mv "$target.new" "$target"
}
