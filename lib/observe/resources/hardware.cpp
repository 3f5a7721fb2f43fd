// SPDX-License-Identifier: Apache-2.0
#include "observe/resources/hardware.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "core/format.h"
#include "observe/resources/resources.h"

namespace stoker::observe {
namespace {

using core::format;
using core::Json;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// Nothing for what is no number.
std::optional<int> number_of_file(const std::string& path) {
  const std::string line = first_line(path);
  char* end = nullptr;
  const long value = std::strtol(line.c_str(), &end, 10);
  if (end == line.c_str()) return std::nullopt;
  return static_cast<int>(value);
}

/// "0-3,8" as the kernel writes lists.
std::vector<int> numbers_of_list(const std::string& text) {
  constexpr int kMost = 1 << 16;
  std::vector<int> numbers;
  std::stringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t dash = part.find('-');
    const int first = std::atoi(part.c_str()), last = dash == std::string::npos ? first : std::atoi(&part[dash + 1]);
    for (int i = std::max(0, first); i <= std::min(last, kMost); ++i) numbers.push_back(i);
  }
  return numbers;
}

/// The slowest comes first.
constexpr std::array<const char*, 6> kGovernors = {"powersave", "conservative", "userspace",
                                                   "ondemand",  "schedutil",    "performance"};

std::string slower(const std::string& a, const std::string& b) {
  const auto rank = [](const std::string& name) {
    return std::find(kGovernors.begin(), kGovernors.end(), name) - kGovernors.begin();
  };
  return a.empty() || rank(b) < rank(a) ? b : a;
}

/// Gathers facts; those that are not known are left out.
class KnownFacts {
 public:
  void add(const char* key, const std::optional<double>& value, const char* form) {
    if (value) facts_.push_back({key, format(fmt::runtime(form), *value), *value});
  }
  void add_count(const char* key, const std::optional<int>& value, const char* one) {
    if (value) facts_.push_back({key, core::counted(*value, one), *value});
  }
  void add(const char* key, const std::optional<bool>& value, const char* name) {
    if (value) facts_.push_back({key, format("{} {}", name, *value ? "on" : "off"), *value});
  }
  void add(const char* key, const std::string& value, const char* name) {
    if (!value.empty()) facts_.push_back({key, format("{} {}", name, value), value});
  }
  /// The second of a pair stands in the text of the first.
  void add_of(const char* key, const std::optional<double>& value, const char* most_key,
              const std::optional<double>& most, const char* form) {
    if (!value) return;
    std::string text = format(fmt::runtime(form), *value);
    if (most) text += format(" of {:.0f}", *most);
    facts_.push_back({key, text, *value});
    if (most) facts_.push_back({most_key, "", *most});
  }
  void add(const HardwareFact& fact) { facts_.push_back(fact); }
  std::vector<HardwareFact> take() { return std::move(facts_); }

 private:
  std::vector<HardwareFact> facts_;
};

void add_processes(const std::vector<CardFacts::Process>& processes, KnownFacts& facts) {
  if (processes.empty()) return;
  std::vector<std::string> texts;
  Json list = Json::array();
  for (const CardFacts::Process& process : processes) {
    const std::string name = process.name.empty() ? "process" : process.name;
    texts.push_back(format("{} (pid {}, {})", name, process.pid, core::bytes_text(process.memory_bytes)));
    list.push_back({{"pid", process.pid}, {"name", process.name}, {"memory_bytes", process.memory_bytes}});
  }
  facts.add({"processes", "also used by " + core::list_text(texts), list});
}

}  // namespace

HostFacts read_host_facts(const std::string& sys) {
  constexpr int kMostCpus = 8192;
  HostFacts host;
  std::set<std::pair<int, int>> cores;
  std::set<int> sockets;
  for (const int cpu : numbers_of_list(first_line(sys + "/devices/system/cpu/online"))) {
    if (cpu >= kMostCpus) break;
    const std::string folder = format("{}/devices/system/cpu/cpu{}", sys, cpu);
    const auto core = number_of_file(folder + "/topology/core_id"),
               socket = number_of_file(folder + "/topology/physical_package_id");
    if (core && socket) cores.insert({*socket, *core});
    if (socket) sockets.insert(*socket);
    const std::string governor = first_line(folder + "/cpufreq/scaling_governor");
    if (!governor.empty()) host.governor = slower(host.governor, governor);
  }
  if (!sockets.empty()) host.sockets = static_cast<int>(sockets.size());
  if (!cores.empty()) host.cores = static_cast<int>(cores.size());
  const std::vector<int> nodes = numbers_of_list(first_line(sys + "/devices/system/node/online"));
  if (!nodes.empty()) host.numa_nodes = static_cast<int>(nodes.size());
  return host;
}

std::optional<int> node_of_card(const std::string& place, const std::string& sys) {
  if (place.size() < 12) return std::nullopt;
  const std::string in_kernel = place.substr(place.size() - 12);  // "0000:3b:00.0": four digits of the domain
  const auto node = number_of_file(sys + "/bus/pci/devices/" + in_kernel + "/numa_node");
  return node && *node >= 0 ? node : std::nullopt;
}

std::vector<int> cpus_of_node(int node, const std::string& sys) {
  return numbers_of_list(first_line(format("{}/devices/system/node/node{}/cpulist", sys, node)));
}

std::vector<HardwareFact> host_facts(const HostFacts& host) {
  KnownFacts facts;
  facts.add_count("sockets", host.sockets, "socket");
  facts.add_count("physical_cores", host.cores, "physical core");
  facts.add_count("numa_nodes", host.numa_nodes, "NUMA node");
  facts.add("governor", host.governor, "governor");
  return facts.take();
}

PlacedCard placed(CardFacts card) {
  const std::optional<int> node = node_of_card(card.place);
  return {std::move(card), node, node ? cpus_of_node(*node) : std::vector<int>()};
}

std::vector<HardwareFact> card_facts(const CardFacts& card, std::optional<int> node) {
  KnownFacts facts;
  facts.add("compute_capability", card.compute_capability, "compute capability");
  facts.add("place", card.place, "at");
  if (node) facts.add({"numa_node", format("NUMA node {}", *node), *node});
  facts.add_of("pcie_generation", card.link_generation, "highest_pcie_generation", card.most_link_generation,
               "PCIe generation {:.0f}");
  facts.add_of("pcie_width", card.link_width, "highest_pcie_width", card.most_link_width, "PCIe lanes {:.0f}");
  facts.add("performance_state", card.now.performance_state, "P{:.0f}");
  facts.add_of("clock_mhz", card.now.clock_mhz, "highest_clock_mhz", card.now.highest_clock_mhz, "clock {:.0f} MHz");
  facts.add_of("memory_clock_mhz", card.now.memory_clock_mhz, "highest_memory_clock_mhz", card.highest_memory_clock_mhz,
               "memory clock {:.0f} MHz");
  if (card.clocks_locked) {
    facts.add({"clocks_locked", *card.clocks_locked ? "clocks locked" : "clocks not locked", *card.clocks_locked});
  }
  facts.add("busy_percent", card.now.busy_percent, "busy {:.0f}%");
  facts.add("memory_percent", card.now.memory_percent, "memory busy {:.0f}%");
  facts.add("encoder_percent", card.now.encoder_percent, "encoder {:.0f}%");
  facts.add("decoder_percent", card.now.decoder_percent, "decoder {:.0f}%");
  facts.add("fan_percent", card.now.fan_percent, "fan {:.0f}%");
  facts.add("celsius", card.now.celsius, "{:.0f} C");
  facts.add("power_watts", card.now.power_watts, "{:.0f} W");
  facts.add("persistence", card.persistence, "persistence mode");
  facts.add("ecc", card.ecc, "ECC");
  facts.add("retired_pages", card.retired_pages, "retired pages {:.0f}");
  facts.add("remapped_rows", card.remapped_rows, "remapped rows {:.0f}");
  if (card.retirement_pending.value_or(false)) facts.add({"retirement_pending", "retirement pending", true});
  facts.add("mig", card.mig, "MIG");
  if (card.now.clock_reasons) {
    const std::vector<std::string> reasons = slowdown_reasons(*card.now.clock_reasons);
    facts.add({"slowed_by", reasons.empty() ? "not slowed" : "slowed by " + core::list_text(reasons), reasons});
  }
  add_processes(card.processes, facts);
  return facts.take();
}

DriverFacts driver_facts(const Nvml& nvml) {
  DriverFacts facts;
  facts.failure = nvml.failure();
  facts.version = nvml.driver_version();
  facts.cuda = nvml.cuda_version();
  facts.devices = nvml.device_names();
  return facts;
}

std::string driver_text(const DriverFacts& driver) {
  std::string text = "NVIDIA " + (driver.version.empty() ? "n/a" : driver.version);
  if (!driver.failure.empty()) text = format("n/a ({})", driver.failure);
  if (!driver.cuda.empty()) text += format(" (CUDA {})", driver.cuda);
  if (!driver.cuda_runtime.empty()) text += ", CUDA runtime " + driver.cuda_runtime;
  if (!driver.cudnn.empty()) text += ", cuDNN " + driver.cudnn;
  return text;
}

std::vector<std::string> hardware_lines(const std::string& name, const std::vector<HardwareFact>& facts,
                                        size_t columns) {
  std::vector<std::string> lines;
  for (const HardwareFact& fact : facts) {
    if (fact.text.empty()) continue;
    if (lines.empty()) {
      lines.push_back(format("{:<9} {}", name, fact.text));
    } else if (lines.back().size() + 3 + fact.text.size() > columns) {
      lines.back() += ",";
      lines.push_back("          " + fact.text);
    } else {
      lines.back() += ", " + fact.text;
    }
  }
  return lines;
}

Json hardware_json(const std::vector<HardwareFact>& facts) {
  Json json = Json::object();
  for (const HardwareFact& fact : facts) json[fact.key] = fact.value;
  return json;
}

std::vector<std::string> host_warnings(const HostFacts& host) {
  if (host.governor != "powersave" && host.governor != "conservative") return {};
  return {
      format("the CPU governor is {}: threads that decode run below their highest clock; sudo cpupower "
             "frequency-set -g performance",
             host.governor)};
}

std::vector<std::string> card_warnings(const CardFacts& card, std::optional<int> node, const std::vector<int>& cpus,
                                       const std::vector<int>& cpus_of_node) {
  std::vector<std::string> warnings;
  const std::string at = card.place.empty() ? "" : " -i " + card.place;
  if (card.persistence && !*card.persistence) {
    warnings.push_back(
        format("persistence mode is off: each start waits until the driver is awake; sudo nvidia-smi{} "
               "-pm 1",
               at));
  }
  if (card.link_width && card.most_link_width && *card.link_width < *card.most_link_width) {
    warnings.push_back(
        format("the card uses {:.0f} of {:.0f} PCIe lanes: copies take longer; put it into a slot with "
               "{:.0f} lanes, or see nvidia-smi -q{} -d PCIE",
               *card.link_width, *card.most_link_width, *card.most_link_width, at));
  }
  const bool is_near = std::any_of(cpus.begin(), cpus.end(), [&](int cpu) {
    return std::find(cpus_of_node.begin(), cpus_of_node.end(), cpu) != cpus_of_node.end();
  });
  if (node && !cpus_of_node.empty() && !cpus.empty() && !is_near) {
    warnings.push_back(
        format("the card is on NUMA node {}, the CPUs of this process are not: copies cross nodes; "
               "numactl --cpunodebind={} --membind={} train ...",
               *node, *node, *node));
  }
  if (card.clocks_locked.value_or(false)) {
    warnings.push_back(format("the clocks of the card are locked; sudo nvidia-smi{} -rgc gives them free", at));
  }
  if (const auto reasons = slowdown_reasons(card.now.clock_reasons.value_or(0)); !reasons.empty()) {
    warnings.push_back(
        format("the card is slowed by {}: nvidia-smi -q{} -d PERFORMANCE", core::list_text(reasons), at));
  }
  if (card.remapping_failed.value_or(false)) {
    warnings.push_back("the card could not replace bad rows of its memory: have it exchanged");
  } else if (card.retirement_pending.value_or(false)) {
    warnings.push_back(
        format("bad memory of the card is replaced when it is reset: sudo nvidia-smi{} -r, or restart "
               "the machine",
               at));
  }
  if (!card.processes.empty()) {
    warnings.push_back(format("{} on this card, too: nvidia-smi{} shows them; CUDA_VISIBLE_DEVICES chooses another",
                              card.processes.size() == 1 ? "another process computes"
                                                         : format("{} other processes compute", card.processes.size()),
                              at));
  }
  return warnings;
}

}  // namespace stoker::observe
