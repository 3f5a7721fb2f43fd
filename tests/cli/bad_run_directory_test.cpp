// SPDX-License-Identifier: Apache-2.0
// Places that cannot be written to: an error before data is read where possible; otherwise nothing is lost.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "bad_input.h"
#include "exit_codes.h"
#include "finished_run.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

class BadRunDirectory : public ::testing::TestWithParam<BadInput> {};

TEST_P(BadRunDirectory, IsRefused) {
  const Workplace work;
  write_idx(work);
  expect_refused(GetParam(), work);
}

std::function<Words(const Workplace&)> run_dir(const std::string& path) {
  return words(train_words({"--run-dir", path}));
}

/// The entry run/<name> is a folder where a file should be.
std::function<Words(const Workplace&)> folder_at(const std::string& name) {
  return [=](const Workplace& work) {
    fs::create_directories(work / ("run/" + name));
    return train_words();
  };
}

/// A configuration file from anybody names a log.
std::function<Words(const Workplace&)> log_file_of_a_file(const std::string& path) {
  return [=](const Workplace& work) {
    work.write("a.yaml", "log-file: " + path + "\n");
    return train_words({"-c", "a.yaml"});
  };
}

const std::vector<BadInput>& bad_run_directories() {
  static const std::vector<BadInput> all = {
      {"FileInTheWay",
       [](const Workplace& work) {
         work.write("run", "notes");
         return train_words();
       },
       kCannotCreate,
       {"cannot create folder run: a file is in the way", "choose another folder, or move the file"}},
      {"FileAbove",
       [](const Workplace& work) {
         work.write("file", "notes");
         return train_words({"--run-dir", "file/run"});
       },
       kCannotCreate,
       {"cannot create folder file/run: Not a directory"}},
      {"LinkThatLeadsNowhere",
       [](const Workplace& work) {
         fs::create_symlink("nowhere/at/all", work / "run");
         return train_words();
       },
       kCannotCreate,
       {"cannot create folder run"}},
      {"KernelFolder", run_dir("/proc/run"), kCannotCreate, {"cannot create folder /proc/run: "}},
      {"Device", run_dir("/dev/full"), kCannotCreate, {"cannot create folder /dev/full: a file is in the way"}},
      {"NameTooLong",
       run_dir(std::string(300, 'r')),
       kCannotCreate,
       {"cannot create folder rrr", "File name too long"}},
      {"EmptyName", run_dir(""), kUsage, {"--run-dir: no value given"}},
      {"FileForCheckpoints",
       [](const Workplace& work) {
         work.write("run/checkpoints", "notes");
         return train_words();
       },
       kCannotCreate,
       {"cannot create folder run/checkpoints: a file is in the way"}},
      {"FolderForLock", folder_at(".lock"), kCannotCreate, {"cannot create run/.lock: Is a directory"}},
      {"LinkForLock",
       [](const Workplace& work) {
         fs::create_directory(work / "run");
         fs::create_symlink(work / "precious", work / "run/.lock");
         return train_words();
       },
       kCannotCreate,
       {"cannot create run/.lock: it is a symbolic link"}},
      {"FolderForTrainLog", folder_at("train.log"), kCannotCreate, {"cannot open the log file run/train.log"}},
      {"PipeForTrainLog",
       [](const Workplace& work) {
         fs::create_directory(work / "run");
         ::mkfifo((work / "run/train.log").c_str(), 0600);
         return train_words();
       },
       kCannotCreate,
       {"cannot open the log file run/train.log: it is a pipe that nobody reads"}},
      {"FolderForConfig", folder_at("config.yaml"), kIo, {"cannot replace run/config.yaml: Is a directory"}},
      {"FolderForMetrics", folder_at("metrics.jsonl"), kIo, {"cannot open run/metrics.jsonl: Is a directory"}},
      {"LinkForTrainLog",
       [](const Workplace& work) {
         fs::create_directory(work / "run");
         fs::create_symlink(work / "precious", work / "run/train.log");
         return train_words();
       },
       kCannotCreate,
       {"cannot open the log file run/train.log: it is a symbolic link"}},
      {"LinkForMetrics",
       [](const Workplace& work) {
         fs::create_directory(work / "run");
         fs::create_symlink(work / "precious", work / "run/metrics.jsonl");
         return train_words();
       },
       kCannotCreate,
       {"cannot open run/metrics.jsonl: it is a symbolic link"}},
      {"ConfigOfAnotherProgram",
       [](const Workplace& work) {
         work.write("q/app/config.yaml", "port: 80\n");
         work.write("a.yaml", "run-dir: q/app\n");
         Words command = train_words({"-c", "a.yaml"});
         command.erase(std::find(command.begin(), command.end(), "--run-dir"),
                       std::find(command.begin(), command.end(), "--no-amp"));
         return command;
       },
       kConfig,
       {"q/app/config.yaml is there, and q/app holds no run", "choose another --run-dir"}},
      {"StatusOfAnotherProgram",
       [](const Workplace& work) {
         work.write("run/status.json", "{}\n");
         return train_words({"--fresh"});
       },
       kConfig,
       {"run/status.json is there, and run holds no run"}},
      {"LogOfAnotherProgram",
       [](const Workplace& work) {
         work.write("run/train.log", "started\n");
         return train_words();
       },
       kConfig,
       {"run/train.log is there, and run holds no run"}},
      {"LogFileOfAFileOutsideTheRun",
       log_file_of_a_file("precious"),
       kConfig,
       {"a.yaml:1: log-file: precious is not a .log file in"}},
      {"LogFileOfAFileAbove",
       log_file_of_a_file("run/../precious"),
       kConfig,
       {"log-file: run/../precious is not a .log"}},
      {"HiddenLogFileOfAFile", log_file_of_a_file("run/.bashrc"), kConfig, {"log-file: run/.bashrc is not a .log"}},
      {"LogFileOfAFileThroughALink",
       [](const Workplace& work) {
         fs::create_directory(work / "run");
         fs::create_directory_symlink(work.path(), work / "run/logs");
         return log_file_of_a_file("run/logs/precious.log")(work);
       },
       kConfig,
       {"log-file: run/logs/precious.log is not a .log"}},
      {"LogFileOfAFileThatIsNoLog",
       [](const Workplace& work) {
         work.write("run/bin/backup.log", "#!/bin/sh\n");
         return log_file_of_a_file("run/bin/backup.log")(work);
       },
       kConfig,
       {"log-file: run/bin/backup.log exists and is not a log file", "name another file"}},
      {"LogFileOfAFileInPlaceOfARecord",
       log_file_of_a_file("run/metrics.jsonl"),
       kConfig,
       {"log-file: run/metrics.jsonl is not a .log file", "log-file: run/more.log"}},
      {"LogFileOfAFileAmongCheckpoints",
       log_file_of_a_file("run/checkpoints/last/x.log"),
       kConfig,
       {"log-file: run/checkpoints/last/x.log is not a .log file", "outside checkpoints/"}},
      {"LogFileBelowAFile",
       [](const Workplace& work) {
         work.write("notes", "x");
         return train_words({"--log-file", "notes/a.log"});
       },
       kCannotCreate,
       {"cannot create folder notes: a file is in the way"}},
  };
  return all;
}

INSTANTIATE_TEST_SUITE_P(Place, BadRunDirectory, ::testing::ValuesIn(bad_run_directories()), name_of);

TEST(RunDirectoryOfOurs, MayHoldOtherFilesAndMayHaveLostSomeOfItsOwn) {
  const Workplace work;
  write_idx(work);
  work.write("run/slurm-7.out", "started\n");
  EXPECT_EQ(run(train_words(), work.path()).exit_code, 0);
  for (const char* const gone : {"run/train.log", "run/metrics.jsonl", "run/config.yaml", "run/.lock"}) {
    fs::remove(work / gone);
    const Ended ended = run(train_words({"--epochs", "1"}), work.path());
    EXPECT_EQ(ended.exit_code, 0) << gone << ended.err;
  }
}

TEST(RunDirectoryInUse, IsRefusedWithTheHolder) {
  const Workplace work;
  work.write("run/.lock", "pid 4711 on elsewhere");
  const int fd = ::open((work / "run/.lock").c_str(), O_RDWR | O_CLOEXEC);
  struct flock whole {};
  whole.l_type = F_WRLCK;
  ASSERT_EQ(::fcntl(fd, F_OFD_SETLK, &whole), 0);
  expect_refused(
      {"",
       words(train_words()),
       kInUse,
       {"another process uses this run directory (run/.lock): pid 4711 on elsewhere", "choose another --run-dir"}},
      work);
  ::close(fd);
  EXPECT_FALSE(fs::exists(work / "run/train.log"));
}

TEST(ReadOnlyRunDirectory, IsAMatterOfPermission) {
  const Workplace work;
  write_idx(work);
  fs::create_directories(work / "locked/run");
  ::chmod((work / "locked").c_str(), 0555);
  ::chmod((work / "locked/run").c_str(), 0555);
  ::chmod(work.path().c_str(), 0755);
  for (const std::string place : {"locked/run", "locked/other"}) {
    Launch launch;
    launch.words = train_words({"--run-dir", place});
    launch.directory = work.path();
    launch.unprivileged = true;
    const Ended ended = run(launch);
    if (ended.exit_code == kCannotStart) GTEST_SKIP() << "the program cannot be started without privileges from here";
    SCOPED_TRACE(story_of(launch.words, ended));
    EXPECT_EQ(ended.exit_code, kPermission);
    EXPECT_NE(ended.err.find(place), std::string::npos);
    EXPECT_NE(ended.err.find("Permission denied"), std::string::npos);
    EXPECT_EQ(last_line(ended.err), "train: exit=77 reason=error");
  }
  ::chmod((work / "locked/run").c_str(), 0755);
  ::chmod((work / "locked").c_str(), 0755);
}

TEST(FullDisk, EndsTheRunWithTheCauseAndLeavesNoHalfCheckpoint) {
  const Workplace work;
  write_idx(work);
  fs::create_directory(work / "small");
  Launch launch;
  launch.words = train_words({"--run-dir", "small/run", "--epochs", "3", "--save-every", "1u", "--no-space-check"});
  launch.directory = work.path();
  launch.small_disk = work / "small";
  const Ended ended = run(launch);
  if (ended.exit_code == kCannotStart) GTEST_SKIP() << "no private file system can be mounted here";
  SCOPED_TRACE(story_of(launch.words, ended));
  EXPECT_EQ(ended.exit_code, kIo);
  EXPECT_NE(ended.err.find("No space left on device"), std::string::npos);
  EXPECT_NE(ended.err.find("free some space, then run the same command again"), std::string::npos);
  EXPECT_EQ(last_line(ended.err), "train: exit=74 reason=error");
}

TEST(FullDisk, ARunWhoseCheckpointsDoNotFitTogetherIsRefused) {
  const Workplace work;
  write_idx(work);
  fs::create_directory(work / "small");
  Launch launch;
  launch.words = train_words({"--run-dir", "small/run", "--epochs", "6", "--width", "4"});
  launch.directory = work.path();
  launch.small_disk = work / "small";
  const Ended ended = run(launch);
  if (ended.exit_code == kCannotStart) GTEST_SKIP() << "no private file system can be mounted here";
  SCOPED_TRACE(story_of(launch.words, ended));
  EXPECT_EQ(ended.exit_code, kCannotCreate);
  EXPECT_NE(ended.err.find("; 4 checkpoints of "), std::string::npos) << "the last two, the best, and one on its way";
  EXPECT_NE(ended.err.find("free some space"), std::string::npos);
  EXPECT_EQ(ended.err.find("lower --keep-last"), std::string::npos) << "the last two always stay";
}

TEST(FileSizeLimit, EndsTheRunLikeAFullDiskAndKeepsTheLastCheckpoint) {
  const Workplace work;
  place_finished_run(work);
  const std::string before = listing_of(work / "run/checkpoints");
  Launch launch;
  launch.words = finished_run_words({"--epochs", "3", "--override-resume"});
  launch.directory = work.path();
  launch.file_size_limit = 64 << 10;  // less than the weights need
  const Ended ended = run(launch);
  SCOPED_TRACE(story_of(launch.words, ended));
  EXPECT_EQ(ended.signal, 0);
  EXPECT_EQ(ended.exit_code, kIo);
  EXPECT_NE(ended.err.find("model.safetensors: File too large"), std::string::npos);
  EXPECT_EQ(last_line(ended.err), "train: exit=74 reason=error");
  EXPECT_EQ(listing_of(work / "run/checkpoints"), before);
  expect_nothing_half_written(work);
}

/// As somebody who may not read `path`; skipped where the program cannot be started so.
void expect_unreadable(const Workplace& work, const std::string& path, int exit_code, const Words& words) {
  ::chmod((work / path).c_str(), 0);
  ::chmod(work.path().c_str(), 0777);
  Launch launch;
  launch.words = words;
  launch.directory = work.path();
  launch.unprivileged = true;
  const Ended ended = run(launch);
  ::chmod((work / path).c_str(), 0700);
  if (ended.exit_code == kCannotStart) GTEST_SKIP() << "the program cannot be started without privileges from here";
  SCOPED_TRACE(story_of(launch.words, ended));
  EXPECT_EQ(ended.exit_code, exit_code);
  EXPECT_NE(ended.err.find(path + ": Permission denied"), std::string::npos);
}

TEST(UnreadableInput, IsNamedWithTheCause) {
  const Workplace work;
  write_idx(work);
  work.write("c.yaml", "epochs: 1\n");
  expect_unreadable(work, "c.yaml", kNoInput, train_words({"-c", "c.yaml"}));
  expect_unreadable(work, "data/train-images-idx3-ubyte", kPermission, train_words());
}

TEST(UnreadableInput, MayBeAClassFolder) {
  const Workplace work;
  write_folders(work);
  expect_unreadable(work, "data/train/dog", kPermission, train_words({"--batch-size", "5"}));
}

TEST(UnreadableInput, MayBeAnImage) {
  const Workplace work;
  write_folders(work);
  const auto first = fs::directory_iterator(work / "data/train/dog")->path();
  expect_unreadable(work, "data/train/dog/" + first.filename().string(), kPermission,
                    train_words({"--batch-size", "5", "--on-bad-image", "fail"}));
}

TEST(UnreadableInput, MayBeTheFolderOfCheckpoints) {
  const Workplace work;
  write_idx(work);
  fs::create_directories(work / "run/checkpoints");
  ::chmod((work / "run").c_str(), 0777);
  expect_unreadable(work, "run/checkpoints", kPermission, train_words());
}

TEST(ProcessLimit, WithoutThreadsIsAMatterOfTheSystemAndDoesNotHang) {
  const Workplace work;
  write_idx(work);
  ::chmod(work.path().c_str(), 0777);
  Launch launch;
  launch.words = train_words({"--threads", "4"});
  launch.directory = work.path();
  launch.unprivileged = true;
  launch.process_limit = 1;
  const Ended ended = run(launch);
  if (ended.exit_code == kCannotStart) GTEST_SKIP() << "the program cannot be started without privileges from here";
  SCOPED_TRACE(story_of(launch.words, ended));
  EXPECT_EQ(ended.exit_code, kOs);
  EXPECT_NE(ended.err.find("threads could be started"), std::string::npos);
  EXPECT_NE(ended.err.find("ulimit -u"), std::string::npos);
}

TEST(OutputOfACommand, NeverReplacesWhatIsRead) {
  const Workplace work;
  place_finished_run(work);
  const std::string image = png_of(8, 8, 90);
  work.write("images/a.png", image);
  work.write("list.txt", "images/a.png\n");
  fs::create_hard_link(work / "images/a.png", work / "same.png");
  fs::create_symlink("images/a.png", work / "link.png");
  const std::string weights = "run/checkpoints/step-00000008/model.safetensors";
  const std::string before = content_of_file(work / weights);
  const std::vector<Words> commands = {{"predict", "run", "images/a.png", "-o", "images/a.png"},
                                       {"predict", "run", "images/a.png", "-o", "same.png"},
                                       {"predict", "run", "images/a.png", "-o", "link.png"},
                                       {"predict", "run", "images", "-o", "images/a.png"},
                                       {"predict", "run", "@list.txt", "-o", "list.txt"},
                                       {"predict", "run", "images", "-o", weights},
                                       {"export", "run", "--format", "safetensors", "-o", weights},
                                       {"predict", "run", "images", "-o", "run/summary.csv"},
                                       {"runs", "run", "--html", "-o", "run/summary.csv"},
                                       {"import", weights, "-o", weights},
                                       {"audit", "--data-dir", "images", "-o", "images/a.png"},
                                       {"preview", "--data-dir", "images", "-o", "images/a.png"}};
  for (const Words& words : commands) {
    const Ended ended = run(words, work.path());
    EXPECT_EQ(ended.exit_code, kUsage) << story_of(words, ended);
    EXPECT_NE(ended.err.find("would replace what is read"), std::string::npos) << story_of(words, ended);
  }
  EXPECT_EQ(content_of_file(work / "images/a.png"), image);
  EXPECT_EQ(content_of_file(work / "list.txt"), "images/a.png\n");
  EXPECT_TRUE(content_of_file(work / weights) == before);
  work.write("images/answers.csv", "path,class\n");
  EXPECT_EQ(run({"predict", "run", "images/a.png", "-o", "images/answers.csv"}, work.path()).exit_code, 0);
}

TEST(OutputOfPredict, ThatCannotBeWrittenIsAnError) {
  const Workplace work;
  place_finished_run(work);
  work.write("a.png", png_of(8, 8, 50));
  fs::create_symlink("/dev/full", work / "full");
  const BadInput full = {"",
                         words({"predict", "run", "a.png", "--threads", "1", "--output", "full"}),
                         kIo,
                         {"cannot write full: No space left on device"}};
  expect_refused(full, work);
  EXPECT_TRUE(fs::is_symlink(work / "full")) << "a device is written to, never replaced";
  expect_refused({"",
                  words({"predict", "run", "a.png", "--threads", "1", "--output", "nowhere/a.csv"}),
                  kCannotCreate,
                  {"nowhere/a.csv"}},
                 work);
}

TEST(OutputOfPredict, ThatIsLostOnItsWayToStandardOutputIsAnError) {
  const Workplace work;
  place_finished_run(work);
  work.write("a.png", png_of(8, 8, 50));
  Launch launch;
  launch.words = {"predict", "run", "a.png", "--threads", "1"};
  launch.directory = work.path();
  launch.standard_output = Stream::full;
  const Ended ended = run(launch);
  SCOPED_TRACE(story_of(launch.words, ended));
  EXPECT_EQ(ended.exit_code, kIo);
  EXPECT_NE(ended.err.find("cannot write standard output: No space left on device"), std::string::npos);
}

}  // namespace
}  // namespace stoker::cli
