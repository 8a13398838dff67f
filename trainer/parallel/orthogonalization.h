// Muon's directions, orthogonalized: gathers every matrix on the rank that owns it (matrix_moves.h), which
// orthogonalizes each linear layer's weight in it on its own (queries, keys and values are three), scales it
// and returns it to all that hold parts. Replicas have the same bits afterwards.
//
//     Orthogonalization orthogonalization(job, layout, rank, muon, world, factory, device);
//     muon.start(gradient_scale);
//     orthogonalization.run();     // on all ranks
//     orthogonalization.settle();  // throws unless what was received is valid
//
// On GPUs products are in the type of the model, on processors in that of gradients. The next matrices travel
// while one is computed. Functions throw CommError, after which the object is unusable. One thread per
// object.
#pragma once

#include <memory>
#include <vector>

#include "planner/plan/rank_layout.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/model_family.h"
#include "trainer/comm/communicator.h"
#include "trainer/comm/device.h"
#include "trainer/optim/muon.h"
#include "trainer/parallel/matrix_moves.h"

namespace sailor {

class Orthogonalization {
 public:
  // All ranks of the plan construct one together. `world` has all of them, in host memory; `factory` is that
  // of the memory of `device`. `muon`, `factory` and `device` outlive the object.
  Orthogonalization(const JobSpec& job, const RankLayout& layout, int rank, Muon& muon, Communicator& world,
                    CommFactory& factory, Device& device);

  void run();
  void settle() const { group_->settle(); }

 private:
  // The moves of a round as one exchange, and the copies that stay on this rank.
  enum class Way { to_owner, back };
  std::unique_ptr<Work> post(std::size_t round, Way way);
  void wait(std::unique_ptr<Work> work);
  void compute(std::size_t round);
  // The memory of the matrix that this rank owns in a round.
  at::Tensor whole(std::size_t round, std::size_t matrix) const;

  const int rank_;
  Muon& muon_;
  Device& device_;
  const at::ScalarType type_;  // of products
  std::vector<ParameterSpec> matrices_;
  std::vector<FusedRows> rows_;  // of each matrix
  std::vector<std::vector<MatrixMoves>> rounds_;
  std::unique_ptr<Communicator> group_;
  at::Tensor staging_[2];  // of even and odd rounds
};

}  // namespace sailor
