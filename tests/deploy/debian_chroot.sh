# shellcheck shell=bash
# To be sourced. A Debian with nothing but its base system and the dependencies
# of our packages.

# debian_sources: "URI suite component" of what this machine installs from.
debian_sources() {
  # shellcheck disable=SC2016  # apt expands these
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' \
    'Created-By: Packages' 'Origin: Debian' | sort -u
}

# dependencies_of <packages...>: names, without ours.
dependencies_of() {
  local package
  for package in "$@"; do
    dpkg-deb --field "$package" Depends
  done | tr ',' '\n' | sed 's/|.*//; s/(.*//; s/[[:space:]]//g' |
    grep -vx 'clew' | sort -u
}

# make_debian <folder> <dependencies...>
make_debian() {
  local folder=$1 codename mirror
  shift
  codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
  mirror=$(debian_sources | awk -v s="$codename" '$2 == s {print $1; exit}')
  if [[ -z "$mirror" ]]; then
    echo "apt knows no mirror of Debian $codename; 'apt-get update' first?" >&2
    return 1
  fi
  debootstrap --variant=minbase "$codename" "$folder" "$mirror" || return 1
  debian_sources | sed 's/^/deb /' >"$folder/etc/apt/sources.list"
  chroot "$folder" /usr/bin/env -i LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -ec \
    'apt-get update -q
     apt-get install -y -q --no-install-recommends "$@"
     apt-get clean' sh "$@"
}

# debian_chroot <cache folder> <packages folder>: prints the folder of a Debian,
# made now or before. Several minutes and 600 MB the first time.
debian_chroot() {
  local dependencies key
  mapfile -t dependencies < <(dependencies_of "$2"/*.deb)
  key=$(printf '%s\n' "${dependencies[@]}" | sha256sum | cut -c 1-16)
  local folder=$1/$key
  if [[ ! -d "$folder" ]]; then
    command -v debootstrap >/dev/null || {
      echo "no debootstrap; tools/setup installs it" >&2
      return 1
    }
    mkdir -p "$1"
    rm -rf "$folder.partial"
    if ! make_debian "$folder.partial" "${dependencies[@]}" \
      >"$folder.log" 2>&1; then
      tail -n 20 "$folder.log" >&2
      return 1
    fi
    mv "$folder.partial" "$folder"
  fi
  echo "$folder"
}
