// The losses of a validation by the names of the sets; the only set of a job that names none has an empty
// name. Their form in metrics and summaries, and in lines of text. Pure.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace sailor {

using ValidationLosses = std::map<std::string, double>;

// Adds `"validation_loss": LOSS` of the set without a name, else null, and of named ones `"validation":
// {NAME:
// {"loss": LOSS, "perplexity": exp(LOSS)}}`.
void add_validation(nlohmann::ordered_json& json, const ValidationLosses& losses);
// The losses of such an object; without those that are not finite.
ValidationLosses validation_in(const nlohmann::ordered_json& json);

// `5.4012 (perplexity 221.7)`, or `code 3.1000 (perplexity 22.2), web ...`.
std::string validation_text(const ValidationLosses& losses);

}  // namespace sailor
