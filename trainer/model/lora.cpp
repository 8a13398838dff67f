#include "trainer/model/lora.h"

#include "trainer/model/weight_product.h"

namespace sailor {

LoraLayer::LoraLayer(ParameterMaker& make, const std::string& name) {
  if (!make.context().lora) return;
  const ParameterSpec& weight = make.listed(name + ".weight");
  inputs_are_split_ = weight.rows_are_inputs;
  scale_ = make.context().lora->scale();
  if (!inputs_are_split_) {
    groups_ = weight.stored.groups;
    group_rows_ = weight.rows / groups_;
    if (groups_ == 1) {  // the rows themselves are split
      group_rows_ /= make.context().tp_size();
    } else {
      groups_ /= make.context().tp_size();
    }
  }
  for (const LoraAdapter& adapter : adapters_of(weight, make.model(), *make.context().lora))
    adapters_.push_back({make.take(adapter.a), make.take(adapter.b), adapter.first, adapter.rows});
}

at::Tensor LoraLayer::operator()(const at::Tensor& x, const TensorParallel& tp) const {
  if (!inputs_are_split_) return of_split_outputs(x, tp);
  const Adapter& only = adapters_.front();
  return product_by_outputs(product_by_inputs(x, only.a, {}, tp) * scale_, only.b, {}, {});
}

at::Tensor LoraLayer::of_split_outputs(const at::Tensor& x, const TensorParallel& tp) const {
  std::vector<at::Tensor> all_a;
  for (const Adapter& adapter : adapters_) all_a.push_back(adapter.a);
  const at::Tensor narrow =
      product_by_outputs(x, all_a.size() == 1 ? all_a.front() : at::cat(all_a), {}, {}) * scale_;
  if (adapters_.size() == 1) return in_groups({product_by_outputs(narrow, adapters_.front().b, {}, tp)});
  const std::vector<at::Tensor> of_each =
      enter_tensor_parallel(narrow, tp).chunk(static_cast<int64_t>(adapters_.size()), -1);
  std::vector<at::Tensor> results;
  for (std::size_t i = 0; i < adapters_.size(); ++i)
    results.push_back(product_by_outputs(of_each[i], adapters_[i].b, {}, {}));
  return in_groups(results);
}

at::Tensor LoraLayer::in_groups(const std::vector<at::Tensor>& results) const {
  if (results.size() == 1 && results.front().size(-1) == groups_ * group_rows_) return results.front();
  const at::IntArrayRef outer =
      results.front().sizes().slice(0, static_cast<std::size_t>(results.front().dim() - 1));
  const auto in_rows = [&](int64_t rows) {
    std::vector<int64_t> sizes(outer.begin(), outer.end());
    sizes.insert(sizes.end(), {groups_, rows});
    return sizes;
  };
  std::vector<at::Tensor> parts;
  int64_t next = 0;
  const auto fill_up_to = [&](int64_t row) {  // rows of modules without an adapter
    if (row > next) parts.push_back(at::zeros(in_rows(row - next), results.front().options()));
  };
  for (std::size_t i = 0; i < results.size(); ++i) {
    fill_up_to(adapters_[i].first);
    parts.push_back(results[i].view(in_rows(adapters_[i].rows)));
    next = adapters_[i].first + adapters_[i].rows;
  }
  fill_up_to(group_rows_);
  return at::cat(parts, -1).flatten(-2);
}

}  // namespace sailor
