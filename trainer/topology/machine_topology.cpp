#include "trainer/topology/machine_topology.h"

#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string_view>

#include "planner/spec/error.h"
#include "planner/spec/text_file.h"
#include "trainer/topology/rank_binding.h"

namespace sailor {
namespace {

constexpr unsigned kGpuVendor = 0x10de;
constexpr unsigned kDisplayClasses[] = {0x0300, 0x0302};  // with and without a video output
constexpr unsigned kNetworkClass = 0x02;

struct Destroy {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, Destroy>;

Topology new_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) throw std::runtime_error("hwloc cannot be started");
  Topology topology(raw);
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  return topology;
}

std::string list_text(hwloc_const_bitmap_t set) {
  char* text = nullptr;
  if (set == nullptr || hwloc_bitmap_list_asprintf(&text, set) < 0) return "";
  const std::unique_ptr<char, decltype(&std::free)> owner(text, std::free);
  return text;
}

std::vector<int> members_of(hwloc_const_bitmap_t set) {
  std::vector<int> members;
  if (set == nullptr || hwloc_bitmap_weight(set) < 0) return members;
  for (int i = hwloc_bitmap_first(set); i >= 0; i = hwloc_bitmap_next(set, i)) members.push_back(i);
  return members;
}

bool is_gpu(hwloc_obj_t device) {
  return device->attr->pcidev.vendor_id == kGpuVendor &&
         std::count(std::begin(kDisplayClasses), std::end(kDisplayClasses), device->attr->pcidev.class_id) >
             0;
}

bool is_nic(hwloc_obj_t device) {
  return device->attr->pcidev.class_id >> 8 == kNetworkClass;
}

MachineTopology::Device device_of(hwloc_topology_t topology, hwloc_obj_t object) {
  const auto& pci = object->attr->pcidev;
  MachineTopology::Device device;
  device.pci = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func);
  const char* model = hwloc_obj_get_info_by_name(object, "PCIDevice");
  device.model = model != nullptr ? model : fmt::format("{:04x}:{:04x}", pci.vendor_id, pci.device_id);
  for (hwloc_obj_t child = object->io_first_child; child != nullptr; child = child->next_sibling) {
    if (child->type != HWLOC_OBJ_OS_DEVICE || child->name == nullptr) continue;
    // The name by which communication libraries choose a card comes first.
    const bool rdma = child->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS;
    device.names.insert(rdma ? device.names.begin() : device.names.end(), child->name);
    if (rdma && device.rdma_name.empty()) device.rdma_name = child->name;
    if (child->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK && device.interface_name.empty())
      device.interface_name = child->name;
  }
  const hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(topology, object);
  device.cpus = list_text(place->cpuset);
  device.numa_nodes = members_of(place->nodeset);
  device.link_gb_per_s = pci.linkspeed;
  return device;
}

// How far apart two devices are on PCI and in the machine.
Proximity distance(hwloc_topology_t topology, hwloc_obj_t a, hwloc_obj_t b) {
  if (a == b) return Proximity::same_device;
  for (hwloc_obj_t above = a->parent; above != nullptr && above->type == HWLOC_OBJ_BRIDGE;
       above = above->parent) {
    for (hwloc_obj_t other = b->parent; other != nullptr && other->type == HWLOC_OBJ_BRIDGE;
         other = other->parent) {
      if (above != other) continue;
      return above->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST ? Proximity::same_root
                                                                        : Proximity::same_switch;
    }
  }
  const hwloc_obj_t near_a = hwloc_get_non_io_ancestor_obj(topology, a),
                    near_b = hwloc_get_non_io_ancestor_obj(topology, b);
  if (hwloc_bitmap_isequal(near_a->nodeset, near_b->nodeset) && hwloc_bitmap_weight(near_a->nodeset) == 1)
    return Proximity::same_numa;
  const hwloc_obj_t common = hwloc_get_common_ancestor_obj(topology, near_a, near_b);
  const bool one_socket = common->type == HWLOC_OBJ_PACKAGE ||
                          hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, common) != nullptr ||
                          hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE) == 1;
  return one_socket ? Proximity::same_socket : Proximity::across_sockets;
}

// The PCI device of an object of a distance matrix, which may be an operating system's device.
hwloc_obj_t pci_device_of(hwloc_obj_t object) {
  while (object != nullptr && object->type != HWLOC_OBJ_PCI_DEVICE) object = object->parent;
  return object;
}

// Pairs of GPUs that the machine knows to be linked (hwloc's NVML part records the links' bandwidth; pairs of
// devices on a common switch chip are linked through it).
void add_nvlinks(hwloc_topology_t topology, const std::map<hwloc_obj_t, size_t>& gpu_index,
                 std::vector<std::vector<Proximity>>& gpu_to_gpu) {
  unsigned count = 1;
  hwloc_distances_s* matrix = nullptr;
  if (hwloc_distances_get_by_name(topology, "NVLinkBandwidth", &count, &matrix, 0) != 0 || count == 0) return;
  for (unsigned i = 0; i < matrix->nbobjs; ++i) {
    for (unsigned j = 0; j < matrix->nbobjs; ++j) {
      const auto a = gpu_index.find(pci_device_of(matrix->objs[i])),
                 b = gpu_index.find(pci_device_of(matrix->objs[j]));
      if (i == j || a == gpu_index.end() || b == gpu_index.end() || a == b) continue;
      if (matrix->values[i * matrix->nbobjs + j] > 0) gpu_to_gpu[a->second][b->second] = Proximity::nvlink;
    }
  }
  hwloc_distances_release(topology, matrix);
}

MachineTopology describe(hwloc_topology_t topology) {
  MachineTopology machine;
  machine.sockets = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE);
  machine.cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
  machine.processors = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr;)
    machine.numa_nodes.push_back({static_cast<int>(node->os_index), list_text(node->cpuset),
                                  static_cast<int64_t>(node->attr->numanode.local_memory)});

  std::vector<hwloc_obj_t> gpus, nics;
  for (hwloc_obj_t device = nullptr; (device = hwloc_get_next_pcidev(topology, device)) != nullptr;) {
    if (is_gpu(device)) gpus.push_back(device);
    if (is_nic(device)) nics.push_back(device);
  }
  const auto by_address = [](hwloc_obj_t a, hwloc_obj_t b) {
    const auto key = [](hwloc_obj_t o) {
      const auto& p = o->attr->pcidev;
      return std::tuple(p.domain, p.bus, p.dev, p.func);
    };
    return key(a) < key(b);
  };
  std::sort(gpus.begin(), gpus.end(), by_address);
  std::sort(nics.begin(), nics.end(), by_address);
  std::map<hwloc_obj_t, size_t> gpu_index;
  for (size_t i = 0; i < gpus.size(); ++i) gpu_index[gpus[i]] = i;

  for (const hwloc_obj_t gpu : gpus) {
    machine.gpus.push_back(device_of(topology, gpu));
    std::vector<Proximity>& to_gpu = machine.gpu_to_gpu.emplace_back();
    for (const hwloc_obj_t other : gpus) to_gpu.push_back(distance(topology, gpu, other));
    std::vector<Proximity>& to_nic = machine.gpu_to_nic.emplace_back();
    for (const hwloc_obj_t nic : nics) to_nic.push_back(distance(topology, gpu, nic));
  }
  for (const hwloc_obj_t nic : nics) machine.nics.push_back(device_of(topology, nic));
  add_nvlinks(topology, gpu_index, machine.gpu_to_gpu);

  std::vector<CoreSet> cores;
  for (hwloc_obj_t core = nullptr;
       (core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) != nullptr;)
    cores.push_back(members_of(core->cpuset));
  std::vector<std::vector<int>> near;
  for (const hwloc_obj_t gpu : gpus)
    near.push_back(members_of(hwloc_get_non_io_ancestor_obj(topology, gpu)->cpuset));
  machine.bindings = bind_ranks(machine, cores, near);
  return machine;
}

}  // namespace

const char* to_string(Proximity proximity) {
  switch (proximity) {
    case Proximity::same_device:
      return "itself";
    case Proximity::nvlink:
      return "nvlink";
    case Proximity::same_switch:
      return "same switch";
    case Proximity::same_root:
      return "same root";
    case Proximity::same_numa:
      return "same numa";
    case Proximity::same_socket:
      return "same socket";
    case Proximity::across_sockets:
      break;
  }
  return "across";
}

MachineTopology discover_topology() {
  const Topology topology = new_topology();
  if (hwloc_topology_load(topology.get()) != 0)
    throw std::runtime_error("hwloc cannot read the topology of this machine");
  return describe(topology.get());
}

MachineTopology parse_topology(const std::string& xml, const std::string& file_name) {
  const Topology topology = new_topology();
  // hwloc 2.12 prints a line of its own about what is not XML. It counts the terminating NUL.
  if (xml.find("<topology") == std::string::npos ||
      hwloc_topology_set_xmlbuffer(topology.get(), xml.c_str(), static_cast<int>(xml.size()) + 1) != 0 ||
      hwloc_topology_load(topology.get()) != 0)
    throw InputError({file_name, 0}, "is not a topology written by `lstopo FILE.xml`");
  return describe(topology.get());
}

MachineTopology load_topology(const std::string& xml_file) {
  return parse_topology(read_text_file(xml_file), xml_file);
}

}  // namespace sailor
