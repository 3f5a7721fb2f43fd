// SPDX-License-Identifier: Apache-2.0
// Resolved options as text and back.
#include <gtest/gtest.h>

#include "tests/config/resolved_words.h"

namespace stoker::config {
namespace {

using fixtures::failure_of;

/// The options of a run in which nothing is open.
ResolvedOptions options_of_a_run() {
  Facts facts;
  facts.machine.cpus = 2;
  facts.data = {10, 3, 28, 28, 60000};
  facts.model = {"small_cnn", 0, 0};
  facts.cache_budget = {1'234'567'891, "half of what is free"};
  facts.cache = {CacheTier::compressed, "it fits"};
  const Resolution resolution = fixtures::resolved({"--data-dir", "/data"}, facts);
  EXPECT_TRUE(resolution.assumed.empty());
  return resolution.options;
}

std::string value_of(ResolvedOptions options, size_t row) { return Table(options).rows()[row].render(); }

/// Another value that the option may have, as demanding as it can be.
std::string other_value(Row& row) {
  const std::string before = row.render();
  for (const char* const text : {"a \"b\" \\ #c: null",
                                 "0.30000000000000004,0.1",
                                 "none",
                                 "false",
                                 "true",
                                 "123457u",
                                 "100001s",
                                 "7777777B",
                                 "3",
                                 "1",
                                 "7",
                                 "cuda:3",
                                 "0.30000000000000004",
                                 "center",
                                 "nearest",
                                 "idx",
                                 "regression",
                                 "l2",
                                 "binned",
                                 "uniform",
                                 "stride",
                                 "skip",
                                 "ram",
                                 "adamw",
                                 "value",
                                 "step",
                                 "float16",
                                 "fast",
                                 "top5",
                                 "hflip",
                                 "semicolon",
                                 "8000",
                                 "resident",
                                 "on",
                                 "full",
                                 "0.25,0.5",
                                 "skip,3",
                                 "stride,3",
                                 "slaney,slaney",
                                 "ta-wide",
                                 "lanczos",
                                 "float16",
                                 "debug",
                                 "USR2",
                                 "plain"}) {
    if (row.assign(text).empty() && row.render() != before) return row.render();
  }
  return before;
}

TEST(ResolvedYamlTest, AnyValueOfEveryOptionReadsBackAsItIs) {
  const ResolvedOptions usual = options_of_a_run();
  ResolvedOptions changed = usual;
  Table table(changed);
  for (size_t i = 0; i < table.rows().size(); ++i) {
    changed = usual;
    const std::string name = table.rows()[i].name, value = other_value(table.rows()[i]);
    ASSERT_NE(value, value_of(usual, i)) << name << ": the test has no other value";
    const ResolvedOptions back = read_resolved_yaml(render_yaml(changed), "rank 0");
    EXPECT_EQ(value_of(back, i), value) << name;
    EXPECT_EQ(render_yaml(back), render_yaml(changed)) << name;
  }
}

TEST(ResolvedYamlTest, NumbersKeepTheirLastBit) {
  ResolvedOptions options = options_of_a_run();
  options.optim.lr = 0.1 + 0.2;
  options.data.mean = {1.0 / 3, 2.0 / 3, 1e-300};
  options.train.seed = 18446744073709551615u;
  options.train.max_time_seconds = 1.0 / 3;
  options.run.save_every = Interval::seconds(1e5 / 3);
  options.loader.cache_budget = 999'999'999'999'999'999;
  const ResolvedOptions back = read_resolved_yaml(render_yaml(options), "rank 0");
  EXPECT_EQ(back.optim.lr, options.optim.lr);
  EXPECT_EQ(back.data.mean, options.data.mean);
  EXPECT_EQ(back.train.seed, options.train.seed);
  EXPECT_EQ(back.train.max_time_seconds, options.train.max_time_seconds);
  EXPECT_EQ(back.run.save_every.amount, options.run.save_every.amount);
  EXPECT_EQ(back.loader.cache_budget, options.loader.cache_budget);
}

TEST(ResolvedYamlTest, AnOptionThatIsMissingUnknownOrAutomaticIsNamed) {
  const std::string yaml = render_yaml(options_of_a_run());
  const auto edited = [&](const std::string& line, const std::string& by) {
    std::string text = yaml;
    const size_t at = text.find(line);
    EXPECT_NE(at, std::string::npos) << line;
    return text.replace(at, line.size(), by);
  };
  const auto missing = failure_of([&] { read_resolved_yaml(edited("  epochs: 10\n", ""), "rank 0"); });
  EXPECT_EQ(missing.kind, core::ErrorKind::config);
  EXPECT_EQ(missing.message, "resolved options cannot be read:\n  rank 0: epochs is missing");
  const auto unknown =
      failure_of([&] { read_resolved_yaml(edited("  epochs: 10\n", "  epochs: 10\n  epoch: 3\n"), ""); });
  EXPECT_EQ(unknown.kind, core::ErrorKind::config);
  EXPECT_TRUE(unknown.mentions("unknown option \"epoch\"")) << unknown.message;
  const auto automatic = failure_of([&] { read_resolved_yaml(edited("  img-size: 28\n", "  img-size: auto\n"), ""); });
  EXPECT_EQ(automatic.kind, core::ErrorKind::config);
  EXPECT_TRUE(automatic.mentions("img-size: ")) << automatic.message;
}

}  // namespace
}  // namespace stoker::config
