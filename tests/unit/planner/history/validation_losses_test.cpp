#include "planner/history/validation_losses.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace sailor {
namespace {

using nlohmann::ordered_json;

ordered_json json_of(const ValidationLosses& losses) {
  ordered_json json = ordered_json::object();
  add_validation(json, losses);
  return json;
}

TEST(ValidationLosses, OneSetIsANumberAndSeveralHaveNames) {
  EXPECT_EQ(json_of({}).dump(), R"({"validation_loss":null})");
  EXPECT_EQ(json_of({{"", 4.5}}).dump(), R"({"validation_loss":4.5})");
  const ordered_json two = json_of({{"web", 2}, {"code", 0}});
  EXPECT_TRUE(two.at("validation_loss").is_null());
  EXPECT_DOUBLE_EQ(two.at("validation").at("web").at("perplexity"), std::exp(2.0));
  EXPECT_EQ(two.at("validation").at("code").dump(), R"({"loss":0.0,"perplexity":1.0})");
}

TEST(ValidationLosses, AreReadAsWritten) {
  for (const ValidationLosses& losses :
       {ValidationLosses{}, ValidationLosses{{"", 4.5}}, ValidationLosses{{"a", 1.25}, {"b", 3}}})
    EXPECT_EQ(validation_in(json_of(losses)), losses);
  EXPECT_EQ(validation_in(json_of({{"a", std::numeric_limits<double>::quiet_NaN()}, {"b", 1}})),
            (ValidationLosses{{"b", 1}}));
  EXPECT_EQ(validation_in(ordered_json::parse(R"({"validation": {"a": 3, "b": {"loss": "x"}}})")),
            ValidationLosses());
}

TEST(ValidationLosses, HaveTheirPerplexityInLines) {
  EXPECT_EQ(validation_text({{"", 5.4012}}), "5.4012 (perplexity 221.7)");
  EXPECT_EQ(validation_text({{"web", 0}, {"code", 3.1}}),
            "code 3.1000 (perplexity 22.2), web 0.0000 (perplexity 1.0)");
}

}  // namespace
}  // namespace sailor
