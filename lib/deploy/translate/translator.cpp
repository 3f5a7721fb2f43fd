// SPDX-License-Identifier: Apache-2.0
#include "deploy/translate/translator.h"

#include "deploy/translate/translation.h"

namespace stoker::deploy {

OnnxModel translate_to_onnx(const TracedNetwork& traced, const std::string& input_name,
                            const std::vector<std::string>& output_names) {
  static const Translations translations = [] {
    Translations all;
    add_layer_translations(all);
    add_shape_translations(all);
    add_elementwise_translations(all);
    return all;
  }();
  return Translator(traced, translations).translate(input_name, output_names);
}

}  // namespace stoker::deploy
