#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sourced by the other scripts: installs Debian packages that are not there yet.

build_packages='gcc libc6-dev meson ninja-build pkg-config python3 libseccomp-dev libyajl-dev libcap-ng-dev binutils'

# as_root COMMAND...: runs it as root, through sudo where this is not root.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "$0: root is needed for: $*" >&2
        return 1
    fi
}

missing_packages() {
    for package in "$@"; do
        state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || state=
        [ "$state" = installed ] || printf '%s ' "$package"
    done
}

# install_packages NAME...: nothing to do, and no network needed, when all are installed.
install_packages() {
    if ! command -v dpkg-query >/dev/null; then
        echo "$0: not a Debian system: please install what corresponds to: $*" >&2
        return 0
    fi
    wanted=$(missing_packages "$@")
    [ -z "$wanted" ] && return 0
    echo "Installing $wanted"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq || true
    # shellcheck disable=SC2086
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $wanted
}
