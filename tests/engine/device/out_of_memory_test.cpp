// SPDX-License-Identifier: Apache-2.0
#include "engine/device/device.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <new>

#include "core/error.h"

namespace stoker::engine {
namespace {

TEST(OutOfMemoryTest, MemoryIsKnownToHaveRunOutByTypeAndByWords) {
  EXPECT_TRUE(is_out_of_memory(std::bad_alloc()));
  EXPECT_TRUE(is_out_of_memory(core::Error(core::ErrorKind::out_of_memory, "x")));
  EXPECT_FALSE(is_out_of_memory(core::Error(core::ErrorKind::io, "out of memory")));
  EXPECT_FALSE(is_out_of_memory(std::runtime_error("out of memory")));
  try {
    at::empty({int64_t{1} << 60});
    FAIL() << "an exbibyte";
  } catch (const std::exception& error) {
    EXPECT_TRUE(is_out_of_memory(error)) << error.what();
  }
  try {
    at::empty({2}).view({3});
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_FALSE(is_out_of_memory(error));
    EXPECT_EQ(short_text_of(error).find("frame #"), std::string::npos);
  }
}

/// Messages of CUDA, cuBLAS and cuDNN.
c10::Error error_with(const std::string& text) { return c10::Error({"f", "f.cpp", 1}, text); }

TEST(OutOfMemoryTest, EveryTextThatMeansItIsKnown) {
  for (const char* const text : {"CUDA out of memory. Tried to allocate 2.00 GiB", "CUDA error: out of memory",
                                 "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
                                 "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
                                 "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
                                 "NVML_SUCCESS == r INTERNAL ASSERT FAILED at \"CUDACachingAllocator.cpp\":1000"}) {
    EXPECT_TRUE(is_out_of_memory(error_with(text), /*free=*/0.9)) << text;
  }
  for (const char* const text :
       {"CUDA error: an illegal memory access was encountered", "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
        "CUDA error: device-side assert triggered"}) {
    EXPECT_FALSE(is_out_of_memory(error_with(text), /*free=*/0.01)) << text;
  }
}

TEST(OutOfMemoryTest, ALackOfConvolutionsIsALackOfMemoryWhereThereIsLittle) {
  for (const char* const text : {"FIND was unable to find an engine to execute this computation",
                                 "GET was unable to find an engine to execute this computation",
                                 "Unable to find a valid cuDNN algorithm to run convolution"}) {
    EXPECT_TRUE(is_out_of_memory(error_with(text), /*free=*/0.05)) << text;
    EXPECT_FALSE(is_out_of_memory(error_with(text), /*free=*/0.5)) << text;
    EXPECT_FALSE(is_out_of_memory(std::runtime_error(text), /*free=*/0.05)) << "not LibTorch's";
  }
}

TEST(OutOfMemoryTest, AskingADeviceThatWasNeverUsedForItsMemoryDoesNotThrow) {
  const DeviceMemory memory = device_memory_by([](DeviceMemory& known) {
    known.free_bytes = 1;
    throw error_with("Allocator not initialized for device 0: did you call init?");
  });
  EXPECT_EQ(memory.free_bytes, 1) << "what was read before is kept";
  EXPECT_EQ(memory.peak_bytes, 0);
  EXPECT_EQ(free_memory_share(torch::kCPU), 1);
}

TEST(DeviceTest, AUuidIsWrittenAsDriversWriteIt) {
  const unsigned char bytes[16] = {0x1b, 0x4e, 0x28, 0xba, 0x2f, 0xa1, 0x11, 0xd2,
                                   0x88, 0x3f, 0x00, 0x16, 0xd3, 0xcc, 0xa4, 0x27};
  EXPECT_EQ(uuid_text(reinterpret_cast<const char*>(bytes)), "1b4e28ba-2fa1-11d2-883f-0016d3cca427");
}

}  // namespace
}  // namespace stoker::engine
