// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "config/config.h"

namespace stoker::config {
namespace {

TEST(DocsTest, OptionsPageIsUpToDate) {
  std::ostringstream page;
  page << std::ifstream(STOKER_SOURCE_DIR "/docs/options.md", std::ios::binary).rdbuf();
  const Configuration configuration;
  EXPECT_TRUE(page.str() == render_markdown(configuration.table))
      << "docs/options.md is out of date: run `train --help-markdown > docs/options.md`";
}

}  // namespace
}  // namespace stoker::config
