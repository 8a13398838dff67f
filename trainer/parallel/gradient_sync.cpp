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

constexpr int64_t kZeroBytes = int64_t{1} << 20;

}  // namespace

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
      value_places_(value_places(plan, layout_)),
      rounds_(gradient_rounds(plan, slot_, layout_)),
      has_copies_(num_zero_groups(plan) > 1),
      is_first_copy_(zero_group_of(plan, slot_.pipeline).first == 0),
      buffer_(layout_.order, places_),
      memory_(device, buffer_.flat().element_size()),
      unreduced_squares_(summed_sequences(plan, slot_.pipeline).size()),
      work_(device) {
  make_groups(all_groups, rank, num_zero_groups(plan), factory);
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
  if (gathers())
    gathers_.emplace(plan, slot_, layout_, parts_, value_places_, memory_, value_memory(), own_values_, work_,
                     device_, [this] { start_empty_round(); });
}

// The ranks of a group are in the order of pipelines, and each of its parts has as many (check_plan()).
void GradientSync::make_groups(const std::vector<GradientGroup>& all_groups, int rank, int parts,
                               CommFactory& factory) {
  for (std::size_t i = 0; i < all_groups.size(); ++i) {
    const std::vector<int>& ranks = all_groups[i].ranks;
    Group& group = groups_.emplace_back();
    const auto found = std::find(ranks.begin(), ranks.end(), rank);
    if (found == ranks.end()) continue;
    const auto each = static_cast<std::ptrdiff_t>(ranks.size()) / parts, at = found - ranks.begin();
    const auto begin = ranks.begin() + at / each * each;
    const std::string name = fmt::format("gradients/{}", i);
    group.sharing = factory.create(parts == 1 ? name : fmt::format("{}/{}", name, at / each),
                                   {begin, begin + each}, CommUse::background_collectives);
    if (parts == 1) continue;
    std::vector<int> same;
    for (auto r = at % each; r < static_cast<std::ptrdiff_t>(ranks.size()); r += each)
      same.push_back(ranks[static_cast<std::size_t>(r)]);
    group.copies =
        factory.create(fmt::format("{}/copies/{}", name, at % each), same, CommUse::background_collectives);
  }
}

bool GradientSync::gathers() const {
  return std::any_of(value_places_.area.begin(), value_places_.area.end(),
                     [](int area) { return area >= 0; });
}

void GradientSync::make_parts() {
  int64_t sums = 0, values = 0;
  for (std::size_t b = 0; b < layout_.buckets.size(); ++b) {
    parts_.emplace_back();
    for (const GradientPart& elements : layout_.buckets[b].parts) {
      Part& part = parts_.back().emplace_back();
      part.elements = &elements;
      part.group = groups_[elements.group].sharing.get();
      part.copies = groups_[elements.group].copies.get();
      int64_t next = -1;
      for (const GradientSegment& segment : elements.segments) {
        const int64_t at = buffer_.offset(segment.parameter) + segment.first;
        part.contiguous = part.contiguous && (next < 0 || next == at);
        next = at + segment.count;
      }
    }
    if (places_.area[b] < 0) continue;
    for (Part& part : parts_.back()) {
      int64_t own = 0;
      memory_.for_each_own_block(part, [&](int64_t, int64_t count, int64_t) { own += count; });
      part.sums = sums;
      sums += own;
      if (!part.elements->gathered) continue;
      part.values = values;
      values += own;
    }
  }
  const at::TensorOptions options = buffer_.flat().options();
  sums_ = at::zeros({sums}, options);
  if (gathers()) own_values_ = at::zeros({values}, options.dtype(layout_.order.front()->value.scalar_type()));
}

void GradientSync::move_values() {
  values_ = at::empty({value_places_.elements}, layout_.order.front()->value.detach().options());
  for (std::size_t i = 0; i < layout_.order.size(); ++i) {
    Parameter& parameter = *layout_.order[i];
    const at::Tensor place =
        values_.narrow(0, value_places_.offsets[i], parameter.value.numel()).view(parameter.value.sizes());
    if (!gathers()) place.copy_(parameter.value.detach());
    parameter.value.set_data(place);
  }
  for (std::size_t b = 0; b < layout_.buckets.size(); ++b)
    for (const std::size_t i : layout_.buckets[b].parameters)
      layout_.order[i]->gathered = value_places_.area[b] >= 0 && layout_.order[i]->sharded;
}

void GradientSync::set_values(const std::string& name, const at::Tensor& values) {
  const at::Tensor flat = values.detach().view({-1});
  for (std::size_t b = 0; b < layout_.buckets.size(); ++b) {
    for (const std::size_t i : layout_.buckets[b].parameters) {
      Parameter& parameter = *layout_.order[i];
      if (parameter.name == name && !parameter.gathered) parameter.value.detach().view({-1}).copy_(flat);
    }
    for (const Part& part : parts_[b]) {
      if (part.values < 0) continue;
      memory_.for_each_own_block(part, [&](int64_t first, int64_t count, int64_t index) {
        int64_t own = part.values + index;
        PartMemory::for_each_run(part, first, count, [&](std::size_t i, int64_t begin, int64_t length) {
          if (layout_.order[i]->name == name)
            own_values_.narrow(0, own, length).copy_(flat.narrow(0, begin, length));
          own += length;
        });
      });
    }
  }
}

GradientSync::~GradientSync() {
  // An error of another kind ends this rank's part: nothing shall wait for the sums.
  if (!work_.idle()) {
    for (const Group& group : groups_)
      for (const auto& communicator : {group.sharing.get(), group.copies.get()})
        if (communicator) communicator->abort();
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
        elements = std::max(elements, std::min(memory_.piece_elements(part), part.elements->count));
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
  const at::TensorOptions bytes = flat.options().dtype(at::kByte);
  const int64_t staging = std::max(elements, replicated) * flat.element_size();
  memory_.set_staging(at::empty({staging}, bytes));
  if (empty_rounds) zeros_ = at::zeros({std::min(kZeroBytes, staging)}, bytes);
}

void GradientSync::begin_iteration(double loss_scale, bool measure) {
  measure_ = measure;
  std::fill(unreduced_squares_.begin(), unreduced_squares_.end(), 0);
  buffer_.begin_iteration(loss_scale);
  sums_.zero_();
  next_bucket_ = next_round_ = 0;
  if (gathers_) return gathers_->begin_iteration();
  start_empty_rounds();
}

void GradientSync::begin_evaluation(const std::function<bool(int)>& computes) {
  if (gathers_) gathers_->begin_evaluation(computes);
}

void GradientSync::end_evaluation() {
  if (!gathers_) return;
  if (!gathers_->ended()) throw std::logic_error("layers of an evaluation are missing");
  work_.wait();
}

void GradientSync::forward_begins(int layer) {
  if (gathers_) gathers_->layer_begins(layer);
}

void GradientSync::forward_ends(int layer) {
  if (gathers_) gathers_->layer_ends(layer);
}

void GradientSync::gather_values(int layer) {
  if (gathers_) gathers_->gather_now(layer);
}

std::optional<std::size_t> GradientSync::bucket_in_rounds(int layer) const {
  for (std::size_t b = 0; b < layout_.buckets.size(); ++b) {
    if (places_.area[b] >= 0 && layout_.buckets[b].first_layer == layer) return b;
  }
  return std::nullopt;
}

void GradientSync::layer_begins(int layer) {
  if (gathers_) gathers_->layer_begins(layer);
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
    round_ends_ = work_.point();
    if (gathers_) {
      gathers_->layer_ends(layer);
    } else {
      start_empty_rounds();
    }
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
  while (next_round_ < rounds_.size() && rounds_[next_round_].microbatch < 0) start_empty_round();
}

void GradientSync::start_empty_round() {
  reduce(rounds_.at(next_round_++).bucket, &GradientSync::sum_others);
  round_ends_ = work_.point();  // it may be of the bucket under way, whose sums change both
}

void GradientSync::take_round() {
  if (!under_way_) return;
  work_.wait(round_ends_);
  const at::Tensor& flat = buffer_.flat();
  for (const Part& part : parts_[*under_way_]) {
    memory_.for_each_own_block(part, [&](int64_t first, int64_t count, int64_t index) {
      int64_t sums = part.sums + index;
      PartMemory::for_each_run(part, first, count, [&](std::size_t i, int64_t begin, int64_t length) {
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
  for (const Part& part : parts_[bucket]) {
    work_.push([this, &part, function] {
      memory_.for_each_piece(part,
                             [&](int64_t first, int64_t count) { (this->*function)(part, first, count); });
    });
  }
}

void GradientSync::finish() {
  if (next_round_ != rounds_.size() || (gathers_ && !gathers_->ended()))
    throw std::logic_error("gradients of a microbatch are missing");
  take_round();
  // Not during the rounds, which they would delay, and in one order on all ranks: from the last layer down.
  for (std::size_t b = 0; has_copies_ && b < layout_.buckets.size(); ++b)
    if (places_.area[b] >= 0) reduce(b, &GradientSync::sum_sums);
  for (; next_bucket_ < layout_.buckets.size(); ++next_bucket_) {
    if (places_.area[next_bucket_] < 0) start_bucket(next_bucket_, 0);
  }
  work_.wait();
  if (!sharded_) broadcast_replicated(gradient_memory());
}

void GradientSync::settle() const {
  for (const Group& group : groups_)
    for (const auto& communicator : {group.sharing.get(), group.copies.get()})
      if (communicator) communicator->settle();
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
  for (const at::Tensor& tensor : {buffer_.flat(), sums_, memory_.staging(), zeros_}) {
    if (tensor.defined()) bytes += tensor.numel() * static_cast<int64_t>(tensor.element_size());
  }
  return bytes;
}

void GradientSync::drop_gradients() {
  try {
    work_.wait();
  } catch (const std::exception&) {  // the failure that ended the generation
  }
  device_.wait(device_.gradients());
  // The optimizer's slices and the parameters refer to it, too.
  for (const at::Tensor& tensor : {buffer_.flat(), sums_}) tensor.storage().unsafeGetStorageImpl()->reset();
  memory_.set_staging({});
  zeros_ = at::Tensor();
}

void GradientSync::share_values() {
  if (!values_.defined()) return;
  for (const auto& parts : parts_) {
    for (const Part& part : parts) {
      if (part.values >= 0) continue;
      memory_.for_each_piece(part, [&](int64_t first, int64_t count) { share_piece(part, first, count); });
    }
  }
  broadcast_replicated(value_memory());
}

void GradientSync::sum_piece(const Part& part, int64_t first, int64_t count) {
  const FlatMemory memory = gradient_memory();
  char* data = memory_.memory_of(part, memory, first);
  const Stream stream = device_.gradients();
  memory_.copy(part, memory, first, count, data, PartMemory::Direction::out, stream);
  const auto elements = static_cast<std::size_t>(count);
  const ElementType type = element_type(memory.flat.scalar_type());
  if (!sharded_) {
    part.group->all_reduce(data, elements, type, ReduceOp::sum, stream);
    return memory_.copy(part, memory, first, count, data, PartMemory::Direction::in, stream);
  }
  part.group->reduce_own_block(data, elements, type, ReduceOp::sum, stream);
  const BlockRange own = PartMemory::own_block(part, count);
  if (part.sums < 0) sum_over_copies(part, data + own.first * memory.element_bytes(), own.count);
  memory_.copy(part, memory, first + static_cast<int64_t>(own.first), static_cast<int64_t>(own.count),
               data + own.first * memory.element_bytes(), PartMemory::Direction::in, stream);
}

void GradientSync::sum_over_copies(const Part& part, char* own, std::size_t elements) {
  if (part.copies && elements > 0)
    part.copies->all_reduce(own, elements, element_type(buffer_.flat().scalar_type()), ReduceOp::sum,
                            device_.gradients());
}

// What the rounds have summed.
void GradientSync::sum_sums(const Part& part, int64_t first, int64_t count) {
  char* const own = static_cast<char*>(sums_.data_ptr()) +
                    static_cast<std::size_t>(part.sums + memory_.own_index(part, first)) *
                        static_cast<std::size_t>(sums_.element_size());
  sum_over_copies(part, own, PartMemory::own_block(part, count).count);
}

// What the others add goes to the own sums.
void GradientSync::sum_others(const Part& part, int64_t first, int64_t count) {
  const Stream stream = device_.gradients();
  const auto element = static_cast<std::size_t>(buffer_.flat().element_size());
  char* const data = memory_.staging_data();
  const std::size_t bytes = static_cast<std::size_t>(count) * element,
                    most = static_cast<std::size_t>(zeros_.numel());
  for (std::size_t done = 0; done < bytes; done += most)
    device_.copy(data + done, zeros_.data_ptr(), std::min(most, bytes - done), stream);
  const BlockRange own = PartMemory::own_block(part, count);
  const std::size_t own_bytes = own.count * element;
  char* const in_data = data + own.first * element;
  char* const in_sums = static_cast<char*>(sums_.data_ptr()) +
                        static_cast<std::size_t>(part.sums + memory_.own_index(part, first)) * element;
  device_.copy(in_data, in_sums, own_bytes, stream);
  part.group->reduce_own_block(data, static_cast<std::size_t>(count), element_type(sums_.scalar_type()),
                               ReduceOp::sum, stream);
  device_.copy(in_sums, in_data, own_bytes, stream);
}

void GradientSync::share_piece(const Part& part, int64_t first, int64_t count) {
  const Stream stream = device_.compute();
  const FlatMemory memory = value_memory();
  char* data = memory_.memory_of(part, memory, first);
  const BlockRange own = PartMemory::own_block(part, count);
  memory_.copy(part, memory, first + static_cast<int64_t>(own.first), static_cast<int64_t>(own.count),
               data + own.first * memory.element_bytes(), PartMemory::Direction::out, stream);
  part.group->gather_blocks(data, static_cast<std::size_t>(count), element_type(values_.scalar_type()),
                            stream);
  memory_.copy(part, memory, first, count, data, PartMemory::Direction::in, stream);
}

void GradientSync::broadcast_replicated(const FlatMemory& memory) {
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
  char* next = memory_.staging_data();
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

OptimizerSlice GradientSync::slice(std::size_t i, int64_t first, const at::Tensor& value,
                                   const at::Tensor& gradient) const {
  const Parameter& parameter = *layout_.order[i];
  return {parameter.name, parameter.decay, first, gradient.numel(), value, gradient, parameter.linear};
}

OptimizerSlice GradientSync::whole_slice(std::size_t i) const {
  return slice(i, 0, layout_.order[i]->value.detach().view({-1}), buffer_.view(i).view({-1}));
}

std::vector<OptimizerSlice> GradientSync::own_slices() const {
  std::vector<OptimizerSlice> slices;
  const auto add = [&](const Part& part, int64_t index, std::size_t i, int64_t begin, int64_t length) {
    const at::Tensor value = part.values >= 0
                                 ? own_values_.narrow(0, part.values + index, length)
                                 : layout_.order[i]->value.detach().view({-1}).narrow(0, begin, length);
    slices.push_back(slice(i, begin, value,
                           part.sums >= 0 ? sums_.narrow(0, part.sums + index, length)
                                          : buffer_.flat().narrow(0, buffer_.offset(i) + begin, length)));
  };
  for (const auto& parts : parts_) {
    for (const Part& part : parts) {
      memory_.for_each_own_block(part, [&](int64_t first, int64_t count, int64_t index) {
        PartMemory::for_each_run(part, first, count, [&](std::size_t i, int64_t begin, int64_t length) {
          add(part, index, i, begin, length);
          index += length;
        });
      });
    }
  }
  return slices;
}

std::vector<std::size_t> GradientSync::groups_of_slices() const {
  std::vector<std::size_t> groups;
  for (const auto& parts : parts_)
    for (const Part& part : parts)
      memory_.for_each_own_block(part, [&](int64_t first, int64_t count, int64_t) {
        PartMemory::for_each_run(part, first, count, [&](std::size_t, int64_t, int64_t) {
          if (part.copies) groups.push_back(part.elements->group);
        });
      });
  return groups;
}

std::vector<OptimizerSlice> GradientSync::slices() const {
  std::vector<OptimizerSlice> slices = sharded_ ? own_slices() : std::vector<OptimizerSlice>();
  for (const GradientBucket& bucket : layout_.buckets) {
    if (sharded_ && bucket.summed) continue;
    for (const std::size_t i : bucket.parameters) slices.push_back(whole_slice(i));
  }
  return slices;
}

template <class Work>
void GradientSync::for_each_own_gradient(const Work& work) const {
  for (std::size_t b = 0; b < layout_.buckets.size(); ++b) {
    if (sharded_ && layout_.buckets[b].summed) continue;
    // Replicas agree by now, so the first one speaks for all.
    if (slot_.pipeline != 0 || slot_.cp_rank != 0) continue;
    for (const std::size_t i : layout_.buckets[b].parameters) {
      const Parameter& parameter = *layout_.order[i];
      if (parameter.tied_copy) continue;  // the embedding's rank has it
      if (parameter.sharded || slot_.tp_rank == 0)
        work(parameter.layer, buffer_.flat().narrow(0, buffer_.offset(i), parameter.value.numel()));
    }
  }
  if (!sharded_ || !is_first_copy_) return;
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
