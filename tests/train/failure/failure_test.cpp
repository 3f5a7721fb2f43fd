// SPDX-License-Identifier: Apache-2.0
// How foreign exceptions end the program.
#include "train/process/failure.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

#include "core/log.h"
#include "core/system/stop_signal.h"
#include "train/failure/result_output.h"

namespace cudnn_frontend {

class cudnnException : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace cudnn_frontend

namespace stoker::train {
namespace {

c10::Error c10_error(const std::string& text) { return c10::Error({"f", "f.cpp", 1}, text); }

TEST(FailureTest, DeviceErrorsOfLibrariesHaveTheExitCodeThatSchedulersNeed) {
  const auto kind_of = [](const std::string& text) { return error_of(c10_error(text), config::Options{}).kind(); };
  EXPECT_EQ(kind_of("CUDA error: unspecified launch failure"), core::ErrorKind::os);
  EXPECT_EQ(kind_of("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"), core::ErrorKind::os);
  EXPECT_EQ(kind_of("CUDA out of memory. Tried to allocate 2.00 GiB"), core::ErrorKind::out_of_memory);
  EXPECT_EQ(kind_of("CUDA error: no kernel image is available for execution on the device"),
            core::ErrorKind::unavailable)
      << "running the same command again would never help";
  EXPECT_EQ(kind_of("adaptive_avg_pool2d_backward_cuda does not have a deterministic implementation, but you set "
                    "'torch.use_deterministic_algorithms(True)'. You can turn off determinism just for this"),
            core::ErrorKind::config);
  EXPECT_EQ(kind_of("expected a tensor"), core::ErrorKind::bug);
}

TEST(FailureTest, AnErrorWithoutAMessageIsReportedByItsType) {
  class SilentError : public std::exception {
    const char* what() const noexcept override { return ""; }
  };
  for (const core::Error& error :
       {error_of(SilentError(), config::Options{}), error_of(c10_error(""), config::Options{})})
    EXPECT_NE(std::string(error.what()).find("without a message ("), std::string::npos) << error.what();
}

TEST(FailureTest, AnExceptionOfCudnnIsADeviceFailureWithOrWithoutAMessage) {
  for (const std::string text : {"", "CUDNN_STATUS_ALLOC_FAILED"}) {
    const core::Error error = error_of(cudnn_frontend::cudnnException(text), config::Options{});
    EXPECT_EQ(error.kind(), core::ErrorKind::os);
    EXPECT_NE(std::string(error.what()).find(text.empty() ? "cudnnException" : text), std::string::npos);
  }
}

[[gnu::noinline]] void throw_c10_error(const std::string& text) { throw c10_error(text); }

/// As a tensor is whose memory a lost device takes back.
struct ThrowsWhenDestroyed {
  ~ThrowsWhenDestroyed() {
    throw_c10_error("CUDA error: an illegal memory access was encountered");
  }  // NOLINT(bugprone-exception-escape)
};

TEST(LastLineDeathTest, ADestructorThatThrowsWhileADeviceFailureUnwindsEndsWith71AndALastLine) {
  EXPECT_EXIT(
      {
        install_terminate_handler();
        try {
          const ThrowsWhenDestroyed tensor;
          throw c10_error("CUDA error: unspecified launch failure");
        } catch (const std::exception&) {
        }
      },
      ::testing::ExitedWithCode(71), "the device failed: (.|\n)*train: exit=71 reason=error");
}

TEST(LastLineDeathTest, AnyOtherTerminationEndsWith70AndALastLine) {
  EXPECT_EXIT(
      {
        install_terminate_handler();
        []() noexcept { throw_c10_error("a planted bug"); }();
      },
      ::testing::ExitedWithCode(70), "a planted bug(.|\n)*train: exit=70 reason=error");
}

TEST(LastLineDeathTest, AConnectionThatBreaksInAThreadOfALibraryIsALostRank) {
  EXPECT_EXIT(
      {
        install_terminate_handler();
        const auto fail = [] { throw std::system_error(ECONNRESET, std::system_category()); };
        [&]() noexcept { fail(); }();
      },
      ::testing::ExitedWithCode(76), "a connection between ranks is broken(.|\n)*train: exit=76 reason=error");
}

TEST(LastLineDeathTest, ADeviceFailureIsLeftBeforeAnythingElseIsDestroyed) {
  EXPECT_EXIT(
      {
        const ThrowsWhenDestroyed feed;
        exit_on_device_failure(c10_error("CUDA error: uncorrectable ECC error encountered"));
      },
      ::testing::ExitedWithCode(71), "uncorrectable ECC(.|\n)*train: exit=71 reason=error");
}

TEST(FailureTest, WhatIsNoDeviceFailureReturns) {
  exit_on_device_failure(c10_error("CUDA out of memory. Tried to allocate 2.00 GiB"));
  exit_on_device_failure(c10_error("expected a tensor"));
  exit_on_device_failure(std::runtime_error("CUDA error: not thrown by LibTorch"));
}

TEST(ResultStreamTest, AFileThatAStopLeavesUnwrittenIsNotThereAndNamed) {
  const std::string path = (std::filesystem::temp_directory_path() / ("rows." + std::to_string(::getpid()))).string();
  std::string logged;
  core::set_console_writer([&](core::LogLevel, std::string_view line) { logged += line; });
  {
    ResultStream whole(path);
    EXPECT_TRUE(whole.write("a row"));
    whole.finish();
  }
  core::flush_log();
  EXPECT_EQ(logged, "");
  EXPECT_TRUE(std::filesystem::remove(path));
  {
    ResultStream stopped(path);
    EXPECT_TRUE(stopped.write("a row"));
    core::request_stop(SIGTERM);
  }
  core::request_stop(0);
  core::flush_log();
  core::set_console_writer(nullptr);
  EXPECT_EQ(logged, path + " was not written: the command was stopped");
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace stoker::train
