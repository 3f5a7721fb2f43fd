#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small pictures of many kinds and what is right: NAME, and a line "NAME width height crc32-of-RGB" of right.txt;
"NAME refused WORDS" where a refusal that holds these words is right.

Right is what Pillow shows, upright and as RGB; alpha goes over black; wide kinds are judged by the array they were made of.
Needs python3-numpy, python3-pil, python3-tifffile.   make_pictures.py FOLDER"""
import io
import os
import struct
import sys
import zlib

import numpy as np
import tifffile
from PIL import Image, ImageOps

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
rng = np.random.default_rng(0)
H, W = 21, 37
y, x = np.mgrid[0:H, 0:W]
smooth = np.stack([x * 6, y * 11, (x + y) * 4], -1).clip(0, 255).astype(np.uint8)
noise = rng.integers(0, 256, (H, W, 3), np.uint8)
rgb = noise
gray = noise[..., 0]
alpha = (np.add.outer(np.arange(H) * 5, np.arange(W) * 3) % 256).astype(np.uint8)
rgba = np.dstack([rgb, alpha])
over_black = ((rgb.astype(int) * alpha[..., None] + 127) // 255).astype(np.uint8)
gray_over_black = ((gray.astype(int) * alpha + 127) // 255).astype(np.uint8)
right = {}


def seen(data):
    """What Pillow shows."""
    picture = Image.open(io.BytesIO(data))
    if picture.format != "TIFF":  # which some releases of Pillow turn when they load it, and then once more
        picture = ImageOps.exif_transpose(picture)
    return np.asarray(picture.convert("RGB"))


def three(a):
    return np.repeat(a[..., None], 3, 2)


def case(name, data, pixels="pillow"):
    """`pixels`: an array, "pillow", or ("words",) of a refusal."""
    if callable(data):
        stream = io.BytesIO()
        data(stream)
        data = stream.getvalue()
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)
    if isinstance(pixels, tuple):
        right[name] = "refused " + pixels[0]
        return
    try:
        pixels = seen(data) if isinstance(pixels, str) else np.asarray(pixels)
    except Exception as error:
        print("Pillow does not read", name, error)
        os.remove(os.path.join(folder, name))
        return
    if pixels.ndim == 2:
        pixels = three(pixels)
    pixels = np.ascontiguousarray(pixels, np.uint8)
    right[name] = f"{pixels.shape[1]} {pixels.shape[0]} {zlib.crc32(pixels.tobytes()):08x}"


def saved(picture, kind, **options):
    picture = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    stream = io.BytesIO()
    picture.save(stream, kind, **options)
    return stream.getvalue()


def tiff(array, **options):
    return lambda stream: tifffile.imwrite(stream, array, **options)


# TIFF: how samples are stored ---------------------------------------------------------------------------------------
planes = np.ascontiguousarray(np.moveaxis(rgb, -1, 0))
layouts = {"strips": {}, "strip_5": {"rowsperstrip": 5}, "tiles_16": {"tile": (16, 16)}, "tiles_48": {"tile": (48, 48)},
           "tiles_32x16": {"tile": (32, 16)}}
for layout, options in layouts.items():
    for order, name in (("<", "little"), (">", "big")):
        for packed in (None, "zlib", "lzma"):
            if packed == "lzma" and (layout, name) not in (("strip_5", "little"), ("tiles_16", "big")):
                continue
            tag = f"{layout}_{name}_{packed or 'raw'}"
            case(f"tiff_16_planes_{tag}.tif", tiff(planes.astype(np.uint16) * 257, photometric="rgb", planarconfig="separate",
                                                   byteorder=order, compression=packed, **options), rgb)
            case(f"tiff_8_{tag}.tif", tiff(rgb, photometric="rgb", byteorder=order, compression=packed, **options), rgb)
case("tiff_8_planes_tiles.tif", tiff(planes, photometric="rgb", planarconfig="separate", tile=(16, 16)), rgb)
case("tiff_8_planes_deflate.tif", tiff(planes, photometric="rgb", planarconfig="separate", compression="zlib"), rgb)
case("tiff_16_default_of_tifffile.tif", tiff(planes.astype(np.uint16) * 257), rgb)
case("tiff_big.tif", tiff(rgb, photometric="rgb", bigtiff=True), rgb)
case("tiff_big_big_endian.tif", tiff(rgb, photometric="rgb", bigtiff=True, byteorder=">"), rgb)
case("tiff_16_interleaved.tif", tiff(rgb.astype(np.uint16) * 257, photometric="rgb"), rgb)
case("tiff_16_predictor.tif", tiff(rgb.astype(np.uint16) * 257, photometric="rgb", compression="zlib", predictor=True), rgb)
case("tiff_8_predictor.tif", tiff(rgb, photometric="rgb", compression="zlib", predictor=True), rgb)
case("tiff_two_pages.tif", lambda s: tifffile.imwrite(s, np.stack([rgb, rgb[::-1]]), photometric="rgb"), rgb)
for packed in ("tiff_lzw", "tiff_adobe_deflate", "packbits", "tiff_deflate", None):
    case(f"tiff_pillow_{packed}.tif", saved(rgb, "TIFF", compression=packed))
    case(f"tiff_pillow_gray_{packed}.tif", saved(gray, "TIFF", compression=packed))
# what they mean
case("tiff_gray_16.tif", tiff(gray.astype(np.uint16) * 257), gray)
case("tiff_gray_16_deep.tif", tiff(gray.astype(np.uint16) * 200 + 7), np.round((gray.astype(float) * 200 + 7) / 257))
case("tiff_gray_32.tif", tiff(gray.astype(np.uint32) * 0x01010101), gray)
case("tiff_gray_signed_16.tif", tiff((gray.astype(np.int32) * 257 - 32768).astype(np.int16)), gray)
case("tiff_gray_signed_8.tif", tiff((gray.astype(np.int16) - 128).astype(np.int8)), gray)
case("tiff_gray_signed_32.tif", tiff((gray.astype(np.int64) * 0x01010101 - 2**31).astype(np.int32)), gray)
for kind in (np.float16, np.float32, np.float64):
    case(f"tiff_gray_{np.dtype(kind).name}.tif", tiff((gray / 255).astype(kind)), gray)
case("tiff_float_rgb.tif", tiff((rgb / 255).astype(np.float32), photometric="rgb"), rgb)
case("tiff_float_of_other_range.tif", tiff(gray.astype(np.float32) * 4), ("--input-range",))
case("tiff_complex.tif", tiff(gray.astype(np.complex64)), ("complex",))
case("tiff_double_int.tif", tiff(gray.astype(np.uint64)), ("64 bits",))
case("tiff_white_is_zero.tif", tiff(gray, photometric="miniswhite"), 255 - gray)
case("tiff_white_is_zero_16.tif", tiff(gray.astype(np.uint16) * 257, photometric="miniswhite"), 255 - gray)
bit = Image.fromarray(gray).point(lambda v: 255 * (v > 127)).convert("1")
for packed in (None, "group3", "group4", "tiff_ccitt", "packbits", "tiff_lzw"):
    case(f"tiff_bit_{packed}.tif", saved(bit, "TIFF", compression=packed))
for bits in (2, 4):
    # by hand: neither Pillow nor tifffile writes them
    few = gray >> (8 - bits)
    packed_rows = b"".join(np.packbits(np.unpackbits(row[:, None], axis=1)[:, 8 - bits:].reshape(-1)).tobytes() for row in few)
    for kind in (0, 1, 3):
        entries = [(256, 3, 1, W), (257, 3, 1, H), (258, 3, 1, bits), (259, 3, 1, 1), (262, 3, 1, kind), (273, 4, 1, 8),
                   (277, 3, 1, 1), (278, 3, 1, H), (279, 4, 1, len(packed_rows))]
        table = b""
        if kind == 3:
            colours = rng.integers(0, 256, (3, 1 << bits)).astype(np.uint16) * 257
            table = colours.astype("<u2").tobytes()
            entries.append((320, 3, 3 << bits, 8 + len(packed_rows)))
        at = 8 + len(packed_rows) + len(table)
        data = struct.pack("<2sHI", b"II", 42, at) + packed_rows + table + struct.pack("<H", len(entries))
        data += b"".join(struct.pack("<HHII", *entry) for entry in entries) + struct.pack("<I", 0)
        wanted = few * (255 // ((1 << bits) - 1))
        if kind == 3:
            wanted = np.moveaxis(colours >> 8, 0, -1)[few]
        case(f"tiff_{bits}_bits_kind_{kind}.tif", data, 255 - wanted if kind == 0 else wanted)
case("tiff_palette.tif", saved(Image.fromarray(smooth).quantize(50), "TIFF"))
case("tiff_palette_lzw.tif", saved(Image.fromarray(smooth).quantize(200), "TIFF", compression="tiff_lzw"))
case("tiff_cmyk.tif", saved(Image.fromarray(rgb).convert("CMYK"), "TIFF"))
case("tiff_cmyk_noise.tif", saved(Image.fromarray(rgba, "CMYK"), "TIFF", compression="tiff_lzw"))
case("tiff_cmyk_planes.tif", tiff(np.ascontiguousarray(np.moveaxis(rgba, -1, 0)), photometric="separated", planarconfig="separate"),
     np.asarray(Image.fromarray(rgba, "CMYK").convert("RGB")))
case("tiff_lab.tif", saved(Image.fromarray(rgb, "LAB"), "TIFF"), ("CIELab",))
# alpha, once
case("tiff_rgba.tif", saved(rgba, "TIFF"), over_black)
case("tiff_rgba_lzw.tif", saved(rgba, "TIFF", compression="tiff_lzw"), over_black)
case("tiff_rgba_unassociated.tif", tiff(rgba, photometric="rgb", extrasamples=["unassalpha"]), over_black)
case("tiff_rgba_associated.tif", tiff(np.dstack([over_black, alpha]), photometric="rgb", extrasamples=["assocalpha"]), over_black)
case("tiff_rgba_unspecified.tif", tiff(rgba, photometric="rgb", extrasamples=["unspecified"]), rgb)
case("tiff_rgba_planes.tif", tiff(np.ascontiguousarray(np.moveaxis(rgba, -1, 0)), photometric="rgb", planarconfig="separate",
                                  extrasamples=["unassalpha"]), over_black)
case("tiff_rgba_16.tif", tiff(rgba.astype(np.uint16) * 257, photometric="rgb", extrasamples=["unassalpha"]), over_black)
case("tiff_gray_alpha.tif", saved(np.dstack([gray, alpha]), "TIFF"), gray_over_black)
case("tiff_gray_of_three_samples.tif", tiff(rgb, photometric="minisblack", planarconfig="contig"), rgb)
case("tiff_gray_of_three_planes.tif", tiff(planes, photometric="minisblack", planarconfig="separate"), rgb)
case("tiff_ycbcr.tif", tiff(smooth, photometric="ycbcr", extratags=[(530, 3, 2, (1, 1), True)]))
case("tiff_ycbcr_tiles.tif", tiff(smooth, photometric="ycbcr", tile=(16, 16), compression="zlib", extratags=[(530, 3, 2, (1, 1), True)]))
# orientation
for turn in range(1, 9):
    case(f"tiff_turned_{turn}.tif", tiff(rgb, photometric="rgb", extratags=[(274, 3, 1, turn, True)]))
    case(f"tiff_turned_tiles_{turn}.tif", tiff(rgb, photometric="rgb", tile=(16, 16), compression="zlib",
                                               extratags=[(274, 3, 1, turn, True)]))
# JPEG inside, previews, damage
case("tiff_jpeg.tif", saved(smooth, "TIFF", compression="jpeg"))
case("tiff_jpeg_gray.tif", saved(smooth[..., 0].copy(), "TIFF", compression="jpeg"))
case("tiff_jpeg_noise.tif", saved(rgb, "TIFF", compression="jpeg", quality=60))


def with_preview(stream):
    with tifffile.TiffWriter(stream) as writer:
        writer.write(rgb[::4, ::4].copy(), photometric="rgb", subfiletype=1)
        writer.write(rgb, photometric="rgb")


def with_picture_below(stream):
    with tifffile.TiffWriter(stream) as writer:
        writer.write(rgb[::4, ::4].copy(), photometric="rgb", subfiletype=1, subifds=1)
        writer.write(rgb, photometric="rgb", subfiletype=0)


case("tiff_preview_first.tif", with_preview, rgb)
case("tiff_picture_below_preview.tif", with_picture_below, rgb)
for packed in ("tiff_adobe_deflate", "tiff_lzw"):
    damaged = bytearray(saved(rng.integers(0, 256, (64, 64, 3), np.uint8), "TIFF", compression=packed))
    damaged[len(damaged) // 2:len(damaged) // 2 + 300] = bytes(300)
    if packed != "tiff_lzw":  # LZW has no checksum: some damage cannot be seen
        case(f"tiff_damaged_{packed}.tif", bytes(damaged), ("damaged",))
whole = saved(rgb, "TIFF")
case("tiff_cut.tif", whole[:len(whole) // 2], ("damaged",))
case("tiff_bands.tif", tiff(np.dstack([rgba, rgba]), photometric="rgb", extrasamples=["unspecified"] * 5), ("many bands",))

# BMP ----------------------------------------------------------------------------------------------------------------


def bmp(header, body, palette=b"", masks=b""):
    offset = 14 + len(header) + len(masks) + len(palette)
    return b"BM" + struct.pack("<IHHI", offset + len(body), 0, 0, offset) + header + masks + palette + body


def info(bits, height=H, compression=0, size=40, colours=0, body=0):
    return struct.pack("<IiiHHIIiiII", size, W, height, 1, bits, compression, body, 2835, 2835, colours, 0) + bytes(size - 40)


def rows_of(pixels, pad=4):
    return b"".join(row.tobytes() + bytes(-len(row.tobytes()) % pad) for row in pixels)


bgr = np.ascontiguousarray(rgb[..., ::-1])
for size in (40, 52, 56, 64, 108, 124):
    case(f"bmp_24_header_{size}.bmp", bmp(info(24, size=size), rows_of(bgr[::-1])), rgb)
case("bmp_24_top_down.bmp", bmp(info(24, -H), rows_of(bgr)), rgb)
case("bmp_os2_24.bmp", bmp(struct.pack("<IHHHH", 12, W, H, 1, 24), rows_of(bgr[::-1])), rgb)
colours = rng.integers(0, 256, (256, 3), np.uint8)
for bits in (1, 4, 8):
    index = gray >> (8 - bits)
    unpacked = np.unpackbits(index[..., None], axis=2)[..., 8 - bits:].reshape(H, -1)
    packed_rows = np.packbits(unpacked, axis=1)
    table = b"".join(bytes(c[::-1]) + b"\0" for c in colours[:1 << bits])
    table3 = b"".join(bytes(c[::-1]) for c in colours[:1 << bits])
    case(f"bmp_palette_{bits}.bmp", bmp(info(bits), rows_of(packed_rows[::-1]), table), colours[index])
    case(f"bmp_palette_{bits}_top_down.bmp", bmp(info(bits, -H), rows_of(packed_rows), table), colours[index])
    case(f"bmp_os2_palette_{bits}.bmp", bmp(struct.pack("<IHHHH", 12, W, H, 1, bits), rows_of(packed_rows[::-1]), table3), colours[index])
    case(f"bmp_os2_64_palette_{bits}.bmp", bmp(info(bits, size=64), rows_of(packed_rows[::-1]), table), colours[index])
    case(f"bmp_gray_{bits}.bmp", saved(Image.fromarray(gray) if bits == 8 else bit, "BMP"))
case("bmp_short_palette.bmp", bmp(info(8, colours=20), rows_of((gray % 20)[::-1]), b"".join(bytes(c[::-1]) + b"\0" for c in colours[:20])),
     colours[gray % 20])


def packed_pixels(values, kind):
    return rows_of(values.astype(kind)[::-1])


def fields(widths, masks):
    """Random pixels whose channels have these widths, and what they look like."""
    values = [rng.integers(0, 1 << width, (H, W)) if width else np.zeros((H, W), int) for width in widths]
    words = sum(v << ((m & -m).bit_length() - 1) for v, m in zip(values, masks) if m)
    # few bits are rounded down, as Pillow does
    look = np.stack([(v * 255 + (((1 << w) - 1) // 2 if w > 8 else 0)) // ((1 << w) - 1) for v, w in zip(values[:3], widths[:3])], -1)
    if len(widths) > 3 and widths[3]:
        a = (values[3] * 255 + ((1 << widths[3]) - 1) // 2) // ((1 << widths[3]) - 1)
        look = (look * a[..., None] + 127) // 255
    return words, look


for name, widths, masks in (("555", (5, 5, 5), (0x7C00, 0x3E0, 0x1F)), ("565", (5, 6, 5), (0xF800, 0x7E0, 0x1F)),
                            ("bgr565", (5, 6, 5), (0x1F, 0x7E0, 0xF800)), ("444", (4, 4, 4), (0xF00, 0xF0, 0xF))):
    words, look = fields(widths, masks)
    if name == "555":
        case("bmp_16.bmp", bmp(info(16), packed_pixels(words, "<u2")), look)
    case(f"bmp_16_masks_{name}.bmp", bmp(info(16, compression=3), packed_pixels(words, "<u2"), masks=struct.pack("<3I", *masks)), look)
for name, masks in (("bgrx", (0xFF0000, 0xFF00, 0xFF)), ("rgbx", (0xFF, 0xFF00, 0xFF0000)), ("xbgr", (0xFF000000, 0xFF0000, 0xFF00)),
                    ("grb", (0xFF00, 0xFF0000, 0xFF))):
    words, look = fields((8, 8, 8), masks)
    case(f"bmp_32_masks_{name}.bmp", bmp(info(32, compression=3), packed_pixels(words, "<u4"), masks=struct.pack("<3I", *masks)), look)
words, look = fields((10, 10, 10), (0x3FF00000, 0xFFC00, 0x3FF))
case("bmp_32_ten_bits.bmp", bmp(info(32, compression=3), packed_pixels(words, "<u4"), masks=struct.pack("<3I", 0x3FF00000, 0xFFC00, 0x3FF)), look)
for size in (56, 108, 124):
    for name, masks in (("bgra", (0xFF0000, 0xFF00, 0xFF, 0xFF000000)), ("rgba", (0xFF, 0xFF00, 0xFF0000, 0xFF000000)),
                        ("abgr", (0xFF000000, 0xFF0000, 0xFF00, 0xFF))):
        words, look = fields((8, 8, 8, 8), masks)
        header = bytearray(info(32, compression=3, size=size))
        header[40:56] = struct.pack("<4I", *masks)
        case(f"bmp_{size}_{name}.bmp", bmp(bytes(header), packed_pixels(words, "<u4")), look)
words, look = fields((8, 8, 8), (0xFF0000, 0xFF00, 0xFF))
case("bmp_32.bmp", bmp(info(32), packed_pixels(words | 0x7F000000, "<u4")), look)
case("bmp_32_header_124.bmp", bmp(info(32, size=124), packed_pixels(words | 0x7F000000, "<u4")), look)


def rle8(index):
    body = b""
    for row in index[::-1]:
        body += bytes([5, row[0]]) + bytes([0, W - 5]) + row[5:].tobytes() + bytes((W - 5) % 2) + b"\0\0"
    return body + b"\0\1"


index = (gray % 16).copy()
index[:, :5] = index[:, :1]
table = b"".join(bytes(c[::-1]) + b"\0" for c in colours)
case("bmp_rle8.bmp", bmp(info(8, compression=1), rle8(index), table), colours[index])
body = b""
for row in index[::-1]:
    body += bytes([5, row[0] << 4 | row[0]]) + bytes([0, W - 5])
    halves = [int(a) << 4 | int(b) for a, b in zip(row[5::2], list(row[6::2]) + [0])]
    body += bytes(halves) + bytes(len(halves) % 2) + b"\0\0"
case("bmp_rle4.bmp", bmp(info(4, compression=2), body + b"\0\1", table[:64]), colours[index])
jumps = np.zeros((H, W), int)
jumps[H - 1, 0:3] = 7
jumps[H - 4, 8:10] = 9
case("bmp_rle8_jumps.bmp", bmp(info(8, compression=1), bytes([3, 7, 0, 2, 5, 3, 2, 9, 0, 1]), table), colours[jumps])
case("bmp_cut.bmp", bmp(info(24), rows_of(bgr[::-1]))[:-100], ("cut short",))
case("bmp_jpeg_inside.bmp", bmp(info(0, compression=4), b"\xff\xd8\xff"), ("JPEG",))

# JPEG ---------------------------------------------------------------------------------------------------------------
for name, options in (("444", {"subsampling": 0}), ("422", {"subsampling": 1}), ("420", {"subsampling": 2}), ("progressive", {"progressive": True}),
                      ("restarts", {"restart_marker_blocks": 2})):
    jpeg = saved(smooth, "JPEG", quality=90, **options)
    shown = seen(jpeg)
    end = jpeg.rindex(b"\xff\xd9")
    case(f"jpeg_{name}.jpg", jpeg)
    case(f"jpeg_{name}_bytes_before_end.jpg", jpeg[:end] + b"\x12\x34\x56\x00\x78" + jpeg[end:], shown)
    case(f"jpeg_{name}_214_before_end.jpg", jpeg[:end] + bytes(214) + jpeg[end:], shown)
    for marker in (b"\xff\xdb", b"\xff\xc4", b"\xff\xda"):
        at = jpeg.index(marker)
        case(f"jpeg_{name}_bytes_before_{marker[1]:x}.jpg", jpeg[:at] + b"\0\x17\0" + jpeg[at:], shown)
    case(f"jpeg_{name}_then_da.jpg", jpeg + b"\xff\xda", shown)
    case(f"jpeg_{name}_then_jpeg.jpg", jpeg + jpeg[:60], shown)
    case(f"jpeg_{name}_then_data.jpg", jpeg + rng.bytes(3000), shown)
    case(f"jpeg_{name}_then_video.jpg", jpeg + b"\0\0\0\x18ftypmp42" + rng.bytes(2000) + b"\xff\xda\xff\xd8", shown)
    case(f"jpeg_{name}_cut.jpg", jpeg[:len(jpeg) * 4 // 5], ("cut short",))
    case(f"jpeg_{name}_cut_then_data.jpg", jpeg[:len(jpeg) * 4 // 5] + b"\xff\xd8\xff\xe0" + bytes(50) + b"\xff\xd9\0", ("JPEG",))
jpeg = saved(smooth, "JPEG", quality=90)
shown = seen(jpeg)
for length in (0, 1, 2, 3):
    case(f"jpeg_app_length_{length}.jpg", jpeg[:2] + b"\xff\xe5" + struct.pack(">H", length) + bytes(max(0, length - 2)) + jpeg[2:], shown)
case("jpeg_jfif_version_2.jpg", jpeg.replace(b"JFIF\0\1", b"JFIF\0\2", 1), shown)
case("jpeg_bad_exif.jpg", jpeg[:2] + b"\xff\xe1\x00\x10Exif\0\0garbage." + jpeg[2:], shown)
case("jpeg_fill_bytes.jpg", jpeg[:2] + b"\xff\xff\xff" + jpeg[2:], shown)
case("jpeg_trailing_zeros.jpg", jpeg + bytes(512), shown)
cmyk = saved(Image.fromarray(smooth).convert("CMYK"), "JPEG", quality=95)
adobe = cmyk.index(b"\xff\xee")
without = cmyk[:adobe] + cmyk[adobe + 2 + struct.unpack(">H", cmyk[adobe + 2:adobe + 4])[0]:]
case("jpeg_cmyk.jpg", cmyk)
case("jpeg_cmyk_without_adobe.jpg", without)
case("jpeg_cmyk_unknown_transform.jpg", cmyk[:adobe + 15] + b"\x05" + cmyk[adobe + 16:])

# orientation --------------------------------------------------------------------------------------------------------
for turn in range(1, 9):
    exif = Image.Exif()
    exif[0x0112] = turn
    case(f"jpeg_turned_{turn}.jpg", saved(smooth, "JPEG", quality=90, exif=exif))
    case(f"png_turned_{turn}.png", saved(rgb, "PNG", exif=exif))
    case(f"webp_turned_{turn}.webp", saved(rgb, "WEBP", lossless=True, exif=exif))


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


png = saved(rgb, "PNG")
exif = Image.Exif()
exif[0x0112] = 6
tags = exif.tobytes()[6:]
case("png_exif_behind_pixels.png", png[:-12] + chunk(b"eXIf", tags) + png[-12:])
xmp = b'<x:xmpmeta><rdf:Description tiff:Orientation="8"/></x:xmpmeta>'
element = b"<x:xmpmeta><tiff:Orientation>3</tiff:Orientation></x:xmpmeta>"
for name, text in (("attribute", xmp), ("element", element)):
    case(f"png_xmp_{name}.png", png[:33] + chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + text) + png[33:])
    case(f"png_xmp_{name}_packed.png", png[:33] + chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(text)) + png[33:])
case("png_xmp_and_exif.png", png[:33] + chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp) + chunk(b"eXIf", tags) + png[33:])
raw = b"\nexif\n      %d\n" % len(exif.tobytes()) + exif.tobytes().hex().encode() + b"\n"
case("png_raw_profile.png", png[:33] + chunk(b"tEXt", b"Raw profile type exif\0" + raw) + png[33:])
case("png_raw_profile_packed.png", png[:33] + chunk(b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(raw)) + png[33:])

# PNG ----------------------------------------------------------------------------------------------------------------
case("png_rgb.png", png, rgb)
case("png_gray.png", saved(gray, "PNG"), gray)
case("png_bit.png", saved(bit, "PNG"))
case("png_gray_alpha.png", saved(np.dstack([gray, alpha]), "PNG"), gray_over_black)
case("png_rgba.png", saved(rgba, "PNG"), over_black)
case("png_gray_16.png", saved(Image.fromarray(gray.astype(np.uint16) * 257), "PNG"), gray)
case("png_palette.png", saved(Image.fromarray(smooth).quantize(16), "PNG"))
case("png_palette_bits_2.png", saved(Image.fromarray(smooth).quantize(4), "PNG", bits=2))
case("png_colour_key.png", saved(rgb, "PNG", transparency=(1, 2, 3)), rgb)
case("png_damaged_pixels.png", png[:60] + chunk(b"IDAT", b"\x78\x9c\x01\x02\x03") + chunk(b"IEND", b""), ("PNG",))

# PNM ----------------------------------------------------------------------------------------------------------------
few = gray >> 3
for name, data, wanted in (
        ("pgm_raw", b"P5\n%d %d\n255\n" % (W, H) + gray.tobytes(), gray),
        ("ppm_raw", b"P6\n%d %d\n255\n" % (W, H) + rgb.tobytes(), rgb),
        ("ppm_comments", b"P6 # of a\n# comment\n%d\t%d # more\n255\n" % (W, H) + rgb.tobytes(), rgb),
        ("pgm_16", b"P5\n%d %d\n65535\n" % (W, H) + (gray.astype(">u2") * 257).tobytes(), gray),
        ("ppm_16", b"P6\n%d %d\n65535\n" % (W, H) + (rgb.astype(">u2") * 257).tobytes(), rgb),
        ("pgm_31", b"P5\n%d %d\n31\n" % (W, H) + few.tobytes(), "pillow"),
        ("ppm_100", b"P6\n%d %d\n100\n" % (W, H) + (rgb % 101).tobytes(), "pillow"),
        ("ppm_1023", b"P6\n%d %d\n1023\n" % (W, H) + (rgb.astype(">u2") * 4).tobytes(), "pillow"),
        ("pgm_plain", b"P2\n%d %d\n255\n" % (W, H) + b"\n".join(b" ".join(b"%d" % v for v in row) for row in gray) + b"\n", gray),
        ("ppm_plain", b"P3\n%d %d\n255\n" % (W, H) + b" ".join(b"%d" % v for v in rgb.reshape(-1)) + b" ", rgb),
        ("pgm_plain_16", b"P2\n%d %d\n65535\n" % (W, H) + b" ".join(b"%d" % (v * 257) for v in gray.reshape(-1).astype(int)), gray),
        ("pbm_plain", b"P1\n%d %d\n" % (W, H) + b"\n".join(b"".join(b"%d" % (v > 99) for v in row) for row in gray), 255 * (gray <= 99)),
        ("pbm_plain_blanks", b"P1\n#x\n%d %d\n" % (W, H) + b" ".join(b"%d" % (v > 99) for v in gray.reshape(-1)), 255 * (gray <= 99)),
        ("pbm_raw", b"P4\n%d %d\n" % (W, H) + np.packbits(gray > 99, axis=1).tobytes(), 255 * (gray <= 99)),
        ("pam_rgb", b"P7\nWIDTH %d\nHEIGHT %d\nDEPTH 3\nMAXVAL 255\nTUPLTYPE RGB\nENDHDR\n" % (W, H) + rgb.tobytes(), rgb),
        ("pam_rgba", b"P7\n#c\nWIDTH %d\nHEIGHT %d\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n" % (W, H) + rgba.tobytes(), over_black),
        ("pam_gray_alpha", b"P7\nWIDTH %d\nHEIGHT %d\nDEPTH 2\nMAXVAL 255\nTUPLTYPE GRAYSCALE_ALPHA\nENDHDR\n" % (W, H)
         + np.dstack([gray, alpha]).tobytes(), gray_over_black),
        ("pam_bits", b"P7\nWIDTH %d\nHEIGHT %d\nDEPTH 1\nMAXVAL 1\nTUPLTYPE BLACKANDWHITE\nENDHDR\n" % (W, H)
         + (gray > 99).astype(np.uint8).tobytes(), 255 * (gray > 99)),
        ("pam_16", b"P7\nWIDTH %d\nHEIGHT %d\nDEPTH 1\nMAXVAL 65535\nTUPLTYPE GRAYSCALE\nENDHDR\n" % (W, H)
         + (gray.astype(">u2") * 257).tobytes(), gray),
        ("ppm_cut", (b"P6\n%d %d\n255\n" % (W, H) + rgb.tobytes())[:-9], ("cut short",)),
        ("pgm_plain_cut", b"P2\n%d %d\n255\n" % (W, H) + b" 7" * (W * H - 1), ("PNM",)),
        ("pfm", b"Pf\n2 2\n-1.0\n" + bytes(16), ("PFM",))):
    case(f"pnm_{name}.ppm", data, wanted)

# GIF ----------------------------------------------------------------------------------------------------------------
gif = saved(smooth, "GIF")
case("gif.gif", gif)
case("gif_called.jpg", gif)
case("gif_plain.gif", saved(Image.fromarray(smooth).quantize(8), "GIF", interlace=0))
case("gif_interlaced.gif", saved(Image.fromarray(smooth).quantize(8), "GIF", interlace=1))
case("gif_gray.gif", saved(smooth[..., 0].copy(), "GIF"))
case("gif_animated.gif", saved(Image.fromarray(smooth), "GIF", save_all=True, append_images=[Image.fromarray(rgb)], loop=0))
case("gif_comment.gif", saved(smooth, "GIF", comment=b"of somebody" * 40))
indexed = Image.fromarray(smooth).quantize(16)
clear = np.asarray(indexed.convert("RGB")).copy()
clear[np.asarray(indexed) == 3] = 0
case("gif_transparent.gif", saved(indexed, "GIF", transparency=3, optimize=False), clear)
screen = bytearray(saved(Image.fromarray(smooth).quantize(8), "GIF", interlace=0))
struct.pack_into("<HH", screen, 6, W + 9, H + 4)
case("gif_frame_smaller_than_screen.gif", bytes(screen))
struct.pack_into("<HH", screen, 6, W - 9, H - 4)
case("gif_frame_larger_than_screen.gif", bytes(screen))
case("gif_cut.gif", gif[:len(gif) // 2], ("damaged GIF",))

# JPEG 2000, WebP, others --------------------------------------------------------------------------------------------
case("jp2.jp2", saved(rgb, "JPEG2000", irreversible=False), rgb)
case("jp2_gray.jp2", saved(gray, "JPEG2000", irreversible=False), gray)
case("jp2_stream.j2k", saved(rgb, "JPEG2000", irreversible=False, no_jp2=True), rgb)
case("jp2_16.jp2", saved(Image.fromarray(gray.astype(np.uint16) * 257), "JPEG2000", irreversible=False), gray)
case("jp2_rgba.jp2", saved(rgba, "JPEG2000", irreversible=False), over_black)
jp2 = saved(rgb, "JPEG2000", irreversible=False)
case("jp2_cut.jp2", jp2[:200], ("JPEG 2000",))
case("webp.webp", saved(smooth, "WEBP", quality=80))
case("webp_rgba.webp", saved(rgba, "WEBP", lossless=True, exact=True), over_black)
for name, data, words in (("avif", b"\0\0\0\x1cftypavif" + bytes(20), "avifdec"), ("heic", b"\0\0\0\x18ftypheic" + bytes(20), "heif-convert"),
                          ("jxl", b"\xff\x0a" + bytes(20), "djxl"), ("psd", b"8BPS\0\1" + bytes(20), "convert"),
                          ("svg", b"<svg xmlns='x'/>", "rsvg-convert"), ("html", b"<!DOCTYPE html><html>", "HTML"),
                          ("pdf", b"%PDF-1.4\n" + bytes(9), "pdftoppm"), ("exr", b"\x76\x2f\x31\x01" + bytes(9), "EXR"),
                          ("text", b"hello", "not an image")):
    case(f"other_{name}.jpg", data, (words,))

# Found beside Pillow in the tests of other programs --------------------------------------------------------------------
for name, options in (("420", {"subsampling": 2}), ("restarts", {"restart_marker_blocks": 2}), ("progressive", {"progressive": True})):
    jpeg = saved(smooth, "JPEG", quality=90, **options)
    end = jpeg.rindex(b"\xff\xd9")
    wanted = ("cut short",) if name == "progressive" else seen(jpeg)
    case(f"jpeg_{name}_without_end.jpg", jpeg[:end], wanted)
    case(f"jpeg_{name}_without_last_byte.jpg", jpeg[:end + 1], wanted)
    case(f"jpeg_{name}_without_last_pixels.jpg", jpeg[:end - 9], ("cut short",))
jpeg = saved(smooth, "JPEG", quality=90)
at = jpeg.index(b"\xff\xdb")
case("jpeg_restart_in_header.jpg", jpeg[:at] + b"\0\xff\xd0\0" + jpeg[at:], seen(jpeg))
case("jpeg_12_bits.jpg", jpeg.replace(b"\xff\xc0\0\x11\x08", b"\xff\xc1\0\x11\x0c"), ("12",))
case("jpeg_lossless.jpg", jpeg.replace(b"\xff\xc0\0\x11", b"\xff\xc3\0\x11"), ("lossless or hierarchical",))
case("pnm_comment_behind_header.ppm", b"P6\n%d %d\n255#white\n" % (W, H) + rgb.tobytes(), rgb)
for kind, number in ((1, b"\x06\0\0\0"), (3, b"\x06\0\0\0"), (4, b"\x06\0\0\0"), (6, b"\x06\0\0\0"), (8, b"\x06\0\0\0"),
                     (9, b"\x06\0\0\0"), (5, struct.pack("<I", 26))):
    tags = b"II*\0\x08\0\0\0\x01\0" + struct.pack("<HHI", 0x0112, kind, 1) + number + bytes(4) + struct.pack("<II", 12, 2)
    exif = b"\xff\xe1" + struct.pack(">H", len(tags) + 8) + b"Exif\0\0" + tags
    case(f"jpeg_turned_by_type_{kind}.jpg", jpeg[:2] + exif + jpeg[2:])
two = b"II*\0\x08\0\0\0\x02\0" + b"".join(struct.pack("<HHII", 0x0112, 3, 1, turn) for turn in (6, 3)) + bytes(4)
case("jpeg_turned_twice.jpg", jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(two) + 8) + b"Exif\0\0" + two + jpeg[2:])
png = saved(rgb, "PNG")
case("png_without_end.png", png[:-12], rgb)
case("png_cut_in_end.png", png[:-7], rgb)
case("png_cut_in_pixels.png", png[:-20], ("PNG",))
case("png_without_last_pixels.png", png[:33] + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row.tobytes() for row in rgb[:-1]))), ("PNG",))
again = np.concatenate([rgb[:5]] * 5)[:H]
packed = bytearray(zlib.compress(b"".join(b"\0" + row.tobytes() for row in again)))
packed[0] = 0x08  # 256 bytes, where copies are from farther away
packed[1] = 31 - packed[0] * 256 % 31
case("png_small_window.png", png[:33] + chunk(b"IDAT", bytes(packed)) + png[-12:], again)
few = Image.fromarray(gray % 9)
few.putpalette(colours[:9].tobytes())
listed = saved(few, "PNG")
at, whole = listed.index(b"PLTE") - 4, struct.unpack(">I", listed[listed.index(b"PLTE") - 4:listed.index(b"PLTE")])[0]
case("png_beyond_palette.png", listed[:at] + chunk(b"PLTE", colours[:5].tobytes()) + listed[at + 12 + whole:])
bmp_index = gray % 40
case("bmp_beyond_palette.bmp", bmp(info(8, colours=20), rows_of(bmp_index[::-1]), b"".join(bytes(c[::-1]) + b"\0" for c in colours[:20])))
table = b"".join(bytes(c[::-1]) + b"\0" for c in colours)
misplaced = bytearray(bmp(info(8), rows_of(gray[::-1]), table))
struct.pack_into("<I", misplaced, 10, 54)
case("bmp_palette_forgotten.bmp", bytes(misplaced), colours[gray])
case("bmp_rle8_long_row.bmp", bmp(info(8, compression=1), bytes([W, 3, 9, 3, 0, 0]) * H + b"\0\1", table), ("more pixels",))
screen = bytearray(saved(Image.fromarray(gray), "GIF"))
screen[10] = screen[10] & 0xF8 | 1
case("gif_beyond_palette.gif", bytes(screen[:13 + 12] + screen[13 + 768:]))
case("gif_long_codes.gif", b"GIF89a\1\0\1\0\0\0\0,\0\0\0\0\1\0\1\0\0\x0b\2\0\0\0;", ("giflib",))
for name, kind in (("none", None), ("predictor", True)):
    data = io.BytesIO()
    tifffile.imwrite(data, smooth, photometric="rgb", compression="zlib", predictor=kind)
    data = bytearray(data.getvalue())
    data[len(data) // 2:len(data) // 2 + 8] = bytes(8)
    case(f"tiff_deflate_damaged_{name}.tif", bytes(data), ("damaged",))
case("tiff_deflate_16_big_endian.tif", tiff(rgb.astype(np.uint16) * 257, photometric="rgb", compression="zlib", predictor=True, byteorder=">"), rgb)
for name, data, words in (
        ("sgi", b"\x01\xda\1\1" + bytes(90), "SGI"), ("pcx", b"\x0a\5\1\x08" + bytes(90), "PCX"),
        ("tga", b"\0\0\2" + bytes(9) + struct.pack("<HHBB", 4, 4, 24, 0) + bytes(48), "TGA"), ("dib", info(24) + bytes(99), "DIB"),
        ("svg_with_prolog", b"<?xml version='1.0'?>\n<svg xmlns='x'/>", "rsvg-convert"), ("json", b'{"error": 404}', "JSON"),
        ("zeros", bytes(300), "all of its bytes are zero"), ("xml", b"<?xml version='1.0'?><Error/>", "XML"), ("tar", bytes(257) + b"ustar", "tar xf"),
        ("jpeg_xr", b"II\xbc\1" + bytes(9), "JPEG XR"), ("djvu", b"AT&TFORM" + bytes(9), "DjVu")):
    case(f"other_{name}.jpg", data, (words,))

# Headers of OS/2 that end early, colours of 16 bits with alpha, several bitmaps in one file
for size in (16, 20, 36, 48, 60):
    short = info(8, size=64)[:size]
    case(f"bmp_os2_header_{size}.bmp", bmp(struct.pack("<I", size) + short[4:], rows_of(gray[::-1]), table), colours[gray])
for name, widths, masks in (("4444", (4, 4, 4, 4), (0xF00, 0xF0, 0xF, 0xF000)), ("1555", (5, 5, 5, 1), (0x7C00, 0x3E0, 0x1F, 0x8000))):
    values = [(gray.astype(int) * (k + 3) + k) % (1 << w) for k, w in enumerate(widths)]
    words = sum(v << ((m & -m).bit_length() - 1) for v, m in zip(values, masks))
    look = np.stack([v * 255 // ((1 << w) - 1) for v, w in zip(values[:3], widths)], -1)
    if widths[3] > 1:  # Pillow ignores a single bit
        look = (look * (values[3] * 17)[..., None] + 127) // 255
    header = bytearray(info(16, compression=3, size=108))
    header[40:56] = struct.pack("<4I", *masks)
    case(f"bmp_16_alpha_{name}.bmp", bmp(bytes(header), packed_pixels(words, "<u2")), look)
case("bmp_array.bmp", b"BA" + struct.pack("<IIHH", 40, 0, 0, 0) + bmp(info(8), rows_of(gray[::-1]), table), ("bitmap array",))

# Other bytes in place of the end marker, and data that ends before them
for name, options in (("420", {}), ("444", {"subsampling": 0}), ("restarts", {"restart_marker_blocks": 2}), ("progressive", {"progressive": True})):
    jpeg = saved(smooth, "JPEG", quality=90, **options)
    end = jpeg.rindex(b"\xff\xd9")
    for tail, behind in (("zeros_100", bytes(100)), ("zeros_4096", bytes(4096)), ("random", np.random.default_rng(5).bytes(700))):
        case(f"jpeg_{name}_then_{tail}_without_end.jpg", jpeg[:end] + behind, ("cut short",) if name == "progressive" or tail == "random" else seen(jpeg))
        if tail != "random":
            for cut in (2, 9, 60):
                case(f"jpeg_{name}_cut_{cut}_then_{tail}.jpg", jpeg[:end - cut] + behind, ("cut short",))
    if name != "progressive":
        case(f"jpeg_{name}_cut_1_then_zero.jpg", jpeg[:end - 1] + b"\0", ("cut short",))
padded = np.pad(index, ((0, 0), (0, 3)))
rows8 = b"".join(b"".join(bytes([1, v]) for v in row) + b"\0\0" for row in padded[::-1])
rows4 = b"".join(b"".join(bytes([2, a << 4 | b]) for a, b in zip(row[::2], row[1::2])) + b"\0\0" for row in padded[::-1])
case("bmp_rle8_padded_rows.bmp", bmp(info(8, compression=1), rows8 + b"\0\1", table))
case("bmp_rle4_padded_rows.bmp", bmp(info(4, compression=2), rows4 + b"\0\1", table[:64]))
jpeg = saved(smooth, "JPEG", quality=90)


def app1(entries, head=b"Exif\0\0"):
    body = b"II*\0\x08\0\0\0" + struct.pack("<H", len(entries)) + b"".join(entries) + bytes(4)
    return b"\xff\xe1" + struct.pack(">H", len(head) + len(body) + 2) + head + body


turn = struct.pack("<HHIHH", 0x0112, 3, 1, 6, 0)
at = jpeg.index(b"\xff\xda")
case("jpeg_turned_behind_frame_header.jpg", jpeg[:at] + app1([turn]) + jpeg[at:])
for name, segment in (("no_number", app1([struct.pack("<HHIHH", 0x0112, 3, 0, 6, 0)])), ("float", app1([struct.pack("<HHIf", 0x0112, 11, 1, 6)])),
                      ("other_head", app1([turn], b"Exif\0\xff")), ("entry_outside_first", app1([struct.pack("<HHII", 0x010f, 2, 4000, 900000), turn]))):
    case(f"jpeg_turned_{name}.jpg", jpeg[:2] + segment + jpeg[2:])
gif = saved(Image.fromarray(smooth).quantize(8), "GIF", interlace=0)
at = 13 + (3 << (gif[10] & 7) + 1)
case("gif_zeros_between_blocks.gif", gif[:at] + bytes(5) + gif[at:])
for name, data, words in (
        ("cgbi", png[:8] + b"\0\0\0\4CgBI" + bytes(8) + png[8:], "CgBI"), ("http", b"HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\n\r\n" + jpeg, "tail -c +46 "),
        ("byte_order_mark", b"\xef\xbb\xbf" + jpeg, "tail -c +4 "), ("base64", b"/9j/4AAQSkZJRgABAQ==", "base64 -d"),
        ("data_uri", b"data:image/jpeg;base64,/9j/4AAQSkZJRg==", "base64 -d"), ("png_as_text", png.replace(b"\r\n", b"\n"), "in binary mode"),
        ("png_as_dos_text", png.replace(b"\n", b"\r\n"), "in binary mode"), ("xpm", b"/* XPM */\nstatic char *a[] = {", "xpm:"),
        ("xbm", b"#define a_width 8\n#define a_height 8\n", "xbm:"), ("xwd", struct.pack(">4I", 106, 7, 2, 8) + bytes(90), "xwd:"),
        ("pict", bytes(522) + b"\0\x11\2\xff\x0c\0" + bytes(40), "pict:"), ("dpx", b"SDPX\0\0\2\0V2.0" + bytes(40), "dpx:"),
        ("jng", b"\x8bJNG\r\n\x1a\n" + bytes(40), "jng:"), ("pcx_bits", b"\x0a\2\1\1" + bytes(124), "pcx:"),
        ("jbig", b"\0\0\1\0" + struct.pack(">3I", 37, 21, 32) + bytes(40), "jbigtopnm"), ("icon", b"\0\0\1\0\1\0\x10\x10" + bytes(40), "icon of Windows"),
        ("read_as_text", b"\xef\xbf\xbdPNG\r\n", "loses bytes"), ("lfs", b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull")):
    case(f"other_{name}.jpg", data, (words,))

with open(os.path.join(folder, "right.txt"), "w") as file:
    for name in sorted(right):
        file.write(f"{name} {right[name]}\n")
print(len(right), "files in", folder)
