#include "trainer/parallel/gradient_sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <stdexcept>

#include "trainer/model/element_types.h"
#include "trainer/model/tensor_parallel.h"
#include "trainer/optim/square_sum.h"

namespace sailor {
namespace {

// Large enough to outweigh latency, and small enough for the sums to stay in a processor's cache.
constexpr int64_t kPieceBytes = int64_t{4} << 20;
constexpr int64_t kZeroBytes = int64_t{1} << 20;

}  // namespace

struct GradientSync::Part {
  const GradientPart* elements = nullptr;
  Communicator* group = nullptr;
  bool contiguous = true;
  int64_t sums = -1;  // its first element in GradientSync::sums_
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
      places_(gradient_places(plan, layout_)),
      rounds_(gradient_rounds(plan, slot_, layout_)),
      buffer_(layout_.order, places_),
      unreduced_squares_(summed_sequences(plan, slot_.pipeline).size()) {
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
  make_parts();
  make_staging();
  const bool sums =
      std::any_of(parts_.begin(), parts_.end(), [](const auto& parts) { return !parts.empty(); });
  if (sharded_ && sums) move_values();
}

void GradientSync::make_parts() {
  int64_t sums = 0;
  for (std::size_t b = 0; b < layout_.buckets.size(); ++b) {
    parts_.emplace_back();
    for (const GradientPart& elements : layout_.buckets[b].parts) {
      Part& part = parts_.back().emplace_back();
      part.elements = &elements;
      part.group = groups_[elements.group].get();
      int64_t next = -1;
      for (const GradientSegment& segment : elements.segments) {
        const int64_t at = buffer_.offset(segment.parameter) + segment.first;
        part.contiguous = part.contiguous && (next < 0 || next == at);
        next = at + segment.count;
      }
      if (!queue_ && !device_.asynchronous()) queue_ = std::make_unique<WorkQueue>();
    }
    if (places_.area[b] < 0) continue;
    for (Part& part : parts_.back()) {
      part.sums = sums;
      for_each_own_block(part, [&](int64_t, int64_t count, int64_t) { sums += count; });
    }
  }
  sums_ = at::zeros({sums}, buffer_.flat().options());
}

void GradientSync::move_values() {
  int64_t elements = 0;
  for (const Parameter* parameter : layout_.order) {
    value_offsets_.push_back(elements);
    elements += parameter->value.numel();
  }
  values_ = at::empty({elements}, layout_.order.front()->value.detach().options());
  for (std::size_t i = 0; i < layout_.order.size(); ++i) {
    at::Tensor& value = layout_.order[i]->value;
    const at::Tensor place = values_.narrow(0, value_offsets_[i], value.numel()).view(value.sizes());
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
  const bool empty_rounds = std::any_of(rounds_.begin(), rounds_.end(),
                                        [](const GradientRound& round) { return round.microbatch < 0; });
  int64_t elements = 0, replicated = 0;
  for (const auto& parts : parts_) {
    for (const Part& part : parts) {
      if (!part.contiguous || empty_rounds)
        elements = std::max(elements, std::min(piece_elements(part), part.elements->count));
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
  if (empty_rounds)
    zeros_ = at::zeros({std::min(kZeroBytes, staging_.numel())}, flat.options().dtype(at::kByte));
}

void GradientSync::begin_iteration(double loss_scale, bool measure) {
  measure_ = measure;
  std::fill(unreduced_squares_.begin(), unreduced_squares_.end(), 0);
  buffer_.begin_iteration(loss_scale);
  sums_.zero_();
  next_bucket_ = next_round_ = 0;
  start_empty_rounds();
}

std::optional<std::size_t> GradientSync::bucket_in_rounds(int layer) const {
  for (std::size_t b = 0; b < layout_.buckets.size(); ++b) {
    if (places_.area[b] >= 0 && layout_.buckets[b].first_layer == layer) return b;
  }
  return std::nullopt;
}

void GradientSync::layer_begins(int layer) {
  const std::optional<std::size_t> bucket = bucket_in_rounds(layer);
  if (!bucket) return;
  if (under_way_ && places_.area[*under_way_] == places_.area[*bucket]) take_round();
  buffer_.clear(layout_.buckets[*bucket].parameters);
}

void GradientSync::layer_finished(int layer, bool last) {
  buffer_.collect(of_layer_.at(static_cast<std::size_t>(layer)));
  if (const std::optional<std::size_t> bucket = bucket_in_rounds(layer)) {
    const GradientRound round = rounds_.at(next_round_++);
    if (round.bucket != *bucket || round.microbatch < 0)
      throw std::logic_error(fmt::format("gradients of layer {} are not those of the next round", layer));
    take_round();
    start_bucket(*bucket, round.microbatch);
    under_way_ = bucket;
    start_empty_rounds();
  }
  if (!last) return;
  // What layers share is finished with the last of them: see finish().
  for (; next_bucket_ < layout_.buckets.size() && layout_.buckets[next_bucket_].first_layer >= layer &&
         layout_.buckets[next_bucket_].first_layer < num_layers_;
       ++next_bucket_) {
    if (places_.area[next_bucket_] < 0) start_bucket(next_bucket_, 0);
  }
}

// Their order is that of all ranks, and they need nothing that other rounds have not freed: they are started
// at once, and others never wait for this rank's next backward.
void GradientSync::start_empty_rounds() {
  for (; next_round_ < rounds_.size() && rounds_[next_round_].microbatch < 0; ++next_round_)
    reduce(rounds_[next_round_].bucket, &GradientSync::sum_others);
}

void GradientSync::take_round() {
  if (!under_way_) return;
  if (queue_) queue_->wait();
  device_.order(device_.gradients(), device_.compute());
  const at::Tensor& flat = buffer_.flat();
  for (const Part& part : parts_[*under_way_]) {
    for_each_own_block(part, [&](int64_t first, int64_t count, int64_t sums) {
      for_each_run(part, first, count, [&](std::size_t i, int64_t begin, int64_t length) {
        sums_.narrow(0, sums, length).add_(flat.narrow(0, buffer_.offset(i) + begin, length));
        sums += length;
      });
    });
  }
  under_way_.reset();
}

void GradientSync::add_unreduced_squares(const GradientBucket& bucket, int microbatch) {
  std::vector<at::Tensor> gradients;
  for (const std::size_t i : bucket.parameters) {
    const Parameter& parameter = *layout_.order[i];
    if (bucket.summed && parameter.layer < num_layers_ && (parameter.sharded || slot_.tp_rank == 0))
      gradients.push_back(buffer_.flat().narrow(0, buffer_.offset(i), parameter.value.numel()));
  }
  unreduced_squares_[static_cast<std::size_t>(microbatch)] += square_sum(gradients);
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

void GradientSync::start_bucket(std::size_t bucket, int microbatch) {
  if (sums_replicated_) sum_replicated(layout_.buckets[bucket]);
  if (measure_) add_unreduced_squares(layout_.buckets[bucket], microbatch);
  reduce(bucket, &GradientSync::sum_piece);
}

void GradientSync::reduce(std::size_t bucket, PieceFunction function) {
  std::vector<Part>& parts = parts_[bucket];
  if (queue_) {
    for (Part& part : parts) queue_->push([this, &part, function] { for_each_piece(part, function); });
  } else if (!parts.empty()) {
    summing_ = true;
    device_.order(device_.compute(), device_.gradients());
    for (Part& part : parts) for_each_piece(part, function);
  }
}

void GradientSync::finish() {
  if (next_round_ != rounds_.size()) throw std::logic_error("gradients of a microbatch are missing");
  for (; next_bucket_ < layout_.buckets.size(); ++next_bucket_) {
    if (places_.area[next_bucket_] < 0) start_bucket(next_bucket_, 0);
  }
  take_round();
  if (queue_) queue_->wait();
  device_.order(device_.gradients(), device_.compute());
  summing_ = false;
  if (!sharded_) broadcast_replicated(gradient_memory());
}

void GradientSync::settle() const {
  for (const auto& group : groups_) {
    if (group) group->settle();
  }
}

std::map<std::string, at::Tensor> GradientSync::gradients() const {
  std::map<std::string, at::Tensor> gradients;
  for (std::size_t b = 0; b < layout_.buckets.size(); ++b) {
    if (places_.area[b] >= 0) continue;
    for (const std::size_t i : layout_.buckets[b].parameters)
      gradients.emplace(layout_.order[i]->name, buffer_.view(i));
  }
  return gradients;
}

int64_t GradientSync::gradient_bytes() const {
  int64_t bytes = 0;
  for (const at::Tensor& tensor : {buffer_.flat(), sums_, staging_, zeros_}) {
    if (tensor.defined()) bytes += tensor.numel() * static_cast<int64_t>(tensor.element_size());
  }
  return bytes;
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
  for (const at::Tensor& tensor : {buffer_.flat(), sums_}) tensor.storage().unsafeGetStorageImpl()->reset();
  staging_ = zeros_ = at::Tensor();
}

void GradientSync::share_values() {
  if (!values_.defined()) return;
  for (auto& parts : parts_) {
    for (Part& part : parts) for_each_piece(part, &GradientSync::share_piece);
  }
  broadcast_replicated({values_, value_offsets_});
}

int64_t GradientSync::piece_elements(const Part& part) const {
  if (device_.asynchronous()) return part.elements->count;
  return kPieceBytes / static_cast<int64_t>(buffer_.flat().element_size());
}

void GradientSync::for_each_piece(Part& part, PieceFunction function) {
  const int64_t most = piece_elements(part);
  for (int64_t first = 0; first < part.elements->count; first += most)
    (this->*function)(part, first, std::min(most, part.elements->count - first));
}

void GradientSync::sum_piece(Part& part, int64_t first, int64_t count) {
  const Memory memory = gradient_memory();
  char* data = memory_of(part, memory, first);
  const Stream stream = device_.gradients();
  copy(part, memory, first, count, data, Direction::out, stream);
  const auto elements = static_cast<std::size_t>(count);
  const ElementType type = element_type(memory.flat.scalar_type());
  if (!sharded_) {
    part.group->all_reduce(data, elements, type, ReduceOp::sum, stream);
    return copy(part, memory, first, count, data, Direction::in, stream);
  }
  part.group->reduce_own_block(data, elements, type, ReduceOp::sum, stream);
  const BlockRange own = block_of(elements, part.group->size(), part.group->rank());
  copy(part, memory, first + static_cast<int64_t>(own.first), static_cast<int64_t>(own.count),
       data + own.first * memory.element_bytes(), Direction::in, stream);
}

// What the others add goes to the own sums.
void GradientSync::sum_others(Part& part, int64_t first, int64_t count) {
  const Stream stream = device_.gradients();
  const auto element = static_cast<std::size_t>(buffer_.flat().element_size());
  char* const data = static_cast<char*>(staging_.data_ptr());
  const std::size_t bytes = static_cast<std::size_t>(count) * element,
                    most = static_cast<std::size_t>(zeros_.numel());
  for (std::size_t done = 0; done < bytes; done += most)
    device_.copy(data + done, zeros_.data_ptr(), std::min(most, bytes - done), stream);
  const auto elements = static_cast<std::size_t>(count);
  const BlockRange own = block_of(elements, part.group->size(), part.group->rank());
  const std::size_t own_bytes = own.count * element;
  char* const in_data = data + own.first * element;
  char* const in_sums =
      static_cast<char*>(sums_.data_ptr()) + static_cast<std::size_t>(sums_of(part, first)) * element;
  device_.copy(in_data, in_sums, own_bytes, stream);
  part.group->reduce_own_block(data, elements, element_type(sums_.scalar_type()), ReduceOp::sum, stream);
  device_.copy(in_sums, in_data, own_bytes, stream);
}

void GradientSync::share_piece(Part& part, int64_t first, int64_t count) {
  const Stream stream = device_.compute();
  const Memory memory{values_, value_offsets_};
  char* data = memory_of(part, memory, first);
  const BlockRange own = block_of(static_cast<std::size_t>(count), part.group->size(), part.group->rank());
  copy(part, memory, first + static_cast<int64_t>(own.first), static_cast<int64_t>(own.count),
       data + own.first * memory.element_bytes(), Direction::out, stream);
  part.group->gather_blocks(data, static_cast<std::size_t>(count), element_type(values_.scalar_type()),
                            stream);
  copy(part, memory, first, count, data, Direction::in, stream);
}

char* GradientSync::memory_of(const Part& part, const Memory& memory, int64_t first) const {
  if (!part.contiguous) return static_cast<char*>(staging_.data_ptr());
  const GradientSegment& segment = part.elements->segments.front();
  return memory.at(segment.parameter, segment.first + first);
}

void GradientSync::copy(const Part& part, const Memory& memory, int64_t first, int64_t count, char* elements,
                        Direction direction, Stream stream) const {
  if (part.contiguous) return;
  for_each_run(part, first, count, [&](std::size_t parameter, int64_t begin, int64_t length) {
    char* const place = memory.at(parameter, begin);
    const std::size_t bytes = static_cast<std::size_t>(length) * memory.element_bytes();
    const bool out = direction == Direction::out;
    device_.copy(out ? elements : place, out ? place : elements, bytes, stream);
    elements += bytes;
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

void GradientSync::broadcast_replicated(const Memory& memory) {
  if (!tp_ || tp_->size() == 1) return;
  const auto for_each_replicated = [&](auto&& function) {
    for (const GradientBucket& bucket : layout_.buckets) {
      for (const std::size_t i : bucket.parameters) {
        const Parameter& parameter = *layout_.order[i];
        if (!bucket.summed || parameter.sharded) continue;
        function(memory.at(i), static_cast<std::size_t>(parameter.value.numel()) * memory.element_bytes());
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

// The sums of one piece after the other.
int64_t GradientSync::sums_of(const Part& part, int64_t piece) const {
  const int64_t most = piece_elements(part);
  const BlockRange own = block_of(static_cast<std::size_t>(most), part.group->size(), part.group->rank());
  return part.sums + piece / most * static_cast<int64_t>(own.count);
}

template <class Function>
void GradientSync::for_each_own_block(const Part& part, Function&& function) const {
  const int64_t most = piece_elements(part);
  for (int64_t first = 0; first < part.elements->count; first += most) {
    const BlockRange own = block_of(static_cast<std::size_t>(std::min(most, part.elements->count - first)),
                                    part.group->size(), part.group->rank());
    function(first + static_cast<int64_t>(own.first), static_cast<int64_t>(own.count), sums_of(part, first));
  }
}

OptimizerSlice GradientSync::slice(std::size_t i, int64_t first, const at::Tensor& gradient) const {
  const Parameter& parameter = *layout_.order[i];
  return {parameter.name,
          parameter.decay,
          first,
          gradient.numel(),
          parameter.value.detach().view({-1}).narrow(0, first, gradient.numel()),
          gradient,
          parameter.linear};
}

std::vector<OptimizerSlice> GradientSync::own_slices() const {
  std::vector<OptimizerSlice> slices;
  for (std::size_t b = 0; b < layout_.buckets.size(); ++b) {
    const bool in_rounds = places_.area[b] >= 0;
    for (const Part& part : parts_[b]) {
      for_each_own_block(part, [&](int64_t first, int64_t count, int64_t sums) {
        for_each_run(part, first, count, [&](std::size_t i, int64_t begin, int64_t length) {
          slices.push_back(slice(i, begin,
                                 in_rounds ? sums_.narrow(0, sums, length)
                                           : buffer_.flat().narrow(0, buffer_.offset(i) + begin, length)));
          sums += length;
        });
      });
    }
  }
  return slices;
}

std::vector<OptimizerSlice> GradientSync::slices() const {
  std::vector<OptimizerSlice> slices = sharded_ ? own_slices() : std::vector<OptimizerSlice>();
  for (const GradientBucket& bucket : layout_.buckets) {
    if (sharded_ && bucket.summed) continue;
    for (const std::size_t i : bucket.parameters) slices.push_back(slice(i, 0, buffer_.view(i).view({-1})));
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
