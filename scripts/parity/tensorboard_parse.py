#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads TensorBoard event files with nothing but Python: framing, checksums, protobuf wire format.

usage: tensorboard_parse.py FOLDER_OR_FILE...     prints tag, step and value of every scalar that a reader keeps
       tensorboard_parse.py --golden              prints what tests/observe/observers/event_file_test.cpp expects

A second implementation on purpose: it shares no line with lib/observe/observers/tensorboard.cpp. Ends with 1 and a reason when a
checksum, a frame or a message is wrong, or when a step of a tag stands there twice.
"""
import os
import struct
import sys


def crc32c(data):
    """Bit by bit, as RFC 3720 defines it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    while at < len(data):
        if len(data) - at < 12:
            return  # the process was killed while it wrote: readers stop here
        length, check = struct.unpack_from("<QI", data, at)
        if check != masked(data[at:at + 8]):
            sys.exit(f"{path}: byte {at}: the checksum of the length is wrong")
        payload = data[at + 12:at + 12 + length]
        if len(data) < at + 16 + length:
            return
        if struct.unpack_from("<I", data, at + 12 + length)[0] != masked(payload):
            sys.exit(f"{path}: byte {at}: the checksum of the payload is wrong")
        yield payload
        at += 16 + length


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(message):
    """(number, value) of each field: integers, raw 4 or 8 bytes, or bytes."""
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(message, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = message[at:at + size], at + size
        elif kind == 2:
            size, at = varint(message, at)
            value, at = message[at:at + size], at + size
        else:
            sys.exit(f"wire type {kind} is not used by the schema")
        if at > len(message):
            sys.exit("a message ends in the middle of a field")
        yield key >> 3, value


def read_folder(paths):
    """Scalars by (tag, step) after restarts have dropped what is gone through again; seconds by step."""
    scalars = []
    versions = 0
    for path in paths:
        for number, payload in enumerate(records(path)):
            event = dict(fields(payload))
            seconds, = struct.unpack("<d", event[1])
            if not 1e9 < seconds < 1e10:
                sys.exit(f"{path}: wall time {seconds}")
            if number == 0:
                if event.get(3) != b"brain.Event:2":
                    sys.exit(f"{path}: the first record names no version")
                versions += 1
            if 7 in event and dict(fields(event[7])).get(1) == 1:  # SessionLog.START
                scalars = [row for row in scalars if row[1] < event[2]]
            for field, value in fields(event.get(5, b"")):
                if field == 1:
                    parts = dict(fields(value))
                    scalars.append((parts[1].decode(), event[2], struct.unpack("<f", parts[2])[0]))
    return scalars, versions


def golden():
    def field(number, kind, content):
        return bytes([number << 3 | kind]) + content

    def frame(payload):
        length = struct.pack("<Q", len(payload))
        return length + struct.pack("<I", masked(length)) + payload + struct.pack("<I", masked(payload))

    def counted(content):
        return bytes([len(content)]) + content

    time = field(1, 1, struct.pack("<d", 1700000000.5))
    step = field(2, 0, b"\xac\x02")  # 300
    value = field(1, 2, counted(b"train/loss")) + field(2, 5, struct.pack("<f", 0.25))
    print("version", frame(time + field(3, 2, counted(b"brain.Event:2"))).hex())
    print("restart", frame(time + step + field(7, 2, counted(field(1, 0, b"\x01")))).hex())
    print("scalars", frame(time + step + field(5, 2, counted(field(1, 2, counted(value))))).hex())


def main():
    if sys.argv[1:] == ["--golden"]:
        return golden()
    paths = []
    for argument in sys.argv[1:]:
        if os.path.isdir(argument):
            paths += sorted(os.path.join(argument, name) for name in os.listdir(argument) if "tfevents" in name)
        else:
            paths.append(argument)
    if not paths:
        sys.exit(__doc__)
    scalars, files = read_folder(paths)
    seen = set()
    for tag, step, value in scalars:
        if (tag, step) in seen:
            sys.exit(f"{tag}: step {step} stands there twice")
        seen.add((tag, step))
        print(f"{tag}\t{step}\t{value:.9g}")
    print(f"{files} files, {len(scalars)} scalars", file=sys.stderr)


if __name__ == "__main__":
    main()
