// Parameter groups: learning rates and weight decays of parameters that are chosen by name,
// `training.optimizer.groups` of a job spec.
//
// A group matches the names of tensors in model directories, such as
// `model.layers.0.self_attn.q_proj.weight`, and of adapters without PEFT's prefix
// (`...q_proj.lora_A.weight`). A pattern is a shell pattern over the whole name: `*` stands for any
// characters, `?` for one, `[...]` for one of several. The first group that matches applies. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/spec/lora_spec.h"
#include "planner/spec/model_spec.h"

namespace sailor {

struct ParameterGroup {
  std::string match;
  double lr_scale = 1;                   // factor of the learning rate
  std::optional<double> weight_decay{};  // of all that match; empty: the optimizer's, of matrices

  bool operator==(const ParameterGroup&) const = default;
};

struct GroupProblem {
  std::size_t group = 0;  // index
  std::string text;
};

// A group that applies to nothing, or one that applies to a part of a matrix that the trainer keeps in one
// piece, such as queries, keys and values. Nothing for a model of an unknown family.
std::optional<GroupProblem> find_problem(const std::vector<ParameterGroup>& groups, const ModelSpec& model,
                                         const std::optional<LoraSpec>& lora);

// The groups of the trained parameters by the trainer's names, such as `3.qkv.weight`; those without one are
// not in it. Requires that there is no problem.
std::map<std::string, ParameterGroup> groups_by_parameter(const std::vector<ParameterGroup>& groups,
                                                          const ModelSpec& model,
                                                          const std::optional<LoraSpec>& lora);

}  // namespace sailor
