#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the files that export_parity.py left in a folder by other readers of ONNX, and compares probabilities.

    scripts/parity/onnx_readers.py FOLDER [--readers onnx onnxruntime opencv]

Needs numpy and at least one of python3-onnx, python3-onnxruntime (both from Debian 13 on) and python3-opencv; no torch.
FOLDER holds images.npy (normalised, float32 [images, channels, height, width]), bytes.npy (uint8 [images, height, width,
channels]) and for each network NAME/normalised.onnx, NAME/bytes.onnx and NAME/probabilities.npy, from `train
predict`. Each file runs image by image and in batches of 7. Ends with 1 when a probability differs by more than the limit,
the checker refuses a file, or no reader can run it; readers that cannot are printed and counted. OpenCV gets bytes as
floats: it supports no others.
"""
import argparse
import pathlib
import sys

import numpy as np

BATCH = 7


class Onnxruntime:
    def __init__(self, threads):
        import onnxruntime
        self.library = onnxruntime
        self.name = f"onnxruntime {onnxruntime.__version__}"
        self.options = onnxruntime.SessionOptions()
        self.options.intra_op_num_threads = threads
        self.options.log_severity_level = 3

    def open(self, path):
        session = self.library.InferenceSession(str(path), self.options, providers=["CPUExecutionProvider"])
        name = session.get_inputs()[0].name
        return lambda images: session.run(None, {name: images})[0]


class OpenCv:
    def __init__(self, threads):
        import cv2
        self.library = cv2
        cv2.setNumThreads(threads)
        self.name = f"OpenCV {cv2.__version__}"

    def open(self, path):
        """Opens the file again for each size of a batch: OpenCV 4.10 adds wrong numbers in residual networks after a change."""
        networks = {}

        def outputs(images):
            if len(images) not in networks:
                network = networks[len(images)] = self.library.dnn.readNetFromONNX(str(path))
                network.setPreferableBackend(self.library.dnn.DNN_BACKEND_OPENCV)
            network = networks[len(images)]
            network.setInput(images.astype(np.float32))
            return network.forward().copy()
        return outputs


def softmax(logits):
    shifted = np.exp(logits.astype(np.float64) - logits.max(1, keepdims=True))
    return shifted / shifted.sum(1, keepdims=True)


def largest_difference(run, images, wanted, batch):
    outputs = [run(images[begin:begin + batch]) for begin in range(0, len(images), batch)]
    return np.abs(softmax(np.concatenate(outputs)) - wanted).max()


def first_line(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rpartition("error: ")[2][:100] if lines else type(error).__name__


def check(file):
    """ONNX's own checker, with the types and shapes of every operator."""
    import onnx
    model = onnx.load(str(file))
    onnx.checker.check_model(model, full_check=True)
    onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    return f"checker {onnx.__version__}"


def compare(folder, readers, has_checker, arrays, limit):
    """Whether the files of a network are good, and how many runs its readers could not do."""
    wanted = np.load(folder / "probabilities.npy")
    good, impossible = True, 0
    for kind, images in arrays.items():
        file = folder / f"{kind}.onnx"
        results, runs = [], 0
        if has_checker:
            try:
                results.append(check(file) + ": accepted")
            except Exception as error:  # of several libraries' own kinds
                results.append("checker: REFUSED, " + first_line(error))
                good = False
        for reader in readers:
            for batch in (1, BATCH):
                try:
                    difference = largest_difference(reader.open(file), images, wanted, batch)
                    good &= bool(difference <= limit)
                    runs += 1
                    results.append(f"{reader.name} by {batch}: {difference:.1e}")
                except Exception as error:
                    results.append(f"{reader.name} by {batch}: cannot, {first_line(error)}")
                    impossible += 1
        good &= runs > 0 or not readers
        print(f"{folder.name} ({kind}): {len(images)} images; " + "; ".join(results), flush=True)
    return good, impossible


def opened(kinds, threads):
    readers = []
    for kind in kinds:
        try:
            readers.append(kind(threads))
        except ImportError as error:
            print(f"without: {error}")
    return readers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--models", nargs="*", help="of the folder; else all")
    parser.add_argument("--readers", nargs="+", default=["onnx", "onnxruntime", "opencv"],
                        choices=["onnx", "onnxruntime", "opencv"])
    parser.add_argument("--limit", type=float, default=1e-4, help="largest difference of a probability")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    kinds = {"onnxruntime": Onnxruntime, "opencv": OpenCv}
    readers = opened([kinds[name] for name in args.readers if name in kinds], args.threads)
    has_checker = False
    if "onnx" in args.readers:
        try:
            import onnx  # noqa: F401
            has_checker = True
        except ImportError as error:
            print(f"without: {error}")
    if not readers and not has_checker:
        sys.exit("onnx_readers: none of the readers is installed")
    arrays = {"normalised": np.load(args.folder / "images.npy"), "bytes": np.load(args.folder / "bytes.npy")}
    folders = sorted(path.parent for path in args.folder.glob("*/probabilities.npy"))
    if args.models:
        folders = [folder for folder in folders if folder.name in args.models]
    results = [compare(folder, readers, has_checker, arrays, args.limit) for folder in folders]
    if not results:
        sys.exit(f"onnx_readers: no networks in {args.folder}")
    good = sum(result for result, _ in results)
    print(f"onnx_readers: {good} of {len(results)} networks within {args.limit:g} wherever they run; "
          f"{sum(count for _, count in results)} runs that a reader could not do")
    return 0 if good == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
