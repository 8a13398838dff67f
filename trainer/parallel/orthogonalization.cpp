#include "trainer/parallel/orthogonalization.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "trainer/comm/exchange_lists.h"
#include "trainer/model/element_types.h"
#include "trainer/model/registry.h"
#include "trainer/optim/newton_schulz.h"
#include "trainer/parallel/gradient_buffer.h"
#include "trainer/parallel/parameter_place.h"

namespace sailor {
namespace {

// Makes the root mean square of a direction that of an AdamW update (Liu et al. 2025, section 2.2).
constexpr double kRootMeanSquare = 0.2;

std::vector<ParameterSpec> linear_weights(const ModelSpec& model, const RankLayout& layout) {
  std::vector<ParameterSpec> weights;
  for (ParameterSpec& spec : list_parameters(model, padded_vocabulary(model.vocabulary, layout)))
    if (is_linear_weight(spec, model)) weights.push_back(std::move(spec));
  return weights;
}

// Multiplications of one orthogonalization, up to a factor.
double work_of(const ParameterSpec& spec, const FusedRows& rows) {
  double work = 0;
  for (const int64_t part : rows.parts) {
    const auto a = static_cast<double>(rows.groups * part), b = static_cast<double>(spec.columns);
    const double narrow = std::min(a, b), wide = std::max(a, b);
    work += narrow * narrow * (2 * wide + narrow);
  }
  return work;
}

// As numbers for the others: matrix, slice, first element of the matrix, count.
NumberList own_ranges(const Muon& muon, const RankSlot& slot, const std::vector<ParameterSpec>& matrices) {
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < matrices.size(); ++i) index.emplace(matrices[i].name, i);
  NumberList list;
  for (std::size_t i = 0; i < muon.slices().size(); ++i) {
    const OptimizerSlice& slice = muon.slices()[i];
    if (!slice.linear) continue;
    const std::size_t matrix = index.at(slice.name);
    list.insert(list.end(), {static_cast<int64_t>(matrix), static_cast<int64_t>(i),
                             base_of(slot, matrices[matrix]) + slice.first, slice.count});
  }
  return list;
}

}  // namespace

Orthogonalization::Orthogonalization(const JobSpec& job, const RankLayout& layout, int rank, Muon& muon,
                                     Communicator& world, CommFactory& factory, Device& device)
    : rank_(rank),
      muon_(muon),
      device_(device),
      type_(device.asynchronous() ? scalar_type(job.training.precision)
                                  : gradient_type(scalar_type(job.training.precision))),
      matrices_(linear_weights(job.model, layout)) {
  std::vector<double> work;
  for (const ParameterSpec& spec : matrices_)
    work.push_back(work_of(spec, rows_.emplace_back(fused_rows(spec, job.model))));
  const RankSlot& slot = layout.slots().at(static_cast<std::size_t>(rank));
  const auto lists = all_gather_lists(world, own_ranges(muon, slot, matrices_));
  std::vector<std::vector<MatrixRange>> held(matrices_.size());
  for (std::size_t r = 0; r < lists.size(); ++r) {
    for (auto next = lists[r].begin(); next != lists[r].end(); next += 4)
      held[static_cast<std::size_t>(next[0])].push_back(
          {static_cast<int>(r), static_cast<std::size_t>(next[1]), 0, next[2], next[3]});
  }
  rounds_ = plan_matrix_moves(layout, work, held);
  std::vector<int> ranks(static_cast<std::size_t>(layout.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  group_ = factory.create("matrices", ranks);
}

at::Tensor Orthogonalization::whole(std::size_t round, std::size_t matrix) const {
  return staging_[round % 2].narrow(0, 0, matrices_[matrix].elements());
}

std::unique_ptr<Work> Orthogonalization::post(std::size_t round, Way way) {
  std::vector<Transfer> transfers;
  const Stream stream = device_.compute();
  for (const MatrixMoves& moves : rounds_[round]) {
    const bool own = moves.owner == rank_;
    if (own && way == Way::to_owner) {
      at::Tensor& staging = staging_[round % 2];
      const int64_t elements = matrices_[moves.matrix].elements();
      const at::TensorOptions options = muon_.slices().front().gradient.options();
      if (!staging.defined() || staging.numel() < elements) staging = at::empty({elements}, options);
    }
    for (const MatrixRange& range : way == Way::to_owner ? moves.gathered : moves.returned) {
      if (!own && range.rank != rank_) continue;
      const auto part = [&](const at::Tensor& tensor, int64_t first) {
        return static_cast<char*>(tensor.data_ptr()) + first * tensor.element_size();
      };
      char* const in_matrix = own ? part(whole(round, moves.matrix), range.first) : nullptr;
      char* const in_slice = range.rank == rank_ ? part(muon_.direction(range.slice), range.offset) : nullptr;
      const at::Tensor& gradient = muon_.slices().front().gradient;
      const auto count = static_cast<std::size_t>(range.count);
      if (in_matrix && in_slice) {
        const auto bytes = count * static_cast<std::size_t>(gradient.element_size());
        device_.copy(way == Way::to_owner ? in_matrix : in_slice, way == Way::to_owner ? in_slice : in_matrix,
                     bytes, stream);
        continue;
      }
      const bool sends = own == (way == Way::back);
      transfers.push_back({sends ? Transfer::Kind::send : Transfer::Kind::recv,
                           in_matrix ? in_matrix : in_slice, count, element_type(gradient.scalar_type()),
                           own ? range.rank : moves.owner});
    }
  }
  return transfers.empty() ? nullptr : group_->exchange(transfers, stream);
}

void Orthogonalization::wait(std::unique_ptr<Work> work) {
  if (work) work->wait_on(device_.compute());
}

void Orthogonalization::compute(std::size_t round) {
  const at::NoGradGuard no_graph;
  for (const MatrixMoves& moves : rounds_[round]) {
    if (moves.owner != rank_) continue;
    const FusedRows& rows = rows_[moves.matrix];
    const int64_t columns = matrices_[moves.matrix].columns;
    const at::Tensor groups = whole(round, moves.matrix).view({rows.groups, -1, columns});
    int64_t first = 0;
    for (const int64_t part : rows.parts) {
      const at::Tensor weight = groups.narrow(1, first, part);
      const int64_t outputs = rows.groups * part;
      const double scale = kRootMeanSquare * std::sqrt(static_cast<double>(std::max(outputs, columns)));
      const at::Tensor result = orthogonalized(weight.reshape({outputs, columns}), type_).mul_(scale);
      weight.copy_(result.view({rows.groups, part, columns}));
      first += part;
    }
  }
}

void Orthogonalization::run() {
  if (rounds_.empty()) return;
  std::unique_ptr<Work> arriving = post(0, Way::to_owner), returning;
  for (std::size_t round = 0; round < rounds_.size(); ++round) {
    wait(std::move(returning));  // of the staging memory that the next round uses
    std::unique_ptr<Work> next = round + 1 < rounds_.size() ? post(round + 1, Way::to_owner) : nullptr;
    wait(std::move(arriving));
    compute(round);
    returning = post(round, Way::back);
    arriving = std::move(next);
  }
  wait(std::move(returning));
}

}  // namespace sailor
