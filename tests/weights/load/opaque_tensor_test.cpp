// SPDX-License-Identifier: Apache-2.0
// Tensors that come out of an object of a class, which is never built: a network that needs one is refused them by
// name, and one that does not is loaded.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "core/system/file.h"
#include "model/model.h"
#include "tests/temporary_directory.h"
#include "tests/weights/file/refusal.h"
#include "weights/load/pretrained.h"

namespace stoker::weights {
namespace {

using fixtures::MadePickle;
using fixtures::MadeTensor;
using fixtures::opened;

using Names = std::vector<std::string>;

enum class Form { subclass, sparse };

std::shared_ptr<model::ImageModel> small_network(int64_t classes) {
  model::ModelSpec spec;
  spec.name = "small_cnn";
  spec.num_classes = classes;
  return model::make_model(spec);
}

/// Its state, the named tensors in a form that is not plain.
std::vector<MadeTensor> state_with(const model::ImageModel& model, const Names& names, Form form,
                                   const std::string& prefix = "") {
  std::vector<MadeTensor> tensors;
  for (const model::NamedTensor& entry : model::state_of(model)) {
    const torch::Tensor plain = entry.tensor.detach().contiguous();
    MadeTensor made;
    made.name = prefix + entry.name;
    made.type = plain.scalar_type() == at::kLong ? NumberType::i64 : NumberType::f32;
    made.shape = plain.sizes().vec();
    made.storage.assign(static_cast<const char*>(plain.data_ptr()), plain.nbytes());
    made.key = std::to_string(tensors.size());
    if (std::find(names.begin(), names.end(), entry.name) != names.end()) {
      made.subclass = form == Form::subclass ? "Sub" : "";
      made.is_sparse = form == Form::sparse;
    }
    tensors.push_back(made);
  }
  return tensors;
}

/// A file with the tensors under these keys, one around the other.
std::string file_under(const Names& keys, const std::vector<MadeTensor>& tensors) {
  std::string pickle = state_dict_pickle(tensors);
  for (const std::string& key : keys) pickle = MadePickle().op("}").text(key).value_of(pickle).op("s").done();
  return fixtures::torch_zip_file(pickle, tensors);
}

/// The message and hint of the error that ends `call`; "accepted" when there is none.
template <typename Call>
std::string refused_text(const Call& call) {
  try {
    call();
  } catch (const core::Error& error) {
    return error.kind() == core::ErrorKind::data ? error.text() : "an error of another kind: " + error.text();
  }
  return "accepted";
}

std::string lines(const PretrainedReport& report) {
  std::string all;
  for (const std::string& line : report) all += line + "\n";
  return all;
}

torch::Tensor opaque_tensor_of(const model::ImageModel& model, const std::string& name) {
  for (const model::NamedTensor& entry : model::state_of(model)) {
    if (entry.name == name) return entry.tensor;
  }
  throw std::out_of_range(name);
}

TEST(OpaqueTensorTest, OneThatTheNetworkNeedsIsRefusedWithItsNameItsClassAndTheNextStep) {
  const auto source = small_network(4);
  struct Kind {
    Form form;
    std::string type, step;
  };
  const std::vector<Kind> kinds = {
      {Form::subclass, "__main__.Sub", "tensor.detach().as_subclass(torch.Tensor)"},
      {Form::sparse, "torch._utils._rebuild_sparse_tensor", "tensor.to_dense()"},
  };
  const std::vector<std::pair<Names, std::string>> needed = {
      {{"fc.weight"}, "fc.weight"},
      {{"fc.bias"}, "fc.bias"},
      {{"stem.conv.weight"}, "stem.conv.weight"},
      {{"fc.weight", "fc.bias"}, "fc.weight and fc.bias"},
      {{"stem.conv.weight", "fc.bias"}, "stem.conv.weight and fc.bias"}};
  for (const Kind& kind : kinds) {
    for (const auto& [names, shown] : needed) {
      for (const Names& keys : {Names{}, Names{"state_dict"}, Names{"model"}, Names{"state_dict", "model"}}) {
        const WeightFile file = opened(file_under(keys, state_with(*source, names, kind.form)));
        const std::string text = refused_text([&] { convert_for("small_cnn", file); });
        EXPECT_NE(text.find("w.pth: " + shown + " came out of " + kind.type), std::string::npos) << text;
        EXPECT_NE(text.find(kind.step, text.find("\nhint: ")), std::string::npos) << text;
        const auto target = small_network(4);
        const torch::Tensor before = opaque_tensor_of(*target, "block1.first.conv.weight").clone();
        EXPECT_EQ(refused_text([&] { load_pretrained(*target, "small_cnn", "", file); }), text);
        EXPECT_TRUE(torch::equal(opaque_tensor_of(*target, "block1.first.conv.weight"), before)) << "all or nothing";
      }
    }
  }
}

TEST(OpaqueTensorTest, ThePrefixOfAWrapperIsNoneOfItsName) {
  const auto source = small_network(4);
  const WeightFile file = opened(file_under({}, state_with(*source, {"fc.weight"}, Form::subclass, "module.")));
  const std::string text = refused_text([&] { convert_for("small_cnn", file); });
  EXPECT_NE(text.find("module.fc.weight came out of __main__.Sub"), std::string::npos) << text;
}

TEST(OpaqueTensorTest, OneThatTheNetworkDoesNotNeedIsSkippedWithANote) {
  const auto source = small_network(4), target = small_network(4);
  const std::vector<MadeTensor> state = state_with(*source, {}, Form::subclass);
  for (const Form form : {Form::subclass, Form::sparse}) {
    MadeTensor metric = state.front();
    metric.subclass = form == Form::subclass ? "Sub" : "";
    metric.is_sparse = form == Form::sparse;
    MadePickle pickle;
    pickle.op("}").text("state_dict").value_of(state_dict_pickle(state)).op("s");
    pickle.text("metric").tensor(metric).op("s");
    pickle.text("optimizer").op("}").text("exp_avg").tensor(metric).op("ss");
    const WeightFile file = opened(fixtures::torch_zip_file(pickle.done(), state));
    EXPECT_FALSE(file.opaque.empty());
    const std::string report = lines(load_pretrained(*target, "small_cnn", "", file));
    EXPECT_NE(report.find("skipped, since nothing in a file is executed: torch._"), std::string::npos) << report;
    EXPECT_EQ(report.find("randomly initialised"), std::string::npos) << report;
    EXPECT_TRUE(torch::equal(opaque_tensor_of(*target, "fc.weight"), opaque_tensor_of(*source, "fc.weight")));
  }
}

/// A classifier of other classes starts at random anyway, and so does one that shall.
TEST(OpaqueTensorTest, OneOfAClassifierThatIsReplacedIsNotNeeded) {
  const auto source = small_network(7);
  for (const std::string name : {"fc.weight", "fc.bias"}) {
    const WeightFile file = opened(file_under({}, state_with(*source, {name}, Form::subclass)));
    const std::string report = lines(load_pretrained(*small_network(4), "small_cnn", "", file));
    EXPECT_NE(report.find("has another shape in the file and is randomly initialised: fc."), std::string::npos)
        << report;
    EXPECT_EQ(report.find("the file has no classifier"), std::string::npos) << report;
    StartOptions start;
    start.fresh_head = true;
    const std::string asked = lines(load_pretrained(*small_network(7), "small_cnn", "", file, start));
    EXPECT_NE(asked.find("(--fresh-head): fc."), std::string::npos) << asked;
  }
}

TEST(OpaqueTensorTest, AStateDictOfNothingElseIsRefusedWithItsNamesNotAsAWholeModel) {
  const auto source = small_network(4);
  Names all;
  for (const model::NamedTensor& entry : model::state_of(*source)) all.push_back(entry.name);
  const std::vector<MadeTensor> state = state_with(*source, all, Form::subclass);
  for (const Names& keys : {Names{}, Names{"state_dict"}}) {
    const std::string text = refused_text([&] { opened(file_under(keys, state)); });
    EXPECT_NE(text.find("w.pth: stem.conv.weight, "), std::string::npos) << text;
    EXPECT_NE(text.find("came out of __main__.Sub, and nothing in a file is executed"), std::string::npos) << text;
    EXPECT_NE(text.find("as_subclass"), std::string::npos) << text;
  }
  MadeTensor moment = state_with(*source, {}, Form::subclass).front();  // a plain tensor beside them
  MadePickle pickle;
  pickle.op("}").text("model").value_of(state_dict_pickle(state)).op("s");
  pickle.text("optimizer").op("}").text("exp_avg").tensor(moment).op("ss");
  const WeightFile file = opened(fixtures::torch_zip_file(pickle.done(), state));
  const std::string text = refused_text([&] { convert_for("small_cnn", file); });
  EXPECT_NE(text.find("came out of __main__.Sub"), std::string::npos) << text;
}

TEST(OpaqueTensorTest, AsTheyAreTheOthersAreConvertedWithANote) {
  const auto source = small_network(4);
  const WeightFile file = opened(file_under({"model"}, state_with(*source, {"fc.weight"}, Form::sparse)));
  const Conversion conversion = convert_as_is(file);
  EXPECT_EQ(conversion.tensors.size() + 1, model::state_of(*source).size());
  EXPECT_NE(lines(conversion.report).find("left out: fc.weight came out of torch._utils._rebuild_sparse_tensor"),
            std::string::npos)
      << lines(conversion.report);
}

TEST(OpaqueTensorTest, OneInOneOfSeveralFilesIsNamedAsWell) {
  const fixtures::TemporaryDirectory folder;
  const auto source = small_network(4);
  core::write_file_atomically(folder / "part-0.bin", file_under({}, state_with(*source, {"fc.weight"}, Form::subclass)),
                              false);
  std::string map;
  for (const model::NamedTensor& entry : model::state_of(*source)) {
    map += (map.empty() ? "\"" : ",\"") + entry.name + "\":\"part-0.bin\"";
  }
  const std::string index = folder / "pytorch_model.bin.index.json";
  core::write_file_atomically(index, R"({"weight_map":{)" + map + "}}", false);
  const WeightFile file = open_weight_file(index);
  const std::string text = refused_text([&] { convert_for("small_cnn", file); });
  EXPECT_NE(text.find("fc.weight came out of __main__.Sub"), std::string::npos) << text;
}

}  // namespace
}  // namespace stoker::weights
