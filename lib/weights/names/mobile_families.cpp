// SPDX-License-Identifier: Apache-2.0
// The dialects of EfficientNet and MobileNetV3. Sources: as families.cpp.
#include <cmath>

#include "weights/names/families.h"

namespace stoker::weights {
namespace {

/// The layers of one inverted bottleneck, in order.
struct BlockNames {
  std::string theirs, ours;  ///< how the names of its tensors begin: "blocks.{s}.{b}.", "features.{s+1}.{b}.block."
  bool widens = true;        ///< has a convolution to more channels in front
  bool squeezes = true;      ///< has squeeze and excitation
};

/// timm's names: the last convolution is conv_pwl where the first one is conv_pw, else conv_pw itself.
void add_timm_block(const BlockNames& names, std::vector<NameRow>& rows) {
  const auto add = [&](const std::string& theirs, const std::string& ours) {
    rows.push_back({names.theirs + theirs + ".*", names.ours + ours + ".*"});
  };
  int place = 0, norm = 1;
  const auto add_convolution = [&](const char* theirs) {
    add(theirs, std::to_string(place) + ".0");
    add("bn" + std::to_string(norm++), std::to_string(place++) + ".1");
  };
  if (names.widens) add_convolution("conv_pw");
  add_convolution("conv_dw");
  if (names.squeezes) {
    add("se.conv_reduce", std::to_string(place) + ".fc1");
    add("se.conv_expand", std::to_string(place++) + ".fc2");
  }
  add_convolution(names.widens ? "conv_pwl" : "conv_pw");
}

void add_face_block(const BlockNames& names, std::vector<NameRow>& rows) {
  const auto add = [&](const std::string& theirs, int place, const char* ours) {
    rows.push_back({names.theirs + theirs + ".*", names.ours + std::to_string(place) + "." + ours + ".*"});
  };
  const int first = names.widens ? 1 : 0;  // place of the depthwise convolution
  if (names.widens) {
    add("expansion.expand_conv", 0, "0");
    add("expansion.expand_bn", 0, "1");
  }
  add("depthwise_conv.depthwise_conv", first, "0");
  add("depthwise_conv.depthwise_norm", first, "1");
  add("squeeze_excite.reduce", first + 1, "fc1");
  add("squeeze_excite.expand", first + 1, "fc2");
  add("projection.project_conv", first + 2, "0");
  add("projection.project_bn", first + 2, "1");
}

constexpr int kStageBlocks[] = {1, 2, 2, 3, 3, 4, 1};  // of EfficientNet-B0
constexpr double kDepths[] = {1.0, 1.1, 1.2, 1.4, 1.8, 2.2, 2.6, 3.1};

}  // namespace

std::vector<Dialect> efficientnet_dialects(const std::string& network) {
  Dialect timm{"timm", "", {}, {}, 1e-5, ""};
  timm.rows = {
      {"conv_stem.*", "features.0.0.*"}, {"bn1.*", "features.0.1.*"},        {"conv_head.*", "features.8.0.*"},
      {"bn2.*", "features.8.1.*"},       {"classifier.*", "classifier.1.*"},
  };
  add_timm_block({"blocks.0.{b}.", "features.1.{b}.block.", /*widens=*/false}, timm.rows);
  add_timm_block({"blocks.{s}.{b}.", "features.{s+1}.{b}.block."}, timm.rows);

  Dialect face{"Hugging Face",
               "efficientnet.",
               {},
               {},
               1e-3,
               "trained with padding at the right and at the bottom where a convolution halves, which is on both sides "
               "here: its results differ until it is trained further"};
  face.rows = {
      {"embeddings.convolution.*", "features.0.0.*"},
      {"embeddings.batchnorm.*", "features.0.1.*"},
      {"encoder.top_conv.*", "features.8.0.*"},
      {"encoder.top_bn.*", "features.8.1.*"},
      {"classifier.*", "classifier.1.*"},
  };
  const double depth = kDepths[network.back() - '0'];
  int block = 0;
  for (size_t stage = 0; stage < std::size(kStageBlocks); ++stage) {
    const int count = static_cast<int>(std::ceil(depth * kStageBlocks[stage]));
    for (int i = 0; i < count; ++i, ++block) {
      add_face_block({"encoder.blocks." + std::to_string(block) + ".",
                      "features." + std::to_string(stage + 1) + "." + std::to_string(i) + ".block.", stage > 0},
                     face.rows);
    }
  }
  return {own_dialect("torchvision"), timm, face};
}

std::vector<Dialect> mobilenet_dialects(bool large) {
  struct Stage {
    int first;  ///< number of its first block in torchvision
    bool squeezes;
  };
  const std::vector<Stage> stages =
      large ? std::vector<Stage>{{1, false}, {2, false}, {4, true}, {7, false}, {11, true}, {13, true}}
            : std::vector<Stage>{{1, true}, {2, false}, {4, true}, {7, true}, {9, true}};
  const std::string last = std::to_string(large ? 16 : 12), last_stage = std::to_string(stages.size());
  Dialect timm{"timm", "", {}, {}, 1e-5, ""};
  timm.rows = {
      {"conv_stem.*", "features.0.0.*"},
      {"bn1.*", "features.0.1.*"},
      {"blocks." + last_stage + ".0.conv.*", "features." + last + ".0.*"},
      {"blocks." + last_stage + ".0.bn1.*", "features." + last + ".1.*"},
      {"conv_head.*", "classifier.0.*"},
      {"classifier.*", "classifier.3.*"},
  };
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    add_timm_block(
        {"blocks." + std::to_string(stage) + ".{b}.", "features.{b+" + std::to_string(stages[stage].first) + "}.block.",
         stage > 0, stages[stage].squeezes},
        timm.rows);
  }
  return {own_dialect("torchvision"), timm};
}

}  // namespace stoker::weights
