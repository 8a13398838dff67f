// The config files of published models in etc/models: their parameters are as many as published, and
// exporting one gives the same model back.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <sstream>

#include "planner/spec/model_directory.h"
#include "planner/spec/model_family.h"
#include "planner/spec/text_file.h"
#include "planner/spec/transformer_shape.h"

namespace sailor {
namespace {

const std::string kModels = std::string(SAILOR_SOURCE_DIR) + "/etc/models/";

ModelSpec read_published(const std::string& name) {
  const std::string file = kModels + name + ".json";
  return parse_model_config(read_text_file(file), file);
}

TEST(PublishedModels, HaveTheirPublishedNumberOfParameters) {
  std::istringstream table(read_text_file(kModels + "parameters.csv"));
  std::string line;
  std::getline(table, line);
  ASSERT_EQ(line, "model,parameters");
  std::set<std::string> files = {"parameters.csv"}, families;
  while (std::getline(table, line)) {
    const size_t comma = line.find(',');
    const std::string name = line.substr(0, comma);
    const int64_t published = std::stoll(line.substr(comma + 1));
    const ModelSpec model = read_published(name);
    int64_t listed = 0;
    for (const ParameterSpec& parameter : list_parameters(model, model.vocabulary))
      listed += parameter.elements();
    EXPECT_EQ(listed, published) << name;
    EXPECT_EQ(shape_of(model).parameters(), published) << name;
    files.insert(name + ".json");
    families.insert(model.family);
  }
  for (const auto& entry : std::filesystem::directory_iterator(kModels))
    EXPECT_TRUE(files.contains(entry.path().filename().string())) << entry.path();
  for (const ModelFamily& family : model_families())
    EXPECT_TRUE(families.contains(family.name)) << family.name;
}

TEST(PublishedModels, AreTheSameAfterAnExport) {
  for (const auto& entry : std::filesystem::directory_iterator(kModels)) {
    if (entry.path().extension() != ".json") continue;
    const ModelSpec model = read_published(entry.path().stem());
    EXPECT_EQ(parse_model_config(to_model_config(model, "bfloat16"), "config.json"), model) << entry.path();
  }
}

}  // namespace
}  // namespace sailor
