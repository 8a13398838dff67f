// Slurm's generic-resource strings, as slurmctld reports them for a node. Independent of libslurm. Pure.
//
//     gpu:NAME:4(S:0-1),shard:8            the GRES of a node
//     gpu:NAME:2(IDX:0-1)                  the GRES in use, with indices
#pragma once

#include <string>
#include <vector>

namespace sailor {

struct Gres {
  std::string name;  // gpu, shard, ...
  std::string type;  // empty if untyped
  int count = 0;
  std::vector<int> indices;  // of (IDX:...), ascending; empty if absent or N/A
};

// More of one kind than a node or job has, so that sums over entries fit.
constexpr int kMostGres = 1'000'000;

// Unknown entries, and those of more than kMostGres, are skipped. An empty string gives an empty list.
std::vector<Gres> parse_gres(const std::string& text);

// `0-2,5` -> 0 1 2 5. Anything else is skipped.
std::vector<int> parse_index_ranges(const std::string& text);

}  // namespace sailor
