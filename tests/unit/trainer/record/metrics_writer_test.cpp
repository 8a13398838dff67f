// The files that get every step: JSON, CSV and TensorBoard event files.
#include "trainer/record/metrics_writer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "planner/spec/text_file.h"
#include "tests/unit/trainer/record/step_report.h"
#include "trainer/record/event_file.h"

namespace sailor {
namespace {

using ::testing::ElementsAre;

TEST(Crc32c, IsThatOfRfc3720) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
}

template <class T>
T take(const std::string& bytes, std::size_t& at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  at += sizeof value;
  return value;
}

// Splits a file into its records, checking both checksums of each.
std::vector<std::string> records(const std::string& path) {
  const auto masked = [](std::string_view bytes) {
    const uint32_t crc = crc32c(bytes);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
  };
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::vector<std::string> found;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto length_bytes = bytes.substr(at, 8);
    const auto length = take<uint64_t>(bytes, at);
    EXPECT_EQ(take<uint32_t>(bytes, at), masked(length_bytes));
    found.push_back(bytes.substr(at, length));
    at += length;
    EXPECT_EQ(take<uint32_t>(bytes, at), masked(found.back()));
  }
  return found;
}

TEST(EventFile, RecordsAreWhatTensorBoardReads) {
  const std::string directory = ::testing::TempDir() + "/events";
  std::filesystem::remove_all(directory);
  EventFile file(directory, 1700000000.5);
  file.write(300, 1.0, {{"loss", 2.5}});
  EXPECT_THAT(file.path(), ::testing::HasSubstr("events.out.tfevents.1700000000."));
  const std::vector<std::string> found = records(file.path());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0], ::testing::EndsWith("\x1a\x0d"
                                            "brain.Event:2"));
  // wall_time (1, fixed64) 1.0; step (2, varint) 300; summary (5, bytes) { value (1) { tag (1) loss; 2: 2.5f
  // } }
  const std::string expected =
      std::string("\x09\0\0\0\0\0\0\xf0\x3f\x10\xac\x02\x2a\x0d\x0a\x0b\x0a\x04loss\x15", 23) +
      std::string("\0\0\x20\x40", 4);
  EXPECT_EQ(found[1], expected);
}

std::vector<std::string> event_files(const RunDirectory& directory) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory.file("tensorboard")))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

StepReport report_of_step(int64_t step, double loss) {
  StepReport report = kStepReport;
  report.step = step;
  report.loss = loss;
  return report;
}

TEST(MetricsWriter, ARunThatGoesOnKeepsWhatWasWrittenOfTheStepsBeforeIt) {
  const std::string path = ::testing::TempDir() + "/metrics-resumed";
  std::filesystem::remove_all(path);
  const StepFacts facts{.steps = 10, .tokens = 100};
  {
    const RunDirectory directory(path);
    MetricsWriter writer(directory, facts, "");
    for (int64_t step = 1; step <= 5; ++step) writer.write(report_of_step(step, 1));
  }
  // The crash left half a line, and the checkpoint is of step 3.
  std::ofstream(path + "/metrics.jsonl", std::ios::app) << "{\"step\":2";
  std::ofstream(path + "/metrics.csv", std::ios::app) << "2,";
  const RunDirectory directory(path);
  {
    MetricsWriter writer(directory, facts, "");
    EXPECT_NE(read_text_file(directory.file("metrics.jsonl")), "") << "nothing is known of this run yet";
    for (int64_t step = 4; step <= 6; ++step) writer.write(report_of_step(step, 2));
  }
  std::vector<std::string> steps, rows;
  std::istringstream jsonl(read_text_file(directory.file("metrics.jsonl")));
  for (std::string line; std::getline(jsonl, line);) {
    const auto json = nlohmann::json::parse(line);
    steps.push_back(fmt::format("{} {}", json.at("step").get<int>(), json.at("loss").get<double>()));
  }
  EXPECT_THAT(steps, ElementsAre("1 1", "2 1", "3 1", "4 2", "5 2", "6 2"));
  std::istringstream csv(read_text_file(directory.file("metrics.csv")));
  for (std::string line; std::getline(csv, line);) rows.push_back(line.substr(0, line.find(',', 2)));
  EXPECT_THAT(rows, ElementsAre("step", "1,1", "2,1", "3,1", "4,2", "5,2", "6,2"));
  // TensorBoard drops its data of steps from 4 on when it reads the second file.
  const std::vector<std::string> events = event_files(directory);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(records(events[0]).size(), 6u);
  const std::vector<std::string> resumed = records(events[1]);
  ASSERT_EQ(resumed.size(), 5u);
  // step (2, varint) 4; session_log (7, bytes) { status (1, varint) START }
  EXPECT_EQ(resumed[1].substr(9), std::string("\x10\x04\x3a\x02\x08\x01"));

  // A third run starts from the beginning.
  MetricsWriter(directory, facts, "").write(report_of_step(1, 3));
  const std::string again = read_text_file(directory.file("metrics.jsonl"));
  EXPECT_EQ(std::count(again.begin(), again.end(), '\n'), 1);
  EXPECT_EQ(event_files(directory).size(), 1u);
}

TEST(MetricsWriter, ContinuesFilesWhoseLastBlocksAPowerCutLost) {
  const std::string path = ::testing::TempDir() + "/lost_blocks." + std::to_string(getpid());
  const RunDirectory directory(path);
  const StepFacts facts;
  StepReport report = kStepReport;
  report.step = 1;
  MetricsWriter(directory, facts, "").write(report);
  const std::string zeros(40, '\0');
  for (const auto& [name, torn] : {std::pair("metrics.jsonl", "{\"step\":2," + zeros + "\n" + zeros),
                                   std::pair("metrics.csv", "2,5.3," + zeros + "\n3,1\n" + zeros)})
    std::ofstream(directory.file(name), std::ios::app | std::ios::binary) << torn;
  report.step = 4;
  MetricsWriter(directory, facts, "").write(report);
  const std::string json = read_text_file(directory.file("metrics.jsonl")),
                    csv = read_text_file(directory.file("metrics.csv"));
  StepReport first = report;
  first.step = 1;
  EXPECT_EQ(json, step_json(first, facts) + "\n" + step_json(report, facts) + "\n");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3) << csv;
  std::filesystem::remove_all(path);
}

TEST(MetricsWriter, AStepThatIsTrainedAgainReplacesWhatFollowedIt) {
  const std::string path = ::testing::TempDir() + "/metrics-again";
  std::filesystem::remove_all(path);
  const StepFacts facts{.steps = 10, .tokens = 100};
  const RunDirectory directory(path);
  MetricsWriter writer(directory, facts, "");
  for (int64_t step = 1; step <= 5; ++step) writer.write(report_of_step(step, 1));
  for (int64_t step = 3; step <= 4; ++step) writer.write(report_of_step(step, 2));
  std::vector<std::string> steps;
  std::istringstream jsonl(read_text_file(directory.file("metrics.jsonl")));
  for (std::string line; std::getline(jsonl, line);) {
    const auto json = nlohmann::json::parse(line);
    steps.push_back(fmt::format("{} {}", json.at("step").get<int>(), json.at("loss").get<double>()));
  }
  EXPECT_THAT(steps, ElementsAre("1 1", "2 1", "3 2", "4 2"));
  EXPECT_EQ(event_files(directory).size(), 1u) << "TensorBoard reads of it in the same file";
}

TEST(MetricsWriter, EveryStepIsInAllFiles) {
  const std::string path = ::testing::TempDir() + "/metrics-run";
  std::filesystem::remove_all(path);
  const RunDirectory directory(path);
  const StepFacts facts{.steps = 10, .tokens = 100};
  for (int run = 0; run < 2; ++run) {  // the second run starts from the beginning
    MetricsWriter writer(directory, facts, "");
    writer.write(report_of_step(1, 5.312));
    writer.write(report_of_step(2, 5.312));
  }
  const std::string jsonl = read_text_file(directory.file("metrics.jsonl"));
  EXPECT_EQ(std::count(jsonl.begin(), jsonl.end(), '\n'), 2);
  const auto line = nlohmann::json::parse(jsonl.substr(0, jsonl.find('\n')));
  EXPECT_EQ(line.at("loss"), 5.312);
  EXPECT_TRUE(line.at("validation_loss").is_null());
  const std::string csv = read_text_file(directory.file("metrics.csv"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
  const std::vector<std::string> events = event_files(directory);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(records(events[0]).size(), 3u);
}

}  // namespace
}  // namespace sailor
