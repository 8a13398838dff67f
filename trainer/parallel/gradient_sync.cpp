#include "trainer/parallel/gradient_sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <string>

#include "trainer/model/element_types.h"
#include "trainer/model/tensor_parallel.h"
#include "trainer/optim/square_sum.h"

namespace sailor {
namespace {

// Large enough to outweigh latency, and small enough for the sums to stay in a processor's cache.
constexpr int64_t kPieceBytes = int64_t{4} << 20;

std::size_t element_bytes_of(const at::Tensor& buffer) {
  return static_cast<std::size_t>(buffer.element_size());
}

}  // namespace

struct GradientSync::Part {
  const GradientPart* elements = nullptr;
  Communicator* group = nullptr;
  int64_t begin = -1;  // in the buffer, if it is contiguous; else -1
};

GradientSync::GradientSync(const Plan& plan, const RankLayout& layout, int rank, CommFactory& factory,
                           Communicator* tp, const std::vector<Parameter*>& parameters, bool tied_embeddings,
                           Device& device)
    : GradientSync(plan, layout, rank, factory, tp, parameters,
                   gradient_groups(plan, layout, tied_embeddings), device) {}

GradientSync::GradientSync(const Plan& plan, const RankLayout& layout, int rank, CommFactory& factory,
                           Communicator* tp, const std::vector<Parameter*>& parameters,
                           const std::vector<GradientGroup>& all_groups, Device& device)
    : slot_(layout.slots().at(static_cast<std::size_t>(rank))),
      device_(device),
      tp_(tp),
      sharded_(shards_optimizer(plan.zero)),
      sums_replicated_(plan.sequence_parallel && tp != nullptr && tp->size() > 1),
      num_layers_(plan.pipelines.front().stages.back().end_layer),
      layout_(gradient_layout(plan, layout, rank, all_groups, parameters)),
      buffer_(layout_.order) {
  for (std::size_t i = 0; i < all_groups.size(); ++i) {
    const std::vector<int>& ranks = all_groups[i].ranks;
    groups_.emplace_back();
    if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) continue;
    groups_.back() = factory.create(fmt::format("gradients/{}", i), ranks, CommUse::background_collectives);
  }
  of_layer_.resize(static_cast<std::size_t>(num_layers_));
  for (std::size_t i = 0; i < layout_.order.size(); ++i) {
    const auto layer = static_cast<std::size_t>(layout_.order[i]->layer);
    if (layer < of_layer_.size()) {
      of_layer_[layer].push_back(i);
    } else {  // shared by the first and the last layer
      of_layer_.front().push_back(i);
      of_layer_.back().push_back(i);
    }
  }

  for (const GradientBucket& bucket : layout_.buckets) {
    parts_.emplace_back();
    for (const GradientPart& elements : bucket.parts) {
      Part part{&elements, groups_[elements.group].get(), -1};
      int64_t next = -1;
      bool together = true;
      for (const GradientSegment& segment : elements.segments) {
        const int64_t at = buffer_.offset(segment.parameter) + segment.first;
        if (next < 0) part.begin = at;
        together = together && (next < 0 || next == at);
        next = at + segment.count;
      }
      if (!together) part.begin = -1;
      parts_.back().push_back(part);
      if (!queue_ && !device_.asynchronous()) queue_ = std::make_unique<WorkQueue>();
    }
  }
  make_staging();
  const bool sums =
      std::any_of(parts_.begin(), parts_.end(), [](const auto& parts) { return !parts.empty(); });
  if (!sharded_ || !sums) return;
  values_ = at::empty({buffer_.flat().numel()}, layout_.order.front()->value.detach().options());
  for (std::size_t i = 0; i < layout_.order.size(); ++i) {
    at::Tensor& value = layout_.order[i]->value;
    const at::Tensor place = values_.narrow(0, buffer_.offset(i), value.numel()).view(value.sizes());
    place.copy_(value.detach());
    value.set_data(place);
  }
}

GradientSync::~GradientSync() {
  // An error of another kind ends this rank's part: nothing shall wait for the sums.
  if (queue_ ? !queue_->idle() : summing_) {
    for (const auto& group : groups_) {
      if (group) group->abort();
    }
  }
  try {
    device_.wait(device_.gradients());  // until then they write to the buffer
  } catch (const std::exception&) {     // of a device that computes no more
  }
}

// As much as is worked on at once of what does not lie together: nothing that is enqueued loses it.
void GradientSync::make_staging() {
  int64_t elements = 0, replicated = 0;
  for (const auto& parts : parts_) {
    for (const Part& part : parts) {
      if (part.begin < 0) elements = std::max(elements, std::min(piece_elements(part), part.elements->count));
    }
  }
  for (const GradientBucket& bucket : layout_.buckets) {
    for (const std::size_t i : bucket.parameters) {
      const Parameter& parameter = *layout_.order[i];
      if (tp_ && tp_->size() > 1 && bucket.summed && !parameter.sharded)
        replicated += parameter.value.numel();
    }
  }
  const at::Tensor& flat = buffer_.flat();
  staging_ =
      at::empty({std::max(elements, replicated) * flat.element_size()}, flat.options().dtype(at::kByte));
}

void GradientSync::begin_iteration(double loss_scale, bool measure) {
  measure_ = measure;
  unreduced_squares_ = 0;
  buffer_.begin_iteration(loss_scale);
}

void GradientSync::layer_finished(int layer, bool last) {
  buffer_.collect(of_layer_.at(static_cast<std::size_t>(layer)));
  if (!last) return;
  // What layers share is finished with the last of them: see finish().
  while (next_bucket_ < layout_.buckets.size() && layout_.buckets[next_bucket_].first_layer >= layer &&
         layout_.buckets[next_bucket_].first_layer < num_layers_)
    start_next_bucket();
}

void GradientSync::add_unreduced_squares(const GradientBucket& bucket) {
  std::vector<at::Tensor> gradients;
  for (const std::size_t i : bucket.parameters) {
    const Parameter& parameter = *layout_.order[i];
    if (bucket.summed && parameter.layer < num_layers_ && (parameter.sharded || slot_.tp_rank == 0))
      gradients.push_back(buffer_.flat().narrow(0, buffer_.offset(i), parameter.value.numel()));
  }
  unreduced_squares_ += square_sum(gradients);
}

// They are the last of the bucket.
void GradientSync::sum_replicated(const GradientBucket& bucket) {
  int64_t first = 0, count = 0;
  for (const std::size_t i : bucket.parameters) {
    const Parameter& parameter = *layout_.order[i];
    if (parameter.sharded) continue;
    if (count == 0) first = buffer_.offset(i);
    count += parameter.value.numel();
  }
  at::Tensor gradients = buffer_.flat().narrow(0, first, count);
  if (count > 0) all_reduce(*tp_, gradients);
}

void GradientSync::start_next_bucket() {
  if (sums_replicated_) sum_replicated(layout_.buckets[next_bucket_]);
  if (measure_) add_unreduced_squares(layout_.buckets[next_bucket_]);
  std::vector<Part>& parts = parts_[next_bucket_++];
  if (queue_) {
    for (Part& part : parts) queue_->push([this, &part] { for_each_piece(part, &GradientSync::sum_piece); });
  } else if (!parts.empty()) {
    summing_ = true;
    device_.order(device_.compute(), device_.gradients());
    for (Part& part : parts) for_each_piece(part, &GradientSync::sum_piece);
  }
}

void GradientSync::finish() {
  while (next_bucket_ < layout_.buckets.size()) start_next_bucket();
  next_bucket_ = 0;
  if (queue_) queue_->wait();
  device_.order(device_.gradients(), device_.compute());
  summing_ = false;
  if (!sharded_) broadcast_replicated(buffer_.flat());
}

void GradientSync::settle() const {
  for (const auto& group : groups_) {
    if (group) group->settle();
  }
}

std::map<std::string, at::Tensor> GradientSync::gradients() const {
  std::map<std::string, at::Tensor> gradients;
  for (std::size_t i = 0; i < layout_.order.size(); ++i)
    gradients.emplace(layout_.order[i]->name, buffer_.view(i));
  return gradients;
}

void GradientSync::drop_gradients() {
  if (queue_) {
    try {
      queue_->wait();
    } catch (const std::exception&) {  // the failure that ended the generation
    }
  }
  device_.wait(device_.gradients());
  // The optimizer's slices and the parameters refer to it, too.
  buffer_.flat().storage().unsafeGetStorageImpl()->reset();
  staging_ = at::Tensor();
}

void GradientSync::share_values() {
  if (!values_.defined()) return;
  for (auto& parts : parts_) {
    for (Part& part : parts) for_each_piece(part, &GradientSync::share_piece);
  }
  broadcast_replicated(values_);
}

int64_t GradientSync::piece_elements(const Part& part) const {
  if (device_.asynchronous()) return part.elements->count;
  return kPieceBytes / static_cast<int64_t>(element_bytes_of(buffer_.flat()));
}

void GradientSync::for_each_piece(Part& part, PieceFunction function) {
  const int64_t most = piece_elements(part);
  for (int64_t first = 0; first < part.elements->count; first += most)
    (this->*function)(part, first, std::min(most, part.elements->count - first));
}

void GradientSync::sum_piece(Part& part, int64_t first, int64_t count) {
  const at::Tensor& flat = buffer_.flat();
  char* data = memory_of(part, flat, first);
  const Stream stream = device_.gradients();
  copy(part, flat, first, count, data, Direction::out, stream);
  const auto elements = static_cast<std::size_t>(count);
  const ElementType type = element_type(flat.scalar_type());
  if (!sharded_) {
    part.group->all_reduce(data, elements, type, ReduceOp::sum, stream);
    return copy(part, flat, first, count, data, Direction::in, stream);
  }
  part.group->reduce_own_block(data, elements, type, ReduceOp::sum, stream);
  const BlockRange own = block_of(elements, part.group->size(), part.group->rank());
  copy(part, flat, first + static_cast<int64_t>(own.first), static_cast<int64_t>(own.count),
       data + own.first * element_bytes_of(flat), Direction::in, stream);
}

void GradientSync::share_piece(Part& part, int64_t first, int64_t count) {
  const Stream stream = device_.compute();
  char* data = memory_of(part, values_, first);
  const BlockRange own = block_of(static_cast<std::size_t>(count), part.group->size(), part.group->rank());
  copy(part, values_, first + static_cast<int64_t>(own.first), static_cast<int64_t>(own.count),
       data + own.first * element_bytes_of(values_), Direction::out, stream);
  part.group->gather_blocks(data, static_cast<std::size_t>(count), element_type(values_.scalar_type()),
                            stream);
  copy(part, values_, first, count, data, Direction::in, stream);
}

char* GradientSync::memory_of(const Part& part, const at::Tensor& buffer, int64_t first) const {
  if (part.begin < 0) return static_cast<char*>(staging_.data_ptr());
  return static_cast<char*>(buffer.data_ptr()) +
         static_cast<std::size_t>(part.begin + first) * element_bytes_of(buffer);
}

void GradientSync::copy(const Part& part, const at::Tensor& buffer, int64_t first, int64_t count,
                        char* memory, Direction direction, Stream stream) const {
  if (part.begin >= 0) return;
  const std::size_t element = element_bytes_of(buffer);
  for_each_run(part, first, count, [&](std::size_t parameter, int64_t begin, int64_t length) {
    char* place = static_cast<char*>(buffer.data_ptr()) +
                  static_cast<std::size_t>(buffer_.offset(parameter) + begin) * element;
    const std::size_t bytes = static_cast<std::size_t>(length) * element;
    device_.copy(direction == Direction::out ? memory : place, direction == Direction::out ? place : memory,
                 bytes, stream);
    memory += bytes;
  });
}

// Elements [first, first + count) of a part, as runs of parameters' elements: f(parameter, first, count).
template <class Function>
void GradientSync::for_each_run(const Part& part, int64_t first, int64_t count, Function&& function) const {
  for (const GradientSegment& segment : part.elements->segments) {
    if (count <= 0) return;
    if (first >= segment.count) {
      first -= segment.count;
      continue;
    }
    const int64_t length = std::min(count, segment.count - first);
    function(segment.parameter, segment.first + first, length);
    count -= length;
    first = 0;
  }
}

void GradientSync::broadcast_replicated(const at::Tensor& buffer) {
  if (!tp_ || tp_->size() == 1) return;
  const std::size_t element = element_bytes_of(buffer);
  const auto for_each_replicated = [&](auto&& function) {
    for (const GradientBucket& bucket : layout_.buckets) {
      for (const std::size_t i : bucket.parameters) {
        const Parameter& parameter = *layout_.order[i];
        if (!bucket.summed || parameter.sharded) continue;
        function(
            static_cast<char*>(buffer.data_ptr()) + static_cast<std::size_t>(buffer_.offset(i)) * element,
            static_cast<std::size_t>(parameter.value.numel()) * element);
      }
    }
  };
  std::size_t bytes = 0;
  const Stream stream = device_.compute();
  char* next = static_cast<char*>(staging_.data_ptr());
  for_each_replicated([&](const char* place, std::size_t length) {
    if (tp_->rank() == 0) device_.copy(next + bytes, place, length, stream);
    bytes += length;
  });
  if (bytes == 0) return;
  tp_->broadcast(next, bytes, ElementType::u8, 0, stream);
  if (tp_->rank() == 0) return;
  for_each_replicated([&](char* place, std::size_t length) {
    device_.copy(place, next, length, stream);
    next += length;
  });
}

OptimizerSlice GradientSync::slice(std::size_t i, int64_t first, int64_t count) const {
  const Parameter& parameter = *layout_.order[i];
  return {parameter.name,
          parameter.decay,
          first,
          count,
          parameter.value.detach().view({-1}).narrow(0, first, count),
          buffer_.flat().narrow(0, buffer_.offset(i) + first, count),
          parameter.linear};
}

std::vector<OptimizerSlice> GradientSync::own_slices() const {
  std::vector<OptimizerSlice> slices;
  for (const auto& parts : parts_) {
    for (const Part& part : parts) {
      const int64_t most = piece_elements(part);
      for (int64_t first = 0; first < part.elements->count; first += most) {
        const BlockRange own =
            block_of(static_cast<std::size_t>(std::min(most, part.elements->count - first)),
                     part.group->size(), part.group->rank());
        for_each_run(
            part, first + static_cast<int64_t>(own.first), static_cast<int64_t>(own.count),
            [&](std::size_t i, int64_t begin, int64_t length) { slices.push_back(slice(i, begin, length)); });
      }
    }
  }
  return slices;
}

std::vector<OptimizerSlice> GradientSync::slices() const {
  std::vector<OptimizerSlice> slices = sharded_ ? own_slices() : std::vector<OptimizerSlice>();
  for (const GradientBucket& bucket : layout_.buckets) {
    if (sharded_ && bucket.summed) continue;
    for (const std::size_t i : bucket.parameters)
      slices.push_back(slice(i, 0, layout_.order[i]->value.numel()));
  }
  return slices;
}

template <class Work>
void GradientSync::for_each_own_gradient(const Work& work) const {
  for (std::size_t b = 0; b < layout_.buckets.size(); ++b) {
    if (sharded_ && layout_.buckets[b].summed) continue;
    // Replicas agree by now, so the first pipeline speaks for all.
    if (slot_.pipeline != 0) continue;
    for (const std::size_t i : layout_.buckets[b].parameters) {
      const Parameter& parameter = *layout_.order[i];
      if (parameter.tied_copy) continue;  // the embedding's rank has it
      if (parameter.sharded || slot_.tp_rank == 0)
        work(parameter.layer, buffer_.flat().narrow(0, buffer_.offset(i), parameter.value.numel()));
    }
  }
  if (!sharded_) return;
  std::map<std::string, int> layer_of;
  for (const Parameter* parameter : layout_.order) layer_of[parameter->name] = parameter->layer;
  for (const OptimizerSlice& slice : own_slices()) work(layer_of.at(slice.name), slice.gradient);
}

double GradientSync::own_sum_of_squares() const {
  std::vector<at::Tensor> gradients;
  for_each_own_gradient([&](int, const at::Tensor& gradient) { gradients.push_back(gradient); });
  return square_sum(gradients);
}

std::vector<double> GradientSync::own_sums_of_squares() const {
  std::vector<std::vector<at::Tensor>> gradients(static_cast<std::size_t>(num_layers_) + 1);
  for_each_own_gradient([&](int layer, const at::Tensor& gradient) {
    gradients[static_cast<std::size_t>(layer)].push_back(gradient);
  });
  std::vector<double> sums;
  for (const std::vector<at::Tensor>& of_layer : gradients) sums.push_back(square_sum(of_layer));
  return sums;
}

}  // namespace sailor
