// From whom a rank takes what it needs of a state of training that is spread over many. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "planner/plan/rank_layout.h"
#include "trainer/checkpoint/held_state.h"
#include "trainer/comm/exchange_lists.h"

namespace sailor {

// A run of elements that some rank holds, as everybody knows of it.
struct KnownRun {
  int64_t first = 0, end = 0;  // elements of the whole parameter
  int rank = 0;
  std::size_t state = 0, run = 0;  // indices in what that rank holds
};

struct KnownState {
  StateVersion version;
  int64_t optimizer_steps = 0;
  bool copy = false;
  std::vector<std::pair<std::size_t, KnownRun>> runs;  // by parameter
};

// What a rank tells the others of the states that it holds, and what they understand, given the lists of all.
NumberList told(const std::vector<HeldState>& held);
std::vector<KnownState> heard(const std::vector<NumberList>& lists);

// One way to take a whole state: from what is in use alone, or from copies too.
struct StateChoice {
  StateVersion version;
  bool with_copies = false;

  bool admits(const KnownState& state) const {
    return state.version == version && (with_copies || !state.copy);
  }
};
// All there are, the best first: the newest, and of one version what is in use.
std::vector<StateChoice> choices_of(const std::vector<KnownState>& known);

using RunsByParameter = std::map<std::size_t, std::vector<KnownRun>>;
RunsByParameter runs_of(const std::vector<KnownState>& known, const StateChoice& choice);

// A run of one tensor of a parameter (0 = the values, then the optimizer's states) that this rank needs.
struct NeededRun {
  std::size_t parameter = 0;
  int64_t first = 0, count = 0;
  std::size_t tensor = 0;
  char* memory = nullptr;
};

// Elements of `needed` that no run has.
int64_t missing(const std::vector<NeededRun>& needed, const RunsByParameter& known);

// A part of a needed run, and where it comes from.
struct Fetch {
  int rank = 0;
  std::size_t state = 0, run = 0, tensor = 0;
  int64_t offset = 0, count = 0;  // elements, from the beginning of that run
  char* memory = nullptr;
};

// Where each element comes from, each from one place: from this rank itself, else from ranks of its node,
// else from all ranks that hold it, in equal shares. Requires that nothing is missing. Nodes are those of
// `layout`; ranks whose node is unknown count as apart.
std::vector<Fetch> plan_fetches(const RankLayout& layout, int rank, int64_t element_bytes,
                                const std::vector<NeededRun>& needed, const RunsByParameter& known);

}  // namespace sailor
