#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two machines on one: network namespaces with nothing in common but a cable, which delays and limits what goes through it:
# a veth pair with tc's netem, or slow_cable.py where the kernel has no netem. They see the same files. As root; Debian's
# package iproute2.
#
#   scripts/starters/two_machines.sh start [MS [MBIT]]   1 ms in each direction and 1000 Mbit/s by default
#   scripts/starters/two_machines.sh in a CMD...         on the machine a, which is 10.77.0.1
#   scripts/starters/two_machines.sh in b CMD...         on the machine b, which is 10.77.0.2
#   scripts/starters/two_machines.sh cut                 the cable is pulled out: all is lost, but nothing is closed
#   scripts/starters/two_machines.sh stop
set -eu
usage() { sed -n '3,11s/^# \{0,1\}//p' "$0" >&2; exit 64; }
here=$(cd "$(dirname "$0")" && pwd)
a=stoker-a
b=stoker-b
cable=/run/stoker-cable.pid

start() {
  for name in $a $b; do
    ip netns add $name
    ip -n $name link set lo up
  done
  ip link add eth0 netns $a type veth peer name eth0 netns $b
  how="veth pair with netem"
  for name in $a $b; do
    ip netns exec $name tc qdisc add dev eth0 root netem delay "$1ms" rate "$2mbit" limit 10000 2>/dev/null || how=relay
  done
  if [ "$how" = relay ]; then
    how="slow_cable.py: this kernel has no netem"
    ip -n $a link delete eth0
    python3 "$here/slow_cable.py" --ends $a $b --delay-ms "$1" --rate-mbit "$2" >/run/stoker-cable.log 2>&1 &
    echo $! > $cable
    for _ in $(seq 100); do ! grep -q ready /run/stoker-cable.log || break; sleep 0.1; done
  fi
  ip -n $a address add 10.77.0.1/24 dev eth0
  ip -n $b address add 10.77.0.2/24 dev eth0
  for name in $a $b; do ip -n $name link set eth0 up; done
  echo "10.77.0.1 and 10.77.0.2, $1 ms and $2 Mbit/s in each direction ($how)"
}

stop() {
  if [ -s $cable ]; then
    kill "$(cat $cable)" 2>/dev/null || true
    rm -f $cable
  fi
  for name in $a $b; do
    ! ip netns list | grep -q "^$name\b" || ip netns delete $name
  done
}

case ${1:-} in
  start) stop; start "${2:-1}" "${3:-1000}" ;;
  stop) stop ;;
  cut) for name in $a $b; do  # no packet is as small as its bucket
      ip netns exec $name tc qdisc replace dev eth0 root tbf rate 8bit burst 1 limit 1
    done ;;
  in)
    [ $# -ge 3 ] || usage
    name=stoker-$2
    shift 2
    exec ip netns exec "$name" "$@" ;;
  *) usage ;;
esac
