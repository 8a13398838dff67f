#include "tests/equality/reference_model.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <stdexcept>

#include "planner/spec/lora_parameters.h"
#include "tests/equality/reference/adapters.h"
#include "tests/equality/reference/families.h"
#include "trainer/model/dropout_mask.h"

namespace sailor::equality {
namespace {

// Where a row of a batch begins.
struct RowStart {
  int64_t sequence = 0;  // of the global batch
  int64_t token = 0;     // of the sequence
};

// Shares the random numbers with the trainer, and nothing else: which one an element has and what is done
// with it is written down again.
ReferenceDropout reference_dropout(const JobSpec& job, int64_t step, const std::vector<RowStart>& rows) {
  const double rate = job.model.dropout;
  return [=, seed = job.training.seed](const at::Tensor& x, int layer, int site) {
    if (rate == 0) return x;
    std::vector<uint8_t> kept;
    kept.reserve(static_cast<std::size_t>(x.numel()));
    const auto size = static_cast<std::size_t>(x.numel() / x.size(0));
    for (const RowStart& row : rows) {
      const auto first = static_cast<std::size_t>(row.token * x.size(2));
      std::array<uint32_t, 4> block{};
      for (std::size_t element = first; element < first + size; ++element) {
        if (element % 4 == 0 || element == first) {
          block = philox4x32({static_cast<uint32_t>(element / 4), static_cast<uint32_t>(row.sequence),
                              static_cast<uint32_t>(step), static_cast<uint32_t>(layer << 2 | site)},
                             {static_cast<uint32_t>(seed & 0xffffffff), static_cast<uint32_t>(seed >> 32)});
        }
        kept.push_back(block[element % 4] >= std::floor(std::ldexp(rate, 32)));
      }
    }
    const at::Tensor mask = at::from_blob(kept.data(), x.sizes(), at::kByte).to(x.scalar_type());
    return x * mask / (1 - rate);
  };
}

// Of tokens [sequences, tokens + 1], each predicted from those before it: the cross entropies and z-losses,
// [2, sequences, tokens].
at::Tensor reference_losses(const JobSpec& job, const Weights& weights, const at::Tensor& tokens,
                            const ReferenceDropout& drop) {
  const int64_t inputs = tokens.size(1) - 1;
  const at::Tensor logits =
      reference_forward(job.model.family)(job.model, weights, tokens.narrow(1, 0, inputs), drop);
  const at::Tensor cross_entropies =
      -logits.log_softmax(-1).gather(2, tokens.narrow(1, 1, inputs).unsqueeze(-1)).squeeze(-1);
  return at::stack({cross_entropies, job.training.z_loss * logits.logsumexp(-1).square()});
}

// Means over the sequences of the batch.
at::Tensor reference_loss_of_sequences(const JobSpec& job, int64_t step, const Weights& weights,
                                       const TokenData& data) {
  std::vector<at::Tensor> tokens;
  std::vector<RowStart> rows;
  for (int64_t i = 0; i < job.training.global_batch; ++i) {
    tokens.push_back(at::tensor(data.sequence(step, i), at::kLong));
    rows.push_back({i, 0});
  }
  return reference_losses(job, weights, at::stack(tokens), reference_dropout(job, step, rows)).mean({1, 2});
}

// Documents that are about as long, each a row of its own. What fills a short row up to the longest comes
// after its document, which therefore does not see it, and has no loss.
struct Documents {
  std::vector<at::Tensor> tokens;  // with the one behind the document, which counts only if it belongs to it
  std::vector<RowStart> rows;
  std::vector<std::array<int64_t, 3>> counted;  // row, and the range of its targets
};

// By the number of binary digits of their lengths.
std::map<int, Documents> documents_of(const JobSpec& job, int64_t step, const TokenData& data) {
  std::map<int, Documents> all;
  for (int64_t i = 0; i < job.training.global_batch; ++i) {
    const at::Tensor sequence = at::tensor(data.sequence(step, i), at::kLong);
    const SequenceLayout layout = data.layout(data.place(step, i));
    int64_t first = 0;
    for (const int64_t length : layout.documents) {
      Documents& documents = all[std::bit_width(static_cast<uint64_t>(length))];
      for (const auto& [begin, end] : layout.counted) {
        const int64_t from = std::max(begin, first), to = std::min(end, first + length);
        if (from < to)
          documents.counted.push_back(
              {static_cast<int64_t>(documents.rows.size()), from - first, to - first});
      }
      documents.tokens.push_back(sequence.narrow(0, first, length + 1));
      documents.rows.push_back({i, first});
      first += length;
    }
  }
  return all;
}

// Means over the targets of the batch that count, with every document on its own.
at::Tensor reference_loss_of_documents(const JobSpec& job, int64_t step, const Weights& weights,
                                       const TokenData& data) {
  std::vector<at::Tensor> losses;
  for (const auto& entry : documents_of(job, step, data)) {
    const Documents& documents = entry.second;
    int64_t longest = 0;
    for (const at::Tensor& tokens : documents.tokens) longest = std::max(longest, tokens.size(0));
    at::Tensor tokens = at::zeros({static_cast<int64_t>(documents.rows.size()), longest}, at::kLong);
    for (int64_t row = 0; row < tokens.size(0); ++row) {
      const at::Tensor& of_document = documents.tokens[static_cast<std::size_t>(row)];
      tokens[row].narrow(0, 0, of_document.size(0)).copy_(of_document);
    }
    const at::Tensor of_rows =
        reference_losses(job, weights, tokens, reference_dropout(job, step, documents.rows));
    std::vector<int64_t> counted;
    for (const auto& [row, from, to] : documents.counted) {
      for (int64_t target = from; target < to; ++target) counted.push_back(row * (longest - 1) + target);
    }
    losses.push_back(of_rows.flatten(1).index_select(1, at::tensor(counted, at::kLong)));
  }
  return at::cat(losses, 1).mean(1);
}

struct Moments {
  at::Tensor m, v;
};

bool has_name(const ParameterSpec& parameter, const std::regex& pattern) {
  for (const StoredPiece& piece : parameter.stored.pieces)
    if (std::regex_match(piece.tensor.empty() ? parameter.name : piece.tensor, pattern)) return true;
  return false;
}

// Learning rate and weight decay of each parameter, from patterns in which only `*` is special.
std::map<std::string, OptimizerSpec> reference_specs(const JobSpec& job) {
  std::map<std::string, OptimizerSpec> specs;
  for (const ParameterSpec& parameter :
       trained_parameters(job.model, job.training.lora, job.model.vocabulary)) {
    OptimizerSpec& spec = specs[parameter.name] = job.training.optimizer;
    if (parameter.columns == 0) spec.weight_decay = 0;
    for (const ParameterGroup& group : job.training.optimizer.groups) {
      const std::string dots = std::regex_replace(group.match, std::regex("\\."), "[.]");
      if (!has_name(parameter, std::regex(std::regex_replace(dots, std::regex("\\*"), ".*")))) continue;
      spec.lr *= group.lr_scale;
      if (group.weight_decay) spec.weight_decay = *group.weight_decay;
      break;
    }
  }
  return specs;
}

// What the iteration of Muon does to the singular values.
at::Tensor reference_orthogonalized(const at::Tensor& matrix) {
  const auto [u, s, v] = at::svd(matrix);
  at::Tensor values = s / matrix.norm();
  for (int i = 0; i < 5; ++i) values = 3.4445 * values - 4.7750 * values.pow(3) + 2.0315 * values.pow(5);
  const auto longest = static_cast<double>(std::max(matrix.size(0), matrix.size(1)));
  return 0.2 * std::sqrt(longest) * at::mm(u * values, v.t());
}

// Queries, keys and values are matrices of their own, and so are gate and up.
at::Tensor reference_direction(const ModelSpec& model, const std::string& name, const at::Tensor& g) {
  at::Tensor result = at::empty_like(g);
  const auto set = [&](at::Tensor part, const at::Tensor& rows) {
    part.copy_(reference_orthogonalized(rows.reshape({-1, g.size(1)})).view_as(part));
  };
  if (name.ends_with(".qkv.weight")) {
    const int64_t groups = model.key_value_heads(), queries = model.heads / groups;
    const std::vector<int64_t> shape = {groups, queries + 2, model.head_width(), g.size(1)};
    const at::Tensor from = g.view(shape), to = result.view(shape);
    set(to.narrow(1, 0, queries), from.narrow(1, 0, queries));
    set(to.select(1, queries), from.select(1, queries));
    set(to.select(1, queries + 1), from.select(1, queries + 1));
  } else if (name.ends_with(".gate_up.weight")) {
    for (int i = 0; i < 2; ++i) set(result.slice(0, i, g.size(0), 2), g.slice(0, i, g.size(0), 2));
  } else {
    set(result, g);
  }
  return result;
}

void reference_muon(const OptimizerSpec& spec, const ModelSpec& model, const std::string& name,
                    at::Tensor weight, const at::Tensor& g, at::Tensor& momentum) {
  momentum = momentum + (1 - spec.momentum) * (g - momentum);
  const at::Tensor mixed = spec.nesterov ? g + spec.momentum * (momentum - g) : momentum;
  at::Tensor value = weight.detach();
  value.mul_(1 - spec.lr * spec.weight_decay).sub_(spec.lr * reference_direction(model, name, mixed));
}

void reference_update(const OptimizerSpec& spec, const ModelSpec& model, const std::string& name, int64_t t,
                      at::Tensor weight, const at::Tensor& g, Moments& moments) {
  const int layer = std::stoi(name);
  if (spec.name == "muon" && weight.dim() == 2 && layer > 0 && layer <= model.layers)
    return reference_muon(spec, model, name, weight, g, moments.m);
  moments.m = spec.beta1 * moments.m + (1 - spec.beta1) * g;
  moments.v = spec.beta2 * moments.v + (1 - spec.beta2) * g * g;
  const at::Tensor m = moments.m / (1 - std::pow(spec.beta1, static_cast<double>(t)));
  const at::Tensor v = moments.v / (1 - std::pow(spec.beta2, static_cast<double>(t)));
  at::Tensor value = weight.detach();
  value.mul_(1 - spec.lr * spec.weight_decay);
  value.sub_(spec.lr * m / (v.sqrt() + spec.epsilon));
}

// The loss scale of each step (Megatron-LM's DynamicGradScaler), without a lower limit.
struct ReferenceLossScale {
  const LossScaleSpec& spec;
  double scale = static_cast<double>(spec.initial);
  int64_t growth_tracker = 0;
  int64_t hysteresis_tracker = spec.hysteresis;

  void update(bool found_inf) {
    if (found_inf) {
      growth_tracker = 0;
      if (--hysteresis_tracker <= 0) scale *= 0.5;
    } else if (++growth_tracker == spec.window) {
      growth_tracker = 0;
      hysteresis_tracker = spec.hysteresis;
      scale *= 2;
    }
  }
};

// Norms of the last updates, and whether another one is a spike.
struct ReferenceSpikes {
  const std::optional<SpikeSpec>& spec;
  std::vector<double> norms;

  // Above 1: a spike; 0 while there are too few.
  double excess(double norm) const {
    if (!spec || static_cast<int>(norms.size()) < spec->window) return 0;
    std::vector<double> last(norms.end() - spec->window, norms.end());
    std::sort(last.begin(), last.end());
    const double median = (last[(last.size() - 1) / 2] + last[last.size() / 2]) / 2;
    return norm / (spec->factor * median);
  }
};

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

void put_tensors(std::ostream& out, const std::map<std::string, at::Tensor>& tensors) {
  put(out, static_cast<uint64_t>(tensors.size()));
  for (const auto& entry : tensors) {
    put(out, static_cast<uint64_t>(entry.first.size()));
    out.write(entry.first.data(), static_cast<std::streamsize>(entry.first.size()));
    put(out, static_cast<uint64_t>(entry.second.dim()));
    for (const int64_t size : entry.second.sizes()) put(out, size);
    const at::Tensor dense = entry.second.contiguous();
    out.write(static_cast<const char*>(dense.data_ptr()), static_cast<std::streamsize>(dense.nbytes()));
  }
}

std::map<std::string, at::Tensor> get_tensors(std::istream& in, at::ScalarType dtype) {
  std::map<std::string, at::Tensor> tensors;
  for (uint64_t n = get<uint64_t>(in); n > 0; --n) {
    std::string name(get<uint64_t>(in), '\0');
    in.read(name.data(), static_cast<std::streamsize>(name.size()));
    std::vector<int64_t> shape(get<uint64_t>(in));
    for (int64_t& size : shape) size = get<int64_t>(in);
    at::Tensor tensor = at::empty(shape, dtype);
    in.read(static_cast<char*>(tensor.data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
    tensors[name] = tensor;
  }
  return tensors;
}

// Their gradients are those of the weights.
Weights disturbed(const Weights& weights, double by, int step) {
  if (by == 0) return weights;
  at::Generator random = at::detail::createCPUGenerator(static_cast<uint64_t>(step));
  Weights out;
  for (const auto& [name, weight] : weights)
    out[name] = weight + weight.detach() * at::empty_like(weight.detach()).uniform_(-by, by, random);
  return out;
}

}  // namespace

std::vector<ReferenceStep> run_reference(const JobSpec& job, const Weights& initial, const TokenData& data,
                                         int steps, const std::vector<bool>& skipped, double disturbed_by) {
  Weights weights, frozen, averages;
  std::map<std::string, Moments> moments;
  for (const auto& entry : initial) {
    if (job.training.lora && !is_adapter(entry.first)) {
      frozen[entry.first] = entry.second.detach();
      continue;
    }
    weights[entry.first] = entry.second.detach().clone().set_requires_grad(true);
    moments[entry.first] = {at::zeros_like(entry.second.detach()), at::zeros_like(entry.second.detach())};
  }
  const std::map<std::string, OptimizerSpec> specs = reference_specs(job);
  std::vector<ReferenceStep> results;
  for (const auto& entry : weights) averages[entry.first] = entry.second.detach().clone();
  ReferenceLossScale loss_scale{job.training.loss_scale};
  ReferenceSpikes spikes{job.training.on_spike, {}};
  int64_t updates = 0;
  for (int step = 0; step < steps; ++step) {
    const Weights seen = disturbed(weights, disturbed_by, step);
    const Weights adapted =
        job.training.lora ? with_adapters(job, disturbed(frozen, disturbed_by, step), seen) : seen;
    const at::Tensor losses = job.data.document_mask ? reference_loss_of_documents(job, step, adapted, data)
                                                     : reference_loss_of_sequences(job, step, adapted, data);
    torch::autograd::backward({losses.sum()}, {});

    ReferenceStep result;
    result.loss = losses[0].item<double>();
    result.z_loss = losses[1].item<double>();
    double squares = 0;
    for (auto& entry : weights) {
      const at::Tensor gradient = entry.second.grad().clone();
      result.largest_gradient = std::max(result.largest_gradient, gradient.abs().max().item<double>());
      squares += gradient.to(at::kDouble).pow(2).sum().item<double>();
      entry.second.mutable_grad().zero_();
      result.gradients[entry.first] = gradient;
    }
    result.grad_norm = std::sqrt(squares);

    const double excess = spikes.excess(result.grad_norm);
    result.skipped = skipped.empty() ? excess > 1 : skipped.at(static_cast<std::size_t>(step));
    result.close_call = std::abs(excess - 1) < 1e-4;
    result.spikes = (results.empty() ? 0 : results.back().spikes) + (result.skipped ? 1 : 0);
    if (job.training.precision == Precision::fp16) result.loss_scale = loss_scale.scale;
    loss_scale.update(result.skipped);
    if (!result.skipped) {
      ++updates;
      spikes.norms.push_back(result.grad_norm);
      for (auto& entry : weights) {
        reference_update(specs.at(entry.first), job.model, entry.first, updates, entry.second,
                         result.gradients.at(entry.first), moments.at(entry.first));
        if (job.training.ema)
          averages[entry.first] = job.training.ema->decay * averages[entry.first] +
                                  (1 - job.training.ema->decay) * entry.second.detach();
      }
    }
    if (job.training.ema) result.averages = averages;
    results.push_back(std::move(result));
  }
  return results;
}

void save_reference(const std::vector<ReferenceStep>& steps, const std::string& path) {
  std::ofstream out(path, std::ios::binary);
  put(out, static_cast<uint64_t>(steps.size()));
  for (const ReferenceStep& step : steps) {
    put(out, step.loss);
    put(out, step.z_loss);
    put(out, step.largest_gradient);
    put(out, step.grad_norm);
    put(out, step.loss_scale);
    put(out, step.skipped);
    put(out, step.spikes);
    put_tensors(out, step.gradients);
    put_tensors(out, step.averages);
  }
  if (!out.flush()) throw std::runtime_error(path + ": cannot write the reference");
}

std::vector<ReferenceStep> load_reference(const std::string& path, at::ScalarType dtype) {
  std::ifstream in(path, std::ios::binary);
  std::vector<ReferenceStep> steps(get<uint64_t>(in));
  for (ReferenceStep& step : steps) {
    step.loss = get<double>(in);
    step.z_loss = get<double>(in);
    step.largest_gradient = get<double>(in);
    step.grad_norm = get<double>(in);
    step.loss_scale = get<double>(in);
    step.skipped = get<bool>(in);
    step.spikes = get<int64_t>(in);
    step.gradients = get_tensors(in, dtype);
    step.averages = get_tensors(in, dtype);
  }
  if (!in || steps.empty()) throw std::runtime_error(path + ": cannot read the reference");
  return steps;
}

}  // namespace sailor::equality
