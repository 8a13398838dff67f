#include "planner/cli/pictures.h"

#include <fmt/format.h>

#include "planner/report/chrome_trace.h"
#include "planner/report/html_report.h"
#include "planner/report/timeline_svg.h"
#include "planner/spec/error.h"
#include "planner/spec/text_file.h"

namespace sailor::cli {
namespace {

// A forward, a backward and at most two messages per microbatch and stage, then sums and the update.
double most_events(const Plan& plan) {
  double events = 0;
  for (const PlanPipeline& pipeline : plan.pipelines)
    events += static_cast<double>(pipeline.stages.size()) * (4.0 * pipeline.microbatches + 2);
  return events;
}

}  // namespace

bool can_draw(const Plan& plan) {
  return most_events(plan) <= kMostPictureEvents;
}

bool wants_pictures(const SimulateCommand& command) {
  return !command.trace.empty() || !command.html.empty() || !command.svg.empty();
}

void check_pictures(const SimulateCommand& command, const Plan& plan, CostModel model) {
  if (model != CostModel::native) {
    throw InputError(
        fmt::format("--trace, --html and --svg show the timeline of the native cost model, the {} one "
                    "has none: leave out --cost-model or the files",
                    to_string(model)));
  }
  const double events = most_events(plan);
  if (!command.trace.empty() && events > kMostTraceEvents) {
    throw InputError(
        fmt::format("--trace: {:.0f} events, more than the {:.0f} that viewers open: use --svg or --html, or "
                    "trace a plan with a smaller global batch or larger microbatches",
                    events, kMostTraceEvents));
  }
  if (!can_draw(plan)) {
    throw InputError(
        fmt::format("{}: {:.0f} events are too many to draw ({:.0f} at most): draw a plan with a "
                    "smaller global batch or larger microbatches",
                    command.svg.empty() ? "--html" : "--svg", events, kMostPictureEvents));
  }
}

void write_pictures(const SimulateCommand& command, const Plan& plan, const Prediction& prediction,
                    const std::vector<Timeline>& timelines, const std::vector<std::string>& notes) {
  if (!command.trace.empty()) write_file_atomically(command.trace, chrome_trace(plan, timelines));
  if (!command.html.empty())
    write_file_atomically(command.html, html_report(plan, prediction, timelines, notes));
  if (!command.svg.empty()) write_file_atomically(command.svg, timeline_svg(plan, prediction, timelines));
}

}  // namespace sailor::cli
