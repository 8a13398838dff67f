#include "trainer/topology/topology_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

namespace sailor {
namespace {

using Json = nlohmann::ordered_json;

std::string nic_name(const MachineTopology::Device& nic) {
  return nic.names.empty() ? nic.pci : nic.names.front();
}

std::string matrix_text(const char* title, const std::vector<std::string>& columns,
                        const std::vector<std::vector<Proximity>>& rows) {
  std::string text = fmt::format("{:<9}", title);
  for (const std::string& column : columns) text += fmt::format(" {:>11.11}", column);
  text += '\n';
  for (size_t i = 0; i < rows.size(); ++i) {
    text += fmt::format("GPU {:<5}", i);
    for (const Proximity proximity : rows[i]) text += fmt::format(" {:>11}", to_string(proximity));
    text += '\n';
  }
  return text;
}

Json device_json(const MachineTopology::Device& device) {
  return {{"pci", device.pci},   {"model", device.model},           {"names", device.names},
          {"cpus", device.cpus}, {"numa_nodes", device.numa_nodes}, {"link_gb_per_s", device.link_gb_per_s}};
}

Json matrix_json(const std::vector<std::vector<Proximity>>& rows) {
  Json json = Json::array();
  for (const auto& row : rows) {
    Json line = Json::array();
    for (const Proximity proximity : row) line.push_back(to_string(proximity));
    json.push_back(line);
  }
  return json;
}

}  // namespace

std::string topology_table(const MachineTopology& machine) {
  std::string text = fmt::format(
      "sockets {}, cores {}, processors {}, NUMA nodes {}, GPUs {}, network cards {}\n", machine.sockets,
      machine.cores, machine.processors, machine.numa_nodes.size(), machine.gpus.size(), machine.nics.size());
  for (const auto& node : machine.numa_nodes)
    text += fmt::format("NUMA {:<4} {:>7.1f} GiB  processors {}\n", node.index,
                        static_cast<double>(node.memory_bytes) / (1 << 30), node.cpus);
  const auto devices = [&text](const char* what, const std::vector<MachineTopology::Device>& all) {
    for (size_t i = 0; i < all.size(); ++i)
      text += fmt::format("{} {:<5} {}  NUMA {}  {}{}{}\n", what, i, all[i].pci,
                          fmt::join(all[i].numa_nodes, ","), all[i].model, all[i].names.empty() ? "" : "  ",
                          fmt::join(all[i].names, " "));
  };
  devices("GPU", machine.gpus);
  devices("NIC", machine.nics);
  if (machine.gpus.empty()) return text + "no GPUs to bind ranks to\n";

  std::vector<std::string> gpus, nics;
  for (size_t i = 0; i < machine.gpus.size(); ++i) gpus.push_back(fmt::format("GPU {}", i));
  for (const auto& nic : machine.nics) nics.push_back(nic_name(nic));
  if (gpus.size() > 1) text += '\n' + matrix_text("", gpus, machine.gpu_to_gpu);
  if (!nics.empty()) text += '\n' + matrix_text("", nics, machine.gpu_to_nic);
  text += "\nRANK OF    NUMA  NETWORK CARD  PROCESSORS\n";
  for (const auto& binding : machine.bindings)
    text += fmt::format(
        "GPU {:<5} {:>5}  {:<12}  {}\n", binding.gpu, fmt::format("{}", fmt::join(binding.numa_nodes, ",")),
        binding.nic < 0 ? "-" : nic_name(machine.nics[static_cast<size_t>(binding.nic)]), binding.cpus);
  return text;
}

std::string topology_json(const MachineTopology& machine) {
  Json json = {{"sailor_topology", 1},
               {"sockets", machine.sockets},
               {"cores", machine.cores},
               {"processors", machine.processors}};
  json["numa_nodes"] = json["gpus"] = json["nics"] = json["bindings"] = Json::array();
  for (const auto& node : machine.numa_nodes)
    json["numa_nodes"].push_back(
        {{"index", node.index}, {"cpus", node.cpus}, {"memory_bytes", node.memory_bytes}});
  for (const auto& gpu : machine.gpus) json["gpus"].push_back(device_json(gpu));
  for (const auto& nic : machine.nics) json["nics"].push_back(device_json(nic));
  json["gpu_to_gpu"] = matrix_json(machine.gpu_to_gpu);
  json["gpu_to_nic"] = matrix_json(machine.gpu_to_nic);
  for (const auto& binding : machine.bindings) {
    Json nic;  // null without one
    if (binding.nic >= 0) nic = binding.nic;
    json["bindings"].push_back(
        {{"gpu", binding.gpu}, {"cpus", binding.cpus}, {"numa_nodes", binding.numa_nodes}, {"nic", nic}});
  }
  return json.dump(2) + "\n";
}

}  // namespace sailor
