// Slurm's generic-resource strings, as slurmctld reports them for a node. Knows nothing of libslurm. Pure.
//
//     gpu:NAME:4(S:0-1),shard:8            what a node has
//     gpu:NAME:2(IDX:0-1)                  what is in use, with indices
#pragma once

#include <string>
#include <vector>

namespace sailor {

struct Gres {
  std::string name;  // gpu, shard, ...
  std::string type;  // empty when Slurm was given none
  int count = 0;
  std::vector<int> indices;  // of (IDX:...), ascending; empty when the string has none or N/A
};

// Entries that are not understood are left out. An empty string gives an empty list.
std::vector<Gres> parse_gres(const std::string& text);

// `0-2,5` -> 0 1 2 5. What is not a number or a range is left out.
std::vector<int> parse_index_ranges(const std::string& text);

}  // namespace sailor
