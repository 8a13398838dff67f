// A second, naive timeline to check the product's: every rank's program is written out instruction by
// instruction, as in the sources of the published frameworks, and all ranks run until none can continue. It
// shares no formula with planner/simulator: no slots, no ticks, no periods.
#pragma once

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "planner/simulator/timeline.h"

namespace sailor::test {

struct Reference {
  double makespan_s = 0;
  std::vector<double> stage_end_s, last_backward_s, chunk_end_s;
  std::map<std::tuple<int, int, int, int>, double>
      end_s;  // (0 forward / 1 backward / 2 weights, stage, chunk, microbatch)
};

class ReferenceTimeline {
 public:
  ReferenceTimeline(PipelineSchedule schedule, std::vector<StageTimes> times, int microbatches,
                    std::vector<StageTimes> last)
      : schedule_(schedule),
        P_(static_cast<int>(times.size()) / schedule.chunks),
        v_(schedule.chunks),
        M_(microbatches),
        times_(std::move(times)),
        last_(std::move(last)) {
    if (last_.empty()) last_ = times_;
    for (int r = 0; r < P_; ++r) programs_.push_back(v_ > 1 ? interleaved(r) : classic(r));
  }

  Reference run() {
    std::vector<size_t> at(P_, 0);
    std::vector<double> clock;
    for (int r = 0; r < P_; ++r) clock.push_back(times_[static_cast<size_t>(r)].ready_s);
    Reference out;
    out.last_backward_s.resize(P_);
    out.chunk_end_s.resize(static_cast<size_t>(P_) * v_);
    for (bool progress = true; progress;) {
      progress = false;
      for (int r = 0; r < P_; ++r)
        while (at[r] < programs_[r].size() && execute(r, programs_[r][at[r]], clock[r], out)) {
          ++at[r];
          progress = true;
        }
    }
    for (int r = 0; r < P_; ++r)
      if (at[r] < programs_[r].size()) throw std::logic_error("deadlock");
    out.stage_end_s = clock;
    out.makespan_s = *std::max_element(clock.begin(), clock.end());
    return out;
  }

 private:
  // A message is identified by its sender: (0 activation / 1 gradient, rank, chunk, microbatch).
  using Message = std::tuple<int, int, int, int>;
  struct Instruction {
    bool compute = false;
    int kind = 0, chunk = 0, microbatch = 0;  // of a computation
    std::vector<Message> sends, receives;     // of a call, all concurrently
  };
  using Program = std::vector<Instruction>;

  const StageTimes& of(int r, int chunk, int m) const {
    return (m == M_ - 1 ? last_ : times_).at(static_cast<size_t>(chunk) * P_ + r);
  }
  bool asynchronous_in_turn() const { return schedule_.p2p == P2p::asynchronous_in_turn; }
  bool is_first(int r, int chunk) const { return r == 0 && chunk == 0; }
  bool is_last(int r, int chunk) const { return r == P_ - 1 && chunk == v_ - 1; }
  // Input of rank r's forward (backward).
  Message activation_for(int r, int chunk, int m) const {
    return r > 0 ? Message{0, r - 1, chunk, m} : Message{0, P_ - 1, chunk - 1, m};
  }
  Message gradient_for(int r, int chunk, int m) const {
    return r < P_ - 1 ? Message{1, r + 1, chunk, m} : Message{1, 0, chunk + 1, m};
  }
  double duration(const Message& message) const {
    const auto& [kind, r, chunk, m] = message;
    return kind == 0 ? of(r, chunk, m).send_forward_s : of(r, chunk, m).send_backward_s;
  }

  static void compute(Program& program, int kind, int chunk, int m) {
    Instruction i;
    i.compute = true;
    i.kind = kind;
    i.chunk = chunk;
    i.microbatch = m;
    program.push_back(i);
  }
  static void call(Program& program, std::vector<Message> sends, std::vector<Message> receives) {
    Instruction i;
    i.sends = std::move(sends);
    i.receives = std::move(receives);
    if (!i.sends.empty() || !i.receives.empty()) program.push_back(i);
  }

  // forward_backward_pipelining_without_interleaving()
  Program classic(int r) const {
    Program program;
    const auto receive_forward = [&](int m) {
      if (r > 0) call(program, {}, {activation_for(r, 0, m)});
    };
    const auto receive_backward = [&](int m) {
      if (r < P_ - 1) call(program, {}, {gradient_for(r, 0, m)});
    };
    const auto send_forward = [&](int m) {
      if (r < P_ - 1) call(program, {{0, r, 0, m}}, {});
    };
    const auto send_backward = [&](int m) {
      if (r > 0) call(program, {{1, r, 0, m}}, {});
    };
    // Of a split backward, after it; the last one is followed by all that is left.
    const auto compute_weights = [&](int m) {
      const int delay = times_[static_cast<size_t>(r)].weight_delay;
      if (delay == kWholeBackward) return;
      if (m >= delay) compute(program, 2, 0, m - delay);
      for (int left = std::max(0, m - delay + 1); m == M_ - 1 && left < M_; ++left)
        compute(program, 2, 0, left);
    };
    const bool in_turn = schedule_.p2p == P2p::blocking_in_turn || asynchronous_in_turn();
    const int warm_up = schedule_.forwards_first ? M_ : std::min(P_ - r - 1, M_);
    const int remaining = M_ - warm_up;
    for (int m = 0; m < warm_up; ++m) {
      receive_forward(m);
      compute(program, 0, 0, m);
      send_forward(m);
    }
    if (remaining > 0) receive_forward(warm_up);
    for (int k = 0; k < remaining; ++k) {
      compute(program, 0, 0, warm_up + k);
      if (r < P_ - 1) {  // send_forward_recv_backward
        if (in_turn) {
          receive_backward(k);
          send_forward(warm_up + k);
        } else {
          call(program, {{0, r, 0, warm_up + k}}, {gradient_for(r, 0, k)});
        }
      }
      compute(program, 1, 0, k);
      compute_weights(k);
      if (k == remaining - 1 || r == 0) {
        send_backward(k);
      } else if (in_turn) {
        send_backward(k);
        receive_forward(warm_up + k + 1);
      } else {  // send_backward_recv_forward
        call(program, {{1, r, 0, k}}, {activation_for(r, 0, warm_up + k + 1)});
      }
    }
    for (int k = remaining; k < M_; ++k) {
      receive_backward(k);
      compute(program, 1, 0, k);
      compute_weights(k);
      send_backward(k);
    }
    return program;
  }

  // forward_backward_pipelining_with_interleaving(), no overlap of p2p
  Program interleaved(int r) const {
    Program program;
    const int total = M_ * v_;
    const auto chunk_id = [&](int id, bool forward) {
      const int in_group = ((id % (P_ * v_)) + P_ * v_) % (P_ * v_);
      return forward ? in_group / P_ : v_ - in_group / P_ - 1;
    };
    const auto microbatch = [&](int id) { return id / (P_ * v_) * P_ + id % P_; };
    // input_tensors[chunk] and output_tensor_grads[chunk]: number received.
    std::vector<int> inputs(v_, 0), gradients(v_, 0);
    std::vector<Message> sends, receives;
    const auto send_output = [&](int id) {
      if (!is_last(r, chunk_id(id, true))) sends.push_back({0, r, chunk_id(id, true), microbatch(id)});
    };
    const auto send_gradient = [&](int id) {
      if (!is_first(r, chunk_id(id, false))) sends.push_back({1, r, chunk_id(id, false), microbatch(id)});
    };
    const auto receive_input = [&](int chunk) {
      receives.push_back(activation_for(r, chunk, inputs[chunk]++));
    };
    const auto receive_gradient = [&](int chunk) {
      receives.push_back(gradient_for(r, chunk, gradients[chunk]++));
    };
    const auto communicate = [&] {
      call(program, sends, receives);
      sends.clear();
      receives.clear();
    };
    bool all_warm_up = schedule_.forwards_first || (schedule_.single_group_forwards_first && M_ == P_);
    int warm_up = all_warm_up ? total : (P_ - r - 1) * 2 + (v_ - 1) * P_;
    if (warm_up >= total) {
      warm_up = total;
      all_warm_up = true;
    }
    const int remaining = total - warm_up;
    if (r > 0) receive_input(0);
    communicate();
    for (int k = 0; k < warm_up; ++k) {
      compute(program, 0, chunk_id(k, true), microbatch(k));
      const int next_chunk = chunk_id(k + 1, true);
      bool receive_previous = true;
      if (r == 0 && next_chunk == 0) receive_previous = false;
      if (k == total - 1) receive_previous = false;
      send_output(k);
      if (receive_previous) receive_input(next_chunk);
      if (k == warm_up - 1 && !all_warm_up && r < P_ - 1) receive_gradient(v_ - 1);
      communicate();
    }
    for (int k = 0; k < remaining; ++k) {
      const int forward_k = k + warm_up;
      compute(program, 0, chunk_id(forward_k, true), microbatch(forward_k));
      compute(program, 1, chunk_id(k, false), microbatch(k));
      send_output(forward_k);
      send_gradient(k);
      bool receive_previous = true;
      int next_forward = 0;
      if (r == 0) {
        next_forward = chunk_id(forward_k - (P_ - 1), true);
        if (next_forward == v_ - 1) receive_previous = false;
        ++next_forward;
      } else {
        next_forward = chunk_id(forward_k + 1, true);
      }
      bool receive_next = true;
      int next_backward = 0;
      if (r == P_ - 1) {
        next_backward = chunk_id(k - (P_ - 1), false);
        if (next_backward == 0) receive_next = false;
        --next_backward;
      } else {
        next_backward = chunk_id(k + 1, false);
      }
      if (k == remaining - 1) receive_previous = false;
      if (receive_previous) receive_input(next_forward);
      if (receive_next) receive_gradient(next_backward);
      communicate();
    }
    if (all_warm_up && r < P_ - 1) {
      receive_gradient(v_ - 1);
      communicate();
    }
    for (int k = remaining; k < total; ++k) {
      compute(program, 1, chunk_id(k, false), microbatch(k));
      const int next_backward = chunk_id(k + 1, false);
      bool receive_next = true;
      if (r == P_ - 1 && next_backward == v_ - 1) receive_next = false;
      if (k == total - 1) receive_next = false;
      send_gradient(k);
      if (receive_next) receive_gradient(next_backward);
      communicate();
    }
    return program;
  }

  // Runs one instruction of rank r if it can; `clock` is the rank's.
  bool execute(int r, const Instruction& i, double& clock, Reference& out) {
    const bool asynchronous = schedule_.p2p == P2p::asynchronous;
    if (i.compute) {
      if (asynchronous) {
        const bool local = i.kind == 2 || (i.kind == 0 ? is_first(r, i.chunk) : is_last(r, i.chunk));
        if (!local) {
          const auto it = arrival_.find(i.kind == 0 ? activation_for(r, i.chunk, i.microbatch)
                                                    : gradient_for(r, i.chunk, i.microbatch));
          if (it == arrival_.end()) return false;
          clock = std::max(clock, it->second);
        }
      }
      if (i.kind > 0) out.last_backward_s[r] = clock;
      const StageTimes& t = of(r, i.chunk, i.microbatch);
      const bool split = t.weight_delay != kWholeBackward;
      clock += i.kind == 0 ? t.forward_s : i.kind == 2 ? t.weight_s : t.backward_s - (split ? t.weight_s : 0);
      out.end_s[{i.kind, r, i.chunk, i.microbatch}] = clock;
      if (i.kind > 0) out.chunk_end_s[static_cast<size_t>(i.chunk) * P_ + r] = clock;
      if (asynchronous && i.kind < 2) {  // the message leaves at once, or when its link is free
        const Message message{i.kind, r, i.chunk, i.microbatch};
        double& link = link_free_[{i.kind, r}];
        if (!(i.kind == 0 ? is_last(r, i.chunk) : is_first(r, i.chunk)))
          arrival_[message] = link = std::max(link, clock) + duration(message);
      }
      return true;
    }
    if (asynchronous) return true;
    if (asynchronous_in_turn()) {  // the calls are made one by one; a send costs its rank no time
      for (const Message& message : i.receives) {
        const auto it = arrival_.find(message);
        if (it == arrival_.end()) return false;
        clock = std::max(clock, it->second);
      }
      for (const Message& message : i.sends) {
        double& link = link_free_[{std::get<0>(message), r}];
        arrival_[message] = link = std::max(link, clock) + duration(message);
      }
      return true;
    }
    bool complete = true;
    for (bool send : {true, false})
      for (const Message& message : send ? i.sends : i.receives) {
        (send ? sender_there_ : receiver_there_).emplace(message, clock);
        complete = complete && (send ? receiver_there_ : sender_there_).count(message) > 0;
      }
    if (!complete) return false;
    for (const std::vector<Message>* messages : {&i.sends, &i.receives})
      for (const Message& message : *messages)
        clock =
            std::max(clock, std::max(sender_there_[message], receiver_there_[message]) + duration(message));
    return true;
  }

  PipelineSchedule schedule_;
  int P_, v_, M_;
  std::vector<StageTimes> times_, last_;
  std::vector<Program> programs_;
  std::map<Message, double> arrival_, sender_there_, receiver_there_;
  std::map<std::pair<int, int>, double> link_free_;
};

inline Reference reference_timeline(const PipelineSchedule& schedule, const std::vector<StageTimes>& times,
                                    int microbatches, const std::vector<StageTimes>& last = {}) {
  return ReferenceTimeline(schedule, times, microbatches, last).run();
}

}  // namespace sailor::test
