// Decides from which ranks a rank fetches its part of a distributed training state. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "planner/plan/rank_layout.h"
#include "trainer/checkpoint/held_state.h"
#include "trainer/comm/exchange_lists.h"

namespace sailor {

// A range of elements that some rank holds, as known to all.
struct KnownRange {
  int64_t first = 0, end = 0;  // elements of the unsharded parameter
  int rank = 0;
  std::size_t state = 0, range = 0;  // indices in the list of that rank
};

struct KnownState {
  StateVersion version;
  int64_t optimizer_steps = 0;
  LossScaleState loss_scale{};
  SpikeState spikes{};
  bool copy = false;
  std::vector<std::pair<std::size_t, KnownRange>> ranges;  // by parameter
};

// What a rank reports about the states that it holds; and what the lists of all ranks mean.
NumberList told(const std::vector<HeldState>& held);
std::vector<KnownState> heard(const std::vector<NumberList>& lists);

// A source for a complete state: only states in use, or copies too.
struct StateChoice {
  StateVersion version;
  bool with_copies = false;

  bool admits(const KnownState& state) const {
    return state.version == version && (with_copies || !state.copy);
  }
};
// All sources, best first: the newest, and within a version those in use.
std::vector<StateChoice> choices_of(const std::vector<KnownState>& known);

using RangesByParameter = std::map<std::size_t, std::vector<KnownRange>>;
RangesByParameter ranges_of(const std::vector<KnownState>& known, const StateChoice& choice);

// A range of one tensor of a parameter (0 = the values, then the optimizer states) that this rank needs.
struct NeededRange {
  std::size_t parameter = 0;
  int64_t first = 0, count = 0;
  std::size_t tensor = 0;
  char* memory = nullptr;
};

// Number of needed elements that no rank holds.
int64_t missing(const std::vector<NeededRange>& needed, const RangesByParameter& known);

// A part of a needed range, and its source.
struct Fetch {
  int rank = 0;
  std::size_t state = 0, range = 0, tensor = 0;
  int64_t offset = 0, count = 0;  // elements, relative to the start of that range
  char* memory = nullptr;
};

// The source of each element, exactly one: this rank itself, else ranks of its node, else all ranks that hold
// it, in equal shares. Requires that nothing is missing. Nodes are those of `layout`; a rank with an unknown
// node counts as alone on it.
std::vector<Fetch> plan_fetches(const RankLayout& layout, int rank, int64_t element_bytes,
                                const std::vector<NeededRange>& needed, const RangesByParameter& known);

}  // namespace sailor
