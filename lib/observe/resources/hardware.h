// SPDX-License-Identifier: Apache-2.0
// The processors and cards of this machine as facts with a name each, for text and JSON, and what of them costs speed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/text/json.h"
#include "observe/resources/nvml.h"

namespace stoker::observe {

/// Processors as the kernel describes them; absent: not known.
struct HostFacts {
  std::optional<int> sockets, cores, numa_nodes;  ///< cores: physical ones
  std::string governor;  ///< "performance"; the slowest where CPUs differ; empty: the kernel does not set clocks
};
/// `sys`: the folder that is /sys.
HostFacts read_host_facts(const std::string& sys = "/sys");

/// The NUMA node that a card hangs on; nothing where the machine has no nodes. `place`: as CardFacts has it.
std::optional<int> node_of_card(const std::string& place, const std::string& sys = "/sys");
/// The CPUs of a node; empty: not known.
std::vector<int> cpus_of_node(int node, const std::string& sys = "/sys");

/// A fact that is known.
struct HardwareFact {
  std::string key;   ///< in JSON: "pcie_width"
  std::string text;  ///< "PCIe x8 of x16"
  core::Json value;
};
std::vector<HardwareFact> host_facts(const HostFacts& host);
/// A card and where it hangs.
struct PlacedCard {
  CardFacts facts;
  std::optional<int> node;
  std::vector<int> cpus_of_node;
};
PlacedCard placed(CardFacts card);
std::vector<HardwareFact> card_facts(const CardFacts& card, std::optional<int> node);

/// Driver and libraries of the cards; empty: not known, or not there.
struct DriverFacts {
  std::string failure;               ///< empty: the driver answers
  std::string version, cuda;         ///< "535.183.01", and the newest CUDA that it supports
  std::string cuda_runtime, cudnn;   ///< versions that LibTorch uses
  std::vector<std::string> devices;  ///< names, in the driver's order
};
DriverFacts driver_facts(const Nvml& nvml);
/// "NVIDIA 535.183.01 (CUDA 12.2), CUDA runtime 12.1, cuDNN 8.9.2"
std::string driver_text(const DriverFacts& driver);

/// Texts of facts behind `name`, in lines of at most `columns`; nothing where nothing is known.
std::vector<std::string> hardware_lines(const std::string& name, const std::vector<HardwareFact>& facts,
                                        size_t columns = 100);
core::Json hardware_json(const std::vector<HardwareFact>& facts);

/// Causes of lost speed and coming failures, each with the command that mends it. `cpus`: those that this process may
/// use.
std::vector<std::string> host_warnings(const HostFacts& host);
std::vector<std::string> card_warnings(const CardFacts& card, std::optional<int> node, const std::vector<int>& cpus,
                                       const std::vector<int>& cpus_of_node);

}  // namespace stoker::observe
