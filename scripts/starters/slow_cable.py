#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A cable between two network namespaces that delays and limits what goes through it: for kernels without tc's netem.

    scripts/starters/slow_cable.py --ends stoker-a stoker-b --delay-ms 1 --rate-mbit 1000

makes a TUN device `eth0` in each namespace and carries packets from one to the other until it is killed. Each packet of n
bytes occupies its direction for 8 n / rate seconds, and arrives `delay` after that. Writes "ready" once the devices are
there. two_machines.sh starts it, and gives the devices their addresses.
"""
import argparse
import collections
import ctypes
import fcntl
import os
import select
import struct
import time

MTU = 9000  # bytes: jumbo frames, fewer packets for a relay in Python
QUEUE = 64 << 20  # bytes that wait in one direction; what comes beyond is lost
TUNSETIFF, IFF_TUN, IFF_NO_PI, CLONE_NEWNET = 0x400454CA, 0x0001, 0x1000, 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def enter(path):
    with open(path) as namespace:
        if libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns {path}")


def open_device(namespace):
    enter(f"/run/netns/{namespace}")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"eth0", IFF_TUN | IFF_NO_PI))
    os.system(f"ip link set eth0 mtu {MTU}")
    return device


class Direction:
    def __init__(self, source, sink, delay, rate):
        self.source, self.sink, self.delay, self.rate = source, sink, delay, rate
        self.waiting = collections.deque()  # (time of arrival, packet)
        self.bytes = 0
        self.free_at = 0.0  # when the last packet has left

    def take(self):
        for _ in range(256):
            try:
                packet = os.read(self.source, MTU + 64)
            except BlockingIOError:
                return
            if self.bytes + len(packet) > QUEUE:
                continue
            self.free_at = max(self.free_at, time.monotonic()) + 8 * len(packet) / self.rate
            self.waiting.append((self.free_at + self.delay, packet))
            self.bytes += len(packet)

    def deliver(self):
        """Returns the seconds until the next packet arrives; None: none is under way."""
        while self.waiting:
            wait = self.waiting[0][0] - time.monotonic()
            if wait > 0:
                return wait
            packet = self.waiting.popleft()[1]
            self.bytes -= len(packet)
            try:
                os.write(self.sink, packet)
            except OSError:  # the device is down or full: lost
                pass
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ends", nargs=2, required=True)
    parser.add_argument("--delay-ms", type=float, default=1)
    parser.add_argument("--rate-mbit", type=float, default=1000)
    args = parser.parse_args()
    devices = [open_device(name) for name in args.ends]
    print("ready", flush=True)
    directions = {devices[i]: Direction(devices[i], devices[1 - i], args.delay_ms / 1000, args.rate_mbit * 1e6)
                  for i in (0, 1)}
    while True:
        waits = [wait for wait in (direction.deliver() for direction in directions.values()) if wait is not None]
        for device in select.select(devices, [], [], min(waits) if waits else None)[0]:
            directions[device].take()


if __name__ == "__main__":
    main()
