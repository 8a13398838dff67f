#include "trainer/launch/rank_identity.h"

#include <fmt/format.h>

#include <cstdlib>

#include "trainer/process/process_title.h"

namespace sailor {

std::string rank_title(const RankSlot& slot, int generation) {
  return fmt::format("sailor: rank {} p{} s{} t{}/{} g{}", slot.rank, slot.pipeline, slot.stage, slot.tp_rank,
                     slot.shape.tp, generation);
}

void announce_generation(const RankSlot& slot, int generation) {
  constexpr int kLargestInName = 999;  // the short name has 15 characters
  const std::string number = slot.rank <= kLargestInName ? fmt::format(" {}", slot.rank) : "";
  set_process_title(rank_title(slot, generation), "sailor-rank" + number);
}

void announce_rank(const RankSlot& slot, int generation) {
  const auto set = [](const char* name, int value) { setenv(name, std::to_string(value).c_str(), 1); };
  announce_generation(slot, generation);
  set("SAILOR_RANK", slot.rank);
  set("SAILOR_PIPELINE", slot.pipeline);
  set("SAILOR_STAGE", slot.stage);
  set("SAILOR_TP_RANK", slot.tp_rank);
  set("SAILOR_GENERATION", generation);
}

}  // namespace sailor
