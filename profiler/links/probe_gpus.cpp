#include "profiler/links/probe_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <numeric>

#include "planner/spec/error.h"

namespace sailor {
namespace {

// What a rank tells the others of its GPU; travels as bytes.
struct OwnGpu {
  int32_t opened = 0;
  int32_t usable = 0;  // GPUs that this process may use
  int64_t free_bytes = 0;
};

}  // namespace

std::unique_ptr<Gpu> open_gpus(CommFactory& factory, ProbeRequest& request, std::vector<ProbeRank>& ranks) {
  const auto self = static_cast<size_t>(factory.rank());
  const auto on_node = [&](size_t end) {
    return static_cast<int>(std::count_if(ranks.begin(), ranks.begin() + static_cast<ptrdiff_t>(end),
                                          [&](const ProbeRank& r) { return r.node == ranks[self].node; }));
  };
  std::unique_ptr<Gpu> gpu;
  OwnGpu own;
  if (request.only != Transport::sockets) {
    gpu = open_gpu({.rank = on_node(self), .ranks = on_node(ranks.size())});
    own = {gpu ? 1 : 0, gpu_count(), gpu ? gpu->device().total_bytes() - gpu->device().used_bytes() : 0};
  }
  std::vector<int> everybody(ranks.size());
  std::iota(everybody.begin(), everybody.end(), 0);
  std::vector<OwnGpu> all(ranks.size());
  factory.create("gpus", everybody)->all_gather(&own, all.data(), sizeof own, ElementType::u8);
  int64_t least_free = INT64_MAX;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    ranks[rank].gpu = all[rank].opened == 1;
    if (ranks[rank].gpu)
      least_free = std::min(least_free, all[rank].free_bytes);
    else if (self == 0 && all[rank].usable > 0)
      std::cerr << fmt::format(
          "note: rank {} on {} measures over sockets only: {} GPUs are too few for its node's "
          "ranks (--per-node, --ranks)\n",
          rank, ranks[rank].node, all[rank].usable);
  }
  if (least_free < INT64_MAX) request.gpu_bytes = least_free / 2;  // NCCL needs some, too
  if (request.only == Transport::nccl && !request.gpu_bytes)
    throw InputError(
        "--transport nccl: no rank has a GPU (sailor was built without CUDA, or there is no driver)");
  return gpu;
}

}  // namespace sailor
