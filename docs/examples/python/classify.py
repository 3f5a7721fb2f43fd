#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""classify.py RUN IMAGE...: the most probable class of each image, by libstoker, without torch in Python."""
import ctypes
import sys

library = ctypes.CDLL("libstoker.so.0")
library.stoker_open.restype = ctypes.c_void_p
library.stoker_open.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
library.stoker_outputs.restype = ctypes.c_int64
library.stoker_outputs.argtypes = [ctypes.c_void_p]
library.stoker_name.restype = ctypes.c_char_p
library.stoker_name.argtypes = [ctypes.c_void_p, ctypes.c_int64]
library.stoker_classify_file_bytes.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t,
                                               ctypes.POINTER(ctypes.c_float)]
library.stoker_close.argtypes = [ctypes.c_void_p]
library.stoker_error.restype = ctypes.c_char_p

network = library.stoker_open(sys.argv[1].encode(), None)
if not network:
    sys.exit(library.stoker_error().decode())
predictions = (ctypes.c_float * library.stoker_outputs(network))()
for path in sys.argv[2:]:
    with open(path, "rb") as file:
        content = file.read()
    if library.stoker_classify_file_bytes(network, content, len(content), predictions) != 0:
        sys.exit(f"{path}: {library.stoker_error().decode()}")
    best = max(range(len(predictions)), key=lambda i: predictions[i])
    print(path, library.stoker_name(network, best).decode(), f"{predictions[best]:.6f}")
library.stoker_close(network)
