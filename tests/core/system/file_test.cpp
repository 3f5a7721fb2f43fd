// SPDX-License-Identifier: Apache-2.0
#include "core/system/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "core/error.h"
#include "tests/faulty_file_system.h"
#include "tests/temporary_directory.h"

namespace stoker::core {
namespace {

using fixtures::FaultyFileSystem;
using fixtures::TemporaryDirectory;
using fixtures::Unsynced;

template <typename Action>
Error error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error was thrown";
  return Error(ErrorKind::bug, "");
}

TEST(ReadFileTest, ReturnsTheWholeContent) {
  const TemporaryDirectory folder;
  EXPECT_EQ(read_file(folder.write("a", std::string("x\0y", 3)), 10), std::string("x\0y", 3));
}

TEST(ReadFileTest, NamesThePathAndCauseOfEveryFailure) {
  const TemporaryDirectory folder;
  const Error missing = error_of([&] { read_file(folder / "none", 10); });
  EXPECT_EQ(missing.kind(), ErrorKind::no_input);
  EXPECT_NE(std::string(missing.what()).find("none: No such file"), std::string::npos) << missing.what();
  const Error directory = error_of([&] { read_file(folder.path(), 10); });
  EXPECT_EQ(directory.kind(), ErrorKind::no_input);
  EXPECT_NE(std::string(directory.what()).find("it is a directory"), std::string::npos);
  const Error longer = error_of([&] { read_file(folder.write("big", "12345678901"), 10); });
  EXPECT_EQ(longer.kind(), ErrorKind::data);
}

TEST(ReadFileTest, RefusesAFifoWithoutHanging) {
  const TemporaryDirectory folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const Error error = error_of([&] { read_file(folder / "pipe", 10); });
  EXPECT_NE(std::string(error.what()).find("not a regular file"), std::string::npos);
}

TEST(CheckedWriterTest, AFolderThatIsThereAndTakesNoFilesIsNotMissing) {
  if (::geteuid() != 0) GTEST_SKIP() << "others may not write there at all";
  const Error error = error_of([] { CheckedWriter("/proc/a.onnx"); });
  EXPECT_EQ(error.kind(), ErrorKind::cannot_create);
  EXPECT_EQ(error.hint().find("not there"), std::string::npos) << error.hint();
  const TemporaryDirectory folder;
  const Error gone = error_of([&] { CheckedWriter(folder / "none/a.onnx"); });
  EXPECT_NE(gone.hint().find("its folder is not there"), std::string::npos) << gone.hint();
}

TEST(CheckedWriterTest, LeavesNothingWhenItIsNotFinished) {
  const TemporaryDirectory folder;
  {
    CheckedWriter writer(folder / "half");
    writer.write("abc", 3);
  }
  EXPECT_FALSE(file_exists(folder / "half"));
  CheckedWriter writer(folder / "whole");
  writer.write("abc", 3);
  writer.finish();
  EXPECT_EQ(read_file(folder / "whole", 10), "abc");
}

TEST(CheckedWriterTest, AFolderThatIsGoneIsAnErrorOfWriting) {
  const TemporaryDirectory folder;
  EXPECT_EQ(error_of([&] { CheckedWriter writer(folder / "gone/file"); }).kind(), ErrorKind::io);
}

TEST(CheckedWriterTest, NeverOverwritesAndNeverFollowsLinks) {
  const TemporaryDirectory folder;
  folder.write("target", "precious");
  ASSERT_EQ(::symlink((folder / "target").c_str(), (folder / "link").c_str()), 0);
  EXPECT_EQ(error_of([&] { CheckedWriter writer(folder / "link"); }).kind(), ErrorKind::cannot_create);
  EXPECT_EQ(error_of([&] { CheckedWriter writer(folder / "target"); }).kind(), ErrorKind::cannot_create);
  EXPECT_EQ(read_file(folder / "target", 10), "precious");
}

TEST(CheckedWriterTest, AFullDiskIsAnInputOutputErrorAndLeavesNothing) {
  for (const int64_t call : {2, 3, 4}) {  // write, sync, close
    const TemporaryDirectory folder;
    FaultyFileSystem files(folder.path());
    files.fail_call(call, ENOSPC);
    const Error error = error_of([&] {
      CheckedWriter writer(folder / "a", files);
      writer.write("abc", 3);
      writer.finish();
    });
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_NE(std::string(error.what()).find("a: No space left on device"), std::string::npos) << error.what();
    EXPECT_FALSE(file_exists(folder / "a")) << "call " << call;
  }
}

TEST(OutputErrorTest, AFolderThatIsGoneIsNoWrongInput) {
  const TemporaryDirectory folder;
  EXPECT_EQ(error_of([&] { append_file(folder / "gone/a", "x", false); }).kind(), ErrorKind::io);
  const Error error = error_of([&] { write_file_atomically(folder / "gone/a", "x", false); });
  EXPECT_EQ(error.kind(), ErrorKind::cannot_create);
  EXPECT_NE(error.hint().find("look who removed or moved it"), std::string::npos) << error.hint();
}

TEST(ErrnoErrorTest, TooManyOpenFilesAreAMatterOfTheSystem) {
  EXPECT_EQ(errno_error(EMFILE, "read", "x", ErrorKind::no_input).kind(), ErrorKind::os);
  EXPECT_EQ(errno_error(ENFILE, "read", "x", ErrorKind::io).kind(), ErrorKind::os);
}

TEST(AppendFileTest, AFailedWriteLeavesNoHalfLine) {
  const TemporaryDirectory folder;
  folder.write("log", "one\n");
  FaultyFileSystem files(folder.path());
  files.fail_call(3, ENOSPC);  // open, size, write
  EXPECT_EQ(error_of([&] { append_file(folder / "log", "second\n", false, files); }).kind(), ErrorKind::io);
  EXPECT_EQ(read_file(folder / "log", 100), "one\n");
  append_file(folder / "log", "third\n", false, files);
  EXPECT_EQ(read_file(folder / "log", 100), "one\nthird\n");
}

TEST(AppendFileTest, DoesNotWaitForThePipeThatIsInTheWay) {
  const TemporaryDirectory folder;
  ASSERT_EQ(::mkfifo((folder / "log").c_str(), 0600), 0);
  const Error error = error_of([&] { append_file(folder / "log", "x", false); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_NE(std::string(error.what()).find("not a regular file"), std::string::npos) << error.what();
}

TEST(CutHalfLineTest, KeepsWholeLinesOnly) {
  const TemporaryDirectory folder;
  const std::string lines = std::string(100'000, 'a') + "\nb\n";  // longer than a block
  for (const auto& [before, after] : std::vector<std::pair<std::string, std::string>>{
           {"", ""}, {"half", ""}, {lines, lines}, {lines + "half", lines}, {lines + std::string(9, '\0'), lines}}) {
    folder.write("log", before);
    EXPECT_EQ(cut_half_line(folder / "log"), before.size() - after.size());
    EXPECT_EQ(read_file(folder / "log", 1 << 20), after);
  }
}

TEST(RemoveTreeTest, RemovesAllAndFollowsNoLink) {
  const TemporaryDirectory folder;
  folder.write("kept/file", "precious");
  folder.write("tree/deep/file", "x");
  ASSERT_EQ(::symlink((folder / "kept").c_str(), (folder / "tree/link").c_str()), 0);
  EXPECT_EQ(remove_tree(folder / "tree"), 0);
  EXPECT_FALSE(file_exists(folder / "tree"));
  EXPECT_TRUE(file_exists(folder / "kept/file"));
  EXPECT_EQ(remove_tree(folder / "tree"), 0) << "nothing is there";
}

TEST(AtomicWriteTest, APowerLossAfterAnyCallLeavesTheOldOrTheNewContent) {
  const int64_t calls = 7;  // remove, create, write, sync, close, rename, sync of the folder
  for (const auto unsynced : {Unsynced::kept, Unsynced::lost, Unsynced::names_outlive}) {
    for (int64_t call = 0; call <= calls; ++call) {
      const TemporaryDirectory folder;
      folder.write("a", "old");
      FaultyFileSystem files(folder.path());
      files.cut_power_after(call);
      bool is_done = true;
      try {
        write_file_atomically(folder / "a", "new", /*durable=*/true, files);
      } catch (const Error&) {
        is_done = false;
      }
      files.restart(unsynced);
      const std::string content = read_file(folder / "a", 10);
      EXPECT_TRUE(content == "new" || (content == "old" && !is_done)) << content << " after call " << call;
    }
  }
}

TEST(AtomicWriteTest, ReplacesContentAndLeavesNoTemporaryFile) {
  const TemporaryDirectory folder;
  write_file_atomically(folder / "a", "one", true);
  write_file_atomically(folder / "a", "two", true);
  EXPECT_EQ(read_file(folder / "a", 10), "two");
  int entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++entries;
  EXPECT_EQ(entries, 1);
}

TEST(FileUriTest, NamesAPathOfAnyBytesAndGivesItBack) {
  EXPECT_EQ(file_uri("/my runs/50% #1"), "file:///my%20runs/50%25%20%231");
  EXPECT_EQ(file_uri("/a-b_c.d~"), "file:///a-b_c.d~");
  const std::string path = "/r\xc3\xbcn/?\xff\n";
  EXPECT_EQ(file_uri(path), "file:///r%C3%BCn/%3F%FF%0A");
  EXPECT_EQ(path_of_file_uri(file_uri(path)), path);
  EXPECT_EQ(path_of_file_uri("file:///my runs"), "/my runs");
  for (const char* const other :
       {"", "/a", "file://host/a", "https://a/b", "file:///a%2", "file:///a%zz", "file:///a%00b"}) {
    EXPECT_EQ(path_of_file_uri(other), "") << other;
  }
}

TEST(MakeDirectoriesTest, CreatesParentsAndSaysWhenAFileIsInTheWay) {
  const TemporaryDirectory folder;
  make_directories(folder / "a/b/c");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b/c"));
  folder.write("file", "");
  EXPECT_EQ(error_of([&] { make_directories(folder / "file"); }).kind(), ErrorKind::cannot_create);
  EXPECT_EQ(error_of([&] { make_directories(folder / "file/x"); }).kind(), ErrorKind::cannot_create);
}

TEST(LockFileTest, RefusesASecondHolderByNameAndIsFreeAfterTheFirst) {
  const TemporaryDirectory folder;
  {
    const LockFile held(folder / ".lock");
    const Error error = error_of([&] { const LockFile second(folder / ".lock"); });
    EXPECT_EQ(error.kind(), ErrorKind::run_dir_in_use);
    EXPECT_NE(std::string(error.what()).find("pid " + std::to_string(::getpid())), std::string::npos) << error.what();
  }
  const LockFile again(folder / ".lock");
}

TEST(LockFileTest, IsForItsOwnerAlone) {
  const TemporaryDirectory folder;
  const mode_t before = ::umask(0);
  const LockFile held(folder / ".lock");
  ::umask(before);
  struct stat info {};
  ASSERT_EQ(::stat((folder / ".lock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u) << "who can open it could hold it";
}

TEST(LockFileTest, IsDroppedWhenTheHolderIsKilled) {
  const TemporaryDirectory folder;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const LockFile held(folder / ".lock");
    (void)!::write(ready[1], "x", 1);
    ::pause();
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_THROW(LockFile(folder / ".lock"), Error);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const LockFile again(folder / ".lock");
}

}  // namespace
}  // namespace stoker::core
