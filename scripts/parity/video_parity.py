#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes videos with ffmpeg in many ways and compares the frames that the program reads with ffmpeg's, byte for byte, in
order, backwards and at random. Needs ffmpeg with libx264, libvpx; others where it has them.

    scripts/parity/video_parity.py --tool build/release/tests/data/video_tool [--work FOLDER]

H.264, HEVC, MPEG-4, VP8, VP9, AV1, MJPEG, FFV1; constant and variable rate, B-frames, open groups of pictures, edit lists,
turned and mirrored pictures, odd sizes, matrices and ranges of colours, 10 bits. Damaged files, those cut short and those
with sound alone must be named. Ends with 1 where something differs.
"""
import argparse
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np


def run(*words, check=True):
    result = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if check and result.returncode != 0:
        raise RuntimeError(" ".join(str(word) for word in words) + "\n" + result.stderr.decode()[-2000:])
    return result.stdout


def ffmpeg(*words):
    return run("ffmpeg", "-v", "error", "-nostdin", "-y", "-threads", 1, *words)


def source(size="96x64", rate=25, seconds=2, kind="testsrc2"):
    return ["-f", "lavfi", "-i", f"{kind}=size={size}:rate={rate}:duration={seconds}"]


X264 = ["-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p"]
GOOD = {  # name: words for ffmpeg between its input and the file; or (input, words)
    "h264.mp4": X264 + ["-g", 12],
    "h264.mkv": X264 + ["-g", 12],
    "h264.avi": X264 + ["-g", 12],
    "h264.mov": X264 + ["-g", 12],
    "h264_one_key.mp4": X264 + ["-g", 1000],
    "h264_open.mp4": X264 + ["-g", 10, "-x264-params", "open-gop=1:bframes=3:b-pyramid=normal"],
    "h264_open.mkv": X264 + ["-g", 10, "-x264-params", "open-gop=1:bframes=3:b-pyramid=normal"],
    "h264_no_b.mp4": X264 + ["-g", 12, "-bf", 0],
    "h264_no_b.avi": X264 + ["-g", 12, "-bf", 0],
    "h264_16_refs.mp4": X264 + ["-g", 30, "-x264-params", "ref=16:bframes=16:b-adapt=2"],
    "h264_intra.mp4": X264 + ["-g", 1],
    "h264_refresh.mp4": X264 + ["-x264-params", "intra-refresh=1:keyint=20:bframes=0"],
    "h264_422.mp4": ["-c:v", "libx264", "-pix_fmt", "yuv422p", "-g", 12],
    "h264_444.mp4": ["-c:v", "libx264", "-pix_fmt", "yuv444p", "-g", 12],
    "h264_10.mkv": ["-c:v", "libx264", "-pix_fmt", "yuv420p10le", "-g", 12],
    "h264_gray.mkv": ["-c:v", "libx264", "-pix_fmt", "gray", "-g", 12],
    "h264_interlaced.mp4": X264 + ["-g", 12, "-flags", "+ilme+ildct", "-x264-params", "tff=1"],
    "h264_full_range.mp4": ["-vf", "scale=out_range=full"] + X264 + ["-color_range", "pc"],
    "h264_bt709.mp4": ["-vf", "scale=out_color_matrix=bt709"] + X264 + ["-colorspace", "bt709"],
    "h264_bt2020.mkv": ["-vf", "scale=out_color_matrix=bt2020"] + X264 + ["-colorspace", "bt2020nc"],
    "h264_fragmented.mp4": X264 + ["-g", 10, "-movflags", "frag_keyframe+empty_moov"],
    "h264_faststart.mp4": X264 + ["-g", 10, "-movflags", "+faststart"],
    "h264_variable.mp4": ["-vf", "select='not(mod(n,3))+not(mod(n,7))'", "-fps_mode", "vfr"] + X264 + ["-g", 6],
    "h264_variable.mkv": ["-vf", "select='not(mod(n,3))+not(mod(n,7))'", "-fps_mode", "vfr"] + X264 + ["-g", 6],
    "h264_jitter.mkv": ["-vf", "setpts='PTS+random(0)*0.03/TB'", "-fps_mode", "vfr"] + X264 + ["-g", 6],
    "h264_odd.mkv": (source("95x63", kind="testsrc"), ["-c:v", "libx264", "-pix_fmt", "yuv444p", "-g", 12]),
    "h264_tall.mp4": (source("34x130"), X264 + ["-g", 12]),
    "h264_1080.mp4": (source("1920x1080", seconds=0.6), X264 + ["-g", 8]),
    "h264_with_sound.mp4": (source() + ["-f", "lavfi", "-i", "sine=duration=2"], X264 + ["-c:a", "aac"]),
    "h264_with_sound.mkv": (source() + ["-f", "lavfi", "-i", "sine=duration=2"], X264 + ["-c:a", "flac"]),
    "hevc.mp4": ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none:keyint=12"],
    "hevc_open.mkv": ["-c:v", "libx265", "-preset", "medium", "-x265-params", "log-level=none:keyint=10:open-gop=1"],
    "mpeg4.avi": ["-c:v", "mpeg4", "-q:v", 4, "-g", 12],
    "mpeg4_b.avi": ["-c:v", "mpeg4", "-q:v", 4, "-g", 12, "-bf", 2],
    "mpeg4.mp4": ["-c:v", "mpeg4", "-q:v", 4, "-g", 12],
    "mpeg4_b.mp4": ["-c:v", "mpeg4", "-q:v", 4, "-g", 12, "-bf", 2],
    "mpeg4.mkv": ["-c:v", "mpeg4", "-q:v", 4, "-g", 12, "-bf", 2],
    "mpeg2.mkv": ["-c:v", "mpeg2video", "-q:v", 4, "-g", 12, "-bf", 2],
    "vp8.webm": ["-c:v", "libvpx", "-b:v", "300k", "-auto-alt-ref", 1, "-lag-in-frames", 16, "-g", 20],
    "vp9.webm": ["-c:v", "libvpx-vp9", "-b:v", "300k", "-g", 12, "-deadline", "realtime", "-cpu-used", 8],
    "vp9_hidden.webm": ["-c:v", "libvpx-vp9", "-b:v", "300k", "-g", 30, "-auto-alt-ref", 1, "-lag-in-frames", 16,
                        "-cpu-used", 5],
    "vp9_variable.webm": ["-vf", "select='not(mod(n,3))+not(mod(n,7))'", "-fps_mode", "vfr", "-c:v", "libvpx-vp9", "-b:v",
                          "300k", "-g", 12, "-cpu-used", 8],
    "vp9_odd.webm": (source("75x41", kind="testsrc"), ["-c:v", "libvpx-vp9", "-pix_fmt", "yuv420p", "-b:v", "300k",
                                                       "-cpu-used", 8]),
    "vp9.mp4": ["-c:v", "libvpx-vp9", "-b:v", "300k", "-g", 12, "-cpu-used", 8],
    "av1.mkv": ["-c:v", "libaom-av1", "-cpu-used", 8, "-crf", 40, "-g", 12],
    "mjpeg.avi": ["-c:v", "mjpeg", "-q:v", 3],
    "mjpeg.mkv": ["-c:v", "mjpeg", "-q:v", 3],
    "mjpeg.mp4": ["-c:v", "mjpeg", "-q:v", 3],
    "mjpeg_odd.avi": (source("61x37", kind="testsrc"), ["-c:v", "mjpeg", "-q:v", 3, "-pix_fmt", "yuvj420p"]),
    "ffv1.mkv": ["-c:v", "ffv1", "-level", 3, "-g", 1, "-pix_fmt", "bgr0"],
    "ffv1_gop.mkv": ["-c:v", "ffv1", "-level", 3, "-g", 10, "-slices", 4, "-slicecrc", 1, "-pix_fmt", "yuv420p"],
    "ffv1.avi": ["-c:v", "ffv1", "-pix_fmt", "bgr0"],
    "ffv1_odd.mkv": (source("33x21", kind="testsrc"), ["-c:v", "ffv1", "-level", 3, "-pix_fmt", "gbrp"]),
    "ffv1_16.mkv": ["-c:v", "ffv1", "-level", 3, "-pix_fmt", "gbrp16le"],
    "huffyuv.avi": ["-c:v", "huffyuv", "-pix_fmt", "rgb24"],
    "raw.avi": ["-c:v", "rawvideo", "-pix_fmt", "bgr24"],
    "png.mkv": ["-c:v", "png"],
}
TURNS = (90, 180, 270)


def frames_of_ffmpeg(path):
    """All frames by ffmpeg alone, with the side data of the file applied."""
    shape = run("ffmpeg", "-v", "error", "-nostdin", "-threads", 1, "-i", path, "-map", "0:v:0", "-frames:v", 1, "-f",
                "image2pipe", "-c:v", "ppm", "-")
    width, height = (int(word) for word in shape.split(b"\n", 2)[1].split())
    raw = run("ffmpeg", "-v", "error", "-nostdin", "-threads", 1, "-i", path, "-map", "0:v:0", "-fps_mode", "passthrough",
              "-pix_fmt", "rgb24", "-f", "rawvideo", "-")
    return np.frombuffer(raw, np.uint8).reshape(-1, height, width, 3)


def frames_of_tool(tool, path, order=()):
    """(first line, [(frame, pixels or a text)])"""
    out = run(tool, path, *order)
    first, out = out.split(b"\n", 1)
    frames = []
    while out:
        line, out = out.split(b"\n", 1)
        words = line.decode().split(" ", 1)
        if words[1].startswith("bad: "):
            frames.append((int(words[0]), words[1]))
            continue
        height, width = (int(word) for word in words[1].split())
        size = height * width * 3
        frames.append((int(words[0]), np.frombuffer(out[:size], np.uint8).reshape(height, width, 3)))
        out = out[size:]
    return first.decode(), frames


def problem_of(tool, path, rng):
    expected = frames_of_ffmpeg(path)
    first, frames = frames_of_tool(tool, path)
    if first.startswith("bad"):
        return first
    if int(first.split()[0]) != len(expected):
        return f"{first}, ffmpeg has {len(expected)}"
    count = len(expected)
    orders = [list(range(count)), list(range(count - 1, -1, -max(1, count // 12))),
              [rng.randrange(count) for _ in range(12)], sorted(rng.sample(range(count), min(count, 6)))]
    for order in orders:
        for frame, pixels in frames_of_tool(tool, path, order)[1] if order is not orders[0] else frames:
            if isinstance(pixels, str):
                return f"frame {frame}: {pixels} ({first})"
            if pixels.shape != expected[frame].shape:
                return f"frame {frame} is {pixels.shape}, ffmpeg's {expected[frame].shape}"
            if not np.array_equal(pixels, expected[frame]):
                same = [k for k in range(count) if np.array_equal(pixels, expected[k])]
                worst = np.abs(pixels.astype(int) - expected[frame]).max()
                return f"frame {frame} differs by up to {worst} of 255; it is frame {same} of ffmpeg ({first})"
    return ""


def damage(path, out, rng, kind):
    content = bytearray(path.read_bytes())
    if kind == "cut":
        out.write_bytes(content[:int(len(content) * 0.6)])
        return
    begin = len(content) // 3
    for _ in range(200):
        content[rng.randrange(begin, len(content) * 9 // 10)] ^= 1 << rng.randrange(8)
    out.write_bytes(content)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--work", type=pathlib.Path)
    options = parser.parse_args()
    work = options.work or pathlib.Path(tempfile.mkdtemp())
    work.mkdir(parents=True, exist_ok=True)
    rng = random.Random(1)
    failed, compared, skipped = [], 0, []
    encoders = run("ffmpeg", "-v", "error", "-encoders").decode()

    def report(name, problem):
        nonlocal compared
        compared += 1
        print(f"{name:24} {problem or 'equal'}", flush=True)
        if problem:
            failed.append(name)

    for name, how in GOOD.items():
        path = work / name
        given, words = how if isinstance(how, tuple) else (source(), how)
        if words[words.index("-c:v") + 1] not in encoders:
            skipped.append(name)
            continue
        if not path.exists():
            ffmpeg(*given, *words, path)
        report(name, problem_of(options.tool, path, rng))
    for turn in TURNS:
        path = work / f"turned_{turn}.mp4"
        ffmpeg("-i", work / "h264.mp4", "-c", "copy", "-metadata:s:v:0", f"rotate={turn}", path)
        report(path.name, problem_of(options.tool, path, rng))
    path = work / "edited.mp4"
    ffmpeg("-ss", "0.5", "-i", work / "h264.mp4", "-c", "copy", path)
    report(path.name, problem_of(options.tool, path, rng))
    for name in ("sound.mp4", "sound.mkv"):
        ffmpeg("-f", "lavfi", "-i", "sine=duration=1", "-c:a", "aac", work / name)
        first = frames_of_tool(options.tool, work / name)[0]
        report(name, "" if first == "bad: it has sound and no pictures" else first)
    for name in ("h264.mp4", "h264_faststart.mp4", "h264_fragmented.mp4", "h264.mkv", "mpeg4.avi", "vp9.webm", "mjpeg.avi",
                 "ffv1.mkv"):
        path = work / f"cut_{name}"
        damage(work / name, path, rng, "cut")
        first = frames_of_tool(options.tool, path)[0]
        report(path.name, "" if first.startswith("bad: cut short") else first)
    for name in ("h264.mp4", "h264.mkv", "mpeg4.avi", "vp9.webm", "mjpeg.avi", "ffv1_gop.mkv", "hevc.mp4"):
        path = work / f"flipped_{name}"
        damage(work / name, path, rng, "flip")
        first, frames = frames_of_tool(options.tool, path)
        named = first.startswith("bad") or any(isinstance(pixels, str) for _, pixels in frames)
        report(path.name, "" if named else "200 flipped bits are not noticed")
    print(f"{compared} files, {len(failed)} differ" + (f"; not made, without an encoder: {', '.join(skipped)}" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
