// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/lineage.h"

#include "core/error.h"
#include "core/system/file.h"

namespace stoker::engine {

void Lineage::write_to(core::Json& state) const {
  const core::Json link = before.digest.empty()
                              ? core::Json(nullptr)
                              : core::Json{{"updates", before.updates}, {"checkpoint", before.digest}};
  state["digests"] = {{"weights", weights}, {"options", options}, {"data", data}, {"before", link}};
  state["program"] = program;
}

Lineage Lineage::from_state(const core::Json& state, const std::string& what) {
  Lineage lineage;
  try {
    lineage.program = state.value("program", core::Json(nullptr));
    const auto digests = state.find("digests");
    if (digests == state.end()) return lineage;
    digests->at("weights").get_to(lineage.weights);
    digests->at("options").get_to(lineage.options);
    digests->at("data").get_to(lineage.data);
    const core::Json& before = digests->at("before");
    if (before.is_null()) return lineage;
    const core::Json& updates = before.at("updates");
    if (!updates.is_number_integer()) throw core::Error(core::ErrorKind::data, what + ": updates is no count");
    updates.get_to(lineage.before.updates);
    before.at("checkpoint").get_to(lineage.before.digest);
  } catch (const core::Json::exception& error) {
    throw core::Error(core::ErrorKind::data, what + ": " + error.what(), "use another checkpoint");
  }
  return lineage;
}

Lineage read_lineage(const std::string& path) {
  constexpr uint64_t kMaxBytes = 256 << 20;
  const std::string file = path + "/state.json";
  return Lineage::from_state(core::parse_json(core::read_file(file, kMaxBytes), file), file);
}

}  // namespace stoker::engine
