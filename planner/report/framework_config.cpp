#include "planner/report/framework_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "planner/report/megatron_flags.h"

namespace sailor {

std::string ConfigFormat::trainer_for(const std::string& kind) const {
  const bool keeps = !kind.empty() && std::any_of(also_for.begin(), also_for.end(), [&](const auto& other) {
    return other.empty() || other == kind;
  });
  return keeps ? kind : trainer;
}

const std::vector<ConfigFormat>& config_formats() {
  static const std::vector<ConfigFormat> all = {
      {"megatron", "Megatron-LM", "megatron-core", {}, megatron_config},
      {"torchtitan", "TorchTitan", "torchtitan", {}, torchtitan_config},
      {"deepspeed", "DeepSpeed", "deepspeed", {"deepspeed-zero3"}, deepspeed_config},
      {"accelerate",
       "Accelerate",
       "accelerate",
       {"deepspeed", "deepspeed-zero3", "fsdp", "hsdp"},
       accelerate_config},
      {"nemo", "NeMo", "megatron-core", {}, nemo_config},
      {"mesh", "a device mesh", "torchrun", {""}, mesh_config},
  };
  return all;
}

const ConfigFormat* find_config_format(const std::string& name) {
  for (const ConfigFormat& format : config_formats())
    if (format.name == name) return &format;
  return nullptr;
}

FrameworkConfig megatron_config(const JobSpec& job, const Plan& plan) {
  const MegatronFlags flags = megatron_flags(job, plan);
  FrameworkConfig out{flags.why_not, "", flags.notes};
  for (const std::string& flag : flags.flags) out.text += flag + "\n";
  return out;
}

std::string unsaid_note(const TrainingSpec& training, bool optimizer, bool schedule) {
  std::vector<std::string> unsaid;
  if (training.task == Task::sft) unsaid.emplace_back("task");
  if (!optimizer) unsaid.emplace_back("optimizer");
  if (optimizer && !training.optimizer.groups.empty()) unsaid.emplace_back("optimizer.groups");
  if (!schedule) unsaid.emplace_back("schedule");
  if (training.z_loss > 0) unsaid.emplace_back("z_loss");
  if (training.on_spike) unsaid.emplace_back("on_spike");
  if (training.ema) unsaid.emplace_back("ema");
  return unsaid.empty()
             ? ""
             : fmt::format("the file does not have these keys of `training`: {}", fmt::join(unsaid, ", "));
}

std::string real_text(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find('.') == std::string::npos) text.insert(std::min(text.find('e'), text.size()), ".0");
  return text;
}

}  // namespace sailor
