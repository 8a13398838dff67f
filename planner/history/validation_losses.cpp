#include "planner/history/validation_losses.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "planner/history/json_lines.h"

namespace sailor {
namespace {

// JSON knows no NaN and no infinity.
Json finite_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

}  // namespace

void add_validation(Json& json, const ValidationLosses& losses) {
  json["validation_loss"] = nullptr;
  for (const auto& [name, loss] : losses) {
    if (name.empty()) {
      json["validation_loss"] = finite_or_null(loss);
    } else {
      json["validation"][name] = {{"loss", finite_or_null(loss)},
                                  {"perplexity", finite_or_null(std::exp(loss))}};
    }
  }
}

ValidationLosses validation_in(const Json& json) {
  ValidationLosses losses;
  if (const std::optional<double> loss = number_in(json, "validation_loss")) losses[""] = *loss;
  if (!json.contains("validation") || !json["validation"].is_object()) return losses;
  for (const auto& [name, set] : json["validation"].items()) {
    if (!set.is_object()) continue;
    if (const std::optional<double> loss = number_in(set, "loss")) losses[name] = *loss;
  }
  return losses;
}

std::string validation_text(const ValidationLosses& losses) {
  std::string text;
  for (const auto& [name, loss] : losses)
    text += fmt::format("{}{}{}{:.4f} (perplexity {:.1f})", text.empty() ? "" : ", ", name,
                        name.empty() ? "" : " ", loss, std::exp(loss));
  return text;
}

}  // namespace sailor
