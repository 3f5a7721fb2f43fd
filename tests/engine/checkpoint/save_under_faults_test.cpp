// SPDX-License-Identifier: Apache-2.0
// Every call that a save makes fails once, and the power goes once after every call: the end is the documented error,
// and a whole checkpoint is there afterwards, the older one or the new one.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "tests/engine/checkpoint/tiny_learner.h"
#include "tests/faulty_file_system.h"
#include "tests/temporary_directory.h"

namespace stoker::engine {
namespace {

using fixtures::FaultyFileSystem;
using fixtures::TemporaryDirectory;
using fixtures::Unsynced;

/// The checkpoints of one run in `folder`.
class SavedRun {
 public:
  explicit SavedRun(const std::string& folder, core::FileSystem& files = core::posix_file_system())
      : checkpoints_({folder + "/checkpoints", 2, true, /*space_check=*/false, &files}, RunIdentity{}) {}

  void prepare() { checkpoints_.files().prepare(); }
  /// A checkpoint whose weights are all its number of updates; the best one is that of update 1.
  void save(int64_t updates) {
    Learner learner = learner_of(static_cast<double>(updates));
    RunProgress state;
    state.updates = updates;
    state.best.updates = 1;
    checkpoints_.save(state, learner, {});
  }
  /// Updates of the newest whole checkpoint, loaded as a resumed run loads it; -1 when there is none.
  int64_t resume() {
    prepare();
    const std::string newest = checkpoints_.files().newest_verified();
    if (newest.empty()) return -1;
    Learner learner = learner_of(-1);
    std::vector<data::BadSample> bad;
    const RunProgress state = checkpoints_.load(newest, learner, bad);
    EXPECT_EQ(weight_of(learner), static_cast<double>(state.updates));
    checkpoints_.repair_links(state);
    EXPECT_EQ(checkpoints_.files().pointed("last"), state.updates);
    return state.updates;
  }

 private:
  Checkpoints checkpoints_;
};

/// A save that is tried under faults, and what may be found after it.
struct Attempt {
  std::vector<int64_t> before;  ///< updates of the checkpoints that are there
  int64_t save = 0;
  std::vector<int64_t> after;  ///< what resume() may find
  bool can_exchange = true;
};

std::ostream& operator<<(std::ostream& stream, const Attempt& attempt) {
  return stream << "save of update " << attempt.save << " after " << attempt.before.size() << " others"
                << (attempt.can_exchange ? "" : ", without exchange");
}

/// How a save ended: 0, or the exit code of its error.
int ending_of(const std::function<void()>& save) {
  try {
    save();
    return 0;
  } catch (const core::Error& error) {
    return core::exit_code(error.kind());
  }
}

class SaveUnderFaults : public ::testing::TestWithParam<Attempt> {
 protected:
  /// Thousands of small files: in memory where that can be, whatever the disk does meanwhile.
  static void SetUpTestSuite() {
    if (::access("/dev/shm", W_OK | X_OK) == 0) ::setenv("TMPDIR", "/dev/shm", /*overwrite=*/1);
  }
  static void TearDownTestSuite() { ::unsetenv("TMPDIR"); }

  void SetUp() override { core::set_console_level(core::LogLevel::error); }  // hundreds of warnings are expected
  void TearDown() override { core::set_console_level(core::LogLevel::info); }

  /// Runs the attempt on a new folder, after `arrange` has chosen the fault; then calls `examine` with the exit code.
  /// Returns the calls that the save made.
  template <typename Arrange, typename Examine>
  int64_t attempt(Arrange arrange, Examine examine) {
    const TemporaryDirectory folder;
    FaultyFileSystem no_faults(folder.path());  // as good as the real one, and does not wait for a disk
    SavedRun before(folder.path(), no_faults);
    before.prepare();
    for (const int64_t updates : GetParam().before) before.save(updates);
    FaultyFileSystem files(folder.path());
    if (!GetParam().can_exchange) files.refuse_exchange();
    arrange(files);
    const int ending = ending_of([&] {
      SavedRun run(folder.path(), files);
      run.save(GetParam().save);
    });
    const int64_t calls = files.calls();
    examine(files, ending, folder.path());
    return calls;
  }

  int64_t calls_of_a_save() {
    return attempt([](FaultyFileSystem&) {},
                   [](FaultyFileSystem&, int ending, const std::string&) { EXPECT_EQ(ending, 0); });
  }

  void expect_resumable(const std::string& folder, const std::string& what) {
    const int64_t found = SavedRun(folder).resume();
    const std::vector<int64_t>& allowed = GetParam().after;
    EXPECT_NE(std::find(allowed.begin(), allowed.end(), found), allowed.end()) << what << ": found " << found;
  }
};

TEST_P(SaveUnderFaults, AnErrorOfAnyCallIsReportedAndLeavesAWholeCheckpoint) {
  const int64_t calls = calls_of_a_save();
  ASSERT_GT(calls, 40);
  for (const int error_number : {ENOSPC, EIO, EDQUOT}) {
    for (int64_t call = 1; call <= calls; ++call) {
      const std::string what = core::format("errno {} at call {} of {}", error_number, call, calls);
      attempt([&](FaultyFileSystem& files) { files.fail_call(call, error_number); },
              [&](FaultyFileSystem&, int ending, const std::string& folder) {
                EXPECT_TRUE(ending == 74 || ending == 0) << what << ": exit code " << ending;
                expect_resumable(folder, what);
                if (ending == 0) {
                  EXPECT_EQ(SavedRun(folder).resume(), GetParam().save) << what;
                }
              });
    }
  }
}

TEST_P(SaveUnderFaults, APowerLossAfterAnyCallLeavesAWholeCheckpoint) {
  const int64_t calls = calls_of_a_save();
  for (const Unsynced unsynced : {Unsynced::kept, Unsynced::lost, Unsynced::names_outlive}) {
    for (int64_t call = 0; call <= calls; ++call) {
      const std::string what =
          core::format("power loss after call {} of {}, kind {}", call, calls, static_cast<int>(unsynced));
      attempt([&](FaultyFileSystem& files) { files.cut_power_after(call); },
              [&](FaultyFileSystem& files, int ending, const std::string& folder) {
                files.restart(unsynced);
                expect_resumable(folder, what);
                if (ending == 0) {
                  EXPECT_EQ(SavedRun(folder).resume(), GetParam().save) << what;
                }
              });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Saves, SaveUnderFaults,
                         ::testing::Values(Attempt{{}, 1, {-1, 1}}, Attempt{{1, 2, 3}, 4, {3, 4}},
                                           Attempt{{1, 2}, 2, {2}}, Attempt{{1, 2}, 2, {1, 2}, /*can_exchange=*/false}),
                         [](const auto& instance) {
                           const Attempt& attempt = instance.param;
                           return std::string(attempt.before.empty()                  ? "OfTheFirst"
                                              : !attempt.can_exchange                 ? "InPlaceOfAnOlderInTwoSteps"
                                              : attempt.before.back() == attempt.save ? "InPlaceOfAnOlder"
                                                                                      : "ThatPrunes");
                         });

}  // namespace
}  // namespace stoker::engine
