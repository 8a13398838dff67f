#include "planner/search/native/usual_ways.h"

#include <algorithm>

#include "planner/search/native/cut_layers.h"

namespace sailor::native {
double score_placed(Scorer& scorer, PlanTemplate& of, const UsualWays& ways) {
  double best = kNever;
  for (const Fill fill : {Fill::packed, Fill::together}) {
    if (fill != Fill::packed && !ways.thorough) break;
    of.fill = fill;
    for (const int block : {of.pipelines(), 1}) {
      of.block = block;
      best = std::min(best, scorer.score(of, ways.kept * scorer.best()));
      if (of.pipelines() == 1) break;
    }
  }
  return best;
}

double score_usual_ways(Scorer& scorer, const PlanFeatures& offered, PlanTemplate of, const UsualWays& ways) {
  double best = kNever;
  for (const Zero zero : zero_degrees_of(scorer.space(), offered, of)) {
    of.zero = zero;
    bool fits = false;
    for (const bool by_speed : {false, true}) {
      // A cut for which there is no memory leads to one only where there is no other plan.
      if (by_speed && !fits && scorer.best() < kNever) break;
      bool cut = true;
      for (size_t c = 0; c < of.classes.size(); ++c)
        cut = cut && (by_speed ? cut_by_speed(scorer.space(), of, c)
                               : cut_layers(scorer, of, c, ways.choose_recompute));
      if (!cut || !share_batch(scorer.space(), of)) {
        ++scorer.rejected["memory"];
        continue;
      }
      fits = true;
      best = std::min(best, score_placed(scorer, of, ways));
      if (by_speed || !ways.thorough) continue;
      bool shorter = false;
      for (size_t c = 0; c < of.classes.size(); ++c) shorter = shorten(scorer, of, c) || shorter;
      if (shorter) best = std::min(best, score_placed(scorer, of, ways));
    }
  }
  return best;
}

std::vector<Recompute> uniform_recompute(const PlanFeatures& offered) {
  if (offered.contains(PlanFeature::recompute)) return {Recompute::none, Recompute::full};
  return {Recompute::none};
}

}  // namespace sailor::native
