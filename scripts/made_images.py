# SPDX-License-Identifier: Apache-2.0
"""Small learnable images as PNG files in folders, made from nothing but Python, the same for the same seed."""
import random
import struct
import zlib


def png(side, rows):
    """A gray PNG of `side` x `side` pixels."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    lines = b"".join(b"\0" + row for row in rows)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(lines, 1)) + chunk(b"IEND", b""))


def noise(rng, side, least):
    """Rows of `side` x `side` values in [least, least + 120)."""
    return [bytes(rng.randrange(120) + least for _ in range(side)) for _ in range(side)]


def write_images(folder, count, side, seed, torn=(), shares=(1, 1, 1)):
    """<folder>/class<k>/<number>.png; the brighter, the higher its class. Those in `torn` are half a file. `shares`: of the
    images, by class."""
    rng = random.Random(seed)
    turns = [label for label, share in enumerate(shares) for _ in range(share)]
    for i in range(count):
        label = turns[i % len(turns)]
        content = png(side, noise(rng, side, 40 * label))
        path = folder / f"class{label}" / f"{i:04}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content[:60] if i in torn else content)


def write_clips(folder, count, side, seed, torn=(), frames=4):
    """<folder>/<class>/<video>/frame_<number>.png of two classes: in one of them bright and dark frames take turns. The second
    frame of the videos in `torn` is half a file."""
    rng = random.Random(seed)
    for i in range(count):
        label = i % 2
        video = folder / f"class{label}" / f"{i:04}"
        video.mkdir(parents=True)
        for t in range(frames):
            content = png(side, noise(rng, side, 60 * (t % 2) if label else 30))
            (video / f"frame_{t:04}.png").write_bytes(content[:60] if i in torn and t == 1 else content)
