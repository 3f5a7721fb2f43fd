#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads shards as Python programs do that know WebDataset's convention and nothing of ours, and compares them with
the class folders that were packed.

    read_shards.py PACKED_FOLDER LOOSE_FOLDER SPLIT

Members that follow each other and share their name up to the first dot of the file name are one sample; what follows
that dot, in lower case, is the kind of a member. Needs Python's standard library only. Exits with 1 at a difference.
"""
import pathlib
import re
import sys
import tarfile

MEMBER = re.compile(r"((?:.*/)?[^./][^./]*)\.([^/]*)\Z", re.DOTALL)
IMAGES = ("jpg", "jpeg", "png", "webp", "bmp")


def samples(shard):
    """(key, {kind: bytes}) of each sample of an archive that is read as a stream."""
    key, content = None, {}
    with tarfile.open(shard, mode="r|") as archive:
        for member in archive:
            match = MEMBER.match(member.name)
            if not member.isreg() or not match:
                raise SystemExit(f"{shard}: {member.name}: no member of a sample")
            if match[1] != key:
                if key is not None:
                    yield key, content
                key, content = match[1], {}
            kind = match[2].lower()
            if kind in content:
                raise SystemExit(f"{shard}: {member.name}: twice in one sample")
            content[kind] = archive.extractfile(member).read()
    if key is not None:
        yield key, content


def main():
    packed, loose, split = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    classes = (packed / "classes.txt").read_text(encoding="utf-8").splitlines()
    wanted = sorted((path for path in (loose / split).rglob("*") if path.is_file()),
                    key=lambda path: [part.encode() for part in path.relative_to(loose / split).parts])
    found, keys = [], set()
    for shard in sorted(packed.glob(f"{split}-*.tar")):
        for key, content in samples(shard):
            kinds = [kind for kind in content if kind in IMAGES]
            if key in keys or len(kinds) != 1 or set(content) != {kinds[0], "cls"}:
                raise SystemExit(f"{shard}: sample {key} has {sorted(content)}, or stood there before")
            keys.add(key)
            found.append((classes[int(content["cls"])], content[kinds[0]], key))
    if len(found) != len(wanted):
        raise SystemExit(f"{len(found)} samples in shards, {len(wanted)} loose files")
    for path, (name, image, key) in zip(wanted, found):
        if path.relative_to(loose / split).parts[0] != name or path.read_bytes() != image:
            raise SystemExit(f"sample {key} is not {path}")
    print(f"{len(found)} samples of split {split}: names, order, labels and bytes are those of the loose files")


if __name__ == "__main__":
    main()
