#include "profiler/traces/traced_layers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <unordered_map>

#include "planner/spec/error.h"

namespace sailor {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// --- the blocks

using Objects = std::map<std::string, std::set<std::string>>;  // by class

Objects objects_of(const ProgramTrace& trace) {
  Objects objects;
  for (const ModuleCall& call : trace.modules) objects[call.class_name()].insert(call.of);
  return objects;
}

// Is the first call of `inner` inside that of `outer`?
bool is_inside(const ProgramTrace& trace, const std::string& inner, const std::string& outer) {
  const auto first = [&](const std::string& name) {
    return std::ranges::find_if(trace.modules,
                                [&](const ModuleCall& call) { return call.class_name() == name; });
  };
  const auto in = first(inner), out = first(outer);
  return in->thread == out->thread && out->holds(*in);
}

std::string found_class(const ProgramTrace& trace, const ModelSpec& model) {
  if (trace.modules.empty())
    throw InputError({trace.file, 0}, "the trace has no module calls: " + trace.module_names);
  std::vector<std::string> fitting, counts;
  for (const auto& [name, objects] : objects_of(trace)) {
    if (static_cast<int>(objects.size()) == model.layers) fitting.push_back(name);
    counts.push_back(fmt::format("{} {}", objects.size(), name));
  }
  const std::vector<std::string> all = fitting;
  std::erase_if(fitting, [&](const std::string& name) {
    return std::ranges::any_of(all, [&](const std::string& other) {
      return other != name && is_inside(trace, name, other) && !is_inside(trace, other, name);
    });
  });
  if (fitting.size() != 1 || model.layers == 1)
    throw InputError({trace.file, 0},
                     fmt::format("which modules are the {} blocks of the model? Name their class with "
                                 "--blocks (the trace has {})",
                                 model.layers, fmt::join(counts, ", ")));
  return fitting.front();
}

std::vector<ModuleCall> calls_of(const ProgramTrace& trace, const ModelSpec& model, const std::string& name) {
  std::vector<ModuleCall> calls;
  for (const ModuleCall& call : trace.modules)
    if (call.class_name() == name) calls.push_back(call);
  std::set<std::string> objects;
  for (const ModuleCall& call : calls) objects.insert(call.of);
  if (static_cast<int>(objects.size()) != model.layers)
    throw InputError({trace.file, 0},
                     fmt::format("the trace has {} modules {}, and the job's model {} blocks", objects.size(),
                                 name, model.layers));
  for (const ModuleCall& call : calls)
    if (call.thread != calls.front().thread)
      throw InputError(
          {trace.file, 0},
          fmt::format(
              "{} is called in the thread of the backward, too: profile without recomputation of activations",
              name));
  if (calls.size() % static_cast<size_t>(model.layers) != 0)
    throw InputError({trace.file, 0},
                     fmt::format("{} calls of {} are no whole number of passes through {} blocks: the trace "
                                 "needs all blocks of the job's model on one rank, without recomputation",
                                 calls.size(), name, model.layers));
  return calls;
}

// --- operators

// Where an operator belongs: to a layer (0 is the embedding) in a pass.
struct Place {
  int pass = -1;
  int layer = -1;
  bool known() const { return pass >= 0; }
};

// The operators of a trace by the outermost ones around them, which follow one after the other in a thread.
class Operators {
 public:
  explicit Operators(const std::vector<TracedOperator>& all) : all_(all), outermost_(all.size()) {
    std::map<int64_t, size_t> current;
    for (size_t i = 0; i < all.size(); ++i) {
      const auto at = current.find(all[i].thread);
      const bool nested = at != current.end() && all[i].begin_us < all[at->second].end_us;
      if (!nested) current[all[i].thread] = i;
      outermost_[i] = nested ? at->second : i;
    }
  }
  size_t outermost(size_t i) const { return outermost_[i]; }
  // Of the operator around a span of the same thread.
  std::optional<size_t> outermost_around(const TraceSpan& span) const {
    auto next = std::ranges::upper_bound(all_, span.begin_us, {}, &TraceSpan::begin_us);
    while (next != all_.begin())
      if (const TracedOperator& op = *--next; op.thread == span.thread) {
        const size_t i = outermost_[static_cast<size_t>(next - all_.begin())];
        return all_[i].holds(span) ? std::optional(i) : std::nullopt;
      }
    return std::nullopt;
  }
  bool is_outermost(size_t i) const { return outermost_[i] == i; }
  const TracedOperator& operator[](size_t i) const { return all_[i]; }
  size_t size() const { return all_.size(); }

 private:
  const std::vector<TracedOperator>& all_;
  std::vector<size_t> outermost_;
};

// The passes of a trace, in order.
class Passes {
 public:
  Passes(const ProgramTrace& trace, const ModelSpec& model, const std::string& block_class)
      : blocks_(calls_of(trace, model, block_class)), layers_(model.layers) {
    const int64_t thread = blocks_.front().thread;
    ModuleCall outermost;
    size_t first = 0;  // block of the next pass
    for (const ModuleCall& call : trace.modules) {
      if (call.thread != thread || first >= blocks_.size()) continue;
      if (call.begin_us >= outermost.end_us) outermost = call;
      if (call.begin_us != blocks_[first].begin_us || call.of != blocks_[first].of) continue;
      models_.push_back(outermost);
      first += static_cast<size_t>(model.layers);
    }
    auto block = blocks_.begin();
    double until_us = 0;  // end of the latest backward in the blocks' thread
    for (const TracedOperator& op : trace.operators) {
      if (!op.backward) continue;
      backwards_us_.push_back(op.begin_us);
      if (op.thread != thread) continue;
      for (; block != blocks_.end() && block->begin_us < op.begin_us; ++block)
        check_is_forward(*block, until_us, trace);
      until_us = std::max(until_us, op.end_us);
    }
    for (; block != blocks_.end(); ++block) check_is_forward(*block, until_us, trace);
  }

  int64_t thread() const { return blocks_.front().thread; }
  int count() const { return static_cast<int>(models_.size()); }

  // Of a forward operator. `recorded`: autograd has a node of it.
  Place place_of(const TracedOperator& op, bool recorded) const {
    const auto next = std::ranges::upper_bound(models_, op.begin_us, {}, &TraceSpan::begin_us);
    if (op.thread != thread() || next == models_.begin()) return {};
    const int pass = static_cast<int>(next - models_.begin()) - 1;
    const ModuleCall& model = models_[static_cast<size_t>(pass)];
    if (!model.holds(op))  // the loss, up to the backward
      return recorded && op.begin_us < backward_after(model.end_us) ? Place{pass, layers_ + 1} : Place{};
    const auto first = blocks_.begin() + pass * layers_, last = first + layers_;
    const auto after = std::upper_bound(first, last, op.begin_us,
                                        [](double us, const ModuleCall& call) { return us < call.begin_us; });
    if (after == last && op.begin_us >= (last - 1)->end_us) return {pass, layers_ + 1};
    return {pass, static_cast<int>(after - first)};
  }

 private:
  static void check_is_forward(const ModuleCall& block, double backward_until_us, const ProgramTrace& trace) {
    if (block.begin_us < backward_until_us)
      throw InputError(
          {trace.file, 0},
          fmt::format("{} runs in a backward: profile without recomputation of activations", block.of));
  }

  double backward_after(double us) const {
    const auto at = std::ranges::lower_bound(backwards_us_, us);
    return at == backwards_us_.end() ? kNever : *at;
  }

  std::vector<ModuleCall> blocks_;
  int layers_;
  std::vector<ModuleCall> models_;    // the outermost call around the blocks of each pass
  std::vector<double> backwards_us_;  // when each node runs, ascending
};

// The place of every outermost operator.
std::vector<Place> places_of(const Operators& operators, const Passes& passes) {
  // The last operator that names a node's number has made it: earlier ones name that of the next node.
  std::unordered_map<int64_t, size_t> maker;
  std::set<int64_t> run;
  for (size_t i = 0; i < operators.size(); ++i) {
    const TracedOperator& op = operators[i];
    if (op.sequence < 0) continue;
    if (op.backward) run.insert(op.sequence);
    if (op.thread == passes.thread() && !operators[operators.outermost(i)].backward) maker[op.sequence] = i;
  }
  std::vector<bool> recorded(operators.size());
  for (const auto& [sequence, i] : maker)
    if (run.contains(sequence)) recorded[operators.outermost(i)] = true;

  std::vector<Place> places(operators.size());
  for (size_t i = 0; i < operators.size(); ++i)
    if (operators.is_outermost(i) && !operators[i].backward)
      places[i] = passes.place_of(operators[i], recorded[i]);
  std::map<int64_t, Place> latest;  // of each thread
  for (size_t i = 0; i < operators.size(); ++i) {
    const TracedOperator& op = operators[i];
    if (!op.backward || !operators.is_outermost(i)) continue;
    const auto made = maker.find(op.sequence);
    if (made != maker.end()) {
      const Place place = places[operators.outermost(made->second)];
      if (place.known()) latest[op.thread] = place;
    }
    places[i] = latest[op.thread];
  }
  return places;
}

// --- times

// A set of moments.
class BusyTime {
 public:
  void add(const TraceSpan& span) { spans_.push_back(span); }
  double seconds() {
    std::ranges::sort(spans_, {}, &TraceSpan::begin_us);
    double sum_us = 0, end_us = -kNever;
    for (const TraceSpan& span : spans_) {
      sum_us += std::max(0.0, span.end_us - std::max(end_us, span.begin_us));
      end_us = std::max(end_us, span.end_us);
    }
    return sum_us * 1e-6;
  }

 private:
  std::vector<TraceSpan> spans_;
};

// Calls each(outermost operator, span) for everything that takes time.
template <typename Each>
void for_each_span(const ProgramTrace& trace, const Operators& operators, int tp, Each each) {
  if (trace.kernels.empty()) {
    for (size_t i = 0; i < operators.size(); ++i)
      if (operators.is_outermost(i)) each(i, static_cast<const TraceSpan&>(operators[i]));
    return;
  }
  std::unordered_map<int64_t, size_t> by_id, by_correlation;
  for (size_t i = 0; i < operators.size(); ++i)
    if (operators[i].id >= 0) by_id[operators[i].id] = operators.outermost(i);
  for (const TracedLaunch& launch : trace.launches)
    if (const auto outermost = operators.outermost_around(launch))
      by_correlation[launch.correlation] = *outermost;
  for (const TracedKernel& kernel : trace.kernels) {
    auto launcher = by_id.find(kernel.launched_by);
    if (launcher == by_id.end()) {
      launcher = by_correlation.find(kernel.correlation);
      if (kernel.correlation < 0 || launcher == by_correlation.end()) continue;
    }
    const size_t outermost = launcher->second;
    if (kernel.communicates && (tp == 1 || operators[outermost].accumulates)) continue;
    each(outermost, static_cast<const TraceSpan&>(kernel));
  }
}

// The optimizer's step that holds an operator, or -1.
int step_of(const ProgramTrace& trace, const TracedOperator& op) {
  const auto& steps = trace.optimizer_steps;
  const auto next = std::ranges::upper_bound(steps, op.begin_us, {}, &TraceSpan::begin_us);
  if (next == steps.begin()) return -1;
  const TraceSpan& step = *(next - 1);
  return step.thread == op.thread && step.holds(op) ? static_cast<int>(next - steps.begin()) - 1 : -1;
}

void check(const ProgramTrace& trace, const ModelSpec& model, const TracedLayers& layers) {
  for (const LayerKind kind : layer_kinds(model)) {
    if (!layers.forward_s.contains(kind))
      throw InputError({trace.file, 0},
                       fmt::format("the trace has no forward of the layer \"{}\": it needs all layers of the "
                                   "job's model on one rank, in a module around {}",
                                   to_string(kind), layers.block_class));
    if (!layers.backward_s.contains(kind))
      throw InputError({trace.file, 0},
                       fmt::format("the trace has no backward of the layer \"{}\": profile whole steps of "
                                   "training",
                                   to_string(kind)));
  }
}

}  // namespace

TracedLayers traced_layers(const ProgramTrace& trace, const ModelSpec& model, int tp,
                           const std::string& block_class) {
  TracedLayers layers;
  layers.block_class = block_class.empty() ? found_class(trace, model) : block_class;
  const Operators operators(trace.operators);
  const Passes passes(trace, model, layers.block_class);
  const std::vector<Place> places = places_of(operators, passes);

  const size_t width = static_cast<size_t>(model.layers) + 2;
  std::vector<BusyTime> forward(width * static_cast<size_t>(passes.count())), backward(forward.size());
  std::vector<BusyTime> updates(trace.optimizer_steps.size());
  for_each_span(trace, operators, tp, [&](size_t outermost, const TraceSpan& span) {
    const TracedOperator& op = operators[outermost];
    if (const int step = step_of(trace, op); step >= 0) {
      updates[static_cast<size_t>(step)].add(span);
    } else if (const Place& place = places[outermost]; place.known()) {
      const size_t at = static_cast<size_t>(place.pass) * width + static_cast<size_t>(place.layer);
      (op.backward ? backward : forward)[at].add(span);
    }
  });
  for (size_t at = 0; at < forward.size(); ++at) {
    const LayerKind kind = kind_of_layer(model, static_cast<int>(at % width));
    // A pass without a backward is one of validation, or the profiler has stopped before it.
    if (const double s = forward[at].seconds(); s > 0) layers.forward_s[kind].push_back(s);
    if (const double s = backward[at].seconds(); s > 0) layers.backward_s[kind].push_back(s);
  }
  for (BusyTime& update : updates) layers.update_s.push_back(update.seconds());
  check(trace, model, layers);
  return layers;
}

}  // namespace sailor
