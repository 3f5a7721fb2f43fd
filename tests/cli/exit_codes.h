// SPDX-License-Identifier: Apache-2.0
// The exit codes that tests of the program expect, as docs/reference/exit-codes.md promises them.
#pragma once

namespace stoker::cli {

inline constexpr int kUsage = 64;         ///< bad command line
inline constexpr int kData = 65;          ///< bad data
inline constexpr int kNoInput = 66;       ///< an input cannot be opened
inline constexpr int kUnavailable = 69;   ///< a device or library is not there
inline constexpr int kOs = 71;            ///< the operating system refuses
inline constexpr int kCannotCreate = 73;  ///< an output cannot be made
inline constexpr int kIo = 74;            ///< reading or writing fails
inline constexpr int kStopped = 75;       ///< stopped on request, checkpoint saved
inline constexpr int kPermission = 77;    ///< permission denied
inline constexpr int kConfig = 78;        ///< options that do not fit
inline constexpr int kDiverged = 80;      ///< the loss is not a number
inline constexpr int kOutOfMemory = 81;   ///< out of memory
inline constexpr int kInUse = 82;         ///< another run holds the directory
inline constexpr int kInterrupted = 130;  ///< stopped at once by a second signal

}  // namespace stoker::cli
