# SPDX-License-Identifier: Apache-2.0
"""HDF5 files as `train` reads them, written with the C library (libhdf5-dev, or libhdf5-103 and the like) and nothing but Python."""
import array
import ctypes
import ctypes.util
import sys

TRUNCATE = 2


def library():
    name = ctypes.util.find_library("hdf5_serial") or ctypes.util.find_library("hdf5")
    hdf5 = ctypes.CDLL(name or sys.exit("this needs the HDF5 library"))
    number = ctypes.c_int64
    hdf5.H5Fcreate.restype = hdf5.H5Screate_simple.restype = hdf5.H5Dcreate2.restype = number
    hdf5.H5Fcreate.argtypes = [ctypes.c_char_p, ctypes.c_uint, number, number]
    hdf5.H5Screate_simple.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_uint64), ctypes.c_void_p]
    hdf5.H5Dcreate2.argtypes = [number, ctypes.c_char_p, number, number, number, number, number]
    hdf5.H5Dwrite.argtypes = [number, number, number, number, number, ctypes.c_void_p]
    for close in (hdf5.H5Dclose, hdf5.H5Sclose, hdf5.H5Fclose):
        close.argtypes = [number]
    hdf5.H5open()
    return hdf5


def write_hdf5(path, inputs, shape, labels):
    """x float32 of `shape`, whose numbers are `inputs`, an array("f"), and y int64."""
    hdf5 = library()
    file = hdf5.H5Fcreate(str(path).encode(), TRUNCATE, 0, 0)
    if file < 0:
        sys.exit(f"{path} cannot be written")
    tables = [(b"x", "H5T_IEEE_F32LE_g", inputs, shape), (b"y", "H5T_STD_I64LE_g", array.array("q", labels), [len(labels)])]
    for name, kind, values, sizes in tables:
        kind = ctypes.c_int64.in_dll(hdf5, kind).value
        space = hdf5.H5Screate_simple(len(sizes), (ctypes.c_uint64 * len(sizes))(*sizes), None)
        table = hdf5.H5Dcreate2(file, name, kind, space, 0, 0, 0)
        if hdf5.H5Dwrite(table, kind, 0, 0, 0, ctypes.c_void_p(values.buffer_info()[0])) < 0:
            sys.exit(f"{path} cannot be written")
        hdf5.H5Dclose(table)
        hdf5.H5Sclose(space)
    hdf5.H5Fclose(file)
