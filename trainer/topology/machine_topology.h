// The topology of a node, as far as it matters for ranks: NUMA nodes, GPUs and network cards, their
// distances, and the binding of one rank per GPU. From hwloc: of this machine, or of a recorded one (`lstopo
// FILE.xml`). Value type; immutable.
//
// GPUs are numbered by PCI address, which is CUDA's order with CUDA_DEVICE_ORDER=PCI_BUS_ID. Without a driver
// they are recognized only by PCI class and vendor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sailor {

// Distance of two devices, closest first.
enum class Proximity {
  same_device,
  nvlink,       // GPUs with a direct link
  same_switch,  // below one PCI switch
  same_root,    // below one host bridge
  same_numa,    // host bridges of one NUMA node
  same_socket,  // of one processor
  across_sockets
};
const char* to_string(Proximity proximity);  // "same switch", ...

struct MachineTopology {
  struct NumaNode {
    int index = 0;     // of the operating system
    std::string cpus;  // "0-15,32-47": its processors, numbered by the operating system
    int64_t memory_bytes = 0;
  };
  struct Device {
    std::string pci;                 // "0000:07:00.0"
    std::string model;               // as recorded, else "10de:20b0" (vendor, device)
    std::vector<std::string> names;  // in the operating system: "mlx5_0", "ib0", "nvml0"
    // Names of network cards for RDMA and for sockets; empty = not that kind of card.
    std::string rdma_name, interface_name;
    std::string cpus;             // processors close to it
    std::vector<int> numa_nodes;  // close to it; several if the exact one is unknown
    double link_gb_per_s = 0;     // of the PCI link; 0 = unknown
  };
  // Where to bind the rank of a GPU.
  struct Binding {
    int gpu = 0;
    std::string cpus;             // its share of the cores close to the GPU, whole cores
    std::vector<int> numa_nodes;  // for its memory
    int nic = -1;                 // index into nics; -1 = none
  };

  int sockets = 0, cores = 0, processors = 0;
  std::vector<NumaNode> numa_nodes;
  std::vector<Device> gpus, nics;
  std::vector<std::vector<Proximity>> gpu_to_gpu, gpu_to_nic;  // by index
  std::vector<Binding> bindings;                               // one per GPU
};

// The topology of this machine. Throws std::runtime_error.
MachineTopology discover_topology();
// The topology of a machine recorded as hwloc XML. Throws InputError (no such file, not hwloc's XML).
MachineTopology load_topology(const std::string& xml_file);
MachineTopology parse_topology(const std::string& xml, const std::string& file_name);

}  // namespace sailor
