# Sourced by jobs/quickstart and tests/run: installs what is missing and builds. Both are quick when run again.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# install_packages FILE …: the Debian packages listed in the files, one a line, that are not there yet.
install_packages() {
  local missing=() package as_root=()
  while read -r package; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done < <(cat "$@")
  [ ${#missing[@]} -eq 0 ] && return
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "troupe: these Debian packages are missing, and this user is neither root nor has sudo; have them installed: ${missing[*]}" >&2
      exit 2
    fi
    as_root=(sudo)
  fi
  echo "troupe: installing ${#missing[@]} packages" >&2
  "${as_root[@]}" apt-get -qq update >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" </dev/null >/dev/null
}

# build PRESET [TARGET …]
build() {
  local preset=$1 log
  shift
  cd "$root"
  # Configured once; ninja configures again by itself when a CMake file changes.
  if [ ! -f "build/$preset/build.ninja" ]; then
    log=$(cmake --preset "$preset" 2>&1) || { echo "$log" >&2; exit 1; }
  fi
  cmake --build "build/$preset" ${1:+--target "$@"} >&2
}
