#include "trainer/checkpoint/sequential_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/unit/planner/scratch.h"

namespace sailor {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr int64_t kBlock = int64_t{8} << 20;

std::string some_bytes(int64_t count) {
  std::string bytes(static_cast<std::size_t>(count), '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 2654435761u >> 13);
  return bytes;
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class SequentialFiles : public ::testing::Test {
 protected:
  const std::string directory_ = test::scratch_directory("sequential-file");
  const std::string path_ = directory_ + "/f";
};

TEST_F(SequentialFiles, HoldWhatWasAppendedWhateverItsSize) {
  const std::string all = some_bytes(2 * kBlock + 12345);
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{4095}, int64_t{4096}, int64_t{4097}, kBlock - 1,
                              kBlock, kBlock + 4096, 2 * kBlock + 12345}) {
    for (const int64_t at_once : {int64_t{100'001}, int64_t{3} << 20, bytes}) {
      SequentialFile file(path_, bytes);
      for (int64_t done = 0; done < bytes; done += std::min(at_once, bytes - done))
        file.append(all.data() + done, std::min(at_once, bytes - done));
      EXPECT_EQ(file.size(), bytes);
      file.finish();
      EXPECT_TRUE(contents(path_) == all.substr(0, static_cast<std::size_t>(bytes)))
          << bytes << " bytes, " << at_once << " at once";
    }
  }
}

TEST_F(SequentialFiles, HoldNoMoreAndNoLessThanThat) {
  const std::string all = some_bytes(kBlock + 3);
  SequentialFile file(path_, 10);
  file.append(all.data(), kBlock + 3);
  file.finish();
  EXPECT_TRUE(contents(path_) == all);
  SequentialFile shorter(path_, kBlock);
  shorter.append(all.data(), 10);
  shorter.finish();
  EXPECT_EQ(contents(path_), all.substr(0, 10));
}

TEST_F(SequentialFiles, StopWhenTold) {
  std::atomic<bool> stop = false;
  const std::string all = some_bytes(kBlock);
  SequentialFile file(path_, kBlock, &stop);
  file.append(all.data(), kBlock / 2);
  stop = true;
  EXPECT_THAT([&] { file.append(all.data(), kBlock / 2); },
              ThrowsMessage<std::runtime_error>(HasSubstr(path_ + ": given up")));
  EXPECT_THAT([&] { file.finish(); }, ThrowsMessage<std::runtime_error>(HasSubstr("given up")));
}

TEST_F(SequentialFiles, TellWhatCannotBeWritten) {
  EXPECT_THAT([] { SequentialFile("/nowhere/f", 1); },
              ThrowsMessage<std::runtime_error>(HasSubstr("cannot write /nowhere/f: No such file")));
  // A limit on the size of files simulates a full disk.
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &usual), 0);
  rlimit small = usual;
  small.rlim_cur = static_cast<rlim_t>(kBlock) + 5000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string all = some_bytes(2 * kBlock);
  const auto write = [&] {
    SequentialFile file(path_, 2 * kBlock);
    file.append(all.data(), 2 * kBlock);
    file.finish();
  };
  EXPECT_THAT(write,
              ThrowsMessage<std::runtime_error>(HasSubstr("cannot write " + path_ + ": File too large")));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &usual), 0);
  std::signal(SIGXFSZ, before);
}

}  // namespace
}  // namespace sailor
