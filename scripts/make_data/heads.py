#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Renders heads at known angles, in the layouts of public head pose data. The same files for the same arguments.

    scripts/make_data/heads.py OUT --layout 300wlp     OUT/300W_LP/<group>/<name>.jpg and .mat, OUT/AFLW2000/...
    scripts/make_data/heads.py OUT --layout biwi       OUT/<subject>/frame_00003_rgb.png, frame_00003_pose.txt, rgb.cal

Needs NumPy, OpenCV and, for 300wlp, SciPy. A head is a handful of ellipsoids (skull, jaw, nose, ears, hair) with eyes,
brows and mouth painted on, ray-cast with perspective and shaded; people differ in shape, colours, hair, beard and
glasses, images in pose, light, place and background. Nobody is in both splits.

Camera coordinates are x right, y down, z away; a head at rest looks at the camera and is turned by
Rx(-pitch) Ry(yaw) Rz(roll), right-handed: the rotation whose angles Pose_Para and BIWI's matrices give.
"""
import argparse
import pathlib

import cv2
import numpy as np

SUPERSAMPLING = 2
GROUPS = ("AFW", "HELEN", "IBUG", "LFPW")


def rotation(yaw, pitch, roll):
    """Radians to the 3x3 matrix that turns a head in camera coordinates."""
    cx, sx, cy, sy = np.cos(-pitch), np.sin(-pitch), np.cos(yaw), np.sin(yaw)
    cz, sz = np.cos(roll), np.sin(roll)
    about_x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    about_z = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    return about_x @ about_y @ about_z


class Person:
    """What stays the same in all images of one head. Millimetres; colours are RGB in [0, 1]."""

    def __init__(self, rng):
        self.radii = np.array([75, 112, 96]) * rng.uniform(0.9, 1.1, 3)
        tone = rng.uniform(0.25, 1)
        self.skin = np.array([0.95, 0.76, 0.65]) * tone * rng.uniform(0.93, 1.07, 3)
        self.hair = np.array([0.9, 0.65, 0.4]) * rng.uniform(0.08, 0.9) * rng.uniform(0.8, 1.2, 3)
        self.lips = self.skin * np.array([0.95, 0.6, 0.6]) * rng.uniform(0.8, 1.1)
        self.iris = rng.uniform(0.1, 0.6, 3)
        self.shirt = rng.uniform(0.05, 0.95, 3)
        self.nose = np.array([0.13, 0.23, 0.24]) * rng.uniform(0.75, 1.25, 3)
        self.nose_height = rng.uniform(0.08, 0.16)
        self.jaw = np.array([0.76, 0.62, 0.66]) * rng.uniform(0.92, 1.1, 3)
        self.ear = np.array([0.13, 0.24, 0.16]) * rng.uniform(0.8, 1.2)
        self.eye_apart = rng.uniform(0.32, 0.41)
        self.eye_height = rng.uniform(-0.13, -0.03)
        self.eye = np.array([0.15, 0.075]) * rng.uniform(0.8, 1.2, 2)
        self.brow = rng.uniform(0.02, 0.055)
        self.mouth = np.array([0.27, 0.06]) * rng.uniform(0.75, 1.25, 2)
        self.mouth_height = rng.uniform(0.5, 0.6)
        self.is_bald = rng.random() < 0.12
        self.hair_front = rng.uniform(0.4, 0.62)
        self.hair_back = rng.uniform(0.3, 1.3)
        self.beard = rng.uniform(0.4, 0.9) if rng.random() < 0.25 else 0
        self.glasses = rng.random() < 0.2
        self.waves = rng.normal(size=(6, 3)) * 0.12
        self.phases = rng.uniform(0, 2 * np.pi, 6)


def hit(origin, directions, centre, radii):
    """Distances [n] along the rays to an ellipsoid (inf: missed) whose axes are those of the coordinates."""
    o, d = (origin - centre) / radii, directions / radii
    a, b, c = (d * d).sum(1), d @ o, o @ o - 1
    discriminant = b * b - a * c
    with np.errstate(invalid="ignore"):
        t = (-b - np.sqrt(discriminant)) / a
    return np.where((discriminant > 0) & (t > 0), t, np.inf)


def mix(colours, where, colour, amount=1.0):
    """Lays `colour` over rows of `colours` [n, 3] where `where` [n] is true."""
    colours[where] += amount * (np.asarray(colour) - colours[where])


def ellipse(x, y, centre_x, centre_y, half):
    return ((x - centre_x) / half[0]) ** 2 + ((y - centre_y) / half[1]) ** 2


def paint_face(person, points):
    """Colours [n, 3] of points [n, 3] of the face, in head coordinates."""
    x, y, front = points[:, 0] / person.radii[0], points[:, 1] / person.radii[1], points[:, 2] < 0
    grain = np.sin(points @ person.waves.T + person.phases).sum(1)
    colours = person.skin * (1 + 0.02 * grain[:, None])
    stubble = front & (y > 0.3) & (ellipse(x, y, 0, person.mouth_height, (0.3, 0.09)) > 1)
    if person.beard:
        mix(colours, stubble, person.hair, person.beard)
    for side in (-1, 1):
        at = side * person.eye_apart, person.eye_height
        socket = front & (ellipse(x, y, *at, person.eye * 1.5) < 1)
        mix(colours, socket, person.skin * 0.75, 0.6)
        mix(colours, front & (ellipse(x, y, *at, person.eye) < 1), (0.95, 0.95, 0.95))
        round_half = np.array([0.07, 0.07 * person.radii[0] / person.radii[1]])
        mix(colours, front & (ellipse(x, y, *at, round_half) < 1), person.iris)
        mix(colours, front & (ellipse(x, y, *at, round_half * 0.45) < 1), (0.02, 0.02, 0.02))
        brow = ellipse(x, y, at[0], at[1] - 0.19 + 0.12 * (np.abs(x) - person.eye_apart), (0.2, person.brow))
        mix(colours, front & (brow < 1), person.hair * 0.7)
        if person.glasses:
            ring = ellipse(x, y, *at, (0.24, 0.17))
            mix(colours, front & (ring > 0.8) & (ring < 1.1), (0.05, 0.05, 0.05))
    lips = ellipse(x, y, 0, person.mouth_height, person.mouth)
    mix(colours, front & (lips < 1), person.lips)
    mix(colours, front & (ellipse(x, y, 0, person.mouth_height, person.mouth * (0.9, 0.15)) < 1), (0.2, 0.05, 0.05))
    return colours


def cast(person, turn, place, directions, light):
    """Colours [n, 3] and whether something was hit [n] along rays from the camera."""
    a, b, c = person.radii
    eye = -turn.T @ place  # the camera in head coordinates
    rays = directions @ turn
    jaw_centre = np.array([0, 0.38 * b, -0.24 * c])
    nose_centre = np.array([0, person.nose_height * b, -0.97 * c])
    solids = [("face", eye, rays, np.zeros(3), person.radii),
              ("face", eye, rays, jaw_centre, person.jaw * person.radii),
              ("nose", eye, rays, nose_centre, person.nose * person.radii)]
    for side in (-1, 1):
        solids.append(("ear", eye, rays, np.array([side * 0.98 * a, 0.02 * b, 0.08 * c]), person.ear * person.radii))
    if not person.is_bald:
        solids.append(("hair", eye, rays, np.array([0, -0.05 * b, 0.07 * c]), person.radii * (1.09, 1.06, 1.05)))
    zero = np.zeros(3)
    solids.append(("neck", zero, directions, place + (0, 1.25 * b, 0.2 * c), np.array([0.58 * a, 0.9 * b, 0.58 * a])))
    solids.append(("shirt", zero, directions, place + (0, 2.4 * b, 0.3 * c), np.array([2.4 * a, 1.0 * b, 0.9 * c])))

    nearest = np.full(len(directions), np.inf)
    colours, normals = np.zeros((len(directions), 3)), np.zeros((len(directions), 3))
    for kind, origin, along, centre, radii in solids:
        t = hit(origin, along, centre, radii)
        closer = t < nearest
        points = origin + along[closer] * t[closer][:, None]
        if kind == "hair":  # above a line that falls towards the back
            fall = (person.hair_front + person.hair_back) / 2
            line = b * (fall * points[:, 2] / c + (person.hair_back - person.hair_front) / 2)
            keeps = points[:, 1] < line
            closer[closer] = keeps
            points = points[keeps]
        nearest[closer] = t[closer]
        normal = (points - centre) / radii ** 2
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        normals[closer] = normal if kind in ("neck", "shirt") else normal @ turn.T
        if kind == "face":
            colours[closer] = paint_face(person, points)
        elif kind == "hair":
            strands = np.sin(points[:, 0] * 0.9 + 3 * np.sin(points[:, 1] * 0.07))
            colours[closer] = person.hair * (1 + 0.15 * strands[:, None])
        else:
            colours[closer] = {"nose": person.skin * 1.02, "ear": person.skin * 0.9, "neck": person.skin * 0.85,
                               "shirt": person.shirt}[kind]
    direction, strength, ambient, tint = light
    shade = ambient + strength * np.clip(normals @ direction, 0, 1)
    return colours * shade[:, None] * tint, np.isfinite(nearest)


def background(rng, height, width):
    """Smooth colours with a few straight edges, [height, width, 3] in [0, 1]."""
    coarse = rng.uniform(0, 1, (int(rng.integers(2, 7)), int(rng.integers(2, 7)), 3)).astype(np.float32)
    image = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    for _ in range(int(rng.integers(0, 6))):
        corner = rng.integers(-width // 4, width, 2)
        size = rng.integers(width // 10, width, 2)
        colour = [float(v) for v in rng.uniform(0, 1, 3)]
        cv2.rectangle(image, [int(v) for v in corner], [int(v) for v in corner + size], colour, -1)
    return np.clip(image, 0, 1)


def draw_light(rng):
    direction = np.array([rng.uniform(-1, 1), rng.uniform(-1, 0.4), -rng.uniform(0.6, 1.5)])
    return (direction / np.linalg.norm(direction), rng.uniform(0.4, 0.9), rng.uniform(0.25, 0.55),
            rng.uniform(0.9, 1.1, 3))


def render(rng, person, turn, place, camera, size):
    """uint8 BGR [height, width, 3] of a head at `place` (mm before the camera); camera is a 3x3 matrix in pixels."""
    width, height = size
    image = background(rng, height, width)
    x, y = (camera @ place / place[2])[:2]
    reach = 2.2 * camera[0, 0] * person.radii[1] / place[2]  # around the head; the body continues below
    left, right = (int(np.clip(v, 0, width)) for v in (x - 1.2 * reach, x + 1.2 * reach))
    top = int(np.clip(y - reach, 0, height))
    columns, rows = (right - left) * SUPERSAMPLING, (height - top) * SUPERSAMPLING
    u = left + (np.arange(columns) + 0.5) / SUPERSAMPLING - 0.5
    v = top + (np.arange(rows) + 0.5) / SUPERSAMPLING - 0.5
    grid_u, grid_v = np.meshgrid(u, v)
    rays = np.stack([(grid_u.ravel() - camera[0, 2]) / camera[0, 0], (grid_v.ravel() - camera[1, 2]) / camera[1, 1],
                     np.ones(grid_u.size)], 1)
    colours, is_hit = cast(person, turn, place, rays, draw_light(rng))
    over = np.concatenate([colours * is_hit[:, None], is_hit[:, None]], 1).astype(np.float32)
    over = cv2.resize(over.reshape(rows, columns, 4), (right - left, height - top), interpolation=cv2.INTER_AREA)
    window = image[top:, left:right]
    image[top:, left:right] = over[..., :3] + (1 - over[..., 3:]) * window
    image += rng.normal(size=image.shape).astype(np.float32) * rng.uniform(0, 0.02)
    return np.clip(image[..., ::-1] * 255 + 0.5, 0, 255).astype(np.uint8)


def landmarks(person):
    """[68, 3] points of the head, in head coordinates: jaw, brows, nose, eyes, mouth, where such annotations lie."""
    a, b, c = person.radii
    angle = np.linspace(-np.pi / 2, np.pi / 2, 17)
    jaw = np.stack([0.96 * a * np.sin(angle), b * (0.02 + 0.93 * np.cos(angle)), -0.45 * c * np.cos(angle)], 1)
    flat = []
    for side in (-1, 1):
        flat += [(side * person.eye_apart + d, person.eye_height - 0.19) for d in (-0.18, -0.09, 0, 0.09, 0.18)]
    flat += [(0, y) for y in (-0.1, -0.02, 0.06)] + [(x, person.nose_height + 0.2) for x in (-0.1, -0.05, 0, 0.05, 0.1)]
    for side in (-1, 1):
        for turn in np.linspace(0, 2 * np.pi, 6, endpoint=False):
            flat.append((side * person.eye_apart + person.eye[0] * np.cos(turn),
                         person.eye_height + person.eye[1] * np.sin(turn)))
    for share, count in ((1, 12), (0.7, 8)):
        for turn in np.linspace(0, 2 * np.pi, count, endpoint=False):
            flat.append((share * person.mouth[0] * np.cos(turn),
                         person.mouth_height + share * person.mouth[1] * np.sin(turn)))
    flat = np.array(flat)
    depth = -np.sqrt(np.clip(1 - (flat ** 2).sum(1), 0, 1))
    face = np.column_stack([flat[:, 0] * a, flat[:, 1] * b, depth * c])
    tip = np.array([[0, person.nose_height * b, -(0.97 + person.nose[2]) * c]])
    return np.concatenate([jaw, face[:13], tip, face[13:]])


def project(points, camera):
    """[n, 3] mm in camera coordinates to [n, 2] pixels."""
    seen = points @ camera.T
    return seen[:, :2] / seen[:, 2:]


def write_mat(path, angles, points):
    """A MAT-file of level 5 as 300W-LP's: yaw, pitch, roll in radians; points [68, 2] in MATLAB's pixels from 1."""
    from scipy.io import savemat
    yaw, pitch, roll = angles
    content = {"pt2d": (points + 1).T, "roi": np.array([[1, 1, 1, 1]], np.int16),
               "Pose_Para": np.array([[pitch, yaw, roll, 0, 0, 0, 1e-3]], np.float32)}
    savemat(str(path), content, do_compression=True)
    with open(path, "r+b") as file:  # SciPy writes the time into the description
        file.write(b"MATLAB 5.0 MAT-file, made by heads.py".ljust(116))


def drawn_angles(rng, args):
    """yaw, pitch, roll in radians."""
    return np.radians([rng.uniform(-limit, limit) for limit in (args.yaw, args.pitch, args.roll)])


def make_300wlp(args):
    size = (args.side, args.side)
    focal = 3.0 * args.side
    camera = np.array([[focal, 0, (args.side - 1) / 2], [0, focal, (args.side - 1) / 2], [0, 0, 1]])
    for number in range(args.people + args.val_people):
        person = Person(np.random.default_rng([args.seed, number]))
        is_val = number >= args.people
        folder = args.out / ("AFLW2000" if is_val else f"300W_LP/{GROUPS[number % len(GROUPS)]}")
        folder.mkdir(parents=True, exist_ok=True)
        for frame in range(args.images):
            rng = np.random.default_rng([args.seed, number, frame])
            angles = drawn_angles(rng, args)
            turn = rotation(*angles)
            distance = focal * 150 / (args.side * rng.uniform(0.45, 0.6))  # mm; a head is about 150 wide
            shift = rng.uniform(-0.08, 0.08, 2) * args.side * distance / focal
            place = np.array([shift[0], shift[1] - 10, distance])
            points = project(landmarks(person) @ turn.T + place, camera)
            name = f"image{number:03}_{frame:04}"
            cv2.imwrite(str(folder / f"{name}.jpg"), render(rng, person, turn, place, camera, size),
                        [cv2.IMWRITE_JPEG_QUALITY, 92])
            write_mat(folder / f"{name}.mat", angles, points)


def matrix_text(matrix):
    return "".join(" ".join(f"{v:.9g}" for v in row) + " \n" for row in matrix)


def make_biwi(args):
    """Frames half as large as the Kinect's, so the camera's matrix is halved, too."""
    camera = np.array([[258.8395, 0, 159.75], [0, 258.8395, 120], [0, 0, 1]])
    to_colour = rotation(0.0093, -0.015, -0.0044)  # from the depth camera, as in BIWI: nearly nothing
    shift = np.array([-24.0198, 5.8896, -13.2308])
    calibration = (matrix_text(camera) + "\n0 0 0 0 \n\n" + matrix_text(to_colour) + "\n" + matrix_text([shift]) +
                   "\n320 240\n")
    for number in range(args.people + args.val_people):
        person = Person(np.random.default_rng([args.seed, number]))
        folder = args.out / f"{number + 1:02}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "rgb.cal").write_text(calibration)
        for frame in range(args.images):
            rng = np.random.default_rng([args.seed, number, frame])
            turn = rotation(*drawn_angles(rng, args))
            place = np.array([rng.uniform(-150, 150), rng.uniform(-80, 60), rng.uniform(700, 1000)])
            image = render(rng, person, to_colour @ turn, to_colour @ place + shift, camera, (320, 240))
            cv2.imwrite(str(folder / f"frame_{frame + 3:05}_rgb.png"), image)
            (folder / f"frame_{frame + 3:05}_pose.txt").write_text(matrix_text(turn) + "\n" + matrix_text([place]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--layout", choices=("300wlp", "biwi"), default="300wlp")
    parser.add_argument("--people", type=int, default=64, help="in the training split; biwi: of every three, one is not")
    parser.add_argument("--val-people", type=int, default=16, help="in the other; biwi: more folders")
    parser.add_argument("--images", type=int, default=75, help="per person")
    parser.add_argument("--side", type=int, default=112, help="300wlp: pixels")
    parser.add_argument("--yaw", type=float, default=65, help="largest angle, degrees")
    parser.add_argument("--pitch", type=float, default=35)
    parser.add_argument("--roll", type=float, default=35)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    cv2.setNumThreads(1)
    make_300wlp(args) if args.layout == "300wlp" else make_biwi(args)


if __name__ == "__main__":
    main()
