#include "planner/report/html_report.h"

#include "planner/report/html_parts.h"

namespace sailor {

std::string html_report(const Plan& plan, const Prediction& prediction,
                        const std::vector<Timeline>& timelines, const std::vector<std::string>& notes) {
  std::string body;
  for (const std::string& note : notes) body += html_paragraph(note);
  body += html_plan(plan, prediction) + html_prediction(prediction) +
          html_timeline(plan, prediction, timelines) + html_memory(plan, prediction, timelines) +
          html_stages(plan, prediction, timelines);
  return html_page((plan.model.empty() ? "prediction" : plan.model) + ": predicted iteration", summary(plan),
                   body);
}

}  // namespace sailor
