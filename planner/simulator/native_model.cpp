#include "planner/simulator/native_model.h"

#include <algorithm>

#include "planner/simulator/iteration_model.h"
#include "planner/simulator/style_schedule.h"

namespace sailor::native {
namespace {

void add_event(Timeline& timeline, TimelineEvent::Kind kind, size_t group, double start_s, double end_s,
               int chunk = 0) {
  if (end_s > start_s) timeline.events.push_back({kind, static_cast<int>(group), -1, start_s, end_s, chunk});
}

class Predicting {
 public:
  Predicting(const PlanningContext& context, const Plan& plan)
      : context_(context), plan_(plan), kinds_(context), compact_(compact(plan, kinds_)), model_(kinds_) {}

  Prediction predict(std::vector<Timeline>* timelines) {
    const Iteration iteration = model_.iteration(compact_, timelines != nullptr, details_);
    Prediction out;
    out.iteration_s = iteration.iteration_s;
    // What pipelines wait for updates is part of these.
    out.pipeline_s = std::min(iteration.pipeline_s, model_.ready_pipeline_s(compact_, details_));
    out.sync_s = iteration.sync_s;
    out.update_s = iteration.update_s + iteration.pipeline_s - out.pipeline_s;
    out.overhead_s = iteration.overhead_s;
    out.message_bytes = details_.classes.message_bytes;
    out.spent = iteration.spent;
    for (int j = 0; j < compact_.pipelines(); ++j) predict_pipeline(j, out);
    for (size_t g = 0; g < details_.groups.size(); ++g)
      for (int j = 0; j < compact_.pipelines(); ++j)
        out.stages[first_stage(j) + stage_of(g, j)].sync_s += details_.group_sync_s[g] + details_.gather_s[g];
    if (timelines != nullptr) show(*timelines);
    return out;
  }

 private:
  size_t class_of(int pipeline) const {
    return static_cast<size_t>(details_.classes.of_pipeline[static_cast<size_t>(pipeline)]);
  }
  size_t first_stage(int pipeline) const {
    return static_cast<size_t>(compact_.first[static_cast<size_t>(pipeline)]);
  }
  size_t stage_of(size_t group, int pipeline) const {
    return static_cast<size_t>(details_.groups[group].stage_of[class_of(pipeline)]);
  }

  void predict_pipeline(int pipeline, Prediction& out) {
    const size_t of_class = class_of(pipeline), groups = compact_.groups(pipeline);
    const auto stages = compact_.of(pipeline);
    const bool first_of_class = details_.classes.pipelines[of_class].pipeline == pipeline;
    if (!first_of_class) {
      const size_t like = first_stage(details_.classes.pipelines[of_class].pipeline);
      for (size_t i = 0; i < stages.size(); ++i) {
        out.stages.push_back(out.stages[like + i]);
        out.stages.back().pipeline = pipeline;
      }
      return;
    }
    const int microbatch = compact_.microbatch[static_cast<size_t>(pipeline)];
    std::vector<MemoryBreakdown> memory;
    for (size_t g = 0; g < groups; ++g)
      memory.push_back(model_.memory(compact_, pipeline, static_cast<int>(g)));
    const PipelineSchedule schedule = schedule_of(context_.framework, plan_.interleave, 0);
    for (size_t i = 0; i < stages.size(); ++i) {
      const StageKind& kind = kinds_[stages[i].kind];
      const StageTimes& times = details_.times[of_class][i];
      const size_t group = i % groups;
      StagePrediction s;
      s.pipeline = pipeline;
      s.stage = static_cast<int>(i);
      s.forward_s = times.forward_s;
      s.backward_s = times.backward_s;
      s.send_forward_s = times.send_forward_s;
      s.send_backward_s = times.send_backward_s;
      s.update_s = kinds_.update_s(stages[i].kind, kinds_.times(stages[i].kind, microbatch),
                                   stages[i].first_layer, stages[i].end_layer, stages[i].offload);
      s.estimated = kind.profile->is_estimated(microbatch, {.tp = kind.shape.tp});
      s.in_flight = chunks_in_flight(schedule, static_cast<int>(group), static_cast<int>(groups),
                                     compact_.microbatches[static_cast<size_t>(pipeline)])[i / groups];
      s.busy_fraction =
          out.iteration_s > 0 ? details_.timelines[of_class].stage_busy_s[group] / out.iteration_s : 0;
      s.memory = memory[group];
      s.capacity_bytes = kind.capacity_bytes;
      if (s.memory.offloaded_bytes > 0 && kind.host_bytes > 0) {
        s.host_capacity_bytes = kind.host_bytes;
        s.host_bytes = kinds_.host_bytes(stages[i].kind, s.memory);
      }
      out.fits = out.fits && kinds_.missing_bytes(stages[i].kind, s.memory) <= 0;
      if (s.estimated) out.uncertainty = std::max(out.uncertainty, kind.profile->uncertainty);
      out.stages.push_back(s);
    }
  }

  // Every pipeline's own timeline, with what follows its last backward.
  void show(std::vector<Timeline>& timelines) const {
    const bool mesh = context_.framework.sums == FrameworkStyle::Sums::mesh;
    for (int j = 0; j < compact_.pipelines(); ++j) {
      const auto first_rank = static_cast<size_t>(details_.classes.pipelines[class_of(j)].first_rank);
      timelines.push_back(details_.timelines[class_of(j)]);
      Timeline& timeline = timelines.back();
      for (size_t g = 0; g < details_.groups.size() && has_replicas(compact_, kinds_); ++g) {
        const size_t group = stage_of(g, j) % compact_.groups(j);
        const int chunk = static_cast<int>(stage_of(g, j) / compact_.groups(j));
        const size_t rank = first_rank + group;
        const double start_s = mesh ? details_.backward_done_s[rank] : details_.group_start_s[g];
        const double end_s = mesh ? details_.synced_s[rank] : start_s + details_.group_sync_s[g];
        add_event(timeline, TimelineEvent::Kind::sync, group, start_s, end_s, chunk);
      }
      for (size_t group = 0; group < compact_.groups(j); ++group) {
        const double start_s = details_.stepping_s[first_rank + group];
        add_event(timeline, TimelineEvent::Kind::update, group, start_s,
                  start_s + std::min(details_.after_s[first_rank + group], details_.next_after_s));
        // That of the iteration before.
        add_event(timeline, TimelineEvent::Kind::update, group, 0,
                  details_.times[class_of(j)][group].ready_s);
      }
    }
  }

  const PlanningContext& context_;
  const Plan& plan_;
  StageKinds kinds_;
  const CompactPlan compact_;
  IterationModel model_;
  IterationDetails details_;
};

}  // namespace

Prediction simulate(const PlanningContext& context, const Plan& plan) {
  const PlanningContext own = under(plan, context);
  return Predicting(own, plan).predict(nullptr);
}

Prediction simulate(const PlanningContext& context, const Plan& plan, std::vector<Timeline>& timelines) {
  timelines.clear();
  const PlanningContext own = under(plan, context);
  return Predicting(own, plan).predict(&timelines);
}

}  // namespace sailor::native
