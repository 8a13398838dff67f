#include "trainer/model/ring_attention.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <memory>

#include "trainer/model/context_parallel.h"
#include "trainer/model/element_types.h"
#include "trainer/model/matrix_product.h"
#include "trainer/model/torch_device.h"

namespace sailor {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;
using Run = RingTokens::Run;

// A part of what a rank's queries see of a rank's keys: of some sequences, in rows of each.
struct Part {
  int64_t sequence = 0, sequences = 0;
  Run queries{}, keys{};
  Visible visible{};

  at::Tensor rows(const at::Tensor& x, const Run& run) const {
    return x.narrow(0, sequence, sequences).narrow(2, run.first, run.count);
  }
  Heads of(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) const {
    return {rows(query, queries), rows(key, keys), rows(value, keys)};
  }
};

// The rows of a rank's tokens that are in a range of the sequence: they follow each other, those of its front
// run first. Positions are in the sequence.
struct RowsIn {
  int64_t first_row = 0;
  Run front, back;

  RowsIn(const RingTokens& tokens, const Run& range)
      : front(common(tokens.front, range)), back(common(tokens.back, range)) {
    first_row = front.count > 0 ? front.first - tokens.front.first
                                : tokens.front.count + back.first - tokens.back.first;
  }
  static Run common(const Run& a, const Run& b) {
    const int64_t first = std::max(a.first, b.first);
    return {first, std::max<int64_t>(0, std::min(a.end(), b.end()) - first)};
  }
};

at::Tensor positions(const Run& a, const Run& b, const at::Device& device) {
  const auto options = at::TensorOptions(device).dtype(at::kLong);
  return at::cat({at::arange(a.first, a.end(), options), at::arange(b.first, b.end(), options)});
}

// What rank `own` of a ring sees of rank `other`'s keys, of which a rank above it gets the front run only.
class RingParts {
 public:
  RingParts(const TensorParallel& tp, const std::vector<int64_t>& documents, int64_t window,
            const at::Device& device)
      : tp_(tp), documents_(documents), window_(window), device_(device) {}

  std::vector<Part> of(int other) const {
    std::vector<Part> parts;
    if (documents_.empty()) {
      add(other, 0, tp_.split.sequences, {0, tp_.split.length}, parts);
      return parts;
    }
    int64_t first = 0;  // token of the microbatch
    for (const int64_t length : documents_) {
      add(other, first / tp_.split.length, 1, {first % tp_.split.length, length}, parts);
      first += length;
    }
    return parts;
  }

 private:
  void add(int other, int64_t sequence, int64_t sequences, const Run& range, std::vector<Part>& parts) const {
    const int own = ring_rank(tp_);
    RowsIn queries({tp_.split.length, tp_.ring, own}, range),
        keys({tp_.split.length, tp_.ring, other}, range);
    if (other < own) keys.back.count = 0;
    if (other > own) {
      queries.first_row += queries.front.count;
      queries.front.count = 0;
    }
    Part part{sequence,
              sequences,
              {queries.first_row, queries.front.count + queries.back.count},
              {keys.first_row, keys.front.count + keys.back.count},
              {.causal = other == own}};
    if (part.queries.count == 0 || part.keys.count == 0) return;
    if (window_ > 0 && !apply_window(queries, keys, part)) return;
    parts.push_back(part);
  }

  // Is anything seen?
  bool apply_window(const RowsIn& queries, const RowsIn& keys, Part& part) const {
    const auto first = [](const RowsIn& of) { return of.front.count > 0 ? of.front.first : of.back.first; };
    const auto end = [](const RowsIn& of) { return of.back.count > 0 ? of.back.end() : of.front.end(); };
    if (end(queries) - first(keys) <= window_) return true;
    if (first(queries) - (end(keys) - 1) >= window_) return false;
    const at::Tensor distance = positions(queries.front, queries.back, device_).unsqueeze(1) -
                                positions(keys.front, keys.back, device_);
    part.visible = {.mask = (distance < window_).logical_and_(distance >= 0)};
    return true;
  }

  const TensorParallel& tp_;
  const std::vector<int64_t>& documents_;
  int64_t window_;
  at::Device device_;
};

// Keys and values on their way around the ring, and their gradients on the way back.
class RingMessages {
 public:
  RingMessages(const TensorParallel& tp, const at::Tensor& key, const at::Tensor& value)
      : tp_(tp), rank_(ring_rank(tp)), like_(key), stream_(stream_of(key)) {
    own_ = at::stack({key, value});
    if (rank_ + 1 < tp.ring) front_ = own_.narrow(3, 0, tokens(rank_).front.count).contiguous();
  }
  // After an error: buffers live until nothing is in flight.
  ~RingMessages() {
    for (Message* message : {&messages_[0], &messages_[1], &back_[0], &back_[1]}) {
      try {
        if (message->work) message->work->wait();
      } catch (const std::exception&) {  // the first error is the one to report
      }
    }
  }
  RingMessages(const RingMessages&) = delete;
  RingMessages& operator=(const RingMessages&) = delete;

  int source(int step) const { return (rank_ + tp_.ring - step) % tp_.ring; }
  int target(int step) const { return (rank_ + step) % tp_.ring; }

  // Sends this rank's keys and values to the target of a step, and receives those of its source.
  void post(int step) {
    Message& message = messages_[static_cast<std::size_t>(step % 2)];
    message.arrived = room(seen_by(rank_, source(step)));
    message.work =
        exchange(target(step) > rank_ ? front_ : own_, target(step), message.arrived, source(step));
  }
  // [2, sequences, heads, tokens, size]: the keys, and the values, that a step needs.
  at::Tensor take(int step) {
    if (step == 0) return own_;
    Message& message = messages_[static_cast<std::size_t>(step % 2)];
    if (message.work) message.work->wait_on(stream_);
    message.work = nullptr;
    return message.arrived;
  }

  // Sends the gradients of what a step took to their owner, and receives this rank's from its target.
  void send_back(int step, const at::Tensor& gradients) {
    Message& message = back_[static_cast<std::size_t>(step % 2)];
    message.sent = gradients;
    message.arrived = room(seen_by(target(step), rank_));
    message.work = exchange(gradients, source(step), message.arrived, target(step));
  }
  // Adds what arrived to `sum`, in rows from the first on.
  void add_returned(int step, at::Tensor& sum) {
    Message& message = back_[static_cast<std::size_t>(step % 2)];
    if (message.work) message.work->wait_on(stream_);
    message.work = nullptr;
    sum.narrow(3, 0, message.arrived.size(3)).add_(message.arrived);
  }

 private:
  struct Message {
    at::Tensor sent, arrived;
    std::unique_ptr<Work> work;
  };

  RingTokens tokens(int rank) const { return {tp_.split.length, tp_.ring, rank}; }
  // Tokens of rank `owner` that queries of another one see.
  int64_t seen_by(int rank, int owner) const {
    return owner < rank ? tokens(owner).front.count : tokens(owner).count();
  }
  at::Tensor room(int64_t tokens) const {
    return at::empty({2, like_.size(0), like_.size(1), tokens, like_.size(3)}, like_.options());
  }
  std::unique_ptr<Work> exchange(const at::Tensor& out, int to, const at::Tensor& in, int from) const {
    std::vector<Transfer> transfers;
    const auto add = [&](Transfer::Kind kind, const at::Tensor& tensor, int rank) {
      if (tensor.numel() > 0)
        transfers.push_back({kind, tensor.data_ptr(), static_cast<std::size_t>(tensor.numel()),
                             element_type(tensor.scalar_type()), ring_member(tp_, rank)});
    };
    add(Transfer::Kind::send, out, to);
    add(Transfer::Kind::recv, in, from);
    return transfers.empty() ? nullptr : tp_.context->exchange(transfers, stream_);
  }

  const TensorParallel& tp_;
  int rank_;
  at::Tensor like_, own_, front_;
  Stream stream_;
  std::array<Message, 2> messages_, back_;
};

struct RingAttention : torch::autograd::Function<RingAttention> {
  static Variable forward(AutogradContext* context, const Variable& query, const Variable& key,
                          const Variable& value, const TensorParallel& tp,
                          const std::vector<int64_t>& documents, const AttentionRule& rule, int64_t window) {
    const RingParts parts(tp, documents, window, query.device());
    RingMessages messages(tp, key, value);
    AttentionPart sum{
        at::zeros(query.sizes(), query.options().dtype(sum_type(query.scalar_type()))),
        at::full({query.size(0), query.size(1), query.size(2)}, -std::numeric_limits<double>::infinity(),
                 query.options().dtype(sum_type(query.scalar_type())))};
    if (tp.ring > 1) messages.post(1);
    for (int step = 0; step < tp.ring; ++step) {
      const at::Tensor both = messages.take(step);
      if (step > 0 && step + 1 < tp.ring) messages.post(step + 1);
      for (const Part& part : parts.of(messages.source(step))) {
        const AttentionPart of = attend_to_part(part.of(query, both[0], both[1]), rule, part.visible);
        AttentionPart into{part.rows(sum.out, part.queries), part.rows(sum.log_sum, part.queries)};
        if (step == 0) {  // every query sees itself
          into.out.copy_(of.out);
          into.log_sum.copy_(of.log_sum);
        } else {
          add_part(into, of);
        }
      }
    }
    const at::Tensor out = sum.out.to(query.scalar_type());
    context->save_for_backward({query, key, value, out, sum.log_sum});
    context->saved_data["tp"] = tp.packed();
    context->saved_data["documents"] = documents;
    context->saved_data["scale"] = rule.scale;
    context->saved_data["cap"] = rule.soft_cap;
    context->saved_data["window"] = window;
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &query = saved[0], key = saved[1], value = saved[2];
    const auto tp = TensorParallel::unpacked(context->saved_data["tp"].toIntVector());
    const std::vector<int64_t> documents = context->saved_data["documents"].toIntVector();
    const AttentionRule rule{context->saved_data["scale"].toDouble(), context->saved_data["cap"].toDouble()};
    const RingParts parts(tp, documents, context->saved_data["window"].toInt(), query.device());
    const at::Tensor gradient = gradients[0].contiguous();
    RingMessages messages(tp, key, value);
    at::Tensor for_query = at::zeros(query.sizes(), query.options().dtype(sum_type(query.scalar_type())));
    at::Tensor for_own = at::zeros({2, key.size(0), key.size(1), key.size(2), key.size(3)},
                                   key.options().dtype(sum_type(key.scalar_type())));
    if (tp.ring > 1) messages.post(1);
    for (int step = 0; step < tp.ring; ++step) {
      const at::Tensor both = messages.take(step);
      if (step > 0 && step + 1 < tp.ring) messages.post(step + 1);
      at::Tensor for_both = step == 0 ? for_own : at::zeros_like(both);
      for (const Part& part : parts.of(messages.source(step))) {
        const AttentionPart all{part.rows(saved[3], part.queries), part.rows(saved[4], part.queries)};
        const Heads of = part_gradients(part.of(query, both[0], both[1]), rule, part.visible,
                                        part.rows(gradient, part.queries), all);
        part.rows(for_query, part.queries).add_(of.query);
        part.rows(for_both[0], part.keys).add_(of.key);
        part.rows(for_both[1], part.keys).add_(of.value);
      }
      if (step > 1) messages.add_returned(step - 1, for_own);
      if (step > 0) messages.send_back(step, for_both);
    }
    if (tp.ring > 1) messages.add_returned(tp.ring - 1, for_own);
    return {for_query.to(query.scalar_type()),
            for_own[0].to(key.scalar_type()),
            for_own[1].to(value.scalar_type()),
            Variable(),
            Variable(),
            Variable(),
            Variable()};
  }
};

}  // namespace

at::Tensor ring_attend(const Heads& heads, const TensorParallel& tp, const std::vector<int64_t>& documents,
                       const AttentionRule& rule, int64_t window) {
  const auto operand = [wide = needs_fp32_products(heads.query)](const at::Tensor& x) {
    return wide ? x.to(at::kFloat) : x;
  };
  return RingAttention::apply(operand(heads.query), operand(heads.key), operand(heads.value), tp, documents,
                              rule, window)
      .to(heads.query.scalar_type());
}

}  // namespace sailor
