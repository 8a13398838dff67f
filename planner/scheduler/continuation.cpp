#include "planner/scheduler/continuation.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace sailor {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFirstPartOnly[] = {"begin",        "dependency", "hold",  "job-name",
                                          "open-mode",    "parsable",   "quiet", "test-only",
                                          "sailor-fresh", "wait",       "wrap"};

Json parse(const std::string& text, const char* what) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) throw std::runtime_error(std::string(what) + ": not a JSON object");
  return json;
}

}  // namespace

std::string to_json(const Resubmission& submission) {
  Json options = Json::array();
  for (const GivenOption& option : submission.options) options.push_back({option.name, option.value});
  return Json{
      {"options", options}, {"arguments", submission.arguments}, {"environment", submission.environment}}
      .dump();
}

Resubmission parse_resubmission(const std::string& text) {
  const Json json = parse(text, "SAILOR_SUBMISSION");
  try {
    Resubmission submission;
    for (const Json& option : json.at("options"))
      submission.options.push_back({option.at(0).get<std::string>(), option.at(1).get<std::string>()});
    submission.arguments = json.at("arguments").get<std::vector<std::string>>();
    submission.environment = json.at("environment").get<std::map<std::string, std::string>>();
    return submission;
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(std::string("SAILOR_SUBMISSION: ") + error.what());
  }
}

std::string to_json(const PreviousPart& part) {
  return Json{{"job", part.job}, {"spec", part.spec}, {"run_directory", part.run_directory}}.dump();
}

PreviousPart parse_previous_part(const std::string& text) {
  const Json json = parse(text, "SAILOR_CONTINUES");
  try {
    return {json.at("job").get<std::string>(), json.at("spec").get<std::string>(),
            json.at("run_directory").get<std::string>()};
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(std::string("SAILOR_CONTINUES: ") + error.what());
  }
}

std::vector<GivenOption> options_of_every_part(std::vector<GivenOption> given) {
  std::erase_if(given, [](const GivenOption& option) {
    return std::find(std::begin(kFirstPartOnly), std::end(kFirstPartOnly), option.name) !=
           std::end(kFirstPartOnly);
  });
  return given;
}

}  // namespace sailor
