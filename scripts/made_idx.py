# SPDX-License-Identifier: Apache-2.0
"""Small learnable data sets in IDX files, made from nothing, the same for the same seed."""
import random
import struct


def write_idx(folder, stem, count, side, seed):
    """`count` gray images of `side` x `side` whose class, 0 to 3, shows as a bright quadrant under noise."""
    rng = random.Random(seed)
    labels = bytes(rng.randrange(4) for _ in range(count))
    pixels = bytearray()
    for label in labels:
        for y in range(side):
            for x in range(side):
                bright = 90 if (y * 2 // side) * 2 + x * 2 // side == label else 0
                pixels.append(bright + rng.randrange(120))
    (folder / f"{stem}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, count, side, side) + pixels)
    (folder / f"{stem}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, count) + labels)
