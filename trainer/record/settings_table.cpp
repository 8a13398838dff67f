#include "trainer/record/settings_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "planner/plan/rank_layout.h"

namespace sailor {
namespace {

std::string files_of(const DataSpec& data) {
  std::vector<std::string> files;
  for (const DataSource& source : data.train) files.push_back(source.files);
  return fmt::format("{}", fmt::join(files, " + "));
}

}  // namespace

std::string settings_table(const JobSpec& job, const Plan& plan, const std::string& data,
                           double unigram_entropy, bool emulated, const std::string& directory) {
  std::string table;
  auto row = [&table](const std::string& name, const std::string& value) {
    table += fmt::format("  {:<14} {}\n", name, value);
  };
  const ModelSpec& m = job.model;
  row("model", fmt::format("{} ({}): {} blocks, hidden {}, heads {}, sequence {}, vocabulary {}", m.name,
                           m.family, m.layers, m.hidden, m.heads, m.sequence, m.vocabulary));
  const TrainingSpec t = job_under(plan, job).training;
  row("training", fmt::format("{} steps of {} sequences, {}, seed {}{}", t.steps, t.global_batch,
                              to_string(t.precision), t.seed, t.deterministic ? ", deterministic" : ""));
  if (t.lora)
    row("lora", fmt::format("rank {}, alpha {:g}, adapters of {}; base {}", t.lora->r, t.lora->alpha,
                            fmt::join(t.lora->target_modules, ", "), m.from));
  std::string optimizer = fmt::format("{} lr {:.1e}", t.optimizer.name, t.optimizer.lr);
  if (t.schedule.name != "constant")
    optimizer += fmt::format(", {} to {:.1e}", t.schedule.name, t.schedule.min_lr);
  if (t.schedule.name == "wsd")
    optimizer += fmt::format(" ({} in the last {} steps)", t.schedule.annealing, t.schedule.annealing_steps);
  if (t.schedule.warmup_steps > 0) optimizer += fmt::format(", warm-up {} steps", t.schedule.warmup_steps);
  if (t.optimizer.weight_decay > 0) optimizer += fmt::format(", weight decay {}", t.optimizer.weight_decay);
  if (t.clip_grad_norm) optimizer += fmt::format(", gradients clipped at {}", *t.clip_grad_norm);
  if (t.z_loss > 0) optimizer += fmt::format(", z-loss {}", t.z_loss);
  row("optimizer", optimizer);
  for (const ParameterGroup& group : t.optimizer.groups)
    row("group",
        fmt::format("{}: lr x {}{}", group.match, group.lr_scale,
                    group.weight_decay ? fmt::format(", weight decay {}", *group.weight_decay) : ""));
  if (t.ema) row("ema", fmt::format("of parameters, decay {}", t.ema->decay));
  if (t.on_spike)
    row("spikes", fmt::format("skipped from {} times the median norm of {} updates on, at most {} in a row",
                              t.on_spike->factor, t.on_spike->window, t.on_spike->most_in_a_row));
  if (kind_of(t.precision).scales_loss)
    row("loss scale",
        fmt::format("{}, halved after {} overflows, doubled after {} steps without, at least {}",
                    t.loss_scale.initial, t.loss_scale.hysteresis, t.loss_scale.window,
                    t.loss_scale.minimum));
  row("data", fmt::format("{} ({}), unigram entropy {:.4f} nats per token", files_of(job.data), data,
                          unigram_entropy));
  for (const ValidationSet& set : job.data.validation)
    row("validation",
        fmt::format("{}{}, every {} steps{}", set.name.empty() ? "" : set.name + ": ", set.files,
                    t.validation.every_steps, t.ema && t.ema->validate ? ", of averages" : ""));
  row("plan", summary(plan));
  const RankLayout layout(plan);
  for (const std::string& node : layout.nodes()) {
    std::string type;
    for (const int rank : layout.ranks_on(node)) {
      const RankSlot& slot = layout.slots()[rank];
      type = plan.pipelines[slot.pipeline].stages[slot.stage].gpu_type;
    }
    if (!node.empty()) row("node " + node, fmt::format("{} x {}", layout.ranks_on(node).size(), type));
  }
  if (emulated) row("devices", "emulated: computation is real, its duration is the emulated GPU type's");
  if (plan.prediction)
    row("predicted", fmt::format("{:.1f} ms per iteration", 1e3 * plan.prediction->iteration_s));
  row("files", directory);
  return table;
}

}  // namespace sailor
