// The topology of a node as a table and as JSON. Pure.
#pragma once

#include <string>

#include "trainer/topology/machine_topology.h"

namespace sailor {

// Ends in a newline.
std::string topology_table(const MachineTopology& machine);
// {"sailor_topology": 1, ...}; etc/doc/formats.md.
std::string topology_json(const MachineTopology& machine);

}  // namespace sailor
