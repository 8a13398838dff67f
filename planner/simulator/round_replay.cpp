#include "planner/simulator/round_replay.h"

#include <algorithm>
#include <array>
#include <deque>
#include <queue>
#include <stdexcept>
#include <utility>

#include "planner/simulator/schedule.h"

namespace sailor::native {
namespace {

constexpr double kUnknown = -1;
// Of more the rate is known: rounds after the first forwards, and microbatches of the pipeline with fewest.
constexpr int64_t kRounds = 24, kLeastMicrobatches = 8;
// Interleaved pipelines with unlike numbers have multiples of as many as there are groups of GPUs.
constexpr int64_t kUnlikeUnits = 64;

int64_t rounded_up(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// What all that hold a layer do together.
struct Exchange {
  size_t key = 0;  // group of pipelines and layer
  bool gathers = false;
  size_t missing = 0;  // members that have not come to it
  double begin_s = 0, end_s = kUnknown;
};

// A layer that a GPU group holds.
struct Bucket {
  size_t layer = 0;  // of the model
  LayerRound round;  // the slowest member's
  int value_area = -1, gradient_area = -1;
  size_t next_exchange = 0;  // of the layer's
};

// Two areas that buckets use in turn, from the last layer down, as gradient_rounds.cpp places them: the
// second one is as large as two neighbours need, and larger buckets are in the first. -1 without a size.
std::vector<int> areas_of(const std::vector<double>& sizes) {
  double previous = 0, needed = 0;
  for (const double size : sizes) {
    if (size <= 0) continue;
    needed = std::max(needed, std::min(previous, size));
    previous = size;
  }
  std::vector<int> areas;
  int last = 1;
  for (const double size : sizes) {
    if (size > 0) last = size > needed ? 0 : 1 - last;
    areas.push_back(size > 0 ? last : -1);
  }
  return areas;
}

// A layer's forward or backward of a microbatch.
struct Use {
  uint32_t bucket = 0;
  int32_t microbatch = 0;  // of the pipeline; -1: it has none in this round
  int16_t chunk = 0;
  bool backward = false, first = false, last = false;  // of its step
};

// One GPU group of a pipeline.
struct Worker {
  size_t pipeline = 0;
  int group = 0;
  std::vector<RoundReplay::Passes> before;  // by chunk: computation before the first layer
  std::vector<Bucket> buckets;              // from the last layer down
  std::vector<Use> uses;

  // Its computation: the next use, and how far that is.
  size_t next = 0;
  enum class Phase { message, values, gradients, sum } phase = Phase::message;
  double now_s = 0;
  double began_s = 0;                      // the step
  size_t fetched = 0;                      // uses
  std::array<int, 2> content{-1, -1};      // bucket in each area of values
  std::array<const Exchange*, 2> ready{};  // its gather
  int under_way = -1;                      // bucket of the newest own reduction that is not added yet
  const Exchange* round = nullptr;         // it, or what was started after it
  size_t next_empty = 0;                   // without gathers: uses up to which rounds were started
  double waited_s = 0;                     // in the step, for exchanges

  // Its exchanges in order, with when they were started.
  std::deque<std::pair<Exchange*, double>> queue;
  double free_s = 0;      // the end of the newest that is over
  bool at_front = false;  // has it come to the first of them?
  bool listed = false;
};

class RoundPlayer {
 public:
  RoundPlayer(const std::vector<RoundPipeline>& pipelines, const RoundCards& cards, int chunks,
              bool with_events)
      : pipelines_(pipelines), cards_(cards), chunks_(chunks), with_events_(with_events) {
    for (const RoundPipeline& pipeline : pipelines_) {
      layers_ = std::max(layers_, static_cast<size_t>(pipeline.stages.back().first_layer) +
                                      pipeline.stages.back().layers.size());
      groups_of_pipelines_ = std::max(groups_of_pipelines_, pipeline.group + 1);
    }
    choose_rounds();
    const size_t keys = static_cast<size_t>(groups_of_pipelines_) * layers_;
    exchanges_.resize(keys);
    members_.resize(keys);
    slowest_.resize(keys);
    for (size_t p = 0; p < pipelines_.size(); ++p) {
      const std::vector<RoundStage>& stages = pipelines_[p].stages;
      activation_s_.emplace_back(stages.size(), std::vector<double>(own_[p], kUnknown));
      gradient_s_.push_back(activation_s_.back());
      link_s_.emplace_back(2 * stages.size(), 0);
      round_end_s_.emplace_back();
      out_.pipelines.emplace_back();
      out_.pipelines.back().waits.resize(stages.size());
      out_.pipelines.back().timeline.chunk_end_s.assign(stages.size(), 0);
      first_worker_.push_back(workers_.size());
      for (int g = 0; g < groups(p); ++g) add_worker(p, g);
    }
    for (Worker& worker : workers_) settle_buckets(worker);
  }

  RoundReplay run() {
    for (size_t w = 0; w < workers_.size(); ++w) list(w);
    // What begins first is exchanged first, once nobody can go on without it.
    while (!runnable_.empty() || !begun_.empty()) {
      if (runnable_.empty()) {
        exchange(*begun_.top().second);
        continue;
      }
      const size_t w = runnable_.front();
      runnable_.pop_front();
      workers_[w].listed = false;
      advance(workers_[w]);
    }
    finish();
    return std::move(out_);
  }

 private:
  int groups(size_t p) const { return static_cast<int>(pipelines_[p].stages.size()) / chunks_; }

  // How many of the common rounds are replayed, and microbatches of each pipeline.
  void choose_rounds() {
    int64_t least = pipelines_.front().microbatches, all = least;
    int most_groups = 1;
    for (size_t p = 0; p < pipelines_.size(); ++p) {
      all = std::max<int64_t>(all, pipelines_[p].microbatches);
      least = std::min<int64_t>(least, pipelines_[p].microbatches);
      most_groups = std::max(most_groups, groups(p));
    }
    const int64_t unit = chunks_ > 1 ? most_groups : 1;
    late_ = most_groups * (chunks_ > 1 ? 2 : 1);
    alike_ = least == all;
    int64_t steady = rounded_up(std::max(kRounds, kLeastMicrobatches * all / least), unit);
    if (chunks_ > 1 && !alike_) steady = std::max(steady, kUnlikeUnits * unit);
    const int64_t replayed = with_events_ ? all : std::min(all, late_ + steady + late_);
    rounds_.assign(static_cast<size_t>(groups_of_pipelines_), 0);
    pace_.assign(rounds_.size(), 0);
    for (size_t p = 0; p < pipelines_.size(); ++p) {
      const int64_t own = (pipelines_[p].microbatches * replayed / unit + all / 2) / all * unit;
      own_.push_back(static_cast<size_t>(std::clamp<int64_t>(own, unit, replayed)));
      const auto group = static_cast<size_t>(pipelines_[p].group);
      if (static_cast<int64_t>(own_[p]) <= rounds_[group]) continue;
      rounds_[group] = static_cast<int64_t>(own_[p]);
      pace_[group] = p;
    }
  }
  int64_t rounds_of(size_t p) const { return rounds_[static_cast<size_t>(pipelines_[p].group)]; }

  // The microbatch that a pipeline has in a round, or -1.
  int own_microbatch(size_t p, int64_t round) const {
    const auto own = static_cast<int64_t>(own_[p]), all = rounds_of(p);
    if (chunks_ > 1) return round < own ? static_cast<int>(round) : -1;
    const int64_t before = round * own / all;
    return (round + 1) * own / all > before ? static_cast<int>(before) : -1;
  }

  const RoundStage& stage_of(const Worker& worker, int chunk) const {
    return pipelines_[worker.pipeline].stages[stage_number(worker, chunk)];
  }
  size_t stage_number(const Worker& worker, int chunk) const {
    return static_cast<size_t>(chunk * groups(worker.pipeline) + worker.group);
  }

  size_t key_of(const Worker& worker, size_t layer) const {
    return static_cast<size_t>(pipelines_[worker.pipeline].group) * layers_ + layer;
  }

  void add_worker(size_t p, int group) {
    Worker& worker = workers_.emplace_back();
    worker.pipeline = p;
    worker.group = group;
    worker.now_s = stage_of(worker, 0).ready_s;
    std::vector<std::vector<uint32_t>> of_chunk(static_cast<size_t>(chunks_));
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      const RoundStage& stage = stage_of(worker, chunk);
      RoundReplay::Passes& before =
          worker.before.emplace_back(RoundReplay::Passes{stage.forward_s, stage.backward_s});
      for (const LayerWork& layer : stage.layers) {
        before.forward_s -= layer.forward_s;
        before.backward_s -= layer.backward_s;
      }
    }
    for (int chunk = chunks_; chunk-- > 0;) {
      const RoundStage& stage = stage_of(worker, chunk);
      for (size_t l = stage.layers.size(); l-- > 0;) {
        const size_t layer = static_cast<size_t>(stage.first_layer) + l;
        of_chunk[static_cast<size_t>(chunk)].push_back(static_cast<uint32_t>(worker.buckets.size()));
        worker.buckets.push_back({layer, {}, -1, -1, 0});
        const size_t key = key_of(worker, layer);
        members_[key].push_back(workers_.size() - 1);
        slowest_[key].gather_s = std::max(slowest_[key].gather_s, stage.rounds[l].gather_s);
        slowest_[key].reduce_s = std::max(slowest_[key].reduce_s, stage.rounds[l].reduce_s);
      }
    }
    const PipelineSchedule schedule{.chunks = chunks_};
    const int stages = groups(p), rounds = static_cast<int>(rounds_of(p)), all = chunks_ * rounds,
              ahead = warm_up_forwards(schedule, group, stages, rounds);
    const auto add = [&](bool backward, const ScheduledChunk& of) {
      std::vector<uint32_t> buckets = of_chunk[static_cast<size_t>(of.chunk)];
      if (!backward) std::reverse(buckets.begin(), buckets.end());
      const int own = own_microbatch(p, of.microbatch);
      for (const uint32_t bucket : buckets)
        worker.uses.push_back({bucket, own, static_cast<int16_t>(of.chunk), backward,
                               bucket == buckets.front(), bucket == buckets.back()});
    };
    for (int i = 0; i < all + ahead; ++i) {
      if (i < all) add(false, scheduled_forward(schedule, stages, i));
      if (i >= ahead) add(true, scheduled_backward(schedule, stages, i - ahead));
    }
  }

  void settle_buckets(Worker& worker) {
    std::vector<double> values, gradients;
    for (Bucket& bucket : worker.buckets) {
      bucket.round = slowest_[key_of(worker, bucket.layer)];
      values.push_back(bucket.round.gather_s);
      gradients.push_back(bucket.round.reduce_s);
      gathers_ = gathers_ || bucket.round.gather_s > 0;
    }
    const std::vector<int> value_areas = areas_of(values), gradient_areas = areas_of(gradients);
    for (size_t b = 0; b < worker.buckets.size(); ++b) {
      worker.buckets[b].value_area = value_areas[b];
      worker.buckets[b].gradient_area = gradient_areas[b];
    }
  }

  void list(size_t w) {
    if (workers_[w].listed) return;
    workers_[w].listed = true;
    runnable_.push_back(w);
  }

  // Starts an exchange of a bucket's layer.
  const Exchange* start(Worker& worker, Bucket& bucket, bool gathers) {
    const size_t key = key_of(worker, bucket.layer);
    std::deque<Exchange>& of_layer = exchanges_[key];
    if (bucket.next_exchange == of_layer.size()) of_layer.push_back({key, gathers, members_[key].size()});
    Exchange& exchange = of_layer[bucket.next_exchange++];
    worker.queue.emplace_back(&exchange, worker.now_s);
    come_to_front(worker);
    return &exchange;
  }

  // To the first exchange in a worker's queue, which the last member to come begins.
  void come_to_front(Worker& worker) {
    if (worker.at_front || worker.queue.empty()) return;
    worker.at_front = true;
    auto& [exchange, started_s] = worker.queue.front();
    exchange->begin_s = std::max({exchange->begin_s, started_s, worker.free_s});
    if (--exchange->missing == 0) begun_.emplace(exchange->begin_s, exchange);
  }

  void exchange(Exchange& of) {
    begun_.pop();
    const LayerRound& round = slowest_[of.key];
    of.end_s = of.begin_s + (of.gathers ? round.gather_s : round.reduce_s);
    if (!cards_.uses.empty())
      for (const RoundCards::Use& use : cards_.uses[of.key]) {
        if (static_cast<size_t>(use.node) >= card_free_s_.size())
          card_free_s_.resize(static_cast<size_t>(use.node) + 1, 0);
        double& free_s = card_free_s_[static_cast<size_t>(use.node)];
        free_s = std::max(free_s, of.begin_s) + use.reduce_s * (of.gathers ? cards_.gather_part : 1);
        of.end_s = std::max(of.end_s, free_s);
      }
    for (const size_t w : members_[of.key]) {
      Worker& member = workers_[w];
      member.free_s = of.end_s;
      member.queue.pop_front();
      member.at_front = false;
      come_to_front(member);
      list(w);
    }
  }

  void fetch(Worker& worker, size_t use) {
    if (!gathers_ || use >= worker.uses.size() || use < worker.fetched) return;
    worker.fetched = use + 1;
    const uint32_t number = worker.uses[use].bucket;
    Bucket& bucket = worker.buckets[number];
    if (bucket.value_area < 0) return;
    const auto area = static_cast<size_t>(bucket.value_area);
    if (worker.content[area] == static_cast<int>(number)) return;
    worker.content[area] = static_cast<int>(number);
    worker.ready[area] = start(worker, bucket, true);
  }
  void fetch_into_free_area(Worker& worker, size_t use) {
    if (use >= worker.uses.size()) return;
    const uint32_t now = worker.uses[use - 1].bucket, then = worker.uses[use].bucket;
    if (now == then || worker.buckets[now].value_area != worker.buckets[then].value_area) fetch(worker, use);
  }

  void reduce_nothing(Worker& worker, const Use& use) {
    Bucket& bucket = worker.buckets[use.bucket];
    if (bucket.gradient_area >= 0) worker.round = start(worker, bucket, false);
  }
  // Without gathers the rounds up to the next own backward are started at once.
  void reduce_nothing_ahead(Worker& worker) {
    if (gathers_) return;
    for (size_t& i = worker.next_empty; i < worker.uses.size(); ++i) {
      if (!worker.uses[i].backward) continue;
      if (worker.uses[i].microbatch >= 0) return;
      reduce_nothing(worker, worker.uses[i]);
    }
  }

  // Waits for an exchange; false if its end is not known yet.
  static bool wait(Worker& worker, const Exchange* exchange) {
    if (exchange == nullptr) return true;
    if (exchange->end_s == kUnknown) return false;
    worker.waited_s += std::max(0.0, exchange->end_s - worker.now_s);
    worker.now_s = std::max(worker.now_s, exchange->end_s);
    return true;
  }

  // As far as it can.
  void advance(Worker& worker) {
    if (worker.next == 0 && worker.phase == Worker::Phase::message) {
      fetch(worker, 0);
      reduce_nothing_ahead(worker);
    }
    while (worker.next < worker.uses.size()) {
      const Use& use = worker.uses[worker.next];
      if (use.microbatch < 0) {
        pass(worker, use);
        continue;
      }
      if (!compute(worker, use)) return;
      worker.phase = Worker::Phase::message;
      if (use.last) end_step(worker, use);
      ++worker.next;
      fetch(worker, worker.next);
      if (use.backward) {
        worker.next_empty = worker.next;
        reduce_nothing_ahead(worker);
      }
    }
  }

  void pass(Worker& worker, const Use& use) {
    ++worker.next;
    if (!gathers_) return;
    fetch_into_free_area(worker, worker.next);
    if (use.backward) reduce_nothing(worker, use);
    fetch(worker, worker.next);
  }

  // A layer of a microbatch; false while it waits for something.
  bool compute(Worker& worker, const Use& use) {
    const RoundStage& stage = stage_of(worker, use.chunk);
    Bucket& bucket = worker.buckets[use.bucket];
    const LayerWork& work = stage.layers[bucket.layer - static_cast<size_t>(stage.first_layer)];
    switch (worker.phase) {
      case Worker::Phase::message:
        if (use.first && !begin_step(worker, use)) return false;
        worker.phase = Worker::Phase::values;
        [[fallthrough]];
      case Worker::Phase::values:
        if (gathers_ && bucket.value_area >= 0 &&
            !wait(worker, worker.ready[static_cast<size_t>(bucket.value_area)]))
          return false;
        fetch_into_free_area(worker, worker.next + 1);
        worker.phase = Worker::Phase::gradients;
        [[fallthrough]];
      case Worker::Phase::gradients:
        if (!use.backward) {
          worker.now_s += work.forward_s;
          return true;
        }
        if (worker.under_way >= 0 &&
            worker.buckets[static_cast<size_t>(worker.under_way)].gradient_area == bucket.gradient_area &&
            !take_round(worker))
          return false;
        worker.now_s += work.backward_s;
        worker.phase = Worker::Phase::sum;
        [[fallthrough]];
      case Worker::Phase::sum:
        if (bucket.gradient_area < 0) return true;
        if (worker.under_way >= 0 && !take_round(worker)) return false;
        worker.now_s += work.token_sum_s;
        worker.waited_s += work.token_sum_s;
        worker.round = start(worker, bucket, false);
        worker.under_way = static_cast<int>(use.bucket);
    }
    return true;
  }

  static bool take_round(Worker& worker) {
    if (!wait(worker, worker.round)) return false;
    worker.under_way = -1;
    return true;
  }

  // Waits for the step's message; false while it is not sent.
  bool begin_step(Worker& worker, const Use& use) {
    const size_t p = worker.pipeline, stage = stage_number(worker, use.chunk),
                 microbatch = static_cast<size_t>(use.microbatch);
    const bool receives = use.backward ? stage + 1 < pipelines_[p].stages.size() : stage > 0;
    if (receives) {
      const double there_s = (use.backward ? gradient_s_ : activation_s_)[p][stage][microbatch];
      if (there_s == kUnknown) return false;
      worker.now_s = std::max(worker.now_s, there_s);
    }
    worker.began_s = worker.now_s;
    worker.waited_s = 0;
    worker.now_s += use.backward ? worker.before[static_cast<size_t>(use.chunk)].backward_s
                                 : worker.before[static_cast<size_t>(use.chunk)].forward_s;
    return true;
  }

  void end_step(Worker& worker, const Use& use) {
    const size_t p = worker.pipeline, stage = stage_number(worker, use.chunk),
                 microbatch = static_cast<size_t>(use.microbatch);
    RoundReplay::Pipeline& out = out_.pipelines[p];
    (use.backward ? out.waits[stage].backward_s : out.waits[stage].forward_s) += worker.waited_s;
    const auto kind = use.backward ? TimelineEvent::Kind::backward : TimelineEvent::Kind::forward;
    if (with_events_)
      out.timeline.events.push_back(
          {kind, worker.group, use.microbatch, worker.began_s, worker.now_s, use.chunk});
    if (use.backward) {
      out.timeline.chunk_end_s[stage] = worker.now_s;
      if (stage == 0) round_end_s_[p].push_back(worker.now_s);
      if (stage > 0) send(worker, use, stage - 1, gradient_s_[p][stage - 1][microbatch]);
    } else if (stage + 1 < pipelines_[p].stages.size()) {
      send(worker, use, stage + 1, activation_s_[p][stage + 1][microbatch]);
    }
  }

  void send(Worker& worker, const Use& use, size_t to, double& there_s) {
    const RoundStage& of = stage_of(worker, use.chunk);
    const size_t p = worker.pipeline, from = stage_number(worker, use.chunk);
    // Chunks of a group share its link in each direction.
    double& link_s = link_s_[p][2 * static_cast<size_t>(worker.group) + (use.backward ? 1 : 0)];
    const double sent_s = std::max(worker.now_s, link_s);
    there_s = link_s = sent_s + (use.backward ? of.send_backward_s : of.send_forward_s);
    if (with_events_)
      out_.pipelines[p].timeline.transfers.push_back(
          {use.backward ? TimelineEvent::Kind::send_backward : TimelineEvent::Kind::send_forward,
           worker.group, use.microbatch, sent_s, there_s, static_cast<int>(from) / groups(p)});
    list(first_worker_[p] + to % static_cast<size_t>(groups(p)));
  }

  // What the microbatches of a pipeline take that are not replayed: at the rate of the common rounds between
  // the first ones and the last ones, when pipelines fill and drain. Interleaved, some end before others.
  double left_s(size_t p) const {
    const bool in_step = alike_ || chunks_ == 1;
    const size_t of = in_step ? pace_[static_cast<size_t>(pipelines_[p].group)] : p;
    const std::vector<double>& ends_s = round_end_s_[of];
    const auto rounds = static_cast<int64_t>(ends_s.size());
    if (rounds == pipelines_[of].microbatches) return 0;
    const int64_t end = std::max<int64_t>(1, rounds - (in_step ? late_ : 1)),
                  begin = in_step ? std::min(late_, end - 1) : 0;
    return (ends_s[static_cast<size_t>(end)] - ends_s[static_cast<size_t>(begin)]) /
           static_cast<double>(end - begin) * static_cast<double>(pipelines_[of].microbatches - rounds);
  }

  void finish() {
    for (const Worker& worker : workers_)
      if (worker.next < worker.uses.size()) throw std::logic_error("round replay: ranks wait for each other");
    for (size_t p = 0; p < pipelines_.size(); ++p) {
      const double more_s = left_s(p);
      RoundReplay::Pipeline& out = out_.pipelines[p];
      Timeline& timeline = out.timeline;
      const auto replayed = static_cast<double>(own_[p]);
      timeline.stage_busy_s.assign(static_cast<size_t>(groups(p)), 0);
      for (size_t i = 0; i < out.waits.size(); ++i) {
        RoundReplay::Passes& waits = out.waits[i];
        waits = {waits.forward_s / replayed, waits.backward_s / replayed};
        const RoundStage& stage = pipelines_[p].stages[i];
        timeline.stage_busy_s[i % timeline.stage_busy_s.size()] +=
            pipelines_[p].microbatches *
            (stage.forward_s + stage.backward_s + waits.forward_s + waits.backward_s);
      }
      for (double& end_s : timeline.chunk_end_s) end_s += more_s;
      for (int g = 0; g < groups(p); ++g) {
        const Worker& worker = workers_[first_worker_[p] + static_cast<size_t>(g)];
        out_.steps += static_cast<int64_t>(worker.uses.size());
        timeline.stage_end_s.push_back(worker.now_s + more_s);
        timeline.last_backward_s.push_back(worker.began_s + more_s);
        timeline.makespan_s = std::max(timeline.makespan_s, timeline.stage_end_s.back());
        out.rounds_end_s.push_back(std::max(worker.now_s, worker.free_s) + more_s);
      }
      const auto in_order = [](const TimelineEvent& a, const TimelineEvent& b) {
        return std::pair(a.stage, a.start_s) < std::pair(b.stage, b.start_s);
      };
      std::ranges::stable_sort(timeline.events, in_order);
      std::ranges::stable_sort(timeline.transfers, in_order);
    }
  }

  const std::vector<RoundPipeline>& pipelines_;
  const RoundCards& cards_;
  const int chunks_;
  const bool with_events_;
  size_t layers_ = 0;
  int groups_of_pipelines_ = 1;
  int64_t late_ = 1;             // rounds in which pipelines fill, or drain
  std::vector<int64_t> rounds_;  // by group of pipelines
  std::vector<size_t> pace_;     // by group: a pipeline with all rounds
  std::vector<size_t> own_;      // by pipeline: microbatches
  bool alike_ = true;            // have all as many?
  bool gathers_ = false;         // any weights

  // By group, then layer.
  std::vector<std::deque<Exchange>> exchanges_;  // in their order
  std::vector<std::vector<size_t>> members_;     // workers
  std::vector<LayerRound> slowest_;
  // By when they begin, the first on top.
  using Begun = std::pair<double, Exchange*>;
  struct Later {
    bool operator()(const Begun& a, const Begun& b) const { return a.first > b.first; }
  };
  std::priority_queue<Begun, std::vector<Begun>, Later> begun_;
  std::vector<double> card_free_s_;  // by node
  std::deque<Worker> workers_;
  std::vector<size_t> first_worker_;  // by pipeline
  std::deque<size_t> runnable_;
  // When messages for a stage are there, by pipeline, stage and microbatch; and links are free, by pipeline,
  // group and direction.
  std::vector<std::vector<std::vector<double>>> activation_s_, gradient_s_;
  std::vector<std::vector<double>> link_s_;
  std::vector<std::vector<double>> round_end_s_;  // by pipeline: of the backwards on its first stage
  RoundReplay out_;
};

}  // namespace

RoundReplay replay_rounds(const std::vector<RoundPipeline>& pipelines, const RoundCards& cards, int chunks,
                          bool with_events) {
  return RoundPlayer(pipelines, cards, chunks, with_events).run();
}

// Of a pass, the layers in both areas may be left from the one before.
double least_exchange_s(const RoundPipeline& pipeline, int chunks) {
  const size_t groups = pipeline.stages.size() / static_cast<size_t>(chunks);
  double most_s = 0;
  for (size_t g = 0; g < groups; ++g) {
    double exchanged_s = 0, longest_s = 0;
    for (size_t i = g; i < pipeline.stages.size(); i += groups)
      for (const LayerRound& layer : pipeline.stages[i].rounds) {
        exchanged_s += layer.reduce_s + 2 * layer.gather_s;
        longest_s = std::max(longest_s, layer.gather_s);
      }
    most_s = std::max(most_s, exchanged_s - 4 * chunks * longest_s);
  }
  return most_s;
}

}  // namespace sailor::native
