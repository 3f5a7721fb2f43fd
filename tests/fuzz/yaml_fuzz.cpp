// SPDX-License-Identifier: Apache-2.0
// Bytes as a configuration file: values or problems; and what was accepted is written out and read back
// alike.
#include <string>
#include <vector>

#include "config/config.h"
#include "config/yaml/yaml_tree.h"
#include "fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace stoker::config;
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  std::vector<YamlProblem> refused;
  parse_yaml(text, refused);
  // The table of options takes longest: what is not valid YAML meets it now and then only.
  if (!refused.empty() && !stoker::fuzz::Choices(bytes, size).one_in(8)) return 0;
  Options options;
  Table table(options);
  std::vector<std::string> problems;
  read_yaml(text, "fuzz.yaml", Origin::Kind::file, table, problems);
  FUZZ_CHECK(problems.size() <= 101);
  if (!problems.empty()) return 0;
  const std::string rendered = render_yaml(table, false);
  Options same_options;
  Table same(same_options);
  read_yaml(rendered, "rendered.yaml", Origin::Kind::file, same, problems);
  for (const std::string& problem : problems) std::fprintf(stderr, "%s\n", problem.c_str());
  FUZZ_CHECK(problems.empty());
  FUZZ_CHECK(render_yaml(same, false) == rendered);
  return 0;
}
