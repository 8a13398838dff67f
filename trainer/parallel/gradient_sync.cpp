#include "trainer/parallel/gradient_sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "trainer/parallel/tensor_parallel.h"

namespace sailor {
namespace {

// Large enough to outweigh latency, and small enough for the copies to stay in a processor's cache: over
// sockets a megabyte takes half as long as in buckets of 32 MiB.
constexpr int64_t kBucketBytes = int64_t{4} << 20;

// Runs `reduce` over the tensors in flat buckets of about kBucketBytes and copies the results back. `buffer`
// is kept from bucket to bucket and grows to the largest.
void in_buckets(const std::vector<at::Tensor>& tensors, at::Tensor& buffer,
                const std::function<void(at::Tensor&)>& reduce) {
  for (std::size_t begin = 0; begin < tensors.size();) {
    std::vector<at::Tensor> flat;
    int64_t bytes = 0;
    std::size_t end = begin;
    while (end < tensors.size() && (end == begin || bytes < kBucketBytes)) {
      flat.push_back(tensors[end].reshape({-1}));
      bytes += static_cast<int64_t>(tensors[end].nbytes());
      ++end;
    }
    int64_t elements = 0;
    for (const at::Tensor& tensor : flat) elements += tensor.numel();
    if (!buffer.defined() || buffer.numel() < elements) {
      const int64_t usual =
          kBucketBytes / 4 * 5 / flat.front().element_size();  // a bucket is a little over its size
      buffer = at::empty({std::max(elements, usual)}, flat.front().options());
    }
    at::Tensor bucket = buffer.narrow(0, 0, elements);
    at::cat_out(bucket, flat);
    reduce(bucket);
    int64_t offset = 0;
    for (std::size_t i = begin; i < end; ++i) {
      tensors[i].copy_(bucket.narrow(0, offset, tensors[i].numel()).view_as(tensors[i]));
      offset += tensors[i].numel();
    }
    begin = end;
  }
}

}  // namespace

GradientSync::GradientSync(const Plan& plan, const RankLayout& layout, int rank, CommFactory& factory,
                           Communicator* tp, std::vector<Parameter*> parameters)
    : tp_(tp), parameters_(std::move(parameters)) {
  const std::vector<GradientGroup> all = gradient_groups(plan, layout);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (std::find(all[i].ranks.begin(), all[i].ranks.end(), rank) == all[i].ranks.end()) continue;
    groups_.push_back({factory.create(fmt::format("gradients/{}", i), all[i].ranks), all[i].shards});
  }
}

std::vector<at::Tensor> GradientSync::gradients_of(const Group& group) const {
  const int tp_rank = tp_ ? tp_->rank() : 0;
  const int tp_size = tp_ ? tp_->size() : 1;
  std::vector<at::Tensor> gradients;
  for (const SubShard& shard : group.shards) {
    for (const Parameter* parameter : parameters_) {
      if (parameter->layer != shard.layer) continue;
      const at::Tensor gradient = parameter->value.grad();
      if (parameter->sharded) {
        const auto rows = rows_of(shard, tp_rank, tp_size, gradient.size(0));
        if (rows.second > 0) gradients.push_back(gradient.narrow(0, rows.first, rows.second));
      } else if (shard.index == 0) {
        gradients.push_back(gradient);
      }
    }
  }
  return gradients;
}

void GradientSync::run() {
  if (groups_.empty()) return;
  for (const Group& group : groups_) {
    in_buckets(gradients_of(group), buffer_, [&](at::Tensor& bucket) { all_reduce(*group.comm, bucket); });
  }
  if (!tp_) return;
  std::vector<at::Tensor> replicated;
  for (const Parameter* parameter : parameters_) {
    if (!parameter->sharded) replicated.push_back(parameter->value.grad());
  }
  in_buckets(replicated, buffer_, [&](at::Tensor& bucket) { broadcast(*tp_, bucket, 0); });
}

}  // namespace sailor
