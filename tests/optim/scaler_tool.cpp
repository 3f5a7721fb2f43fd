// SPDX-License-Identifier: Apache-2.0
// Puts gradients from standard input through the GradScaler, for scripts/prove_float16.py. A case is
//   INIT GROWTH BACKOFF INTERVAL STEPS NUMBERS
// and STEPS lines of NUMBERS float32 gradients as the hexadecimal digits of their bits. The answer has a line per step:
// 1 where a gradient is not finite, else 0; the bits of the scale and the growth tracker after it; the bits of the
// gradients divided by the scale. A line `end` closes a case.
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "optim/grad_scaler.h"

namespace {

float number_of(uint32_t bits) {
  float number = 0;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

uint32_t bits_of(float number) {
  uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof bits);
  return bits;
}

bool answer_case() {
  stoker::optim::GradScalerSettings settings;
  settings.enabled = true;
  int64_t steps = 0, numbers = 0;
  if (!(std::cin >> settings.init_scale >> settings.growth_factor >> settings.backoff_factor >>
        settings.growth_interval >> steps >> numbers)) {
    return false;
  }
  stoker::optim::GradScaler scaler(settings, torch::kCPU);
  for (int64_t step = 0; step < steps; ++step) {
    torch::Tensor all = torch::empty({numbers});
    for (float* value = all.data_ptr<float>(); value != all.data_ptr<float>() + numbers; ++value) {
      uint32_t bits = 0;
      std::cin >> std::hex >> bits >> std::dec;
      *value = number_of(bits);
    }
    // Two tensors of their own, as those of two parameters are.
    const int64_t first = numbers / 3;
    const std::vector<torch::Tensor> gradients = {all.narrow(0, 0, first).clone(),
                                                  all.narrow(0, first, numbers - first).clone()};
    const bool is_bad = scaler.unscale(gradients).item<float>() > 0;
    scaler.update();
    std::printf("%d %08" PRIx32 " %d", is_bad ? 1 : 0, bits_of(scaler.scale().item<float>()),
                scaler.growth_tracker().item<int>());
    for (const torch::Tensor& gradient : gradients) {
      for (int64_t i = 0; i < gradient.numel(); ++i) std::printf(" %08" PRIx32, bits_of(gradient.data_ptr<float>()[i]));
    }
    std::printf("\n");
  }
  std::printf("end\n");
  return true;
}

}  // namespace

int main() {
  while (answer_case()) {
  }
}
