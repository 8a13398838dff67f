#include "trainer/record/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "planner/spec/text_file.h"

namespace sailor {
namespace {

using testing::HasSubstr;

TEST(RunDirectory, DocumentsAreReplacedWholeAndLinesAppended) {
  const std::string path = testing::TempDir() + "/run." + std::to_string(getpid());
  RunDirectory directory(path);
  directory.write_document("summary.json", "first");
  directory.write_document("summary.json", "second");
  EXPECT_EQ(read_text_file(directory.file("summary.json")), "second");
  directory.append_line("metrics.jsonl", "{}");
  directory.append_line("metrics.jsonl", "{\"a\":1}");
  EXPECT_EQ(read_text_file(directory.file("metrics.jsonl")), "{}\n{\"a\":1}\n");
  for (const auto& entry : std::filesystem::directory_iterator(path))
    EXPECT_THAT(entry.path().string(), testing::Not(HasSubstr(".tmp"))) << "a temporary file stayed";
  std::filesystem::remove_all(path);
}

TEST(RunDirectory, ALineAfterATornOneIsALineOfItsOwn) {
  const std::string path = testing::TempDir() + "/torn." + std::to_string(getpid());
  RunDirectory directory(path);
  directory.write_document("events.jsonl", "{\"event\":1}\n{\"eve");  // as a power cut leaves it
  directory.append_line("events.jsonl", "{\"event\":2}");
  EXPECT_EQ(read_text_file(directory.file("events.jsonl")), "{\"event\":1}\n{\"eve\n{\"event\":2}\n");
  std::filesystem::remove_all(path);
}

TEST(RunDirectory, AnUnwritablePlaceIsAnErrorThatNamesIt) {
  EXPECT_THROW(RunDirectory("/proc/nowhere"), std::runtime_error);
}

}  // namespace
}  // namespace sailor
