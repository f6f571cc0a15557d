# Which Debian packages each job needs, and how they get there. Sourced by quickstart, check and .ci/run.

build_packages="clang-19 lld-19 cmake ninja-build pkg-config ca-certificates git
  libboost1.81-dev libboost-json1.81-dev libboost-url1.81-dev libssl-dev libpq-dev libgit2-dev libyaml-cpp-dev libsimdjson-dev
  librabbitmq-dev libcli11-dev zlib1g-dev libdeflate-dev"
run_packages="postgresql-15 git curl ca-certificates"
test_packages="libgtest-dev libgmock-dev libbenchmark-dev pybind11-dev python3-dev python3-yaml openssh-server openssh-client
  rabbitmq-server procps"
format_packages="clang-format-19"

# Installs what is missing of the named packages; needs root or sudo only when something is.
install_packages() {
  missing=
  for p in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing="$missing $p"
  done
  [ -n "$missing" ] || return 0
  as_root=
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "These packages are missing and need root to install:$missing" >&2; exit 1; }
    as_root=sudo
  fi
  echo "Installing:$missing"
  # Debian's own clusters and brokers are not wanted: tests and the embedded server start private ones.
  $as_root mkdir -p /etc/postgresql-common
  [ -e /etc/postgresql-common/createcluster.conf ] || echo "create_main_cluster = false" | $as_root tee /etc/postgresql-common/createcluster.conf >/dev/null
  $as_root apt-get update -qq
  $as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends $missing >/tmp/kubeopera-apt.log 2>&1 || {
    tail -n 20 /tmp/kubeopera-apt.log >&2
    echo "The packages could not be installed; the whole log is in /tmp/kubeopera-apt.log." >&2
    exit 1
  }
}

# Compiler processes that two cores and the machine's memory bear.
build_jobs() {
  cores=$(nproc)
  gib=$(awk '/MemTotal/ {print int($2 / 1048576)}' /proc/meminfo)
  by_memory=$((gib / 2))
  [ "$by_memory" -ge 1 ] || by_memory=1
  [ "$cores" -lt "$by_memory" ] && echo "$cores" || echo "$by_memory"
}
