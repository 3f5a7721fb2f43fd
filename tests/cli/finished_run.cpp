// SPDX-License-Identifier: Apache-2.0
#include "finished_run.h"

#include <gtest/gtest.h>

namespace stoker::cli {

Words finished_run_words(const Words& more) {
  Words words = train_words({"--epochs", "2", "--save-every", "1e"});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void place_finished_run(const Workplace& work) {
  static const Workplace original;
  static const Ended ended = [] {
    write_idx(original);
    return run(finished_run_words(), original.path());
  }();
  ASSERT_EQ(ended.exit_code, 0) << story_of(finished_run_words(), ended);
  copy_folder(original / "data", work / "data");
  copy_folder(original / "run", work / "run");
}

}  // namespace stoker::cli
