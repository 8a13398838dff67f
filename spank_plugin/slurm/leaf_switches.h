// Slurm's network topology as far as placement uses it: which leaf switch a node hangs on.
#pragma once

#include <map>
#include <string>

namespace sailor {

// Leaf switch by node name, from the controller; empty when its topology plugin knows no switches. A node on
// several gets the first by name. Throws nothing: without topology plans are as good as before.
std::map<std::string, std::string> read_leaf_switches();

// The same of what `scontrol show topology` prints: lines `SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[1-3]`.
// Releases after 23.02 hand the topology out in no other form.
std::map<std::string, std::string> parse_leaf_switches(const std::string& text);

}  // namespace sailor
