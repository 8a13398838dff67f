#include "trainer/pipeline/step_progress.h"

#include <bit>
#include <random>

#include "trainer/comm/exchange_lists.h"

namespace sailor {

int64_t new_lineage() {
  std::random_device random;
  return static_cast<int64_t>(std::uniform_int_distribution<int64_t>(1)(random));
}

void StepProgress::starts_from(const StateVersion& version, int64_t next_lineage) {
  *this = {};
  version_ = version;
  next_lineage_ = next_lineage;
}

void StepProgress::committed(const StepSums& sums) {
  committed_ = StateVersion{version_.steps_done + 1, next_lineage_};
  sums_ = sums;
}

void StepProgress::updated() {
  version_ = {version_.steps_done + 1, next_lineage_};
  ready_ = false;
}

std::optional<StepSums> StepProgress::owed_update(Communicator& group, const StepProgress* own) {
  NumberList list;
  if (own != nullptr && own->whole_ && own->committed_)
    list = {own->committed_->steps_done, own->committed_->lineage, std::bit_cast<int64_t>(own->sums_.loss),
            std::bit_cast<int64_t>(own->sums_.gradient_norm)};
  const std::vector<NumberList> lists = all_gather_lists(group, list);
  if (own == nullptr || !own->whole_ || !own->ready_) return std::nullopt;
  const StateVersion next{own->version_.steps_done + 1, own->next_lineage_};
  for (const NumberList& other : lists) {
    if (!other.empty() && StateVersion{other[0], other[1]} == next)
      return StepSums{std::bit_cast<double>(other[2]), std::bit_cast<double>(other[3])};
  }
  return std::nullopt;
}

}  // namespace sailor
