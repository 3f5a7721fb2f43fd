// SPDX-License-Identifier: Apache-2.0
// The main function of GoogleTest programs that load LibTorch.
#include <gtest/gtest.h>

#include "launcher.h"

int main(int argc, char** argv) {
  return stoker::launcher::serve_or_run(argc, argv, [](int count, char** words) {
    testing::InitGoogleTest(&count, words);
    return RUN_ALL_TESTS();
  });
}
