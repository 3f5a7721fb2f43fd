// SPDX-License-Identifier: Apache-2.0
#include "commands/inspect/receipt.h"

#include <filesystem>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/system/file.h"
#include "data/storage/byte_reader.h"
#include "engine/checkpoint/run_identity.h"
#include "engine/files/checkpoint_files.h"
#include "engine/saved/saved_model.h"

namespace stoker::train {
namespace {

namespace fs = std::filesystem;
using core::Json;

constexpr uint64_t kMaxBytes = 64 << 20;
constexpr char kStatement[] = "https://in-toto.io/Statement/v1", kProvenance[] = "https://slsa.dev/provenance/v1";
constexpr char kFamily[] = "xxh3_128";  // of digests that the run itself records

Json digest(const char* family, const std::string& value) { return {{family, value}}; }

/// Data as the run records it: a digest for each split.
Json data_of(const std::string& fingerprint) {
  const size_t plus = fingerprint.find('+');
  Json parts = Json::array();
  parts.push_back({{"name", "training data"}, {"digest", digest(kFamily, fingerprint.substr(0, plus))}});
  if (plus != std::string::npos && plus + 1 < fingerprint.size()) {
    parts.push_back({{"name", "validation data"}, {"digest", digest(kFamily, fingerprint.substr(plus + 1))}});
  }
  return parts;
}

/// How images become what the network sees, and what was fitted to its outputs since; null: an older program's
/// checkpoint.
Json preprocess_of(const std::string& checkpoint) {
  const std::string path = checkpoint + "/" + engine::kPreprocessFile;
  return core::file_exists(path) ? core::parse_json(core::read_file(path, kMaxBytes), path) : Json();
}

/// The name of a checkpoint in its run.
std::string checkpoint_name(const std::string& checkpoint) {
  return "checkpoints/" + fs::path(checkpoint).filename().string();
}

/// Element ids of a document begin with its name.
std::string spdx_id(const std::string& document, const std::string& name) { return document + "#" + name; }

}  // namespace

Json receipt_of(const RecordedRun& run) {
  const std::string newest = run.checkpoints.rbegin()->second;
  const Json extra = engine::read_manifest(newest).extra;
  const engine::Lineage lineage = engine::read_lineage(newest);
  Json dependencies = data_of(extra.value("data_fingerprint", ""));
  if (const engine::StartingWeights from = engine::starting_weights_of(extra); !from.sha256.empty()) {
    dependencies.push_back({{"name", "starting weights"}, {"digest", digest("sha256", from.sha256)}});
  }
  const Json program = lineage.program.is_object() ? lineage.program : Json::object();
  dependencies.push_back({{"name", "program"}, {"digest", digest(kFamily, program.value("executable", ""))}});
  Json subjects = Json::array(), checkpoints = Json::array();
  for (const auto& [updates, path] : run.checkpoints) {
    subjects.push_back({{"name", checkpoint_name(path) + "/model.safetensors"},
                        {"digest", digest("sha256", data::sha256_of(data::FileBytes(path + "/model.safetensors")))}});
    checkpoints.push_back({{"name", checkpoint_name(path)},
                           {"digest", digest(kFamily, engine::checkpoint_digest(path))},
                           {"annotations", {{"updates", updates}, {"preprocess", preprocess_of(path)}}}});
  }
  const Json definition = {{"buildType", "urn:stoker:train:v1"},
                           {"externalParameters", {{"options", extra.value("training_options", Json::object())}}},
                           {"internalParameters", program},
                           {"resolvedDependencies", dependencies}};
  const Json details = {
      {"builder", {{"id", "urn:stoker:train"}, {"version", {{"stoker", program.value("version", "")}}}}},
      {"metadata", {{"invocationId", core::file_uri(fs::absolute(run.path).lexically_normal().string())}}},
      {"byproducts", checkpoints}};
  return {{"_type", kStatement},
          {"subject", subjects},
          {"predicateType", kProvenance},
          {"predicate", {{"buildDefinition", definition}, {"runDetails", details}}}};
}

Json spdx_of(const Json& receipt, const std::string& created) {
  const Json &subject = receipt.at("subject").back(), &definition = receipt.at("predicate").at("buildDefinition");
  const Json& options = definition.at("externalParameters").at("options");
  const std::string sum = subject.at("digest").at("sha256").get<std::string>();
  const std::string document = "urn:spdx:stoker-" + sum, creation = "_:creation";
  const std::string model = spdx_id(document, "weights"), agent = spdx_id(document, "program");
  const std::string none = "https://spdx.org/rdf/3.0.1/terms/ExpandedLicensing/NoAssertionLicense";
  Json graph = Json::array();
  const auto element = [&](const char* type, const std::string& id, const Json& fields) {
    Json made = {{"type", type}, {"spdxId", id}, {"creationInfo", creation}};
    made.update(fields);
    graph.push_back(made);
  };
  const auto hash = [](const char* algorithm, const std::string& value) {
    return Json::array({{{"type", "Hash"}, {"algorithm", algorithm}, {"hashValue", value}}});
  };
  graph.push_back({{"type", "CreationInfo"},
                   {"@id", creation},
                   {"specVersion", "3.0.1"},
                   {"createdBy", Json::array({agent})},
                   {"created", created}});
  element("SoftwareAgent", agent,
          {{"name", "stoker train " + definition.at("internalParameters").value("version", "")}});
  const Json profiles = {"core", "software", "ai"};
  element("SpdxDocument", document, {{"profileConformance", profiles}, {"rootElement", Json::array({model})}});
  Json parameters = Json::array();
  for (const auto& option : options.items()) {
    parameters.push_back({{"type", "DictionaryEntry"}, {"key", option.key()}, {"value", option.value()}});
  }
  element("ai_AIPackage", model,
          {{"name", subject.at("name")},
           {"verifiedUsing", hash("sha256", sum)},
           {"software_packageVersion", sum.substr(0, 12)},
           {"software_primaryPurpose", "model"},
           {"software_downloadLocation", receipt.at("predicate").at("runDetails").at("metadata").at("invocationId")},
           {"suppliedBy", agent},
           {"releaseTime", created},
           {"ai_typeOfModel", Json::array({options.value("model", "")})},
           {"ai_hyperparameter", parameters},
           {"ai_informationAboutTraining", "the in-toto statement beside this file; train inspect verify proves it"}});
  Json trained_on = Json::array();
  for (const Json& part : definition.at("resolvedDependencies")) {
    const auto name = part.at("name").get<std::string>();
    if (name != "training data" && name != "validation data") continue;
    const std::string id = spdx_id(document, name == "training data" ? "training-data" : "validation-data");
    const Json fields = {{"name", name},
                         {"verifiedUsing", hash("other", part.at("digest").at(kFamily).get<std::string>())},
                         {"software_primaryPurpose", "data"},
                         {"dataset_datasetType", Json::array({"image"})}};
    element("dataset_DatasetPackage", id, fields);
    if (name == "training data") {
      trained_on.push_back(id);
    } else {
      element("Relationship", spdx_id(document, "tested-on"),
              {{"from", model}, {"relationshipType", "testedOn"}, {"to", Json::array({id})}});
    }
  }
  element("Relationship", spdx_id(document, "trained-on"),
          {{"from", model}, {"relationshipType", "trainedOn"}, {"to", trained_on}});
  for (const char* const license : {"hasConcludedLicense", "hasDeclaredLicense"}) {
    element("Relationship", spdx_id(document, license),
            {{"from", model}, {"relationshipType", license}, {"to", Json::array({none})}});
  }
  return {{"@context", "https://spdx.org/rdf/3.0.1/spdx-context.jsonld"}, {"@graph", graph}};
}

bool is_receipt(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

Json read_receipt(const std::string& path) {
  constexpr int kMostNesting = 16;
  Json receipt = core::parse_json(core::read_file(path, kMaxBytes), path, kMostNesting);
  const Json type = receipt.is_object() ? receipt.value("predicateType", Json()) : Json();
  if (type == kProvenance && receipt.value("_type", Json()) == kStatement) return receipt;
  throw core::Error(core::ErrorKind::data, core::printable(path) + " is no receipt of train inspect verify --receipt",
                    "give the run, or the file with the in-toto statement");
}

std::string run_of_receipt(const std::string& path, const Json& receipt) {
  const std::string beside = core::parent_of(path);
  if (core::file_exists(beside + "/metrics.jsonl")) return beside;
  const Json named = receipt.value(Json::json_pointer("/predicate/runDetails/metadata/invocationId"), Json());
  std::string path_of_run = core::path_of_file_uri(named.is_string() ? named.get<std::string>() : "");
  if (!path_of_run.empty()) return path_of_run;
  throw core::Error(core::ErrorKind::data, core::printable(path) + " names no run", "put it into the run directory");
}

std::vector<std::string> receipt_problems(const Json& receipt, const RecordedRun& run) {
  Json made = receipt_of(run), given = receipt;
  const Json::json_pointer place("/predicate/runDetails/metadata/invocationId");
  if (given.contains(place)) made[place] = given[place];
  std::vector<std::string> problems;
  for (const Json& change : Json::diff(made, given)) {
    const std::string at = change.at("path").get<std::string>();
    const Json value = made.contains(Json::json_pointer(at)) ? made.at(Json::json_pointer(at)) : Json();
    problems.push_back(core::format("the receipt's {}: {} there, {} of the run", core::printable(at),
                                    core::json_line(change.value("value", Json())), core::json_line(value)));
  }
  return problems;
}

}  // namespace stoker::train
