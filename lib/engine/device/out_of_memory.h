// SPDX-License-Identifier: Apache-2.0
// Which exceptions mean that memory ran out, of the host or of a device. Torch-free header.
#pragma once

#include <exception>
#include <string>

namespace stoker::engine {

/// std::bad_alloc, CUDA's OutOfMemoryError, what the CPU allocator throws, and our own Error{out_of_memory}. By type
/// where there is one and by its words elsewhere: cuBLAS and cuDNN report it in words only.
bool is_out_of_memory(const std::exception& error);
/// For a device of whose memory the share `free` (0 to 1) is left. Where memory is short cuDNN reports only that it
/// finds no algorithm, which is also its error when there is none.
bool is_out_of_memory(const std::exception& error, double free);

/// The message of an exception, without the list of frames that LibTorch adds.
std::string short_text_of(const std::exception& error);

}  // namespace stoker::engine
