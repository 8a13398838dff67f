#include "trainer/topology/process_binding.h"

#include <hwloc.h>

#include <cstdlib>
#include <memory>

namespace sailor {
namespace {

struct Free {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
  void operator()(hwloc_bitmap_s* set) const { hwloc_bitmap_free(set); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, Free>;

}  // namespace

std::string bind_process(const MachineTopology::Binding& binding) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return "";
  const std::unique_ptr<hwloc_topology, Free> topology(raw);
  if (hwloc_topology_load(raw) != 0) return "";
  const Bitmap near(hwloc_bitmap_alloc()), now(hwloc_bitmap_alloc());
  hwloc_bitmap_list_sscanf(near.get(), binding.cpus.c_str());
  if (hwloc_get_cpubind(raw, now.get(), HWLOC_CPUBIND_PROCESS) != 0) return "";
  hwloc_bitmap_and(near.get(), near.get(), now.get());
  if (hwloc_bitmap_iszero(near.get()) || hwloc_set_cpubind(raw, near.get(), HWLOC_CPUBIND_PROCESS) != 0)
    return "";
  if (!binding.numa_nodes.empty()) {
    const Bitmap nodes(hwloc_bitmap_alloc());
    for (const int node : binding.numa_nodes) hwloc_bitmap_set(nodes.get(), static_cast<unsigned>(node));
    // Where the system refuses, memory is still taken near the processor that touches it first.
    hwloc_set_membind(raw, nodes.get(), HWLOC_MEMBIND_BIND, HWLOC_MEMBIND_BYNODESET);
  }
  char* text = nullptr;
  if (hwloc_bitmap_list_asprintf(&text, near.get()) < 0) return "";
  const std::unique_ptr<char, decltype(&std::free)> owner(text, std::free);
  return text;
}

}  // namespace sailor
