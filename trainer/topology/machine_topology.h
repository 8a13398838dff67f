// What a node is made of, as far as it matters where a rank runs: NUMA nodes, GPUs and network cards, which
// of them are close to each other, and what follows for one rank per GPU. From hwloc: of this machine, or of
// a machine that was recorded (`lstopo FILE.xml`). Value type; immutable.
//
// GPUs are numbered by PCI address, which is CUDA's order with CUDA_DEVICE_ORDER=PCI_BUS_ID. Without a driver
// they are recognised by PCI class and vendor alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sailor {

// How far apart two devices are, closest first.
enum class Proximity {
  same_device,
  nvlink,       // GPUs with a link of their own
  same_switch,  // below one PCI switch
  same_root,    // below one host bridge
  same_numa,    // host bridges of one NUMA node
  same_socket,  // of one processor
  across_sockets
};
const char* to_string(Proximity proximity);  // "same switch", ...

struct MachineTopology {
  struct NumaNode {
    int index = 0;     // the operating system's
    std::string cpus;  // "0-15,32-47": its processors, by the operating system's numbers
    int64_t memory_bytes = 0;
  };
  struct Device {
    std::string pci;                 // "0000:07:00.0"
    std::string model;               // what the recorded machine says, else "10de:20b0" (vendor, device)
    std::vector<std::string> names;  // of the operating system: "mlx5_0", "ib0", "nvml0"
    // Of them, for network cards: by which RDMA and by which sockets know it; empty = not that kind of card.
    std::string rdma_name, interface_name;
    std::string cpus;             // processors close to it
    std::vector<int> numa_nodes;  // close to it; several when the machine does not say which
    double link_gb_per_s = 0;     // of the PCI link; 0 = not known
  };
  // Where the rank of a GPU is best bound.
  struct Binding {
    int gpu = 0;
    std::string cpus;             // its share of the cores close to the GPU, whole cores
    std::vector<int> numa_nodes;  // for its memory
    int nic = -1;                 // index into nics; -1 = the node has none
  };

  int sockets = 0, cores = 0, processors = 0;
  std::vector<NumaNode> numa_nodes;
  std::vector<Device> gpus, nics;
  std::vector<std::vector<Proximity>> gpu_to_gpu, gpu_to_nic;  // by index
  std::vector<Binding> bindings;                               // one per GPU
};

// Of this machine. Throws std::runtime_error.
MachineTopology discover_topology();
// Of a machine recorded as hwloc XML. Throws InputError (no such file, not hwloc's XML).
MachineTopology load_topology(const std::string& xml_file);
MachineTopology parse_topology(const std::string& xml, const std::string& file_name);

}  // namespace sailor
