#include "planner/cli/progress_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace sailor::cli {
namespace {

// Ten minutes of work in steps of one second.
std::string told(bool terminal, bool quiet) {
  std::ostringstream out;
  double now_s = 100;
  {
    ProgressLine line("copy", quiet, {"MB", 1e6}, {&out, terminal, [&now_s] { return now_s; }});
    for (int i = 1; i <= 600; ++i) {
      now_s += 1;
      line.at(i * 1e6, 600e6);
    }
  }
  return out.str();
}

TEST(ProgressLine, ALogGetsALineForEveryTenth) {
  const std::string text = told(false, false);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10);
  EXPECT_EQ(text.substr(0, text.find('\n')), "copy: 1 % of 600 MB, 1 MB/s, 10 min left");
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find('\033'), std::string::npos);
}

TEST(ProgressLine, ATerminalGetsOneLineThatIsGoneAtTheEnd) {
  const std::string text = told(true, false);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 0);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\r'), 601);
  EXPECT_NE(text.find("\r\033[Kcopy: 50 % of 600 MB, 1 MB/s, 5 min left\r"), std::string::npos);
  EXPECT_TRUE(text.ends_with("\r\033[K"));
}

TEST(ProgressLine, WhatIsOverInASecondSaysNothing) {
  for (const bool terminal : {false, true}) {
    std::ostringstream out;
    double now_s = 0;
    {
      ProgressLine line("copy", false, {"MB", 1e6}, {&out, terminal, [&now_s] { return now_s; }});
      for (int i = 1; i <= 9; ++i) {
        now_s += 0.1;
        line.at(i, 9);
      }
    }
    EXPECT_EQ(out.str(), "");
  }
}

TEST(ProgressLine, AQuietOneSaysNothing) {
  EXPECT_EQ(told(false, true), "");
  EXPECT_EQ(told(true, true), "");
}

TEST(ProgressLine, NothingToDoIsDone) {
  std::ostringstream out;
  double now_s = 0;
  ProgressLine line("copy", false, {"cells", 1}, {&out, false, [&now_s] { return now_s; }});
  now_s = 10;
  line.at(0, 0);
  EXPECT_EQ(out.str(), "copy: 100 % of 0 cells, 0 cells/s\n");
}

}  // namespace
}  // namespace sailor::cli
