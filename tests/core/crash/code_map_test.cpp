// SPDX-License-Identifier: Apache-2.0
#include "core/crash/code_map.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "tests/temporary_directory.h"

namespace stoker::core {
namespace {

class CodeMapTest : public ::testing::Test {
 protected:
  void read() { map_->read(std::filesystem::read_symlink("/proc/self/exe").c_str(), "program"); }
  std::string file_of(const void* address) const {
    const char* const file = map_->file_of(reinterpret_cast<uintptr_t>(address));
    return file != nullptr ? file : "";
  }

  const std::unique_ptr<CodeMap> map_ = std::make_unique<CodeMap>();
};

int somewhere() { return 1; }

TEST_F(CodeMapTest, FindsTheProgramAndLibrariesByTheirNames) {
  read();
  EXPECT_EQ(file_of(reinterpret_cast<const void*>(&somewhere)), "program");
  EXPECT_EQ(file_of(reinterpret_cast<const void*>(&::getpid)).rfind("libc", 0), 0u);
}

TEST_F(CodeMapTest, DataAndNothingAreInNoFile) {
  read();
  const int on_stack = 0;
  EXPECT_EQ(file_of(&on_stack), "");
  EXPECT_EQ(file_of(map_.get()), "");
  EXPECT_EQ(file_of(nullptr), "");
}

TEST_F(CodeMapTest, AFileThatWasRemovedKeepsItsName) {
  const fixtures::TemporaryDirectory folder;
  folder.write("lib with space.so", std::string(4096, '\0'));
  const std::string path = folder / "lib with space.so";
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const void* const code = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
  ::close(fd);
  if (code == MAP_FAILED) GTEST_SKIP() << "code may not be mapped from " << folder.path();
  std::filesystem::remove(path);
  read();
  EXPECT_EQ(file_of(code), "lib with space.so");
  ::munmap(const_cast<void*>(code), 4096);
}

TEST(CopyIfThereTest, CopiesUpToTheEndOfMemory) {
  char* const pages =
      static_cast<char*>(::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  pages[4095] = 'x';
  ::munmap(pages + 4096, 4096);
  char copy[200] = "";
  EXPECT_EQ(copy_if_there(reinterpret_cast<uintptr_t>(pages + 3996), copy, sizeof copy), 100u);
  EXPECT_EQ(copy[99], 'x');
  EXPECT_EQ(copy_if_there(8, copy, sizeof copy), 0u);
  ::munmap(pages, 4096);
}

}  // namespace
}  // namespace stoker::core
