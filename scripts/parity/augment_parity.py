#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the operations of augmentation with torchvision's on the same pixels. Needs torchvision and Pillow.

Every operation runs through the test tool augment_tool (built with the tests) and through torchvision.transforms on
PIL images, on gray and RGB images: a made pattern, noise, and with --images the middle of real ones. Prints per
operation how many bytes are equal and the largest difference; ends with 1 when an operation is further off than it
promises. With --golden it prints the numbers of tests/data/transform/augment_golden.h instead.

    scripts/parity/augment_parity.py --tool build/release/tests/data/augment_tool [--images DIR]
"""
import argparse
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import PIL
import torch
import torchvision
from PIL import Image
from torchvision.transforms import InterpolationMode, autoaugment
from torchvision.transforms import functional as F

WAYS = (InterpolationMode.NEAREST, InterpolationMode.BILINEAR)
OPERATIONS = ("Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast",
              "Sharpness", "Posterize", "Solarize", "AutoContrast", "Equalize")


def pattern(height, width, channels):
    """pattern_pixels() of tests/data/made_data.cpp."""
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(channels), indexing="ij")
    return (x * 7 + y * 13 + c * 29 + x * y % 11 * 5 + x * x // 3).astype(np.uint8)


def dimmed_pattern(height, width, channels):
    return (pattern(height, width, channels) // 2 + 40).astype(np.uint8)


def digest(pixels):
    value = 0
    for byte in pixels.tobytes():
        value = (value * 31 + byte) & 0xFFFFFFFF
    return value


def to_pil(pixels):
    return Image.fromarray(pixels[:, :, 0], "L") if pixels.shape[2] == 1 else Image.fromarray(pixels, "RGB")


def from_pil(image):
    pixels = np.asarray(image)
    return pixels[:, :, None] if pixels.ndim == 2 else pixels


def policy_operation(image, number, space, level, sign, way):
    """One operation of RandAugment (space 0), TrivialAugmentWide (1) or AugMix (2), as their forward() applies it."""
    if space == 0:
        meta = autoaugment.RandAugment()._augmentation_space(31, (image.height, image.width))
    elif space == 1:
        meta = autoaugment.TrivialAugmentWide()._augmentation_space(31)
    else:
        meta = autoaugment.AugMix()._augmentation_space(10, (image.height, image.width))
    assert set(meta) | {"Identity"} == set(OPERATIONS), "another list of operations"
    magnitudes, signed = meta[OPERATIONS[number]]
    magnitude = float(magnitudes[level].item()) if magnitudes.ndim > 0 else 0.0
    return autoaugment._apply_op(image, OPERATIONS[number], sign * magnitude if signed else magnitude, WAYS[way], None)


def affine(image, degrees, right, down, scale, shear, way):
    return F.affine(image, -degrees, [int(right), int(down)], scale, [shear, 0], WAYS[way])


def perspective(image, *numbers):
    """torchvision's F.perspective with its coefficients in double precision, as since torchvision 0.15."""
    ends, right, bottom = np.array(numbers[:8]).reshape(4, 2), image.width - 1, image.height - 1
    rows, sides = [], []
    for (x, y), (from_x, from_y) in zip(ends, ((0, 0), (right, 0), (right, bottom), (0, bottom))):
        rows += [[x, y, 1, 0, 0, 0, -from_x * x, -from_x * y], [0, 0, 0, x, y, 1, -from_y * x, -from_y * y]]
        sides += [from_x, from_y]
    coefficients = np.linalg.solve(np.array(rows), np.array(sides))
    resample = (Image.NEAREST, Image.BILINEAR)[numbers[8]]
    return image.transform(image.size, Image.PERSPECTIVE, list(coefficients), resample)


THEIRS = {
    "vflip": F.vflip,
    "affine": affine,
    "perspective": perspective,
    "brightness": F.adjust_brightness,
    "contrast": F.adjust_contrast,
    "saturation": F.adjust_saturation,
    "hue": F.adjust_hue,
    "sharpness": F.adjust_sharpness,
    "grayscale": lambda image: F.to_grayscale(image, len(image.getbands())),
    "posterize": lambda image, bits: F.posterize(image, int(bits)),
    "solarize": F.solarize,
    "autocontrast": F.autocontrast,
    "equalize": F.equalize,
    "quarters": lambda image, turns: F.rotate(image, 90 * turns),
    "rotate": lambda image, degrees, way: F.rotate(image, degrees, WAYS[way]),
    "blur": lambda image, kernel, sigma: F.gaussian_blur(image, [kernel, kernel], [sigma, sigma]),
    "operation": policy_operation,
}


class Tool:
    """Our side: the test tool on a pipe."""

    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def apply(self, operation, pixels, numbers):
        words = [operation, *map(str, pixels.shape)] + [repr(float(n)) for n in numbers]
        self.process.stdin.write((" ".join(words) + "\n").encode() + pixels.tobytes())
        self.process.stdin.flush()
        return np.frombuffer(self.process.stdout.read(pixels.size), np.uint8).reshape(pixels.shape)


def cases():
    """(name, operation, numbers, largest difference that is promised)."""
    factors = (0, 0.1, 0.37, 0.5, 0.9, 1, 1.1, 1.27, 1.9, 2.5)
    for operation in ("brightness", "contrast", "saturation", "sharpness"):
        for factor in factors:
            yield operation, operation, (factor,), 0
    for turn in (-0.5, -0.31, -0.1, -0.001, 0, 0.004, 0.05, 0.1, 0.25, 0.5):
        yield "hue", "hue", (turn,), 0
    for operation in ("grayscale", "autocontrast", "equalize"):
        yield operation, operation, (), 0
    for bits in range(1, 9):
        yield "posterize", "posterize", (bits,), 0
    for threshold in (0, 1, 127.5, 200, 255, 256):
        yield "solarize", "solarize", (threshold,), 0
    for turns in (1, 2, 3):
        yield "quarter turns", "quarters", (turns,), 0
    for degrees in (-179.3, -90.01, -45, -13.7, -0.2, 0.1, 5, 30, 61.23, 120.5, 171):
        yield "rotate nearest", "rotate", (degrees, 0), 0
        yield "rotate bilinear", "rotate", (degrees, 1), 1
    yield "vertical flip", "vflip", (), 0
    for degrees, right, down, scale, shear in ((0, 3, -5, 1, 0), (13, 0, 7, 0.6, 0), (-40, -9, 2, 1.7, 12),
                                               (0, 0, 0, 1.2, -30), (5, 20, 1, 0.3, 4)):
        yield "affine nearest", "affine", (degrees, right, down, scale, shear, 0), 0
        yield "affine bilinear", "affine", (degrees, right, down, scale, shear, 1), 1
    for moved in ((0, 0, 60, 0, 60, 60, 0, 60), (3, 9, 51, 2, 47, 60, 14, 55), (15, 0, 46, 12, 60, 46, 1, 59)):
        yield "perspective nearest", "perspective", (*moved, 0), 0
        yield "perspective bilinear", "perspective", (*moved, 1), 0
    for kernel, sigma in ((3, 0.1), (3, 0.8), (5, 1.2), (9, 2.0), (23, 0.1), (23, 0.9), (23, 2.0), (23, 30.0)):
        yield "blur", "blur", (kernel, sigma), 1
    for space, name in ((0, "RandAugment"), (1, "TrivialAugment")):
        for number, operation in enumerate(OPERATIONS):
            moves = 1 <= number <= 5
            for level in (1, 4, 9, 14, 15, 16, 23, 30):
                for sign in (1, -1):
                    for way in (0, 1) if moves else (0,):
                        yield (f"{name} {operation}" + (" bilinear" if way else ""), "operation",
                               (number, space, level, sign, way), way)


    for number, operation in list(enumerate(OPERATIONS))[1:]:
        for level in (0, 1, 2, 5, 9):
            for sign in (1, -1):
                for way in (0, 1) if number <= 5 else (0,):
                    yield (f"AugMix {operation}" + (" bilinear" if way else ""), "operation",
                           (number, 2, level, sign, way), way)


def test_images(folder, height, width):
    rng = np.random.default_rng(1)
    for channels in (1, 3):
        yield pattern(height, width, channels)
        yield rng.integers(0, 256, (height, width, channels), np.uint8)
        yield (pattern(height, width, channels) // 4 + 90).astype(np.uint8)
    for path in sorted(pathlib.Path(folder).iterdir())[:6] if folder else []:
        image = Image.open(path).convert("RGB").resize((width, height), Image.BILINEAR)
        yield np.asarray(image)
        yield np.asarray(image.convert("L"))[:, :, None]


def compare(tool, images):
    """Per name: cases, bytes, equal bytes, largest difference, promised difference."""
    rows = {}
    for name, operation, numbers, promised in cases():
        for pixels in images:
            if operation == "quarters" and numbers[0] != 2 and pixels.shape[0] != pixels.shape[1]:
                continue  # it would have another shape
            theirs = from_pil(THEIRS[operation](to_pil(pixels), *numbers)).astype(np.int16)
            difference = np.abs(tool.apply(operation, pixels, numbers).astype(np.int16) - theirs)
            row = rows.setdefault(name, [0, 0, 0, 0, promised])
            row[0] += 1
            row[1] += difference.size
            row[2] += int((difference == 0).sum())
            row[3] = max(row[3], int(difference.max()))
    name = "perspective nearest"  # a position between two pixels is either's
    if rows[name][1] - rows[name][2] <= 0.001 * rows[name][1]:
        rows[name][4] = 255
    return rows


def all_colours():
    """Every RGB value once: 4096 x 4096."""
    number = np.arange(1 << 24, dtype=np.uint32).reshape(4096, 4096)
    return np.stack([number >> 16, number >> 8 & 255, number & 255], axis=2).astype(np.uint8)


def golden_cases():
    yield "brightness", (1.37,)
    yield "brightness", (0.4,)
    yield "contrast", (1.6,)
    yield "contrast", (0.3,)
    yield "saturation", (1.7,)
    yield "saturation", (0.35,)
    yield "hue", (0.1,)
    yield "hue", (-0.37,)
    yield "sharpness", (1.9,)
    yield "sharpness", (0.1,)
    yield "grayscale", ()
    yield "posterize", (3,)
    yield "solarize", (100.5,)
    yield "autocontrast", ()
    yield "equalize", ()
    yield "quarters", (1,)
    yield "quarters", (2,)
    yield "quarters", (3,)
    yield "rotate", (30, 0)
    yield "rotate", (-101.5, 0)
    yield "vflip", ()
    yield "affine", (-20, 3, -2, 0.8, 10, 0)
    yield "perspective", (1.5, 3.25, 21.125, 0.5, 23.25, 17.125, 2.5, 18.75, 1)
    for number in range(len(OPERATIONS)):
        yield "operation", (number, 0, 9, 1, 0)
        yield "operation", (number, 1, 22, -1, 0)


def words(numbers, form="{}"):
    return ", ".join(form.format(number) for number in numbers)


def print_golden():
    print("// SPDX-License-Identifier: Apache-2.0")
    print(f"// Made by scripts/parity/augment_parity.py --golden with torchvision {torchvision.__version__} and Pillow "
          f"{PIL.__version__}.\n#pragma once\n\n#include <cstdint>\n#include <vector>\n\nnamespace stoker::data {{\n")
    print("struct GoldenDigest {\n  const char* operation;\n  std::vector<double> numbers;\n"
          "  uint32_t gray, rgb;  ///< of the pattern image, 24 x 24, halved and made 40 brighter\n"
          "  uint32_t wide;       ///< of such an RGB image, 20 high and 28 wide; 0: it would have another shape\n};\n")
    print("inline const GoldenDigest kGoldenDigests[] = {")
    for operation, numbers in golden_cases():
        images = [dimmed_pattern(24, 24, 1), dimmed_pattern(24, 24, 3), dimmed_pattern(20, 28, 3)]
        results = [from_pil(THEIRS[operation](to_pil(image), *numbers)) for image in images]
        gray, rgb, wide = map(digest, results)
        if operation == "quarters" and numbers[0] != 2:
            wide = 0  # turned, it would have another shape
        print(f'    {{"{operation}", {{{words(numbers, "{:g}")}}}, {gray}u, {rgb}u, {wide}u}},')
    print("};\n\nstruct GoldenPixels {\n  const char* operation;\n  std::vector<double> numbers;\n"
          "  std::vector<int> gray;  ///< of the pattern image, 12 x 12\n};\n")
    print("inline const GoldenPixels kGoldenPixels[] = {")
    for operation, numbers in (("rotate", (30, 1)), ("operation", (1, 0, 9, 1, 1)), ("operation", (5, 1, 22, -1, 1)),
                               ("blur", (5, 1.2)), ("blur", (23, 0.7))):
        pixels = from_pil(THEIRS[operation](to_pil(pattern(12, 12, 1)), *numbers)).flatten()
        text = textwrap.fill(words(pixels), 104, initial_indent="      ", subsequent_indent="      ")
        print(f'    {{"{operation}",\n     {{{words(numbers, "{:g}")}}},\n     {{\n{text}}}}},')
    print("};\n\nstruct GoldenMagnitudes {\n  int operation, space;\n"
          "  std::vector<double> at;  ///< at levels 1, 9, 15 and 30 of images of 224 pixels\n};\n")
    print("inline const GoldenMagnitudes kGoldenMagnitudes[] = {")
    for space, policy in enumerate((autoaugment.RandAugment()._augmentation_space(31, (224, 224)),
                                    autoaugment.TrivialAugmentWide()._augmentation_space(31))):
        for number, (magnitudes, _) in enumerate(policy.values()):
            if magnitudes.ndim > 0:
                levels = [float(magnitudes[level]) for level in (1, 9, 15, 30)]
                print(f"    {{{number}, {space}, {{{words(levels, '{!r}')}}}}},")
    print("};\n\n}  // namespace stoker::data")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", default="build/release/tests/data/augment_tool")
    parser.add_argument("--images", help="folder of images to compare on, besides made ones")
    parser.add_argument("--size", default="61,61", help="HEIGHT,WIDTH of the images")
    parser.add_argument("--all-colours", action="store_true", help="hue and saturation on each of the 16,777,216 colours")
    parser.add_argument("--golden", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.golden:
        print_golden()
        return 0
    tool = Tool(arguments.tool)
    rows = compare(tool, list(test_images(arguments.images, *map(int, arguments.size.split(",")))))
    if arguments.all_colours:
        colours = all_colours()
        for operation, number in (("hue", 0.1), ("hue", -0.37), ("saturation", 1.7), ("saturation", 0.35)):
            if operation == "quarters" and numbers[0] != 2 and pixels.shape[0] != pixels.shape[1]:
                continue  # it would have another shape
            theirs = from_pil(THEIRS[operation](to_pil(colours), number)).astype(np.int16)
            difference = np.abs(tool.apply(operation, colours, (number,)).astype(np.int16) - theirs)
            rows[f"{operation} {number:g}, all colours"] = [1, difference.size, int((difference == 0).sum()),
                                                            int(difference.max()), 0]
    print(f"{'operation':34} {'cases':>6} {'bytes equal':>12} {'largest difference':>19} {'promised':>9}")
    for name, (count, size, equal, largest, promised) in rows.items():
        print(f"{name:34} {count:6} {100 * equal / size:11.3f}% {largest:19} {promised:9}")
    return 1 if any(row[3] > row[4] for row in rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
