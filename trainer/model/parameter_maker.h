// Creates the parameters of one layer on one rank, which the model's family lists
// (planner/spec/model_family.h), with random values or from a model directory. The layer takes them by name,
// in the order of the list. Lives during the layer's constructor.
#pragma once

#include <string>
#include <vector>

#include "planner/spec/lora_parameters.h"
#include "planner/spec/model_family.h"
#include "trainer/model/layer.h"

namespace sailor {

class ParameterMaker {
 public:
  // `parameters` is the layer's list.
  ParameterMaker(const LayerContext& context, int layer, std::vector<Parameter>& parameters)
      : context_(context),
        layer_(layer),
        listed_(layer_parameters(context.model, layer, context.padded_vocabulary)),
        parameters_(parameters) {}

  // This rank's rows of the parameter `name`, relative to the layer, such as `qkv.weight`. Throws
  // std::logic_error if the family does not list it.
  at::Tensor take(const std::string& name);
  at::Tensor take_if_listed(const std::string& name);  // undefined if not listed
  at::Tensor take(const ParameterSpec& adapter) { return make(adapter); }
  at::Tensor take_head();  // the head's own matrix, or the embedding's if they are tied

  const ParameterSpec& listed(const std::string& name) const;  // throws std::logic_error if it is not
  const LayerContext& context() const { return context_; }
  int layer() const { return layer_; }
  const ModelSpec& model() const { return context_.model; }

 private:
  const ParameterSpec* find(const std::string& name) const;  // nullptr if it is not listed
  void fill(const ParameterSpec& spec, int64_t first, const at::Tensor& value) const;
  at::Tensor make(const ParameterSpec& spec);

  const LayerContext& context_;
  int layer_;
  std::vector<ParameterSpec> listed_;
  std::vector<Parameter>& parameters_;
};

}  // namespace sailor
