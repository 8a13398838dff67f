#include "trainer/topology/rank_binding.h"

#include <fmt/format.h>

#include <algorithm>

namespace sailor {
namespace {

// The cores that lie within `near` (sorted).
std::vector<const CoreSet*> cores_within(const std::vector<CoreSet>& cores, const std::vector<int>& near) {
  std::vector<const CoreSet*> within;
  for (const CoreSet& core : cores) {
    if (std::includes(near.begin(), near.end(), core.begin(), core.end())) within.push_back(&core);
  }
  return within;
}

}  // namespace

std::string cpu_list(std::vector<int> cpus) {
  std::sort(cpus.begin(), cpus.end());
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t end = i;
    while (end + 1 < cpus.size() && cpus[end + 1] == cpus[end] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cpus[i]);
    if (end > i) text += fmt::format("-{}", cpus[end]);
    i = end + 1;
  }
  return text;
}

std::vector<MachineTopology::Binding> bind_ranks(const MachineTopology& machine,
                                                 const std::vector<CoreSet>& cores,
                                                 const std::vector<std::vector<int>>& near) {
  std::vector<MachineTopology::Binding> bindings;
  std::vector<int> served(machine.nics.size());
  for (size_t gpu = 0; gpu < machine.gpus.size(); ++gpu) {
    MachineTopology::Binding binding;
    binding.gpu = static_cast<int>(gpu);
    binding.numa_nodes = machine.gpus[gpu].numa_nodes;

    const std::vector<const CoreSet*> all = cores_within(cores, near[gpu]);
    const auto sharing = static_cast<size_t>(std::count(near.begin(), near.end(), near[gpu]));
    const auto before = static_cast<size_t>(
        std::count(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(gpu), near[gpu]));
    std::vector<int> cpus;
    if (all.size() < sharing) {
      cpus = near[gpu];
    } else {
      for (size_t c = before * all.size() / sharing; c < (before + 1) * all.size() / sharing; ++c)
        cpus.insert(cpus.end(), all[c]->begin(), all[c]->end());
    }
    binding.cpus = cpu_list(std::move(cpus));

    for (size_t nic = 0; nic < machine.nics.size(); ++nic) {
      const auto better_than = [&](size_t other) {
        const auto here = machine.gpu_to_nic[gpu][nic], there = machine.gpu_to_nic[gpu][other];
        return here < there || (here == there && served[nic] < served[other]);
      };
      if (binding.nic < 0 || better_than(static_cast<size_t>(binding.nic)))
        binding.nic = static_cast<int>(nic);
    }
    if (binding.nic >= 0) ++served[static_cast<size_t>(binding.nic)];
    bindings.push_back(std::move(binding));
  }
  return bindings;
}

}  // namespace sailor
