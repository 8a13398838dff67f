// Slurm's network topology, as far as placement uses it: the leaf switch of each node.
#pragma once

#include <map>
#include <string>

namespace sailor {

// Leaf switch by node name, from the controller; empty if its topology plugin has no switches. A node on
// several switches gets the first by name. Throws nothing: plans do not require a topology. Where Slurm's
// configuration is in files, the controller is asked only if one is of a topology. scontrol is asked, because
// libslurm of 24.11 cannot load the topology plugins, which need symbols of Slurm's own programs.
std::map<std::string, std::string> read_leaf_switches();

// Whether there is slurm.conf in this directory, and no description of a topology beside it.
bool has_no_topology(const std::string& directory);

// Leaf switches from `scontrol show topology`: lines `SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[1-3]`.
std::map<std::string, std::string> parse_leaf_switches(const std::string& text);

}  // namespace sailor
