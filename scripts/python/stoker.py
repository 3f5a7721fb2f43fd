#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs of `train` in Python: every network in torch, the checkpoint, the preprocessing, and predictions as `train predict`
makes them. One file, to be copied beside your own code; it contains nothing of training.

    import stoker
    run = stoker.load_run("runs/photos")               # its best checkpoint; which="last", or a checkpoint's folder
    run.model, run.classes, run.options                # a torch.nn.Module in eval mode, names, resolved options
    for row in run.predict(["a.jpg", "folder"]):       # dictionaries with the columns of train predict
        print(row["path"], row["class"], row["probability"])
    outputs = run.model(run.pixels("a.jpg")[None])     # float32 [1, outputs]

    python3 stoker.py runs/photos a.jpg folder > predictions.csv

Needs torch, numpy, Pillow and PyYAML; torchvision for the networks that it has (ResNet, EfficientNet, MobileNetV3, ConvNeXt,
ViT). Debian: python3-torchvision, python3-yaml. Numbers are float32: a run that predicts with --amp rounds otherwise.
"""
import argparse
import csv
import json
import os
import pathlib
import re
import sys

import numpy as np
import torch
import yaml
from PIL import Image, ImageOps
from torch import nn
from torch.nn import functional as F

# ---- networks ----------------------------------------------------------------------------------------------------


class ConvNorm(nn.Module):
    """Convolution without bias, batch norm, and ReLU unless `relu` is False."""

    def __init__(self, channels, out, kernel=3, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(channels, out, kernel, stride, (kernel - 1) // 2, bias=False)
        self.norm = nn.BatchNorm2d(out)

    def forward(self, x, added=None):
        x = self.norm(self.conv(x))
        return F.relu(x if added is None else x + added)


class SmallResidual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first, self.second = ConvNorm(channels, channels), ConvNorm(channels, channels)

    def forward(self, x):
        return self.second(self.first(x), added=x)


class SmallCnn(nn.Module):
    """small_cnn and, without the block at half size, tiny_cnn."""

    def __init__(self, in_chans, outputs, width, tiny):
        super().__init__()
        halving = 2 if tiny else 3
        self.feature_channels = 4 * width
        self.stem = ConvNorm(in_chans, width, 4, 2)
        self.block1 = nn.Identity() if tiny else SmallResidual(width)
        self.down2, self.block2 = ConvNorm(width, 2 * width, halving, 2), SmallResidual(2 * width)
        self.down3, self.block3 = ConvNorm(2 * width, 4 * width, halving, 2), SmallResidual(4 * width)
        if outputs:
            self.fc = nn.Linear(16 * width, outputs)

    def feature_map(self, x):
        return self.block3(self.down3(self.block2(self.down2(self.block1(self.stem(x))))))

    def forward(self, x):
        return self.fc(F.adaptive_avg_pool2d(self.feature_map(x), 2).flatten(1))


def peer_cnn(in_chans, outputs):
    layers = []
    for out in (32, 32, 0, 64, 64, 0, 128):
        if out == 0:
            layers.append(nn.MaxPool2d(2))
            continue
        layers += [nn.Conv2d(in_chans, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU()]
        in_chans = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(in_chans, outputs))


class NineStage(nn.Module):
    def __init__(self, channels, out, residual):
        super().__init__()
        self.down = ConvNorm(channels, out)
        self.residual = residual
        if residual:
            self.first, self.second = ConvNorm(out, out), ConvNorm(out, out)

    def forward(self, x):
        x = F.max_pool2d(self.down(x), 2)
        return x + self.second(self.first(x)) if self.residual else x


class ResNet9(nn.Module):
    def __init__(self, in_chans, outputs, width):
        super().__init__()
        self.feature_channels = 8 * width
        self.stem = ConvNorm(in_chans, width)
        self.layer1 = NineStage(width, 2 * width, True)
        self.layer2 = NineStage(2 * width, 4 * width, False)
        self.layer3 = NineStage(4 * width, 8 * width, True)
        if outputs:
            self.fc = nn.Linear(8 * width, outputs)

    def feature_map(self, x):
        return self.layer3(self.layer2(self.layer1(self.stem(x))))

    def forward(self, x):
        return self.fc(self.feature_map(x).amax((2, 3))) * 0.125


def conv_norm_relu(channels, out, kernel=3, stride=1):
    return nn.Sequential(nn.Conv2d(channels, out, kernel, stride, (kernel - 1) // 2, bias=False), nn.BatchNorm2d(out), nn.ReLU())


class SpectrogramCnn(nn.Module):
    def __init__(self, in_chans, outputs):
        super().__init__()
        layers = []
        for out, stride in ((32, 2), (64, 2), (128, 2), (256, 2), (256, 1)):
            layers.append(conv_norm_relu(in_chans, out, 3, stride))
            in_chans = out
        self.feature_channels = in_chans
        self.features = nn.Sequential(*layers)
        if outputs:
            self.fc = nn.Linear(4 * in_chans, outputs)

    def feature_map(self, x):
        return self.features(x)

    def forward(self, x):
        return self.fc(F.adaptive_avg_pool2d(self.features(x), (4, 1)).flatten(1))


class ConvLstm(nn.Module):
    """[B, T, in, H, W] -> [B, T, hidden, H, W]; gates in the order input, forget, cell, output."""

    def __init__(self, channels, hidden):
        super().__init__()
        self.input = nn.Conv2d(channels, 4 * hidden, 3, padding=1)
        self.hidden = nn.Conv2d(hidden, 4 * hidden, 3, padding=1, bias=False)

    def forward(self, x):
        gates = self.input(x.flatten(0, 1)).unflatten(0, (x.size(0), x.size(1)))
        states, cell = [], None
        for step in range(x.size(1)):
            now = gates[:, step] if cell is None else gates[:, step] + self.hidden(states[-1])
            i, f, g, o = now.float().chunk(4, 1)
            cell = i.sigmoid() * g.tanh() if cell is None else f.sigmoid() * cell + i.sigmoid() * g.tanh()
            states.append(o.sigmoid() * cell.tanh())
        return torch.stack(states, 1)


def torchvision_backbone(name, in_chans, img_size):
    """A network of torchvision without its classifier, with feature_map(): [N, C, H, W] -> [N, feature_channels, h, w]."""
    model = torchvision_network(name, in_chans, 1, img_size)
    for head in ("fc", "classifier", "avgpool", "head"):
        if hasattr(model, head):
            delattr(model, head)
    if hasattr(model, "layer4"):
        parts = [model.conv1, model.bn1, model.relu, model.maxpool, model.layer1, model.layer2, model.layer3, model.layer4]
    elif name.startswith("regnet"):
        parts = [model.stem, model.trunk_output]
    elif name.startswith("swin"):
        parts = [model.features, model.norm, model.permute]
    else:
        parts = [model.features, F.relu] if name.startswith("densenet") else [model.features]

    def feature_map(x):
        for part in parts:
            x = part(x)
        return x

    model.feature_map = feature_map
    with torch.no_grad():
        model.feature_channels = model.eval().feature_map(torch.zeros(1, in_chans, 64, 64)).size(1)
    return model.train()


class ClipStream(nn.Module):
    def __init__(self, backbone, channels):
        super().__init__()
        self.backbone = backbone
        self.narrow = conv_norm_relu(backbone.feature_channels, channels, 1)
        self.memory = ConvLstm(channels, channels)

    def forward(self, frames, steps):
        maps = self.narrow(self.backbone.feature_map(frames))
        return self.memory(maps.unflatten(0, (maps.size(0) // steps, steps))).mean((1, 3, 4))


class TwoStreamConvLstm(nn.Module):
    """[B, T, C, H, W] -> [B, outputs]: one stream sees frames as they are, one at a quarter of the resolution. With 2 * C
    channels the second half of them is what the other stream sees."""

    def __init__(self, make_backbone, channels, outputs, in_chans=3):
        super().__init__()
        self.in_chans = in_chans
        self.high_quality = ClipStream(make_backbone(), channels)
        self.low_quality = ClipStream(make_backbone(), channels)
        self.fc = nn.Linear(2 * channels, outputs)

    def forward(self, images):
        images = images[:, None] if images.dim() == 4 else images
        frames, steps = images.flatten(0, 1), images.size(1)
        if frames.size(1) == 2 * self.in_chans:
            frames, low = frames.split(self.in_chans, 1)
        else:
            coarse = F.avg_pool2d(frames, 4, ceil_mode=True)
            low = F.interpolate(coarse, frames.shape[2:], mode="bilinear", align_corners=False)
        return self.fc(torch.cat([self.high_quality(frames, steps), self.low_quality(low, steps)], 1))


def take_size(vit, height, width):
    """Makes a ViT of torchvision, which is for squares, take images of height x width."""
    patches = height // vit.patch_size * (width // vit.patch_size)
    vit.encoder.pos_embedding = nn.Parameter(torch.zeros(1, patches + 1, vit.hidden_dim))
    vit._process_input = lambda x: vit.conv_proj(x).flatten(2).transpose(1, 2)
    return vit


def torchvision_network(name, in_chans, outputs, img_size):
    import torchvision

    height, width = img_size if isinstance(img_size, tuple) else (img_size, img_size)
    if name == "vit_s_16":  # which torchvision has no name for
        from torchvision.models.vision_transformer import VisionTransformer
        model = VisionTransformer(height, 16, 12, 6, 384, 1536, num_classes=outputs)
    elif name.startswith("vit"):
        model = getattr(torchvision.models, name)(num_classes=outputs, image_size=height)
    else:
        model = getattr(torchvision.models, name)(num_classes=outputs)
    if name.startswith("vit") and height != width:
        take_size(model, height, width)
    if in_chans != 3:
        path, first = next((path, m) for path, m in model.named_modules() if isinstance(m, nn.Conv2d))
        parent, _, leaf = path.rpartition(".")
        fresh = nn.Conv2d(in_chans, first.out_channels, first.kernel_size, first.stride, first.padding,
                          bias=first.bias is not None)
        setattr(model.get_submodule(parent), leaf, fresh)
    return model


TORCHVISION = ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "resnext50_32x4d", "resnext101_32x8d",
               "resnext101_64x4d", "wide_resnet50_2", "wide_resnet101_2", "mobilenet_v2", "mobilenet_v3_small",
               "mobilenet_v3_large", "convnext_tiny", "convnext_small", "convnext_base", "convnext_large", "vit_s_16", "vit_b_16",
               "vit_b_32", "vit_l_16", "densenet121", "densenet161", "densenet169", "densenet201",
               *(f"efficientnet_b{i}" for i in range(8)), *(f"efficientnet_v2_{size}" for size in "sml"),
               *(f"regnet_{x}_{size}" for x in "yx" for size in ("400mf", "800mf", "1_6gf", "3_2gf", "8gf", "16gf", "32gf")),
               *(f"swin_{size}" for size in ("t", "s", "b", "v2_t", "v2_s", "v2_b")))
NETWORKS = ("small_cnn", "tiny_cnn", "peer_cnn", "resnet9", "spectrogram_cnn", "two_stream_convlstm", *TORCHVISION)


def pad_as_tensorflow(model):
    """--same-padding: where a convolution halves an even side, a pixel less before it."""
    for conv in model.modules():
        if isinstance(conv, nn.Conv2d) and conv.stride == (2, 2) and conv.padding[0] > 0:
            (before, _), conv.padding = conv.padding, (0, 0)
            sides = lambda size, before=before: (before - (size % 2 == 0), before)
            conv.register_forward_pre_hook(lambda _, x, sides=sides: F.pad(x[0], sides(x[0].size(3)) + sides(x[0].size(2))))
    return model


def make_network(name, in_chans=3, outputs=1000, img_size=224, width=32, backbone="efficientnet_b0", lstm_channels=64):
    """A network by its name in `train list models`, with fresh weights and the names of tensors that checkpoints have.
    `img_size`: of squares, or (height, width); only ViTs are made for one size. `outputs` 0 leaves the classifier of our
    own networks out."""
    if name in ("small_cnn", "tiny_cnn"):
        return SmallCnn(in_chans, outputs, width, name == "tiny_cnn")
    if name == "peer_cnn":
        return peer_cnn(in_chans, outputs)
    if name == "resnet9":
        return ResNet9(in_chans, outputs, width)
    if name == "spectrogram_cnn":
        return SpectrogramCnn(in_chans, outputs)
    if name == "two_stream_convlstm":
        def make_backbone():
            if backbone in TORCHVISION:
                return torchvision_backbone(backbone, in_chans, img_size)
            return make_network(backbone, in_chans, 0, img_size, width)
        return TwoStreamConvLstm(make_backbone, lstm_channels, outputs, in_chans)
    if name in TORCHVISION:
        return torchvision_network(name, in_chans, outputs, img_size)
    raise ValueError(f"unknown network {name!r}; known: {', '.join(NETWORKS)}")


# ---- checkpoints -------------------------------------------------------------------------------------------------

DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
          "I32": torch.int32, "U8": torch.uint8, "BOOL": torch.bool}


def read_safetensors(path):
    """Tensors by name. Raises ValueError for a file that is cut short or not of this format."""
    data = bytearray(pathlib.Path(path).read_bytes())
    size = int.from_bytes(data[:8], "little")
    if size > len(data) - 8:
        raise ValueError(f"{path} is cut short or no safetensors file")
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        if end > len(data):
            raise ValueError(f"{path} is cut short: {name} lies beyond its end")
        dtype = DTYPES[entry["dtype"]]
        flat = torch.frombuffer(data[begin:end], dtype=dtype) if end > begin else torch.empty(0, dtype=dtype)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def flat_options(path):
    """config.yaml of a checkpoint: {"img-size": 224, ...}, without its groups."""
    options = {}
    for group in yaml.safe_load(pathlib.Path(path).read_text(encoding="utf-8")).values():
        options.update(group)
    return options


def load_run(path, which="best", device="cpu"):
    """`path`: a run directory, or the folder of one checkpoint. `which`: best or last, of a run directory."""
    folder = pathlib.Path(path)
    if (folder / "checkpoints").is_dir():
        folder = folder / "checkpoints" / which
    if not (folder / "state.json").is_file():
        raise FileNotFoundError(f"{folder} is no checkpoint of train")
    return Run(folder, device)


# ---- preprocessing -----------------------------------------------------------------------------------------------

IMAGE_ENDINGS = (".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".bmp", ".dib", ".webp", ".tif", ".tiff", ".gif", ".pbm", ".pgm",
                 ".ppm", ".pnm", ".pam", ".jp2", ".j2k", ".jpc", ".jpx")
HIGH, LOW = "hq", "lq"  # folders of a video with each frame in high and in low quality


def natural(name):
    """frame_9 before frame_10."""
    return [(0, int(part), part) if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", str(name)) if part]


def read_image(path, in_chans, value_range=None):
    """A file as a PIL image, upright, gray ("L") or RGB. `value_range`: which numbers of more than 8 bits are black and white."""
    image = Image.open(path)
    if getattr(image, "n_frames", 1) > 1:
        image.seek(0)
    if value_range and image.mode[0] not in "IF" and ";16" in str(image.tile):
        raise ValueError(f"{path}: Pillow reads 8 of 16 bits of colours, which a range of numbers needs")
    if in_chans == 1 and image.format == "JPEG":
        image.draft("L", image.size)  # the brightness that the file stores
    image = ImageOps.exif_transpose(image)
    if image.mode == "F" or image.mode.startswith("I"):  # 16 bits, or floats
        values = np.asarray(image).astype(np.float64)
        low, high = value_range or (0, 1 if image.mode == "F" else 65535)
        image = Image.fromarray(np.rint((values - low) / (high - low) * 255).clip(0, 255).astype(np.uint8))
    if image.mode == "P" or "transparency" in image.info:
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    if image.mode in ("RGBA", "LA"):
        values = np.asarray(image).astype(np.int64)
        over_black = (values[..., :-1] * values[..., -1:] + 127) // 255
        image = Image.fromarray(over_black.astype(np.uint8).squeeze(), "RGB" if image.mode == "RGBA" else "L")
    return image.convert("L" if in_chans == 1 else "RGB")


class Preprocessing:
    """What `train` does to an image before the network sees it in evaluation."""

    def __init__(self, options):
        size = options["img-size"]
        self.height, self.width = map(int, size) if isinstance(size, list) else (int(size), int(size))
        self.in_chans = int(options["in-chans"])
        self.crop = options["eval-crop"]
        self.crop_pct = float(options["crop-pct"])
        self.filter = Image.Resampling[options.get("interpolation", "bilinear").upper()]
        self.mean = torch.tensor(options["mean"], dtype=torch.float32).reshape(-1, 1, 1)
        self.std = torch.tensor(options["std"], dtype=torch.float32).reshape(-1, 1, 1)
        value_range = options.get("input-range", "full")
        if isinstance(value_range, str):
            value_range = value_range.split(",")
        self.value_range = [float(value) for value in value_range] if len(value_range) == 2 else None

    def geometry(self, width, height):
        """((width, height) to resize to, (left, top) of the window; below 0: black bars)."""
        if self.crop == "none":
            return (self.width, self.height), (0, 0)
        if self.crop == "letterbox":
            if width / height > self.width / self.height:
                size = self.width, max(1, round(height / width * self.width))
            else:
                size = max(1, round(width / height * self.height)), self.height
            return size, (-round((self.width - size[0]) * 0.5), -round((self.height - size[1]) * 0.5))
        wide, high = (int(side / self.crop_pct + 1e-9) for side in (self.width, self.height))

        def in_proportion(least, side, other):
            return least * side // other if wide == high else round(least * side / other)

        if width * high <= height * wide:
            size = wide, in_proportion(wide, height, width)
        else:
            size = in_proportion(high, width, height), high
        return size, (round((size[0] - self.width) / 2), round((size[1] - self.height) / 2))

    def normalised(self, samples):
        """samples [..., C, H, W] -> float32: bytes become numbers from 0 to 1 first, other numbers stay."""
        samples = torch.as_tensor(samples)
        samples = samples.float() / 255 if samples.dtype == torch.uint8 else samples.float()
        return (samples - self.mean) / self.std

    def opened(self, image):
        """A path or a PIL image -> a PIL image of the run's channels."""
        if self.in_chans not in (1, 3):
            raise ValueError(f"samples of {self.in_chans} channels are no pictures: give them to predict_arrays()")
        if not isinstance(image, Image.Image):
            image = read_image(image, self.in_chans, self.value_range)
        return image.convert("L" if self.in_chans == 1 else "RGB")

    def pair(self, high, low):
        """A frame in high and in low quality -> float32 [2 * C, height, width]: of both the same part."""
        high = self.opened(high)
        return torch.cat([self(high), self(low, high.size)])

    def __call__(self, image, drawn_for=None):
        """A path or a PIL image -> float32 [C, height, width]; `drawn_for`: the size of the image whose part it shows."""
        image = self.opened(image)
        size, (left, top) = self.geometry(*(drawn_for or image.size))
        if size != image.size:
            image = image.resize(size, self.filter)
        image = image.crop((left, top, left + self.width, top + self.height))
        pixels = np.asarray(image).reshape(self.height, self.width, self.in_chans)
        return self.normalised(torch.from_numpy(pixels.transpose(2, 0, 1).copy()))


def frames_of(available, wanted, sampling, stride):
    """Numbers of the frames of a video that make a clip in evaluation."""
    if sampling == "uniform" and available >= wanted:
        return [(2 * i + 1) * available // (2 * wanted) for i in range(wanted)]
    step = stride if sampling == "stride" else 1
    start = (max(1, available - (wanted - 1) * step) - 1) // 2
    return [min(available - 1, start + i * step) for i in range(wanted)]


def frames_in(folder):
    """Image files in a folder, frame_9 before frame_10."""
    return sorted((path for path in pathlib.Path(folder).iterdir() if path.suffix.lower() in IMAGE_ENDINGS),
                  key=lambda path: natural(path.name))


def video_of(frame):
    """The folder of the video that a frame belongs to."""
    folder, name = os.path.split(os.path.dirname(frame))
    return folder if name in (HIGH, LOW) else os.path.join(folder, name)


def images_below(folder):
    """Image files below a folder, in an order that does not depend on the file system."""
    found = []
    for parent, folders, names in os.walk(folder):
        folders.sort()
        found += [os.path.join(parent, name) for name in sorted(names) if name.lower().endswith(IMAGE_ENDINGS)]
    return found


# ---- predictions -------------------------------------------------------------------------------------------------


class Run:
    """A checkpoint, ready to predict."""

    def __init__(self, folder, device="cpu"):
        self.folder, self.device = pathlib.Path(folder), torch.device(device)
        self.options = options = flat_options(self.folder / "config.yaml")
        self.state = json.loads((self.folder / "state.json").read_text(encoding="utf-8"))
        self.classes = list(self.state["class_names"])
        self.task = options["task"]
        self.pixels = Preprocessing(options)
        record = self.folder / "preprocess.json"
        record = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {"input": {}, "predictions": {}}
        self.views = record["input"].get("views", 1)
        self.temperature = record["predictions"].get("temperature", 1)
        self.threshold = record["predictions"].get("threshold", options["threshold"])  # one, or one per label
        size = self.pixels.height, self.pixels.width
        self.model = make_network(options["model"], self.pixels.in_chans, self.outputs(), size, options["width"],
                                  options["backbone"], options["lstm-channels"])
        if str(options.get("same-padding", False)).lower() == "true":
            pad_as_tensorflow(self.model)
        average = self.folder / "model_ema.safetensors"
        weights = read_safetensors(average if average.is_file() else self.folder / "model.safetensors")
        self.model.load_state_dict(weights, strict=True)
        self.model.to(self.device).eval()

    def outputs(self):
        if self.task == "binary":
            return 1
        if self.task == "head-pose":
            head, bins = self.options["pose-head"][:2]
            return 3 * (int(bins) if head == "binned" else 1)
        return int(self.options["num-classes"])

    def takes_clips(self):
        return self.options["dataset"] == "clips"

    def clip(self, folder):
        """The frames of a folder -> float32 [T, C, H, W]; of a run of pairs [T, 2 * C, H, W], those in low quality behind."""
        folder = pathlib.Path(folder)
        has_pairs = self.views > 1
        if has_pairs != (folder / HIGH).is_dir():
            raise ValueError(f"{folder}: the network was trained on " + (f"pairs of frames in the folders {HIGH} and {LOW}"
                                                                          if has_pairs else "frames without partners"))
        paths = frames_in(folder / HIGH if has_pairs else folder)
        chosen = frames_of(len(paths), int(self.options["clip-frames"]), self.options["frame-sampling"][0],
                           int(self.options["frame-sampling"][1]))
        if not has_pairs:
            return torch.stack([self.pixels(paths[i]) for i in chosen])
        partners = {path.stem: path for path in frames_in(folder / LOW)}
        alone = sorted({path.stem for path in paths} ^ set(partners))
        if alone:
            raise ValueError(f"{folder}: frame {alone[0]} is there in one of {HIGH} and {LOW} only")
        return torch.stack([self.pixels.pair(paths[i], partners[paths[i].stem]) for i in chosen])

    def forward(self, samples):
        """Normalised samples [B, ...] -> raw outputs float32 [B, outputs], with the run's test-time augmentation."""
        with torch.no_grad():
            samples = samples.to(self.device)
            scores = self.model(samples).float()
            if self.options["tta"] == "hflip":
                scores = (scores + self.model(samples.flip(-1)).float()) / 2
        return scores.cpu()

    def predictions(self, outputs):
        """Raw outputs -> probabilities, or numbers in the unit of the targets."""
        if self.task == "multiclass":
            return (outputs.double() / self.temperature).softmax(1)
        if self.task in ("binary", "multilabel"):
            return (outputs / self.temperature).sigmoid()
        if self.task == "head-pose" and self.options["pose-head"][0] == "binned":
            bins, reach = int(self.options["pose-head"][1]), float(self.options["pose-head"][2])
            centres = ((torch.arange(bins, dtype=torch.float64) + 0.5) * (2 * reach / bins) - reach).float()
            return (outputs.view(len(outputs), 3, bins).softmax(2) * centres).sum(2)
        return outputs * self.numbers("target-scale", 1.0) + self.numbers("target-mean", 0.0)

    def numbers(self, name, otherwise):
        values = self.options[name]
        return torch.tensor(values if isinstance(values, list) and values else [otherwise], dtype=torch.float32)

    def rows(self, paths, outputs, logits=False):
        """A dictionary per sample with the columns of train predict."""
        for path, raw, predicted in zip(paths, outputs, self.predictions(outputs)):
            row = {"path": str(path)}
            if self.task == "multiclass":
                best = int(raw.argmax())
                row.update({"class": self.classes[best], "probability": float(predicted[best])})
                names = self.classes
            elif self.task == "binary":
                threshold = float(self.threshold)
                least = float(self.temperature * np.log(threshold / (1 - threshold)))
                row.update({"class": self.classes[int(float(raw[0]) >= least)], f"probability_{self.classes[1]}": float(predicted[0])})
                names = ["logit"]
            else:
                if self.task == "multilabel":
                    least = np.broadcast_to(self.threshold, len(predicted))
                    row["labels"] = "|".join(name for name, value, low in zip(self.classes, predicted, least) if float(value) >= low)
                row.update({name: float(value) for name, value in zip(self.classes, predicted)})
                names = [f"logit_{name}" for name in self.classes] if self.task == "multilabel" else \
                    [f"output_{i}" for i in range(len(raw))]
            if logits:
                row.update({name: float(value) for name, value in zip(names, raw)})
            row["error"] = ""
            yield row

    def inputs(self, paths):
        """Files and folders -> (name, callable that gives its sample)."""
        for path in map(str, [paths] if isinstance(paths, (str, os.PathLike)) else paths):
            if self.takes_clips():
                videos = sorted({video_of(frame) for frame in images_below(path)}, key=natural)
                for video in videos:
                    yield video, lambda video=video: self.clip(video)
            else:
                for file in images_below(path) if os.path.isdir(path) else [path]:
                    yield file, lambda file=file: self.pixels(file)

    def predict(self, paths, batch_size=64, logits=False):
        """Images, folders of images or, for networks of clips, folders of frames. Yields rows as train predict."""
        names, samples = [], []
        for name, sample in self.inputs(paths):
            names.append(name)
            samples.append(sample())
            if len(samples) == batch_size:
                yield from self.rows(names, self.forward(torch.stack(samples)), logits)
                names, samples = [], []
        if samples:
            yield from self.rows(names, self.forward(torch.stack(samples)), logits)

    def predict_arrays(self, samples, batch_size=64, logits=False):
        """Samples as numbers or bytes, [N, C, H, W] or [N, H, W], as HDF5 files hold them: normalised, not resized."""
        samples = torch.as_tensor(samples)
        samples = samples[:, None] if samples.dim() == 3 else samples
        for begin in range(0, len(samples), batch_size):
            part = self.pixels.normalised(samples[begin:begin + batch_size])
            yield from self.rows(range(begin, begin + len(part)), self.forward(part), logits)


def main():
    parser = argparse.ArgumentParser(description="Predictions of a run of train, as CSV.")
    parser.add_argument("run", help="run directory or checkpoint")
    parser.add_argument("inputs", nargs="+", help="images, folders")
    parser.add_argument("--which", choices=("best", "last"), default="best")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--logits", action="store_true")
    args = parser.parse_args()
    try:
        run = load_run(args.run, args.which, args.device)
        writer = None
        for row in run.predict(args.inputs, args.batch_size, args.logits):
            if writer is None:
                writer = csv.DictWriter(sys.stdout, list(row), lineterminator="\n")
                writer.writeheader()
            writer.writerow({key: f"{value:.9g}" if isinstance(value, float) else value for key, value in row.items()})
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"stoker.py: {error}")


if __name__ == "__main__":
    main()
