#include "tests/equality/reference_model.h"

#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <fstream>
#include <stdexcept>

namespace sailor::equality {
namespace {

using Weights = std::map<std::string, at::Tensor>;

at::Tensor reference_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor centred = x - x.mean(-1, true);
  return centred * (centred.pow(2).mean(-1, true) + 1e-5).rsqrt() * weight + bias;
}

at::Tensor reference_gelu(const at::Tensor& x) {
  return 0.5 * x * (1 + (std::sqrt(2 / M_PI) * (x + 0.044715 * x.pow(3))).tanh());
}

at::Tensor reference_attention(const at::Tensor& x, const Weights& w, const std::string& at, int64_t heads) {
  const int64_t batch = x.size(0), tokens = x.size(1), hidden = x.size(2), dim = hidden / heads;
  // Rows of the fused matrix are [head][q, k, v][dim].
  const at::Tensor weight = w.at(at + "qkv.weight").view({heads, 3, dim, hidden});
  const at::Tensor bias = w.at(at + "qkv.bias").view({heads, 3, dim});
  const auto project = [&](int64_t which) {
    const at::Tensor rows = weight.select(1, which).reshape({hidden, hidden});
    return (at::matmul(x, rows.t()) + bias.select(1, which).reshape({hidden}))
        .view({batch, tokens, heads, dim})
        .transpose(1, 2);
  };
  at::Tensor scores =
      at::matmul(project(0), project(1).transpose(-1, -2)) / std::sqrt(static_cast<double>(dim));
  const at::Tensor future = at::ones({tokens, tokens}, at::kBool).triu(1);
  scores = scores.masked_fill(future, -INFINITY);
  const at::Tensor mixed =
      at::matmul(scores.softmax(-1), project(2)).transpose(1, 2).reshape({batch, tokens, hidden});
  return at::matmul(mixed, w.at(at + "proj.weight")) + w.at(at + "proj.bias");
}

// Mean cross entropy over all tokens of the batch.
at::Tensor reference_loss(const JobSpec& job, const Weights& w, const at::Tensor& inputs,
                          const at::Tensor& targets) {
  at::Tensor x = at::embedding(w.at("0.token.weight"), inputs) + w.at("0.position.weight");
  for (int layer = 1; layer <= job.model.layers; ++layer) {
    const std::string at = std::to_string(layer) + ".";
    x = x + reference_attention(reference_norm(x, w.at(at + "norm1.weight"), w.at(at + "norm1.bias")), w, at,
                                job.model.heads);
    const at::Tensor normed = reference_norm(x, w.at(at + "norm2.weight"), w.at(at + "norm2.bias"));
    const at::Tensor inner =
        reference_gelu(at::matmul(normed, w.at(at + "fc1.weight").t()) + w.at(at + "fc1.bias"));
    x = x + at::matmul(inner, w.at(at + "fc2.weight")) + w.at(at + "fc2.bias");
  }
  const std::string at = std::to_string(job.model.layers + 1) + ".";
  x = reference_norm(x, w.at(at + "norm.weight"), w.at(at + "norm.bias"));
  const at::Tensor log_probability = at::matmul(x, w.at(at + "head.weight").t()).log_softmax(-1);
  return -log_probability.gather(2, targets.unsqueeze(-1)).mean();
}

struct Moments {
  at::Tensor m, v;
};

void reference_update(const OptimizerSpec& spec, int64_t t, at::Tensor weight, const at::Tensor& g,
                      Moments& moments) {
  moments.m = spec.beta1 * moments.m + (1 - spec.beta1) * g;
  moments.v = spec.beta2 * moments.v + (1 - spec.beta2) * g * g;
  const at::Tensor m = moments.m / (1 - std::pow(spec.beta1, static_cast<double>(t)));
  const at::Tensor v = moments.v / (1 - std::pow(spec.beta2, static_cast<double>(t)));
  at::Tensor value = weight.detach();
  if (weight.dim() == 2) value.mul_(1 - spec.lr * spec.weight_decay);
  value.sub_(spec.lr * m / (v.sqrt() + spec.epsilon));
}

template <class T>
void put(std::ostream& out, const T& value) {
  out.write(reinterpret_cast<const char*>(&value), sizeof value);
}
template <class T>
T get(std::istream& in) {
  T value{};
  in.read(reinterpret_cast<char*>(&value), sizeof value);
  return value;
}

}  // namespace

std::vector<ReferenceStep> run_reference(const JobSpec& job, const Weights& initial, const TokenData& data,
                                         int steps) {
  Weights weights;
  std::map<std::string, Moments> moments;
  for (const auto& entry : initial) {
    weights[entry.first] = entry.second.detach().clone().set_requires_grad(true);
    moments[entry.first] = {at::zeros_like(entry.second.detach()), at::zeros_like(entry.second.detach())};
  }
  std::vector<ReferenceStep> results;
  for (int step = 0; step < steps; ++step) {
    std::vector<at::Tensor> rows;
    for (int64_t i = 0; i < job.training.global_batch; ++i) {
      const std::vector<int64_t> tokens = data.sequence(step, i);
      rows.push_back(at::tensor(tokens, at::kLong));
    }
    const at::Tensor batch = at::stack(rows);
    const at::Tensor loss = reference_loss(job, weights, batch.narrow(1, 0, job.model.sequence),
                                           batch.narrow(1, 1, job.model.sequence));
    torch::autograd::backward({loss}, {});

    ReferenceStep result;
    result.loss = loss.item<double>();
    double squares = 0;
    for (auto& entry : weights) {
      const at::Tensor gradient = entry.second.grad().clone();
      result.largest_gradient = std::max(result.largest_gradient, gradient.abs().max().item<double>());
      squares += gradient.to(at::kDouble).pow(2).sum().item<double>();
      reference_update(job.training.optimizer, step + 1, entry.second, gradient, moments.at(entry.first));
      entry.second.mutable_grad().zero_();
      result.gradients[entry.first] = gradient;
    }
    result.grad_norm = std::sqrt(squares);
    results.push_back(std::move(result));
  }
  return results;
}

void save_reference(const std::vector<ReferenceStep>& steps, const std::string& path) {
  std::ofstream out(path, std::ios::binary);
  put(out, static_cast<uint64_t>(steps.size()));
  for (const ReferenceStep& step : steps) {
    put(out, step.loss);
    put(out, step.largest_gradient);
    put(out, step.grad_norm);
    put(out, static_cast<uint64_t>(step.gradients.size()));
    for (const auto& entry : step.gradients) {
      put(out, static_cast<uint64_t>(entry.first.size()));
      out.write(entry.first.data(), static_cast<std::streamsize>(entry.first.size()));
      put(out, static_cast<uint64_t>(entry.second.dim()));
      for (const int64_t size : entry.second.sizes()) put(out, size);
      const at::Tensor dense = entry.second.contiguous();
      out.write(static_cast<const char*>(dense.data_ptr()), static_cast<std::streamsize>(dense.nbytes()));
    }
  }
  if (!out.flush()) throw std::runtime_error(path + ": cannot write the reference");
}

std::vector<ReferenceStep> load_reference(const std::string& path, at::ScalarType dtype) {
  std::ifstream in(path, std::ios::binary);
  std::vector<ReferenceStep> steps(get<uint64_t>(in));
  for (ReferenceStep& step : steps) {
    step.loss = get<double>(in);
    step.largest_gradient = get<double>(in);
    step.grad_norm = get<double>(in);
    for (uint64_t n = get<uint64_t>(in); n > 0; --n) {
      std::string name(get<uint64_t>(in), '\0');
      in.read(name.data(), static_cast<std::streamsize>(name.size()));
      std::vector<int64_t> shape(get<uint64_t>(in));
      for (int64_t& size : shape) size = get<int64_t>(in);
      at::Tensor gradient = at::empty(shape, dtype);
      in.read(static_cast<char*>(gradient.data_ptr()), static_cast<std::streamsize>(gradient.nbytes()));
      step.gradients[name] = gradient;
    }
  }
  if (!in || steps.empty()) throw std::runtime_error(path + ": cannot read the reference");
  return steps;
}

}  // namespace sailor::equality
