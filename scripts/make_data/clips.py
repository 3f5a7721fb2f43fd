#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes videos whose two classes differ only over time: <out>/<split>/<real|fake>/<video>/frame_<number>.jpg.

Every identity gives one real and one fake video of the same face, background, motion and sensor noise. All frames of a
video are either bright or dark, half of them each, by the same two factors. In a real video they alternate, frame by
frame, beginning with either; in a fake one their order is drawn at random, without any run of eight frames that
nearly alternates. Every second identity has the orders of the one before with bright and dark exchanged, so that at every
position exactly half of the frames of either class are bright; what else a frame shows is the same in both classes. A
single frame is independent of its class; the order of frames determines it.

Deterministic: every video depends on --seed, its split and its number alone. Needs NumPy, and OpenCV or Pillow.
"""
import argparse
import os
import sys

import numpy as np

try:
    import cv2
except ImportError:
    cv2 = None
    from PIL import Image

WINDOW = 8         # frames: no such run of a fake video alternates more than SWITCHES times
SWITCHES = 4       # of at most WINDOW - 1
BRIGHTNESS = 0.10  # frames are brighter or darker by this share
NOISE = 3.0        # standard deviation of the sensor's noise, of 255


def smooth_noise(rng, size, cells, channels):
    """A random field in [-1, 1], [size, size, channels]: `cells` + 1 random values a side, between them smooth."""
    coarse = rng.uniform(-1, 1, (cells + 1, cells + 1, channels))
    at = np.linspace(0, cells, size, endpoint=False)
    low = at.astype(int)
    share = at - low
    share = share * share * (3 - 2 * share)

    def between(field, axis):
        first, second = np.take(field, low, axis), np.take(field, low + 1, axis)
        shape = [1, 1, 1]
        shape[axis] = size
        weight = share.reshape(shape)
        return first * (1 - weight) + second * weight

    return between(between(coarse, 0), 1)


def ellipse(grid_y, grid_x, centre, radii, softness):
    """1 inside, 0 outside, smooth over about `softness` of the radius."""
    distance = np.sqrt(((grid_y - centre[0]) / radii[0]) ** 2 + ((grid_x - centre[1]) / radii[1]) ** 2)
    return np.clip((1 - distance) / softness + 0.5, 0, 1)[..., None]


def paint(image, mask, colour):
    return image * (1 - mask) + np.asarray(colour) * mask


def face(rng, size):
    """A textured picture of something like a face, float [size, size, 3] in about [0, 255], RGB."""
    y, x = np.mgrid[0:size, 0:size] / size
    image = rng.uniform(40, 170, 3) + 35 * smooth_noise(rng, size, 5, 3) + 12 * smooth_noise(rng, size, 14, 3)
    skin = np.array([rng.uniform(130, 215), 0, 0])
    skin[1] = skin[0] * rng.uniform(0.68, 0.85)
    skin[2] = skin[1] * rng.uniform(0.7, 0.9)
    centre = (0.52 + rng.uniform(-0.04, 0.04), 0.5 + rng.uniform(-0.04, 0.04))
    radii = (rng.uniform(0.34, 0.42), rng.uniform(0.25, 0.32))
    hair = rng.uniform(15, 110) * np.array([1.0, rng.uniform(0.7, 0.9), rng.uniform(0.5, 0.8)])
    image = paint(image, ellipse(y, x, (centre[0] - 0.08, centre[1]), (radii[0] * 1.1, radii[1] * 1.15), 0.1), hair)
    textured_skin = skin + 9 * smooth_noise(rng, size, 10, 1) + 6 * smooth_noise(rng, size, 24, 1)
    mask = ellipse(y, x, centre, radii, 0.08)
    image = image * (1 - mask) + textured_skin * mask
    apart = rng.uniform(0.10, 0.13)
    for side in (-1, 1):
        eye = (centre[0] - 0.07, centre[1] + side * apart)
        image = paint(image, ellipse(y, x, eye, (0.03, 0.052), 0.4), (225, 222, 218))
        image = paint(image, ellipse(y, x, eye, (0.026, 0.026), 0.4), hair * 0.6)
        image = paint(image, ellipse(y, x, (eye[0] - 0.06, eye[1]), (0.012, 0.065), 0.6), hair * 0.8)
    image = paint(image, ellipse(y, x, (centre[0] + 0.06, centre[1]), (0.05, 0.022), 0.8), skin * 0.85)
    image = paint(image, ellipse(y, x, (centre[0] + 0.19, centre[1]), (0.025, rng.uniform(0.06, 0.1)), 0.5),
                  (skin[0] * 0.85, skin[1] * 0.55, skin[2] * 0.6))
    return image


def shifted(image, dy, dx):
    """Moved by less than a few pixels, bilinear, edges repeated."""
    size = image.shape[0]

    def moved(field, axis, shift):
        at = np.clip(np.arange(size) + shift, 0, size - 1)
        low = np.minimum(at.astype(int), size - 2)
        shape = [1, 1, 1]
        shape[axis] = size
        share = (at - low).reshape(shape)
        return np.take(field, low, axis) * (1 - share) + np.take(field, low + 1, axis) * share

    return moved(moved(image, 0, dy), 1, dx)


def alternating(rng, frames):
    return (np.arange(frames) + rng.integers(2)) % 2


def disordered(rng, frames):
    """As many bright frames as alternating() has, in an order that is drawn again until it hardly alternates."""
    order = np.arange(frames) % 2
    while True:
        rng.shuffle(order)
        switches = np.abs(np.diff(order))
        span = min(WINDOW, frames) - 1
        if max(switches[i:i + span].sum() for i in range(frames - span)) <= SWITCHES:
            return order


def video_pair(rng, orders, size, frames):
    """The frames of a real and of a fake video of one identity, uint8 [frames, size, size, 3] each, by class."""
    base = face(rng, size)
    phase, speed = rng.uniform(0, 2 * np.pi, 2), rng.uniform(0.3, 0.8, 2)
    reach = rng.uniform(0.5, 1.5, 2) * size / 64
    shifts = reach * np.sin(phase + speed * np.arange(frames)[:, None])
    grain = rng.normal(0, NOISE, (frames, size, size, 3))
    videos = {}
    for name, order in orders.items():
        gains = 1 + BRIGHTNESS * (2 * order - 1)
        videos[name] = np.stack([
            np.clip(np.rint(gains[t] * shifted(base, *shifts[t]) + grain[t]), 0, 255).astype(np.uint8)
            for t in range(frames)])
    return videos


def write_jpeg(path, image, quality):
    if cv2 is not None:
        if not cv2.imwrite(path, np.ascontiguousarray(image[..., ::-1]), [cv2.IMWRITE_JPEG_QUALITY, quality]):
            sys.exit(f"cannot write {path}")
    else:
        Image.fromarray(image).save(path, quality=quality)


def make_split(options, split, videos, number):
    for identity in range(videos // 2):
        of_two = np.random.Generator(np.random.PCG64([options.seed, number, 0, identity // 2]))
        orders = {"real": alternating(of_two, options.frames), "fake": disordered(of_two, options.frames)}
        if identity % 2 == 1:
            orders = {name: 1 - order for name, order in orders.items()}
        rng = np.random.Generator(np.random.PCG64([options.seed, number, 1, identity]))
        for name, frames in video_pair(rng, orders, options.size, options.frames).items():
            folder = os.path.join(options.out, split, name, f"video_{identity:05d}")
            os.makedirs(folder, exist_ok=True)
            for t, frame in enumerate(frames):
                write_jpeg(os.path.join(folder, f"frame_{t + 1:04d}.jpg"), frame, options.quality)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", help="folder to write to; gets train/ and val/")
    parser.add_argument("--train", type=int, default=800, help="training videos, in fours (%(default)s)")
    parser.add_argument("--val", type=int, default=200, help="validation videos of other identities, in fours (%(default)s)")
    parser.add_argument("--frames", type=int, default=12, help="frames of a video, even (%(default)s)")
    parser.add_argument("--size", type=int, default=64, help="pixels a side (%(default)s)")
    parser.add_argument("--quality", type=int, default=92, help="of the JPEGs (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.train % 4 != 0 or options.val % 4 != 0:
        parser.error("--train and --val must be multiples of 4: two classes, and bright and dark exchanged")
    if options.frames % 2 != 0 or options.frames < 6:
        parser.error("--frames must be even, and at least 6")
    for number, (split, videos) in enumerate((("train", options.train), ("val", options.val))):
        make_split(options, split, videos, number)
    print(f"{options.out}: {options.train} training and {options.val} validation videos of {options.frames} frames")


if __name__ == "__main__":
    main()
