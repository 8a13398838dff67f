#include "trainer/parallel/parameter_gathers.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "trainer/model/element_types.h"
#include "trainer/parallel/common_order.h"

namespace sailor {

ParameterGathers::ParameterGathers(const Plan& plan, const RankSlot& slot, const GradientLayout& layout,
                                   const std::vector<std::vector<Part>>& parts, const BucketPlaces& places,
                                   const PartMemory& memory, FlatMemory values, at::Tensor own_values,
                                   BackgroundWork& work, Device& device, std::function<void()> empty_round)
    : parts_(parts),
      places_(places),
      memory_(memory),
      values_(std::move(values)),
      own_values_(std::move(own_values)),
      work_(work),
      device_(device),
      empty_round_(std::move(empty_round)) {
  list_uses(plan, slot, layout);
}

void ParameterGathers::list_uses(const Plan& plan, const RankSlot& slot, const GradientLayout& layout) {
  for (const ScheduleStep& step : common_steps(plan, slot)) {
    const bool backward = step.kind == ScheduleStep::Kind::backward;
    const PlanStage& stage = stage_of_chunk(plan, slot, step.chunk);
    const int own = own_microbatch(plan, slot.pipeline, step.microbatch);
    const auto begin = static_cast<std::ptrdiff_t>(of_iteration_.size());
    for (std::size_t b = 0; b < layout.buckets.size(); ++b) {  // from the last layer down
      const int layer = layout.buckets[b].first_layer;
      if (has_rounds(plan, layout.buckets[b]) && layer >= stage.first_layer && layer < stage.end_layer)
        of_iteration_.push_back({b, layer, backward, own});
    }
    if (!backward) std::reverse(of_iteration_.begin() + begin, of_iteration_.end());
  }
}

void ParameterGathers::begin_iteration() {
  uses_ = of_iteration_;
  begin();
}

void ParameterGathers::begin_evaluation(const std::function<bool(int)>& computes) {
  uses_ = of_iteration_;
  std::erase_if(uses_, [](const Use& use) { return use.backward; });
  for (Use& use : uses_)
    if (use.microbatch >= 0 && !computes(use.microbatch)) use.microbatch = -1;
  begin();
}

void ParameterGathers::begin() {
  next_ = fetched_ = 0;
  content_ = {-1, -1};
  fetch(0);
  pass_others_uses();
}

bool ParameterGathers::has_use(int layer) const {
  return std::any_of(uses_.begin(), uses_.end(), [&](const Use& use) { return use.layer == layer; });
}

void ParameterGathers::layer_begins(int layer) {
  if (!has_use(layer)) return;
  if (next_ >= uses_.size() || uses_[next_].microbatch < 0 || uses_[next_].layer != layer)
    throw std::logic_error(fmt::format("layer {} is not the next one of the common order", layer));
  if (const int area = places_.area[uses_[next_].bucket]; area >= 0)
    work_.wait(ready_[static_cast<std::size_t>(area)]);
  fetch_into_free_area(next_ + 1);
}

void ParameterGathers::layer_ends(int layer) {
  if (!has_use(layer)) return;
  fetch(++next_);
  pass_others_uses();
}

// This rank only helps the others, who wait for it.
void ParameterGathers::pass_others_uses() {
  while (next_ < uses_.size() && uses_[next_].microbatch < 0) {
    fetch_into_free_area(next_ + 1);
    if (uses_[next_].backward) empty_round_();
    fetch(++next_);
  }
}

void ParameterGathers::fetch_into_free_area(std::size_t i) {
  if (i >= uses_.size()) return;
  const std::size_t now = uses_[i - 1].bucket, then = uses_[i].bucket;
  if (now == then || places_.area[now] != places_.area[then]) fetch(i);
}

void ParameterGathers::fetch(std::size_t i) {
  if (i >= uses_.size() || i < fetched_) return;
  fetched_ = i + 1;
  gather_bucket(uses_[i].bucket);
}

void ParameterGathers::gather_bucket(std::size_t bucket) {
  if (places_.area[bucket] < 0) return;
  const auto area = static_cast<std::size_t>(places_.area[bucket]);
  if (content_[area] == static_cast<int>(bucket)) return;
  work_.push([this, bucket] { gather(bucket); });
  content_[area] = static_cast<int>(bucket);
  ready_[area] = work_.point();
}

void ParameterGathers::gather_now(int layer) {
  const auto use = std::find_if(of_iteration_.begin(), of_iteration_.end(),
                                [&](const Use& one) { return one.layer == layer; });
  if (use == of_iteration_.end() || places_.area[use->bucket] < 0) return;
  content_ = {-1, -1};
  gather_bucket(use->bucket);
  work_.wait(ready_[static_cast<std::size_t>(places_.area[use->bucket])]);
}

void ParameterGathers::gather(std::size_t bucket) const {
  const Stream stream = device_.gradients();
  const std::size_t element = values_.element_bytes();
  for (const Part& part : parts_[bucket]) {
    if (part.values < 0) continue;
    memory_.for_each_piece(part, [&](int64_t first, int64_t count) {
      char* const data = memory_.memory_of(part, values_, first);
      const BlockRange own = PartMemory::own_block(part, count);
      const auto from = static_cast<std::size_t>(part.values + memory_.own_index(part, first));
      device_.copy(data + own.first * element,
                   static_cast<const char*>(own_values_.data_ptr()) + from * element, own.count * element,
                   stream);
      part.group->gather_blocks(data, static_cast<std::size_t>(count),
                                element_type(values_.flat.scalar_type()), stream);
      memory_.copy(part, values_, first, count, data, PartMemory::Direction::in, stream);
    });
  }
}

}  // namespace sailor
