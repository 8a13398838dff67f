#include "planner/search/native/weight_delays.h"

#include <algorithm>

namespace sailor::native {
namespace {

// Calls it with each stage that may split its backward, its number, its first layer, and the most by which it
// may delay.
template <class Visit>
void for_each_splittable(const Space& space, PlanTemplate& of, size_t pipeline_class, const Visit& visit) {
  TemplateClass& pipelines = of.classes[pipeline_class];
  if (of.interleave > 1 || of.zero >= Zero::gradients) return;
  const auto microbatches =
      static_cast<int>((pipelines.microbatches + pipelines.pipelines - 1) / pipelines.pipelines);
  for (size_t i = 1; i < pipelines.stages.size(); ++i) {
    TemplateStage& stage = pipelines.stages[i];
    const int first = pipelines.stages[i - 1].end_layer;
    if (stage.end_layer <= first) return;  // no plan
    if (space.times(stage.option, of.microbatch_of(pipelines)).weights(first, stage.end_layer) > 0)
      visit(stage, static_cast<int>(i), first, std::min(static_cast<int>(i), microbatches - 1), microbatches);
  }
}

}  // namespace

Delays delay_weights(const Space& space, IterationModel& model, PlanTemplate& of, size_t pipeline_class) {
  Delays out;
  const int microbatch = of.microbatch_of(of.classes[pipeline_class]);
  const int stages = static_cast<int>(of.classes[pipeline_class].stages.size());
  for_each_splittable(
      space, of, pipeline_class, [&](TemplateStage& stage, int i, int first, int most, int microbatches) {
        const auto fits = [&](int delay) {
          return model.fits({space.options[static_cast<size_t>(stage.option)].kind, first, stage.end_layer,
                             stage.recompute, in_flight(i, stages, microbatches), microbatch,
                             microbatches > 1, sharers(space, of, stage.option), of.zero, false, delay,
                             stage.offload});
        };
        // Mostly all fit.
        int fitting = kWholeBackward, beyond = most + 1;
        for (int delay = most; beyond - fitting > 1; delay = fitting + (beyond - fitting) / 2)
          (fits(delay) ? fitting : beyond) = delay;
        stage.weight_delay = fitting;
        out.any = out.any || fitting != kWholeBackward;
        out.limited = out.limited || fitting < most;
      });
  return out;
}

void delay_most(const Space& space, PlanTemplate& of, size_t pipeline_class) {
  for_each_splittable(space, of, pipeline_class,
                      [](TemplateStage& stage, int, int, int most, int) { stage.weight_delay = most; });
}

void undo_delays(PlanTemplate& of) {
  for (TemplateClass& pipelines : of.classes)
    for (TemplateStage& stage : pipelines.stages) stage.weight_delay = kWholeBackward;
}

}  // namespace sailor::native
