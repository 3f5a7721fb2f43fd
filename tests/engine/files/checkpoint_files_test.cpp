// SPDX-License-Identifier: Apache-2.0
#include "engine/files/checkpoint_files.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "core/system/file.h"
#include "tests/faulty_file_system.h"
#include "tests/temporary_directory.h"

namespace stoker::engine {
namespace {

namespace fs = std::filesystem;

class CheckpointFilesTest : public ::testing::Test {
 protected:
  void SetUp() override { files_.prepare(); }

  void commit(int64_t updates, const std::string& content) {
    files_.commit(updates,
                  [&](const std::string& path) {
                    return std::map<std::string, FileRecord>{{"data", write_checkpoint_file(path + "/data", content)}};
                  },
                  {{"note", content}});
  }
  std::string content_of(int64_t updates) { return core::read_file(files_.path_of(updates) + "/data", 1000); }
  void damage(int64_t updates, const std::string& content) {
    std::ofstream(files_.path_of(updates) + "/data", std::ios::binary) << content;
  }
  std::string problem_with(int64_t updates) {
    try {
      verify_checkpoint(files_.path_of(updates));
    } catch (const core::Error& error) {
      return error.what();
    }
    return "";
  }

  const stoker::fixtures::TemporaryDirectory folder_;
  CheckpointFiles files_{folder_ / "checkpoints"};
};

TEST_F(CheckpointFilesTest, ACommitVerifiesAndLeavesNoTemporaryFolder) {
  commit(12, "hello");
  EXPECT_EQ(files_.list(), std::vector<int64_t>{12});
  EXPECT_EQ(verify_checkpoint(files_.path_of(12)).extra.at("note"), "hello");
  for (const auto& entry : fs::directory_iterator(files_.directory())) {
    EXPECT_NE(entry.path().filename().string()[0], '.') << entry.path();
  }
}

TEST_F(CheckpointFilesTest, AFailedSaveLeavesTheOldStateWhole) {
  commit(1, "old");
  const auto failing = [](const std::string& path) -> std::map<std::string, FileRecord> {
    write_checkpoint_file(path + "/data", "half");
    throw core::Error(core::ErrorKind::io, "disk full");
  };
  EXPECT_THROW(files_.commit(2, failing, {}), core::Error);
  EXPECT_EQ(files_.list(), std::vector<int64_t>{1});
  EXPECT_EQ(std::distance(fs::directory_iterator(files_.directory()), fs::directory_iterator()), 1);
}

TEST_F(CheckpointFilesTest, ARecordThatDoesNotMatchTheFileIsNeverCommitted) {
  const auto lying = [](const std::string& path) {
    write_checkpoint_file(path + "/data", "real");
    return std::map<std::string, FileRecord>{{"data", {4, std::string(32, '0')}}};
  };
  try {
    files_.commit(2, lying, {});
    FAIL() << "no error was thrown";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.kind(), core::ErrorKind::io) << "what was just written does not read back: " << error.what();
  }
  EXPECT_TRUE(files_.list().empty());
}

TEST_F(CheckpointFilesTest, TheSameUpdateIsReplaced) {
  commit(5, "first");
  commit(5, "second");
  EXPECT_EQ(content_of(5), "second");
  EXPECT_EQ(files_.list(), std::vector<int64_t>{5});
}

TEST_F(CheckpointFilesTest, AReplacedFileLeavesTheCheckpointWholeAndItsDigestThatOfTheSave) {
  files_.commit(5,
                [&](const std::string& path) {
                  return std::map<std::string, FileRecord>{{"data", write_checkpoint_file(path + "/data", "weights")},
                                                           {"text", write_checkpoint_file(path + "/text", "as saved")}};
                },
                {{"note", "x"}, {"rate", 0.1}});
  files_.point("best", 5);
  const std::string path = files_.path_of(5), digest = checkpoint_digest(path);
  const std::string manifest = core::read_file(path + "/manifest.json", 10'000);
  for (const char* const content : {"longer than before", "once more"}) {
    replace_in_checkpoint(files_.directory() + "/best", "text", content);
    EXPECT_EQ(problem_with(5), "");
    EXPECT_EQ(core::read_file(path + "/text", 1000), content);
    EXPECT_EQ(content_of(5), "weights");
    EXPECT_EQ(checkpoint_digest(path), digest);
    EXPECT_NE(core::read_file(path + "/manifest.json", 10'000), manifest);
    EXPECT_EQ(verify_checkpoint(path).updates, 5);
  }
  replace_in_checkpoint(path, "data", "other weights");
  EXPECT_EQ(checkpoint_digest(path), digest) << "what was replaced is known: text and data";
  std::ofstream(path + "/text") << "damaged";
  EXPECT_NE(problem_with(5), "");
  EXPECT_THROW(replace_in_checkpoint(path, "text", "y"), core::Error) << "a damaged one is left alone";
}

TEST_F(CheckpointFilesTest, FindsTheNewestThatVerifiesAndSkipsDamagedOnes) {
  commit(1, "one");
  commit(2, "two");
  commit(30, "thirty");
  damage(30, "thirtx");
  EXPECT_EQ(files_.newest_verified(), files_.path_of(2));
  damage(2, "t");
  EXPECT_EQ(files_.newest_verified(), files_.path_of(1));
  fs::remove(files_.path_of(1) + "/manifest.json");
  EXPECT_EQ(files_.newest_verified(), "");
}

TEST_F(CheckpointFilesTest, SaysWhatIsWrongWithADamagedCheckpoint) {
  commit(1, "hello");
  damage(1, "hellO");
  EXPECT_NE(problem_with(1).find("data is damaged: its digest differs"), std::string::npos) << problem_with(1);
  damage(1, "hel");
  EXPECT_NE(problem_with(1).find("it has 3 bytes, the manifest lists 5"), std::string::npos) << problem_with(1);
  fs::remove(files_.path_of(1) + "/data");
  EXPECT_NE(problem_with(1).find("data cannot be opened: No such file"), std::string::npos);
  std::ofstream(files_.path_of(1) + "/manifest.json")
      << R"({"format":1,"updates":1,"files":{"../../x":{"bytes":1,"xxh3_128":""}},"extra":{}})";
  EXPECT_NE(problem_with(1).find("names a file outside the checkpoint"), std::string::npos) << problem_with(1);
  for (const char* count : {"-1", "1.5", "1e300", "true", "18446744073709551615", "null", "\"1\""}) {
    std::ofstream(files_.path_of(1) + "/manifest.json")
        << R"({"format":1,"updates":)" << count << R"(,"files":{},"extra":{}})";
    EXPECT_NE(problem_with(1).find("its manifest has a number that is not a count"), std::string::npos)
        << problem_with(1);
  }
  std::ofstream(files_.path_of(1) + "/manifest.json")
      << R"({"format":1,"updates":1,"files":{"data\u0000x":{"bytes":5,"xxh3_128":""}},"extra":{}})";
  EXPECT_NE(problem_with(1).find("names a file outside the checkpoint"), std::string::npos) << problem_with(1);
  std::ofstream(files_.path_of(1) + "/manifest.json") << R"({"format":99})";
  EXPECT_NE(problem_with(1).find("newer version of this program"), std::string::npos) << problem_with(1);
}

TEST_F(CheckpointFilesTest, PruningKeepsTheNewestAndTheBestAndNeverFewerThanTwo) {
  for (int64_t updates : {1, 2, 3, 4, 5}) commit(updates, "x");
  files_.prune(/*keep_last=*/3, /*keep=*/{1});
  EXPECT_EQ(files_.list(), (std::vector<int64_t>{5, 4, 3, 1}));
  files_.prune(/*keep_last=*/0, /*keep=*/{});
  EXPECT_EQ(files_.list(), (std::vector<int64_t>{5, 4}));
}

TEST_F(CheckpointFilesTest, LinksPointAndMove) {
  commit(1, "x");
  commit(2, "y");
  EXPECT_EQ(files_.pointed("last"), -1);
  files_.point("last", 1);
  files_.point("last", 2);
  EXPECT_EQ(files_.pointed("last"), 2);
  EXPECT_EQ(core::read_file(files_.directory() + "/last/data", 10), "y");
  EXPECT_EQ(files_.list().size(), 2u) << "links are not checkpoints";
}

/// The error of `action` on these checkpoints when call number `call` fails.
core::Error error_under_fault(const std::string& directory, int64_t call, int error_number,
                              const std::function<void(CheckpointFiles&)>& action) {
  fixtures::FaultyFileSystem faulty(directory);
  faulty.fail_call(call, error_number);
  CheckpointFiles files(directory, faulty);
  try {
    action(files);
  } catch (const core::Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error was thrown";
  return core::Error(core::ErrorKind::bug, "");
}

TEST_F(CheckpointFilesTest, AFolderThatCannotBeListedIsAnErrorOfTheFileSystem) {
  for (const auto& action : std::vector<std::function<void(CheckpointFiles&)>>{
           [](CheckpointFiles& files) { files.list(); }, [](CheckpointFiles& files) { files.newest_verified(); }}) {
    EXPECT_EQ(error_under_fault(files_.directory(), 1, EACCES, action).kind(), core::ErrorKind::permission);
    EXPECT_EQ(error_under_fault(files_.directory(), 1, EIO, action).kind(), core::ErrorKind::io);
    EXPECT_EQ(error_under_fault(files_.directory(), 1, EMFILE, action).kind(), core::ErrorKind::os);
  }
}

TEST_F(CheckpointFilesTest, AFailureToReadIsNeverTakenForADamagedCheckpoint) {
  commit(1, "one");
  commit(2, "two");
  fixtures::FaultyFileSystem counting(files_.directory());
  CheckpointFiles counted(files_.directory(), counting);
  EXPECT_EQ(counted.newest_verified(), files_.path_of(2));
  for (int64_t call = 1; call <= counting.calls(); ++call) {
    const core::Error error =
        error_under_fault(files_.directory(), call, EIO, [](CheckpointFiles& files) { files.newest_verified(); });
    EXPECT_EQ(error.kind(), core::ErrorKind::io) << "call " << call << ": " << error.what();
  }
}

TEST_F(CheckpointFilesTest, ANameThatCannotBeSetAsideIsAnErrorOfTheFileSystem) {
  commit(1, "one");
  commit(2, "two");
  const auto set_aside = [](CheckpointFiles& files) { files.set_aside(2); };
  EXPECT_EQ(error_under_fault(files_.directory(), 2, EACCES, set_aside).kind(), core::ErrorKind::permission);
  EXPECT_EQ(error_under_fault(files_.directory(), 2, EIO, set_aside).kind(), core::ErrorKind::io);
  EXPECT_EQ(files_.list(), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(files_.set_aside(2), files_.directory() + "/superseded-step-00000002");
  EXPECT_EQ(files_.list(), std::vector<int64_t>{1});
}

TEST_F(CheckpointFilesTest, ASaveIntoAFolderThatIsGoneIsAnInputOutputError) {
  fs::remove_all(files_.directory());
  try {
    commit(1, "one");
    FAIL() << "no error was thrown";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.kind(), core::ErrorKind::io) << error.what();
  }
}

TEST_F(CheckpointFilesTest, PreparingSweepsWhatAnInterruptedSaveLeft) {
  fs::create_directories(files_.directory() + "/.tmp-00000003-99");
  folder_.write("checkpoints/.tmp-00000003-99/model.safetensors", "half");
  commit(1, "x");
  files_.prepare();
  EXPECT_EQ(std::distance(fs::directory_iterator(files_.directory()), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace stoker::engine
